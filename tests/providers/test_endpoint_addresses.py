"""Base URLs that end in an endpoint, as vendors write them in their examples."""

import asyncio

import pytest

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request
from support.simulated import KEY

QUESTION = Request(model="m", messages="hi")


def url_of(row, base_url, **settings):
    adapter = HttpAdapter(row, "k", base_url=base_url, **settings)
    return adapter.dry_run(QUESTION).url, adapter.dialect


@pytest.mark.parametrize(
    ("row", "address", "dialect"),
    [
        ("openai_compatible", "https://host.example/v1/chat/completions", "openai_chat"),
        ("openai_compatible", "https://host.example/chat/completions", "openai_chat"),
        ("openai_compatible", "https://host.example/api/v1/responses", "openai_responses"),
        ("openai_compatible", "https://host.example/v1/messages", "anthropic_messages"),
        ("openai", "https://host.example/v1/responses", "openai_responses"),
        ("openai", "https://host.example/v1/chat/completions", "openai_chat"),
        ("anthropic", "https://host.example/v1/messages", "anthropic_messages"),
        ("anthropic", "https://host.example/v1/chat/completions", "openai_chat"),
        ("gemini", "https://host.example/v1beta/models/m:generateContent", "gemini_generate"),
        ("gemini", "https://host.example/v1beta/openai/chat/completions", "openai_chat"),
        ("groq", "https://api.groq.com/openai/v1/chat/completions", "openai_chat"),
        ("ollama", "http://localhost:11434/v1/chat/completions", "openai_chat"),
        ("azure", "https://r.openai.azure.com/openai/v1/responses", "openai_responses"),
    ],
)
def test_an_address_with_its_endpoint_is_sent_to_as_it_is(row, address, dialect):
    """The endpoint is not added twice, and it says which dialect is spoken, also with a slash."""
    assert url_of(row, address) == (address, dialect)
    assert url_of(row, f"{address}/") == (address, dialect)


def test_a_stream_endpoint_is_understood_too():
    """The model in it is that of the request."""
    address = "https://host.example/v1beta/models/other:streamGenerateContent"
    expected = "https://host.example/v1beta/models/m:generateContent"

    assert url_of("gemini", address) == (expected, "gemini_generate")


def test_a_dialect_that_is_named_counts():
    """`dialect=` goes before what the address seems to say."""
    given = url_of("openai", "https://host.example/v1/chat/completions", dialect="openai_responses")

    assert given == ("https://host.example/v1/responses", "openai_responses")


@pytest.mark.parametrize(
    "address", ["https://host.example/v1", "https://host.example/completions", "https://h.example"]
)
def test_any_other_address_is_left_as_it_is(address):
    """A path that is no endpoint of the row belongs to the base URL."""
    assert url_of("openai_compatible", address)[0] == f"{address}/chat/completions"
    assert url_of("groq", "https://host.example/v1/messages")[0].endswith(
        "/v1/messages/chat/completions"
    )


def test_the_variable_and_the_option_of_a_call_are_understood():
    """An address of the environment, of `with_access` and of `rebind` is read alike."""
    address = "https://host.example/v1/chat/completions"
    client = Client.from_env({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": address})
    request = Request(model="openai:m", messages="hi")

    assert client.explain(request).url == address
    plain = Client.from_env({"OPENAI_API_KEY": "k"})
    twin = plain.with_access("openai:m", base_url=address)
    assert (twin.explain(request).url, twin.explain(request).dialect) == (address, "openai_chat")
    assert plain.explain(request).dialect == "openai_responses"
    quoted = Client.from_env({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f'"{address}"'})
    assert quoted.explain(request).url == address


def test_an_address_with_a_query_is_refused():
    """The error says how a base URL looks."""
    with pytest.raises(ConfigurationError, match="without user or query"):
        HttpAdapter("openai", "k", base_url="https://host.example/v1/responses?a=b")


def test_calls_and_streams_arrive():
    """Whole, streamed and of an operation, over HTTP."""
    with serve_in_thread(Simulator(text("Hello."), key=KEY)) as server:
        url = f"{server.url}/v1/chat/completions"
        client = Client({"a": HttpAdapter("openai_compatible", KEY, base_url=url)})

        async def work():
            whole = await client.complete(QUESTION)
            events = [event async for event in client.stream(QUESTION)]
            return whole.text, events[-1].response.text, await client.list_models("a")

        whole, streamed, models = asyncio.run(work())
    assert (whole, streamed) == ("Hello.", "Hello.")
    assert models
