"""
One step of a stream: what its events add up to, and how they end.

The adapters here are of a kind that is no HTTP.
"""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.api.run.generate import stream
from interlingua.api.run.options import TimeoutConfig
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.runtime.cancel import AbortController
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.errors import AbortError, RequestTimeoutError, ServerError, StreamError
from interlingua.spec.events import Finish, StreamStart, TextDelta, TextEnd, TextStart
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import events_from_response
from support.patience import PATIENCE
from support.runs import broken, collect


class Plain:
    """An adapter that is no more than it has to be: it cannot cancel, nor tell of failures."""

    name = "openai"

    def __init__(self, *events, then=None):
        self.events, self.then = events, then

    async def complete(self, _):
        await asyncio.sleep(60)

    async def stream(self, _):
        for event in self.events:
            yield event
        if self.then is None:
            await asyncio.sleep(60)
        elif isinstance(self.then, Exception):
            raise self.then
        else:
            yield self.then


BEGUN = (
    StreamStart(),
    TextStart(id="t", index=0),
    TextDelta(id="t", index=0, delta="word "),
)
DONE = (*BEGUN, TextEnd(id="t", index=0, part=Text(text="word ")))


def test_a_plain_adapter():
    """Its events are enough."""

    async def work():
        adapter = Plain(*DONE, then=Finish(finish_reason=FinishReason(reason="stop")))
        events = stream("openai:m", "?", client=Client({"openai": adapter}))
        await collect(events)
        return events.result()

    assert asyncio.run(work()).text == "word "


@pytest.mark.parametrize("how", ["abort", "timeout", "error", "end"])
def test_a_plain_adapter_that_is_stopped_or_fails(how):
    """What is open is closed, and the error has what had come."""
    controller = AbortController()
    then = {"error": ServerError("down"), "end": DONE[-1]}.get(how)
    options = {"abort_signal": controller.signal}
    if how == "timeout":
        options["timeout"] = 0.05

    async def work():
        if how == "abort":
            asyncio.get_running_loop().call_later(0.05, controller.abort)
        client = Client({"openai": Plain(*BEGUN, then=then)})
        return await broken(client, "openai", False, **options)

    failure, events = asyncio.run(work())

    kinds = {"abort": AbortError, "timeout": RequestTimeoutError, "error": ServerError}
    assert isinstance(failure, kinds.get(how, StreamError))
    assert failure.partial.text == "word "
    is_stopped = how in ("abort", "timeout")
    assert [event.type for event in events[4:]] == [
        "text_end",
        *([] if is_stopped else ["error"]),
        "finish",
    ]
    assert events[-1].finish_reason.reason == ("cancelled" if is_stopped else "error")
    assert events[-1].response is failure.partial


def test_stopped_in_a_middleware():
    """Nothing is under way that could be cancelled: it is woken all the same."""
    controller = AbortController()

    async def patient(request, call_next):
        controller.abort("enough")
        await asyncio.sleep(60)
        async for event in call_next(request):
            yield event

    async def work():
        client = Client({"openai": Plain()}, middleware=[patient])
        return await broken(client, "openai", False, abort_signal=controller.signal)

    failure, events = asyncio.run(work())

    assert (failure.message, events) == ("enough", [])


def test_who_reads_may_be_busy_elsewhere():
    """An abort never ends what the reader does between two events."""
    controller = AbortController()

    async def work():
        client = Client({"openai": Plain(*BEGUN)})
        events = stream("openai:m", "?", client=client, abort_signal=controller.signal)
        await anext(events)
        controller.abort()
        for _ in range(20):
            await asyncio.sleep(0)  # as whoever draws what has come
        with pytest.raises(AbortError):
            await collect(events)

    asyncio.run(asyncio.wait_for(work(), PATIENCE))


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
@pytest.mark.parametrize("timeout", [0, 0.0, TimeoutConfig(total=0), TimeoutConfig(per_step=0)])
def test_a_timeout_of_zero_is_not_for_ever(timeout, whole):
    """0 seconds are not for ever (field bug 76)."""

    async def work():
        return await broken(Client({"openai": Plain()}), "openai", whole, timeout=timeout)

    assert isinstance(asyncio.run(work())[0], RequestTimeoutError)


@given(st.integers(0, 4), st.sampled_from(["error", "end", "told"]))
def test_the_grammar_holds_wherever_it_breaks(length, how):
    """Whatever came, and whether the adapter told its end itself or not."""
    error = ServerError("down", retryable=False)
    begun = DONE[:length]
    if how == "told" and length == len(DONE):
        reason = FinishReason(reason="error")
        begun = (*begun, Finish(finish_reason=reason, response=Response(finish_reason=reason)))
    client = Client({"openai": Short(*begun, error=None if how == "end" else error)})

    failure, events = asyncio.run(broken(client, "openai", False, max_retries=0))

    assert isinstance(failure, StreamError if how == "end" else ServerError)
    assert bool(events) == bool(length)
    if events:
        assert events[-1].finish_reason.reason == "error"
        assert events[-1].response is failure.partial


class Short(Plain):
    """Ends after its events, with an error or without."""

    def __init__(self, *events, error):
        super().__init__(*events)
        self.error = error

    async def stream(self, _):
        for event in self.events:
            yield event
        if self.error is not None:
            raise self.error


def test_the_starts_of_later_steps_are_not_passed_on():
    """A run has one start and one end."""
    call = ToolCall(id="c", name="f", arguments={})
    reason = FinishReason(reason="tool_calls")
    answers = [
        Response(message=Message.assistant([call]), finish_reason=reason),
        Response(message=Message.assistant("done"), finish_reason=FinishReason(reason="stop")),
    ]

    class Adapter(Plain):
        async def stream(self, _):
            for event in events_from_response(answers.pop(0)):
                yield event

    async def work():
        tool = Tool(name="f", execute=lambda: "x")
        events = stream("openai:m", "?", client=Client({"openai": Adapter()}), tools=[tool])
        return [event.type for event in await collect(events)]

    kinds = asyncio.run(work())

    assert (kinds.count("stream_start"), kinds.count("step_finish"), kinds.count("finish")) == (
        1,
        1,
        1,
    )
