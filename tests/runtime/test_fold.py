"""The outer edge of a stream: what its events add up to, and how they end."""

import asyncio

import pytest

from interlingua.runtime.cancel import CancelScope, Scopes
from interlingua.runtime.fold import fold_stream
from interlingua.spec.content import Text
from interlingua.spec.errors import ServerError, StreamError
from interlingua.spec.events import Finish, StreamStart, TextDelta, TextEnd, TextStart
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import Grammar

REQUEST = Request(model="m", provider="here", request_id="r")
START, OPEN = StreamStart(), TextStart(id="t", index=0)
DELTA = TextDelta(id="t", index=0, delta="word ")
END = TextEnd(id="t", index=0, part=Text(text="word "))
FINISH = Finish(finish_reason=FinishReason(reason="stop"))


async def read(source, scopes=None, **settings):
    """The events as a reader gets them, and the error after them."""
    events, grammar = [], Grammar()
    error = None
    scopes = Scopes() if scopes is None else scopes
    try:
        async for event in fold_stream(source, REQUEST, scopes, **settings):
            grammar.feed(event)
            events.append(event)
    except (StreamError, ServerError) as failure:
        error = failure
    if events:
        grammar.finish()
    return events, error


def giving(*events):
    async def source(_):
        for event in events:
            if isinstance(event, Exception):
                raise event
            yield event

    return source


def test_the_last_event_has_the_whole_response():
    """And the accumulator of the caller has it too."""
    accumulator = StreamAccumulator()
    source = giving(START, OPEN, DELTA, END, FINISH)
    events, error = asyncio.run(read(source, accumulator=accumulator))

    assert error is None
    assert events[-1].response.text == "word "
    assert accumulator.response().text == "word "


@pytest.mark.parametrize("failure", [ServerError("down"), None], ids=["raises", "just ends"])
def test_a_stream_that_breaks_off(failure):
    """What is open is closed; then the error, with what had come."""
    end = () if failure is None else (failure,)
    events, error = asyncio.run(read(giving(START, OPEN, DELTA, *end)))

    assert [event.type for event in events[3:]] == ["text_end", "error", "finish"]
    assert isinstance(error, ServerError if failure else StreamError)
    assert error.partial is events[-1].response
    assert (error.partial.text, error.partial.provider) == ("word ", "here")


def test_nothing_is_told_of_a_stream_that_never_began():
    """The error says it all."""
    events, error = asyncio.run(read(giving(ServerError("down"))))

    assert (events, error.partial) == ([], None)


def test_no_delta_after_the_scope_has_ended():
    """Not even one that is on its way at that moment."""
    scopes = Scopes()

    async def source(_):
        for event in (START, OPEN, DELTA):
            yield event
        assert scopes.cancel("r")
        yield DELTA

    events, error = asyncio.run(read(source, scopes))

    assert error is None
    assert [event.type for event in events[2:]] == ["text_delta", "text_end", "finish"]
    assert events[-1].finish_reason.reason == "cancelled"
    assert len(scopes) == 0


def test_a_scope_of_somebody_else_stays_under_way():
    """A run goes on in it."""

    async def work():
        scopes, scope = Scopes(), CancelScope()
        scopes.add("r", scope)
        await read(giving(START, FINISH), scopes, scope=scope)
        return len(scopes)

    assert asyncio.run(work()) == 1
