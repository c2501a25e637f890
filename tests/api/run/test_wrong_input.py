"""Wrong input is refused before anything is sent, by each function alike."""

import asyncio
import math

import pytest

from interlingua import sync
from interlingua.api.execute.execution import execute
from interlingua.api.objects.functions import generate_object, stream_object
from interlingua.api.run.generate import generate, stream
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import text
from interlingua.spec.content import Image, Text, ToolCall
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat, ToolChoice, ToolDefinition
from support.runs import collect, named
from support.simulated import DIALECTS, MODELS, simulated

SCHEMA = {"type": "object", "properties": {}}


async def _generate(client, prompt=None, **options):
    return await generate("openai:m", prompt, client=client, **options)


async def _stream(client, prompt=None, **options):
    return await collect(stream("openai:m", prompt, client=client, **options))


async def _object(client, prompt=None, **options):
    return await generate_object("openai:m", prompt, schema=SCHEMA, client=client, **options)


async def _object_stream(client, prompt=None, **options):
    events = stream_object("openai:m", prompt, schema=SCHEMA, client=client, **options)
    return [partial async for partial in events]


async def _execute(client, prompt=None, **options):
    options = {"messages": prompt, **options} if prompt is not None else options
    result = await execute("openai:m", options.pop("messages"), client=client, **options)
    if result.error is not None:
        raise ConfigurationError(result.error.message)


async def _blocking(client, prompt=None, **options):
    blocked = sync.Client.wrap(client)
    return await asyncio.to_thread(
        lambda: sync.generate("openai:m", prompt, client=blocked, **options)
    )


async def _complete(client, **fields):
    return await client.complete(Request(model="openai:m", **fields))


async def _events(client, **fields):
    return await collect(client.stream(Request(model="openai:m", **fields)))


async def _explain(client, **fields):
    return client.explain(Request(model="openai:m", **fields))


async def _count(client, **fields):
    return await client.count_tokens(Request(model="openai:m", **fields))


async def _estimate(client, **fields):
    return client.estimate_input_tokens(Request(model="openai:m", **fields))


FUNCTIONS = [_generate, _stream, _object, _object_stream, _execute, _blocking]
METHODS = [_complete, _events, _explain, _count, _estimate]
LOOK = ToolDefinition(name="look")
WRONG = {
    "temperature": {"temperature": math.nan},
    "max_tokens": {"max_tokens": 0},
    "tools[0].name": {"tools": [{"name": "a b"}]},
    "the same name": {"tools": [LOOK, ToolDefinition(name="look")]},
    "tools[0].parameters": {"tools": [ToolDefinition(name="look", parameters={"type": "array"})]},
    "tools[0] is a function": {"tools": [lambda: 5]},
    "tool_choice.tool_name": {"tools": [LOOK], "tool_choice": ToolChoice(mode="named")},
    "messages[0].content[0] must have": {"messages": [Message.user([Image()])]},
    "messages[0].content[0].text": {"messages": [Message.user([Text(text=5)])]},
    "messages[0].content[0].arguments.a": {
        "messages": [Message.assistant(ToolCall(id="c", name="f", arguments={"a": math.inf}))]
    },
    "messages[0].role": {"messages": [{"role": "robot", "content": "hi"}]},
    "messages[0] must be": {"messages": [5]},
    "messages is empty": {"messages": []},
}


def refused(function, options):
    """The error, and that nothing was sent."""
    with simulated() as peer:
        client = Client({"openai": HttpAdapter("openai", "k", base_url=peer.server.url)})
        with pytest.raises(ConfigurationError) as caught:
            asyncio.run(function(client, **options))
        assert peer.app.script.requests == ()
    return str(caught.value)


@pytest.mark.parametrize("function", [*FUNCTIONS, *METHODS])
def test_wrong_input_is_refused_by_its_path(function):
    """The error names the path, in `Client` as in `generate`; nothing is sent."""
    for path, options in WRONG.items():
        assert path in refused(function, {"messages": [Message.user("?")], **options})


@pytest.mark.parametrize("function", [_generate, _stream, _blocking])
def test_a_format_without_its_schema_is_refused(function):
    """A format without its schema."""
    form = ResponseFormat(type="json_schema")
    assert "response_format.json_schema is missing" in refused(
        function, {"prompt": "?", "response_format": form}
    )


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("temprature", "Did you mean 'temperature'?"),
        ("max_output_tokens", "Use max_tokens=."),
        ("stop", "Use stop_sequences=."),
        ("response_model", "Use schema= of generate_object."),
        ("max_turns", "Use max_tool_rounds=."),
    ],
)
def test_unknown_options_are_refused_with_the_right_name(function, name, advice):
    """Each function suggests the right name."""
    message = refused(function, {"prompt": "?", name: 1})
    assert f"Unknown option {name!r}" in message
    assert advice in message


def test_the_options_of_the_function_itself_are_suggested():
    """Those of the function itself are suggested."""
    assert "'on_chunk'" in refused(_execute, {"prompt": "?", "on_chunks": print})
    assert "'max_validation_retries'" in refused(
        _object, {"prompt": "?", "max_validation_retry": 1}
    )


@pytest.mark.parametrize("provider", DIALECTS)
def test_dict_messages_and_tools_reach_every_dialect(provider):
    """Dict messages and dict tools arrive, in every dialect and function."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    tools = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
    with simulated(text("a"), text("b"), text("c"), text("d")) as peer:

        async def work(client):
            options = {"messages": messages, "tools": tools, "client": client}
            await generate(named(provider), **options)
            await collect(stream(named(provider), **options))
            await execute(named(provider), messages, tools=tools, client=client)
            fields = {"model": MODELS[provider], "messages": messages, "tools": tools}
            await client.complete(Request(provider=provider, **fields))
            await client.close()

        asyncio.run(work(peer.client))
        for request in peer.app.script.requests:
            assert [message.text for message in request.messages] == ["Be brief.", "Hi"]
            assert [tool.name for tool in request.tools] == ["look"]
        assert len(peer.app.script.requests) == 4


@pytest.mark.parametrize(
    ("providers", "message"),
    [
        ([HttpAdapter("openai", "k")], "Client takes adapters by name"),
        (HttpAdapter("openai", "k"), "Client takes adapters by name"),
        (None, "Client takes adapters by name"),
        ({"openai": "sk-…"}, "'openai' must be an adapter"),
        ({"openai": HttpAdapter}, "'openai' must be an adapter"),
        ({5: HttpAdapter("openai", "k")}, "the name of an adapter is 5"),
    ],
    ids=["list", "adapter", "none", "text", "class", "name"],
)
def test_a_wrong_client_is_refused_with_how_to_pass_adapters(providers, message):
    """The error shows how to pass adapters."""
    for kind in (Client, sync.Client):
        with pytest.raises(ConfigurationError, match=message):
            kind(providers)


@pytest.mark.parametrize("name", ["n", "candidate_count"])
def test_several_answers_are_several_runs(name):
    """The error says which function makes them."""
    with pytest.raises(ConfigurationError, match=r"Use generate_many\(\[prompt\] \* n"):
        asyncio.run(generate("openai:gpt-5.2", "?", **{name: 2}))
    with pytest.raises(ConfigurationError, match=r"Use generate_many\(\[prompt\] \* n"):
        stream("openai:gpt-5.2", "?", **{name: 2})
