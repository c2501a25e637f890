"""What a caller may rely on after `cancel` has returned True."""

import asyncio
import contextlib
import threading

import pytest

from interlingua import sync
from interlingua.api.execute.execution import execute
from interlingua.api.objects.functions import stream_object
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.client.retry_policy import RetryPolicy
from interlingua.runtime.cancel import AbortController
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.errors import AbortError, RateLimitError
from interlingua.spec.events import Finish, StreamStart, TextDelta, TextEnd, TextStart
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.grammar import DELTAS, Grammar
from support.patience import PATIENCE

WORDS = [f"word{number} " for number in range(300)]
CALL = Response(
    message=Message.assistant([ToolCall(id="c", name="look", arguments={})]),
    finish_reason=FinishReason(reason="tool_calls"),
)

EAGER = getattr(asyncio, "eager_task_factory", None)  # new in Python 3.12


class Arrived:
    """An adapter whose answer has arrived whole: reading it never waits."""

    name = "here"

    async def complete(self, _):
        return Response(message=Message.assistant("".join(WORDS)))

    async def stream(self, _):
        yield StreamStart()
        yield TextStart(id="t", index=0)
        for word in WORDS:
            yield TextDelta(id="t", index=0, delta=word)
        yield TextEnd(id="t", index=0, part=Text(text="".join(WORDS)))
        yield Finish(finish_reason=FinishReason(reason="stop"))

    async def close(self):
        pass


class Answering(Arrived):
    def __init__(self, answer):
        self.answer = answer

    async def complete(self, _):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def stream(self, request):
        for event in events_from_response(await self.complete(request)):
            yield event


def streams(client, way):
    if way == "client.stream":
        return client.stream(Request(model="here:m", messages="?", request_id="r"))
    return stream("here:m", "?", client=client, request_id="r")


async def passing(request, following):
    return await following(request)


both_streams = pytest.mark.parametrize("way", ["client.stream", "stream"])
LAYERS = pytest.mark.parametrize("layers", [(), (passing,)], ids=["bare", "middleware"])


def check(events, after):
    """The events after the cancellation are no deltas, and the whole keeps to the grammar."""
    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.finish()
    assert not any(type(event) in DELTAS for event in events[after:])
    assert events[-1].finish_reason.reason == "cancelled"
    assert events[-1].response.finish_reason.reason == "cancelled"


@both_streams
@LAYERS
@pytest.mark.parametrize("at", ["stream_start", "text_start", "text_delta", "text_end"])
def test_no_delta_comes_after_cancel_returned_true(way, layers, at):
    """Wherever the reader is, though all bytes had arrived; the iterator just ends."""

    async def work():
        client, events, after = Client({"here": Arrived()}, middleware=layers), [], None
        async for event in streams(client, way):
            events.append(event)
            if event.type == at and after is None:
                assert await client.cancel("r")
                after = len(events)
        assert not await client.cancel("r")
        return events, after

    check(*asyncio.run(work()))


@both_streams
def test_cancel_returns_false_after_the_finish(way):
    """`cancel` returns False once the last event was delivered."""

    async def work():
        client = Client({"here": Arrived()})
        async for event in streams(client, way):
            if event.type == "finish":
                assert event.finish_reason.reason == "stop"
                assert not await client.cancel("r")

    asyncio.run(work())


def test_a_cancelled_stream_has_the_result_of_what_had_come():
    """`response` and `result` have what had come, and say that it was cancelled."""

    async def work():
        client = Client({"here": Arrived()})
        events = streams(client, "stream")
        async for event in events:
            if event.type == "text_delta":
                await client.cancel("r")
        return events.response(), events.result()

    response, result = asyncio.run(work())

    assert response.text == WORDS[0]
    assert result.finish_reason.reason == "cancelled"
    assert result.text == WORDS[0]
    assert result.messages[-1].text == WORDS[0]


def test_an_abort_signal_raises_with_the_partial():
    """An `AbortSignal` gives the same events, then `AbortError` with the partial."""

    async def work():
        controller, events = AbortController(), []
        client = Client({"here": Arrived()})
        try:
            async for event in stream("here:m", "?", client=client, abort_signal=controller.signal):
                events.append(event)
                if event.type == "text_delta":
                    controller.abort()
        except AbortError as error:
            return events, error
        raise AssertionError("it did not raise")

    events, error = asyncio.run(work())

    assert events[-1].finish_reason.reason == "cancelled"
    assert sum(event.type == "text_delta" for event in events) == 1
    assert error.partial.text == WORDS[0]


def look_forever(begun):
    async def look() -> str:
        begun.set()
        await asyncio.sleep(60)
        return "never"

    return Tool(name="look", execute=look)


def stubborn(begun):
    async def look() -> str:
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "late"

    return Tool(name="look", execute=look)


@pytest.mark.parametrize("way", ["generate", "stream"])
@pytest.mark.parametrize("make", [look_forever, stubborn])
def test_a_run_cancelled_in_a_tool_sends_nothing_more(way, make):
    """A run that is cancelled in a tool sends nothing more; `generate` raises."""

    async def work():
        begun, asked = asyncio.Event(), []
        client = Client({"here": Answering(CALL)})
        client.subscribe(lambda event: asked.append(event.type))
        options = {"client": client, "request_id": "r", "tools": [make(begun)]}
        events = []

        async def read():
            if way == "generate":
                with pytest.raises(AbortError):
                    await generate("here:m", "?", **options)
                return
            async for event in stream("here:m", "?", **options):
                events.append(event)  # noqa: PERF401 -- they are counted meanwhile

        task = asyncio.ensure_future(read())
        await begun.wait()
        assert await client.cancel("r")
        after = len(events)
        await asyncio.wait_for(task, PATIENCE)
        return events, after, asked

    events, after, asked = asyncio.run(work())

    assert asked == ["call_started", "call_completed"]
    if way == "stream":
        check(events, after)


@pytest.mark.parametrize("way", ["complete", "client.stream", "generate", "stream"])
def test_no_attempt_follows_a_cancel_during_the_backoff(way):
    """The next attempt is never made."""

    async def work():
        failed = asyncio.Event()
        client = Client({"here": Answering(RateLimitError("slow", retry_after=30))})
        started = []
        client.subscribe(lambda event: started.append(event.type))
        client.subscribe(lambda event: event.type == "call_failed" and failed.set())
        request = Request(model="here:m", messages="?", request_id="r")
        policy = RetryPolicy()

        async def read():
            if way == "complete":
                with pytest.raises(AbortError):
                    await client.complete(request, retry=policy)
            elif way == "generate":
                with pytest.raises(AbortError):
                    await generate("here:m", "?", client=client, request_id="r")
            elif way == "stream":
                return [
                    event async for event in stream("here:m", "?", client=client, request_id="r")
                ]
            else:
                return [event async for event in client.stream(request, retry=policy)]
            return []

        task = asyncio.ensure_future(read())
        await failed.wait()
        assert await client.cancel("r")
        return await asyncio.wait_for(task, PATIENCE), started

    events, started = asyncio.run(work())

    assert started == ["call_started", "call_failed"]
    if events:
        check(events, 0)


def test_no_answer_is_returned_though_the_adapter_swallows_the_cancellation():
    """After True, no answer is returned, whatever the adapter does."""

    async def work():
        begun = asyncio.Event()

        class Stubborn(Arrived):
            async def complete(self, request):
                begun.set()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
                return await super().complete(request)

        client = Client({"here": Stubborn()})
        for ask in (
            client.complete(Request(model="here:m", messages="?", request_id="r")),
            generate("here:m", "?", client=client, request_id="r"),
        ):
            begun.clear()
            task = asyncio.ensure_future(ask)
            await begun.wait()
            assert await client.cancel("r")
            with pytest.raises(AbortError):
                await task

    asyncio.run(asyncio.wait_for(work(), PATIENCE))


@pytest.mark.parametrize("factory", dict.fromkeys((None, EAGER)))
def test_no_callback_follows_the_cancel_of_an_execution(factory):
    """No callback after `cancel`; the error says cancelled and the text has come."""

    async def work():
        asyncio.get_running_loop().set_task_factory(factory)
        client, chunks = Client({"here": Arrived()}), []

        def note(chunk):
            chunks.append(chunk)
            if len(chunks) == 3:
                execution.cancel()

        execution = execute("here:m", "?", client=client, on_chunk=note)
        return await execution, chunks

    result, chunks = asyncio.run(work())

    assert len(chunks) == 3
    assert result.error.code == "cancelled"
    assert result.text == "".join(WORDS[:3])


def test_partial_objects_end_at_a_cancel():
    """Partial objects just end; there is no object."""

    class Numbers(Arrived):
        async def stream(self, _):
            yield StreamStart()
            yield TextStart(id="t", index=0)
            for piece in ['{"a": [1', *[f", {number}" for number in range(50)], "]}"]:
                yield TextDelta(id="t", index=0, delta=piece)
            yield TextEnd(id="t", index=0, part=Text(text="{}"))
            yield Finish(finish_reason=FinishReason(reason="stop"))

    async def work():
        client, partials = Client({"here": Numbers()}), []
        objects = stream_object(
            "here:m", "?", schema={"type": "object"}, client=client, request_id="r"
        )
        async for partial in objects:
            partials.append(partial)
            if len(partials) == 2:
                assert await client.cancel("r")
        with pytest.raises(AbortError, match="cancelled"):
            objects.object()
        return partials

    assert len(asyncio.run(work())) == 2


@both_streams
def test_a_blocking_stream_delivers_nothing_read_ahead_after_a_cancel(way):
    """What the loop has read ahead is not delivered either."""

    class Held(Arrived):
        async def stream(self, request):
            async for event in super().stream(request):
                if event.type == "text_end":
                    await asyncio.sleep(60)
                yield event

    with sync.Client({"here": Held()}) as client:
        if way == "client.stream":
            source = client.stream(Request(model="here:m", messages="?", request_id="r"))
        else:
            source = sync.stream("here:m", "?", client=client, request_id="r")
        events = []
        for event in source:
            events.append(event)
            if event.type == "text_delta" and sum(type(e) in DELTAS for e in events) == 2:
                threading.Event().wait(0.05)  # the loop reads ahead
                assert client.cancel("r")
                after = len(events)

    check(events, after)
