"""The client that is used where none is given."""

import asyncio

import pytest

from interlingua import Session, execute, generate, sync
from interlingua.api.run.clients import get_default_client, set_default_client
from interlingua.client.client import Client
from interlingua.providers.rows import ROWS
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.errors import ConfigurationError


@pytest.fixture(autouse=True)
def clean():
    yield
    set_default_client(None)


def test_made_once_from_the_environment(monkeypatch):
    """At first use, not before."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    client = get_default_client()

    assert "openai" in repr(client)
    assert get_default_client() is client


def test_set():
    """Until it is set to None again."""
    mine = Client({})
    set_default_client(mine)

    assert get_default_client() is mine
    set_default_client(None)
    assert get_default_client() is not mine


def test_only_a_client_will_do():
    """It may block: the blocking functions use the same default."""
    blocking = sync.Client({})
    set_default_client(blocking)
    assert get_default_client() is blocking.asynchronous
    set_default_client(None)
    with pytest.raises(
        ConfigurationError, match=r"not interlingua\.api\.session\.session\.Session"
    ):
        set_default_client(Session("m"))


PROVIDER_VARIABLES = [
    name for row in ROWS for name in (*row.key_env, *row.base_url_env, *row.headers_env.values())
]


@pytest.fixture
def no_keys(monkeypatch):
    for name in PROVIDER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    set_default_client(None)
    return monkeypatch


@pytest.mark.parametrize("model", ["openai:gpt-5.2", "gpt-5.2"])
@pytest.mark.parametrize("ask", [lambda *a: asyncio.run(generate(*a)), sync.generate])
def test_a_forgotten_key_is_named_and_works_once_it_is_set(no_keys, model, ask):
    """The error names the variable; once it is set, the next call works."""
    with pytest.raises(ConfigurationError, match="Set OPENAI_API_KEY") as caught:
        ask(model, "hi")
    assert caught.value.error_code == "not_configured"
    assert "local:" not in caught.value.message
    with serve_in_thread(Simulator(text("There."))) as server:
        no_keys.setenv("OPENAI_API_KEY", "k")
        no_keys.setenv("OPENAI_BASE_URL", server.url)
        assert ask(model, "hi").text == "There."

        with pytest.raises(ConfigurationError, match="Set ANTHROPIC_API_KEY"):
            ask("claude-haiku-4-5", "hi")
        no_keys.setenv("ANTHROPIC_API_KEY", "k")  # another one is found later too
        no_keys.setenv("ANTHROPIC_BASE_URL", server.url)
        assert ask("claude-haiku-4-5", "hi").response.provider == "anthropic"


def test_execute_returns_the_code_of_a_missing_key(no_keys):
    """`execute` returns the code."""
    assert no_keys

    async def work():
        return await execute("openai:gpt-5.2", "hi")

    assert asyncio.run(work()).error.code == "not_configured"
