"""
How runs end: by the provider, by their caller, by an error.

What goes well is in test_generate.py.
"""

import asyncio
import contextlib
import sys

import pytest

from interlingua.api.objects.functions import stream_object
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import Tool, tool
from interlingua.client.client import Client
from interlingua.providers.adapter import AnthropicAdapter, GeminiAdapter
from interlingua.runtime.cancel import AbortController
from interlingua.simulator import (
    cut,
    error,
    error_event,
    latency,
    stall,
    text,
    tool_call,
    usage,
)
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import (
    AbortError,
    AuthenticationError,
    RequestTimeoutError,
    ServerError,
    StreamError,
    UnsupportedError,
)
from interlingua.spec.response import Usage
from interlingua.streams.grammar import Grammar
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.json_text import dumps, loads
from support.patience import PATIENCE, with_some_timeout
from support.runs import broken, named
from support.simulated import DIALECTS, SLOW, in_virtual_time, run, settled, simulated

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))


@tool
def look() -> str:
    """Look outside."""
    return "rain"


def claude(words, reason):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [{"type": "text", "text": words}],
        "stop_reason": reason,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }


def gemini(words, reason, token=None):
    candidate = {"content": {"role": "model", "parts": [{"text": words}]}, "finishReason": reason}
    if token is not None:
        candidate["continuationToken"] = token
    return {
        "candidates": [candidate],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
    }


def canned(adapter, name, *bodies):
    """A client whose provider gives these answers, and what it was asked."""
    headers = {"content-type": "application/json"}
    transport = CannedTransport([CannedReply(headers=headers, body=dumps(b)) for b in bodies])
    return Client({name: adapter("key", transport=transport)}), transport


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-4-8"])
def test_a_paused_turn_goes_on(model, whole):
    """With what was said so far, also text alone at a model that continues no other text."""
    client, transport = canned(
        AnthropicAdapter,
        "anthropic",
        claude("Looking …", "pause_turn"),
        claude("It is 7.", "end_turn"),
    )

    async def work():
        if whole:
            return await generate(f"anthropic:{model}", "?", client=client)
        events = stream(f"anthropic:{model}", "?", client=client)
        async for _ in events:
            pass
        return events.result()

    result = asyncio.run(work())

    assert result.text == "It is 7."
    assert len(result.steps) == 2
    second = loads(transport.requests[1].body)
    assert [message["role"] for message in second["messages"]] == ["user", "assistant"]
    assert "prefill_replaced" not in [warning.code for warning in result.warnings]


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens"])
def test_text_that_ended_otherwise_is_no_paused_turn(reason):
    """A model that continues no text refuses it, also as a stored message."""
    client, _ = canned(AnthropicAdapter, "anthropic", claude("So", reason), claude("!", "end_turn"))

    async def work():
        first = await generate("anthropic:claude-opus-4-8", "?", client=client)
        await generate("anthropic:claude-opus-4-8", messages=first.messages, client=client)

    with pytest.raises(UnsupportedError, match="prefill_replaced"):
        asyncio.run(work())


@pytest.mark.parametrize("whole", [True, False])
def test_an_answer_in_two_pieces(whole):
    """Gemini's continuation is one answer, with the tokens of both."""
    client, transport = canned(
        GeminiAdapter, "gemini", gemini("one ", "CONTINUATION", "dG9r"), gemini("two", "STOP")
    )

    async def work():
        if whole:
            return await generate("gemini:gemini-4-argon", "?", client=client)
        events = stream("gemini:gemini-4-argon", "?", client=client)
        grammar = Grammar()
        said = []
        async for event in events:
            grammar.feed(event)
            if event.type == "text_delta":
                said.append(event.delta)
        grammar.finish()
        assert "".join(said) == events.response().text
        return events.result()

    result = asyncio.run(work())

    assert result.text == "one two"
    assert result.usage.output_tokens == 4
    assert loads(transport.requests[1].body)["continuationToken"] == "dG9r"


# What an error keeps.


@pytest.mark.parametrize(
    ("how", "provider"),
    [*(("abort", provider) for provider in sorted(DIALECTS)), ("timeout", "openai")],
)
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
def test_stopped_while_tools_run(provider, whole, how):
    """The error has the answer that called them, and the tokens of every step."""
    controller = AbortController()

    async def hang() -> None:
        if how == "abort":
            controller.abort("enough")
        await asyncio.sleep(60)

    script = [tool_call("look") + usage(10, 2), tool_call("hang") + usage(30, 4)]
    options = {
        "tools": [look, Tool(name="hang", execute=hang)],
        "max_tool_rounds": 3,
        "abort_signal": controller.signal,
        "timeout": 30 if how == "timeout" else None,
    }
    peer = in_virtual_time(*script)
    failure, events = run(peer, lambda client: broken(client, provider, whole, **options))

    assert isinstance(failure, AbortError if how == "abort" else RequestTimeoutError)
    assert [call.name for call in failure.partial.tool_calls] == ["hang"]
    assert failure.partial.usage.input_tokens == 30
    assert failure.total_usage == Usage(
        input_tokens=40,
        output_tokens=6,
        reasoning_tokens=failure.total_usage.reasoning_tokens,
        cache_read_tokens=failure.total_usage.cache_read_tokens,
        cache_write_tokens=failure.total_usage.cache_write_tokens,
    )
    if not whole:
        assert events[-1].finish_reason.reason == "cancelled"
        assert events[-1].response is failure.partial


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
def test_a_tool_that_does_not_stop(whole):
    """It does not hold up whoever gave up: the error comes while it goes on."""
    controller, at_work = AbortController(), []

    async def stubborn() -> None:
        at_work.append(True)
        controller.abort()
        while at_work:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    options = {"tools": [Tool(name="on", execute=stubborn)], "abort_signal": controller.signal}

    async def work(client):
        try:
            return *await broken(client, "openai", whole, **options), bool(at_work)
        finally:
            at_work.clear()

    with simulated(tool_call("on")) as peer:
        failure, _, was_at_work = run(peer, work)

    assert isinstance(failure, AbortError)
    assert was_at_work


@every_provider
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
def test_a_later_step_that_fails(provider, whole):
    """The answer before it is kept, and the events end as those of one call do."""
    with simulated(tool_call("look") + usage(10, 2), error(401)) as peer:
        failure, events = run(peer, lambda client: broken(client, provider, whole, tools=[look]))

    assert isinstance(failure, AuthenticationError)
    assert [call.name for call in failure.partial.tool_calls] == ["look"]
    assert failure.total_usage.total_tokens == 12
    if not whole:
        assert [event.type for event in events[-3:]] == ["step_finish", "error", "finish"]
        assert events[-2].error is failure
        assert events[-1].finish_reason.reason == "error"


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
def test_a_first_step_that_fails(whole):
    """There is nothing to keep, and no event."""
    with simulated(error(401)) as peer:
        failure, events = run(peer, lambda client: broken(client, "openai", whole))

    assert (failure.partial, failure.total_usage, events) == (None, None, [])


@every_provider
def test_the_tokens_of_a_stream_that_was_given_up_are_estimated(provider):
    """Given up in the middle: tokens that were not told yet are estimated, and say so.

    Field bug 72.
    """
    controller = AbortController()

    async def work(client):
        events = stream(named(provider), "?", client=client, abort_signal=controller.signal)
        try:
            async for event in events:
                if event.type == "text_delta" and len(events.partial_response.text) > 100:
                    controller.abort()
        except AbortError as error:
            return error, event

    with simulated(SLOW) as peer:
        failure, last = run(peer, work)

    counted = failure.total_usage
    assert counted.estimated
    assert counted.input_tokens > 0
    assert len(failure.partial.text) / 10 < counted.output_tokens < len(failure.partial.text)
    assert failure.partial.usage.total_tokens == last.usage.total_tokens == counted.total_tokens


@every_provider
@pytest.mark.parametrize("broken_by", ["cut", "event"])
def test_a_broken_stream_fails_once_with_what_had_come(provider, broken_by):
    """No text twice, nobody asked again, the true error with what had come (field bug 77)."""
    half = text("word " * 400)
    half += cut(3_000) if broken_by == "cut" else error_event(529)
    with simulated(tool_call("look"), half, text("again")) as peer:
        failure, events = run(
            peer, lambda client: broken(client, provider, False, tools=[look], max_retries=2)
        )
        assert len(peer.app.script.received) == 2

    assert isinstance(failure, StreamError if broken_by == "cut" else ServerError)
    said = "".join(event.delta for event in events if event.type == "text_delta")
    assert said == failure.partial.text
    assert said.startswith("word word")
    assert "again" not in said
    assert [event.type for event in events[-2:]] == ["error", "finish"]
    assert failure.total_usage.input_tokens > failure.partial.usage.input_tokens


@every_provider
def test_a_stream_that_stalls_ends_at_the_silence_timeout(provider):
    """A stream that stalls ends at the clock of silence, and keeps what had come (field bug 78)."""

    def check(seconds):
        clocks = Timeouts(first_byte=PATIENCE, stream_read=seconds)
        with simulated(text("word " * 400) + stall(4_000), timeout=clocks) as peer:
            failure, events = run(peer, lambda client: broken(client, provider, False))
            assert len(peer.app.script.received) == 1
        assert isinstance(failure, RequestTimeoutError)
        assert failure.phase == "stream_read"
        assert failure.partial.text.startswith("wor")
        assert [event.type for event in events[-2:]] == ["error", "finish"]

    with_some_timeout(check)


# What is left open.


@every_provider
@pytest.mark.parametrize("told", [True, False], ids=["subscribed", "plain"])
def test_leaving_early_closes_at_once(provider, told):
    """Nothing waits for the collector: not the generators, not the connection."""
    schema = {"type": "array", "items": {"type": "string"}}
    slow_list = text('["word", ' + '"word", ' * 400) + latency(between=0.01, write_bytes=400)

    async def work(client):
        if told:
            client.subscribe(lambda _: None)
        hooks, left = sys.get_asyncgen_hooks(), []

        def finalizer(generator):
            left.append(generator.__qualname__)
            hooks.finalizer(generator)

        sys.set_asyncgen_hooks(finalizer=finalizer)
        for events in (
            stream(named(provider), "?", client=client),
            stream_object(named(provider), "?", schema=schema, client=client),
        ):
            async with events:
                async for _ in events:
                    break
            await settled(lambda: peer.server.open_connections == 0)
        sys.set_asyncgen_hooks(*hooks)
        return left

    with simulated(SLOW, slow_list) as peer:
        assert run(peer, work) == []
        assert peer.server.accepted == 2
