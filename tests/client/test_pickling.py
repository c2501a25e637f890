"""A client pickles as its configuration, for process pools and engines."""

import asyncio
import pickle

import pytest

from interlingua import Client, OpenAIAdapter, Request
from interlingua.errors import ConfigurationError
from interlingua.middleware import Budget, Cache, CircuitBreaker, Fallback, Logging, RateLimit
from interlingua.simulator import Simulator, scripted, serve_in_thread, text
from interlingua.stores import SQLiteStore

KEY = "sk-planted-key-of-a-test"
OTHER = "sk-planted-other-key"


def carried(value):
    """What arrives in another process."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 -- our own


def ask(client):
    async def work():
        async with client:
            request = Request(model="openai:gpt-5.2", messages="Hi.", max_tokens=5)
            return await client.complete(request)

    return asyncio.run(work()).text


def test_a_client_answers_where_it_was_unpickled():
    """Adapters keep their keys and addresses that the program gave them."""
    with serve_in_thread(Simulator(text("Hello."), text("Again."), key=KEY)) as server:
        client = Client({"openai": OpenAIAdapter(KEY, base_url=server.url)}, on_loss="all")
        assert ask(client) == "Hello."
        twin = carried(client)
        assert ask(twin) == "Again."

    assert twin.default_provider == "openai"
    assert repr(twin) == repr(client)


def test_keys_of_the_environment_stay_there(monkeypatch):
    """A client from the environment takes the keys that it finds where it arrives."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    client = Client.from_env()
    data = pickle.dumps(client)
    assert KEY.encode() not in data

    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    with serve_in_thread(Simulator(text("Hello."), key=OTHER)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert ask(pickle.loads(data)) == "Hello."  # noqa: S301 -- our own


def test_a_registry_file_names_its_variables(monkeypatch, tmp_path):
    """The key of a variable that the file names is read again, too."""
    path = tmp_path / "registry.yaml"
    path.write_text("adapters:\n  mine: {type: openai, api_key_env: MY_KEY}\nmodels: {}\n")
    client = Client.from_file(path, {"MY_KEY": KEY})
    data = pickle.dumps(client)
    assert KEY.encode() not in data

    monkeypatch.setenv("MY_KEY", OTHER)
    twin = pickle.loads(data)  # noqa: S301 -- our own
    assert twin.adapter("mine").configuration.key == OTHER


def test_access_of_one_call_is_carried():
    """A client made with another key has that key there, too."""
    with serve_in_thread(Simulator(text("Hello."), key=OTHER)) as server:
        client = Client({"openai": OpenAIAdapter(KEY)})
        client = client.with_access("openai:gpt-5.2", api_key=OTHER, base_url=server.url)
        assert ask(carried(client)) == "Hello."


def test_middleware_with_a_shared_store(tmp_path):
    """The budget of both is one, because their store is one."""
    store = SQLiteStore(tmp_path / "limits.sqlite")
    layers = [
        Budget(0.001, store=store, max_tokens=20),
        RateLimit(requests_per_minute=100, store=store),
        CircuitBreaker(store=store),
        Cache(store=store),
        Fallback("openai:gpt-5.2"),
        Logging(),
    ]
    client = carried(Client({"openai": OpenAIAdapter(KEY)}, middleware=layers))
    budget = client._middleware[0]

    async def work():
        await store.add("x", 1)
        used = await budget.used()
        await budget._leases.store.close()
        await store.close()
        return used

    assert asyncio.run(work()) == 0
    assert len(client._middleware) == len(layers)


@pytest.mark.parametrize("layer", [Budget(1), RateLimit(concurrency=2)])
def test_a_limit_in_memory_is_refused(layer):
    """Two processes would each have the whole limit."""
    with pytest.raises(ConfigurationError, match="memory of this process"):
        pickle.dumps(Client({"openai": OpenAIAdapter(KEY)}, middleware=[layer]))


def test_another_kind_of_client_is_refused():
    """A scripted client has its script here."""
    with pytest.raises(ConfigurationError, match="ScriptedClient"):
        pickle.dumps(scripted("Hi."))
