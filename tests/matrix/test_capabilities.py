"""Each capability that a profile takes away, by every dialect: refused or told, never lost."""

import asyncio
import json

import pytest

from interlingua.api.execute.execution import execute
from interlingua.api.objects.functions import generate_object
from interlingua.api.run.generate import generate, stream
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import text, tool_call
from interlingua.spec.content import Image
from interlingua.spec.errors import ContextLengthError, UnsupportedError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat, ToolDefinition
from interlingua.transport.canned import CannedTransport
from support.requests import every_provider, get_weather, given, named
from support.simulated import MODELS, run, simulated
from support.warning_codes import codes

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
WEATHER = ToolDefinition(name="get_weather", parameters={"type": "object", "properties": {}})
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
LOOK = Message.user(["Look.", Image(data=PNG, media_type="image/png")])
FLAGS = {
    "supports_images": {"image_types": []},
    "supports_thinking": {"thinking": False},
    "supports_tools": {"tools": False},
    "supports_system_prompt": {"system_prompt": False},
    "supports_structured_output": {"structured_output": ["prompt"]},
    "supports_streaming": {"streaming": False},
    "supports_streaming_tool_calls": {"streaming_tool_calls": False},
    "supports_parallel_tool_calls": {"parallel_tool_calls": False},
    "supports_prompt_caching": {"caching": False},
}


def sent(peer):
    """The bodies that reached the server."""
    return [exchange.call.body for exchange in peer.app.script.received]


def without(flag, *answers):
    """A simulator, and a client whose adapters declare that they lack one capability."""
    return simulated(*answers, profile=FLAGS[flag])


def both(peer, provider, **fields):
    """The responses of a whole call and of a stream."""

    async def work(client):
        request = Request(model=named(provider), **{"messages": "hi"} | fields)
        whole = await client.complete(request)
        events = [event async for event in client.stream(request)]
        return whole, events[-1].response

    return run(peer, work)


def refused(peer, provider, error, **fields):
    """Whether every way of asking raises this error, and nothing is sent."""

    async def work(client):
        request = Request(model=named(provider), **{"messages": "hi"} | fields)
        with pytest.raises(error):
            await client.complete(request)
        with pytest.raises(error):
            await anext(client.stream(request))

    run(peer, work)
    return sent(peer) == []


@every_provider
@pytest.mark.parametrize("flag", FLAGS)
def test_flags_are_declared(provider, flag):
    """What the profile takes away is not in the capabilities."""
    adapter = HttpAdapter(provider, "k", base_url="http://localhost:1", profile=FLAGS[flag])

    assert getattr(adapter.capabilities_for(MODELS[provider]), flag) is False


@every_provider
def test_images(provider):
    """Refused before anything is sent; with `on_loss="warn"` a warning."""
    with without("supports_images", text("ok")) as peer:
        assert refused(peer, provider, UnsupportedError, messages=[LOOK])
    with without("supports_images", text("ok")) as peer:
        for response in both(peer, provider, messages=[LOOK], on_loss="warn"):
            assert codes(response) == ["image_dropped"]
        assert not any("iVBOR" in json.dumps(body) for body in sent(peer))


@every_provider
def test_tools(provider):
    """Refused before anything is sent; with `on_loss="warn"` a warning."""
    with without("supports_tools", text("ok")) as peer:
        assert refused(peer, provider, UnsupportedError, tools=(WEATHER,))
    with without("supports_tools", text("ok")) as peer:
        for response in both(peer, provider, tools=(WEATHER,), on_loss="warn"):
            assert "tools_dropped" in [warning.code for warning in response.warnings]
        assert not any("tools" in body for body in sent(peer))


@every_provider
def test_thinking(provider):
    """A setting: dropped with a warning, refused by `strict`."""
    with without("supports_thinking", text("ok")) as peer:
        for response in both(peer, provider, reasoning_effort="high"):
            assert codes(response) == ["reasoning_effort_dropped"]
        words = ("effort", "thinking", "reasoning", "thinkingConfig")
        assert not any(f'"{word}"' in json.dumps(body) for body in sent(peer) for word in words)
    with without("supports_thinking", text("ok")) as peer:
        assert refused(peer, provider, UnsupportedError, reasoning_effort="high", on_loss="strict")


@every_provider
def test_structured_output(provider):
    """An instruction takes the place of the schema, and the object is checked all the same."""

    async def work(client):
        return await generate_object(named(provider), "Where?", schema=SCHEMA, client=client)

    with without("supports_structured_output", text('{"city": "Oslo"}')) as peer:
        assert run(peer, work).output == {"city": "Oslo"}
        (body,) = sent(peer)
        (request,) = peer.app.script.requests
    assert (request.response_format, request.tools or ()) == (None, ())
    assert "city" in json.dumps(body)


@every_provider
def test_parallel_tool_calls(provider):
    """The setting is dropped with a warning, or is what the target does anyway."""
    with without("supports_parallel_tool_calls", text("ok")) as peer:
        for response in both(peer, provider, tools=(WEATHER,), parallel_tool_calls=False):
            found = codes(response)
            assert set(found) <= {"parallel_tool_calls_dropped", "parallel_tool_calls_implied"}
            assert len(found) == 1
        names = ("parallel_tool_calls", "disable_parallel_tool_use")
        assert not any(name in json.dumps(body) for body in sent(peer) for name in names)


@every_provider
def test_output_limit(provider):
    """A longer answer than the model gives is not asked for."""
    with simulated(text("ok"), profile={"max_output_tokens": 100}) as peer:
        for response in both(peer, provider, max_tokens=500):
            assert codes(response) == ["max_tokens_lowered"]
        assert [request.max_tokens for request in peer.app.script.requests] == [100, 100]


@every_provider
def test_system_prompt(provider):
    """The instruction is sent as text of the user, with a warning; it is not lost."""
    messages = [Message.system("Be brief."), Message.user("hi")]
    with without("supports_system_prompt", text("ok")) as peer:
        for response in both(peer, provider, messages=messages):
            assert codes(response)
        for request in peer.app.script.requests:
            assert {message.role for message in request.messages} == {"user"}
            assert "Be brief." in "".join(message.text for message in request.messages)


@every_provider
def test_structured_output_of_a_client(provider):
    """The same for a plain request, with a warning."""
    form = ResponseFormat(type="json_schema", json_schema=SCHEMA, name="place")
    with without("supports_structured_output", text('{"city": "Oslo"}')) as peer:
        for response in both(peer, provider, response_format=form):
            assert codes(response)
        for request, body in zip(peer.app.script.requests, sent(peer), strict=True):
            assert request.response_format is None
            assert "city" in json.dumps(body)


@every_provider
@pytest.mark.parametrize("flag", ["supports_streaming", "supports_streaming_tool_calls"])
def test_streaming(provider, flag):
    """A stream is a whole call on the wire, replayed as events."""

    def play(request):
        return text("Done.") if given(request) else tool_call("get_weather", city="Oslo")

    async def work(client):
        result = stream(named(provider), "hi", client=client, tools=[get_weather])
        return [event.type async for event in result], result.result()

    with without(flag, play) as peer:
        kinds, result = run(peer, work)
        assert not any(exchange.call.stream for exchange in peer.app.script.received)

    assert result.text == "Done."
    assert kinds[0] == "stream_start"
    assert kinds.index("tool_call_start") < kinds.index("tool_call_end") < kinds.index("text_end")


@every_provider
def test_prompt_caching(provider):
    """No mark and no key is sent."""
    with without("supports_prompt_caching", text("ok")) as peer:
        both(peer, provider, messages=[Message.system("Long. " * 2000), Message.user("hi")])
        bodies = json.dumps(sent(peer))

    assert "cache_control" not in bodies
    assert "prompt_cache_key" not in bodies


@every_provider
def test_context_window(provider):
    """A prompt above the window is refused before it is sent."""
    with simulated(text("ok"), profile={"context_window": 1000}) as peer:
        assert refused(peer, provider, ContextLengthError, messages="word " * 5000)


def nothing_is_sent(request):
    raise AssertionError(f"a request was sent to {request.url}")


@pytest.mark.parametrize("provider", ["deepseek", "openai", "anthropic", "gemini", "openrouter"])
def test_an_image_for_a_model_without_vision(provider):
    """It is refused before the network is reached, in every way of asking."""
    profile = {} if provider == "deepseek" else {"image_types": []}  # the catalog knows
    transport = CannedTransport(nothing_is_sent)
    adapter = HttpAdapter(provider, "k", transport=transport, profile=profile)

    async def work():
        async with Client({provider: adapter}) as client:
            assert not adapter.capabilities_for("deepseek-chat").supports_images
            request = Request(provider=provider, model="deepseek-chat", messages=[LOOK])
            options = {"messages": [LOOK], "client": client, "provider": provider}
            with pytest.raises(UnsupportedError, match="image"):
                await client.complete(request)
            with pytest.raises(UnsupportedError, match="image"):
                await anext(client.stream(request))
            with pytest.raises(UnsupportedError, match="image"):
                await generate("deepseek-chat", **options)
            with pytest.raises(UnsupportedError, match="image"):
                async for _ in stream("deepseek-chat", **options):
                    pass
            result = await execute("deepseek-chat", [LOOK], client=client, provider=provider)
            assert result.error is not None
            assert "image" in result.error.message

    asyncio.run(work())
    assert transport.requests == []
