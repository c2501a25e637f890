"""`served_models`, `served_model` and `count_tokens`."""

import asyncio

import pytest

from interlingua import Client, HttpAdapter, sync
from interlingua.errors import ConfigurationError, NotFoundError, UnsupportedError
from interlingua.media import count_tokens, served_model, served_models
from interlingua.simulator import Simulator, serve_in_thread
from interlingua.sync import media as blocking
from support.simulated import MODELS, adapters

SLASH = "maker/three:free"
LISTING = sorted(MODELS.keys() - {"bedrock_converse"})
"""The lists of Bedrock are of another service, with an address of its own."""
every_listing = pytest.mark.parametrize("provider", LISTING)


@pytest.fixture(scope="module")
def url():
    with serve_in_thread(Simulator(models=["one", "two", SLASH, *MODELS.values()])) as server:
        yield server.url


def ask(url, work):
    async def whole():
        async with Client(adapters(url)) as client:
            return await work(client)

    return asyncio.run(whole())


@every_listing
def test_models_that_are_served(url, provider):
    """With the limits that the provider tells; the key and the address may be those of the call."""

    async def work(client):
        listed = await served_models(provider, client=client)
        base = f"{url}/v1" if provider == "openai_compatible" else url
        again = await served_models(
            provider, client=client, api_key="other", base_url=base, headers={"x-mine": "1"}
        )
        return listed, again, await client.list_models(provider)

    listed, again, same = ask(url, work)

    assert [model.id for model in listed][:2] == ["one", "two"]
    assert listed == again == same
    assert {model.provider for model in listed} == {provider}
    assert {model.context_window for model in listed} == {1_048_576}
    assert {model.max_output_tokens for model in listed} == {65_536}
    assert {model.supports_tools for model in listed} == {None}


def test_models_of_all_providers(url):
    """Of each that is configured and has a list."""
    listed = ask(url, lambda client: served_models(client=client))

    assert {model.provider for model in listed} == {*LISTING}


@pytest.mark.parametrize("function", [served_models, served_model])
def test_who_has_no_list(url, function):
    """The error names providers that have one."""
    name = "bedrock_converse" if function is served_models else "bedrock_converse:one"
    with pytest.raises(UnsupportedError, match="These providers have it: openai, anthropic"):
        ask(url, lambda client: function(name, client=client))


@every_listing
def test_one_model_that_is_served(url, provider):
    """It is as the list has it; its name may have a slash, and the provider may be apart."""

    async def work(client):
        listed = {model.id: model for model in await served_models(provider, client=client)}
        one = await served_model(f"{provider}:one", client=client)
        three = await served_model(SLASH, provider=provider, client=client)
        same = await client.retrieve_model(f"{provider}:one")
        assert await client.retrieve_model(SLASH, provider) == three
        return listed, one, three, same

    listed, one, three, same = ask(url, work)

    assert one == same == listed["one"]
    assert three == listed[SLASH]
    assert (one.provider, one.context_window) == (provider, 1_048_576)


@every_listing
def test_a_model_that_is_not_served(url, provider):
    """The provider's 404 is a `NotFoundError` that names the provider and the model."""
    with pytest.raises(NotFoundError) as caught:
        ask(url, lambda client: served_model(f"{provider}:nobody-has-it", client=client))

    assert (caught.value.provider, caught.value.status_code) == (provider, 404)
    assert caught.value.model == "nobody-has-it"


def test_who_cannot_describe_one_model():
    """Nothing is sent, and the error names providers that can."""
    client = Client({"perplexity": HttpAdapter("perplexity", "k")})
    with pytest.raises(UnsupportedError, match=r"'retrieve_model'.*openai, anthropic, gemini"):
        asyncio.run(served_model("perplexity:sonar", client=client))
    with pytest.raises(ConfigurationError):
        asyncio.run(served_model("", client=client))


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "bedrock_converse"])
def test_tokens_are_counted_by_the_provider(url, provider):
    """A prompt, messages, a system prompt and tools, as in `generate`."""
    model = f"{provider}:{MODELS[provider]}"
    tool = {"name": "f", "parameters": {"type": "object", "properties": {}}}

    async def work(client):
        return [
            await count_tokens(model, "How long is this?", client=client),
            await count_tokens(model, messages=["How long is this?"], client=client),
            await count_tokens(model, "How long is this?", system="Be brief " * 9, client=client),
            await count_tokens(model, "How long is this?", tools=[tool], client=client),
        ]

    plain, same, longer, with_tools = ask(url, work)

    assert plain == same > 0
    assert longer > plain
    assert with_tools >= plain


def test_who_cannot_count(url):
    """The error says what to use."""
    with pytest.raises(UnsupportedError, match="estimate_input_tokens"):
        ask(url, lambda client: count_tokens("openai_compatible:house-model", "a", client=client))
    with pytest.raises(ConfigurationError):
        ask(url, lambda client: count_tokens("openai:gpt-5.2", client=client))


def test_blocking(url):
    """The same functions in `interlingua.sync.media`."""
    with sync.Client({"gemini": HttpAdapter("gemini", "k", base_url=url)}) as client:
        listed = blocking.served_models("gemini", client=client)
        one = blocking.served_model("gemini:one", client=client)
        assert client.retrieve_model("gemini:one") == one
        tokens = blocking.count_tokens("gemini:gemini-2.5-flash", "Hello?", client=client)

    assert listed[0] == one
    assert one.id == "one"
    assert tokens > 0
