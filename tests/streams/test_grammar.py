"""The order of events."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.conformance.strategies import responses
from interlingua.spec.content import Opaque, Text, Thinking, ToolCall
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import StreamError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepStart,
    StreamEvent,
    StreamRestart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.grammar import RULES, Action, Grammar, SequentialEncoder

START = StreamStart()
FINISH = Finish(finish_reason=FinishReason(reason="stop"))
BEGIN = StepStart(step=0)
STEP = StepFinish(step=0, response=Response())
RESTART = StreamRestart(start=START)
ERROR = ErrorEvent(error=StreamError("cut"))
PING = ProviderEvent(dialect="d", name="ping")


def text(id="a", index=0):  # noqa: A002 -- the event's word
    return (
        TextStart(id=id, index=index),
        TextDelta(id=id, index=index, delta="x"),
        TextEnd(id=id, index=index, part=Text(text="x")),
    )


def thought(id="a", index=0):  # noqa: A002 -- the event's word
    return (
        ReasoningStart(id=id, index=index),
        ReasoningDelta(id=id, index=index, delta="x"),
        ReasoningEnd(id=id, index=index, part=Thinking(text="x")),
    )


def call(id="a", index=0):  # noqa: A002 -- the event's word
    return (
        ToolCallStart(id=id, index=index, tool_call_id="1", name="n"),
        ToolCallDelta(id=id, index=index, delta="{}"),
        ToolCallEnd(id=id, index=index, tool_call=ToolCall(id="1", name="n")),
    )


def whole(index):
    return ProviderEvent(part=Opaque(dialect="d"), index=index)


OPEN, DELTA, END = text()
LEGAL = {
    "nothing said": [START, FINISH],
    "one text": [START, *text(), FINISH],
    "no deltas": [START, OPEN, END, FINISH],
    "each kind": [START, *thought("a", 0), *text("b", 1), *call("c", 2), FINISH],
    "gaps in the index": [START, *text("a", 3), *call("b", 7), FINISH],
    "whole parts between": [START, whole(0), *text("a", 1), whole(2), FINISH],
    "pings anywhere": [START, PING, OPEN, PING, DELTA, PING, END, PING, FINISH],
    "two steps": [START, BEGIN, *text(), STEP, BEGIN, *text("b", 1), FINISH],
    "another answer": [START, *text(), RESTART, *text(), FINISH],
    "failure": [START, *text(), ERROR, FINISH],
    "interleaved": [
        START, OPEN, *call("b", 1)[:2], DELTA, thought("c", 2)[0], END, thought("c", 2)[1],
        call("b", 1)[2], thought("c", 2)[2], FINISH,
    ],
    "ends crosswise": [START, OPEN, call("b", 1)[0], whole(2), call("b", 1)[2], END, FINISH],
}  # fmt: skip
ILLEGAL = {
    "no start": ([], OPEN, "must come first"),
    "finish without start": ([], FINISH, "must come first"),
    "error without start": ([], ERROR, "must come first"),
    "ping without start": ([], PING, "must come first"),
    "delta without start": ([], DELTA, "no open segment has this id, kind and index"),
    "two starts": ([START], START, "must come first, and only once"),
    "start after a step": ([START, STEP], START, "must come first, and only once"),
    "delta of nothing": ([START], DELTA, "no open segment has this id, kind and index"),
    "end of nothing": ([START], END, "no open segment has this id, kind and index"),
    "delta after the end": ([START, *text()], DELTA, "no open segment has this id, kind and index"),
    "two ends": ([START, *text()], END, "no open segment has this id, kind and index"),
    "delta of another kind": (
        [START, OPEN],
        thought()[1],
        "no open segment has this id, kind and index",
    ),
    "end of another kind": (
        [START, OPEN],
        call()[2],
        "no open segment has this id, kind and index",
    ),
    "delta at another index": (
        [START, OPEN],
        text("a", 1)[1],
        "no open segment has this id, kind and index",
    ),
    "end at another index": (
        [START, OPEN],
        text("a", 1)[2],
        "no open segment has this id, kind and index",
    ),
    "delta of another id": (
        [START, OPEN],
        text("b", 0)[1],
        "no open segment has this id, kind and index",
    ),
    "same id twice": ([START, *text()], text("a", 1)[0], "id was already used"),
    "same id while open": ([START, OPEN], call("a", 1)[0], "id was already used"),
    "same index twice": ([START, *text()], text("b", 0)[0], "index 0 is not greater than 0"),
    "falling index": ([START, *text("a", 2)], text("b", 1)[0], "index 1 is not greater than 2"),
    "negative index": ([START], text("a", -1)[0], "index -1 is not greater than -1"),
    "whole part at a used index": ([START, *text()], whole(0), "index 0 is not greater than 0"),
    "whole part without index": ([START], whole(None), "index None is not greater than -1"),
    "finish while open": ([START, OPEN], FINISH, "segments are still open: a"),
    "the index of an earlier step": (
        [START, *text(), STEP],
        text("b")[0],
        "index 0 is not greater",
    ),
    "step while open": ([START, OPEN, call("b", 1)[0]], STEP, "segments are still open: a, b"),
    "error while open": ([START, OPEN], ERROR, "segments are still open: a"),
    "restart while open": ([START, OPEN], RESTART, "segments are still open: a"),
    "restart without start": ([], RESTART, "must come first"),
    "restart after finish": ([START, FINISH], RESTART, "the stream has finished"),
    "two finishes": ([START, FINISH], FINISH, "the stream has finished"),
    "text after finish": ([START, FINISH], OPEN, "the stream has finished"),
    "delta after finish": ([START, FINISH], DELTA, "no open segment has this id, kind and index"),
    "ping after finish": ([START, FINISH], PING, "the stream has finished"),
    "start after finish": ([START, FINISH], START, "the stream has finished"),
    "error after finish": ([START, FINISH], ERROR, "the stream has finished"),
}

events = st.sampled_from(
    [
        START,
        FINISH,
        STEP,
        RESTART,
        ERROR,
        PING,
        whole(1),
        *text(),
        *text("b", 1),
        *call("b", 1),
        *thought(),
    ]
)


def follow(sequence):
    grammar = Grammar()
    for event in sequence:
        grammar.feed(event)
    return grammar


def state(grammar):
    return (
        dict(grammar._open),
        set(grammar._seen),
        grammar._last_index,
        grammar.started,
        grammar.finished,
    )


@settings(deadline=None)
@given(responses())
def test_replayed_responses_are_legal(response):
    """The events of any response obey the grammar."""
    follow(events_from_response(response)).finish()


@given(st.lists(events, max_size=12))
def test_a_refused_event_changes_nothing(sequence):
    """After a refusal the grammar stands where it stood."""
    grammar = Grammar()
    for event in sequence:
        before = state(grammar)
        try:
            grammar.feed(event)
        except StreamError:
            assert state(grammar) == before


@given(st.lists(events, max_size=12))
def test_accepted_streams_are_well_formed(sequence):
    """In what is accepted, start is first, finish last, and each end has its start."""
    grammar, accepted = Grammar(), []
    for event in sequence:
        try:
            grammar.feed(event)
        except StreamError:
            continue
        accepted.append(event)
    kinds = [event.type for event in accepted]
    assert kinds[:1] in ([], ["stream_start"])
    assert kinds.count("stream_start") <= 1
    assert "finish" not in kinds[:-1]
    if grammar.finished:
        assert sum(kind.endswith("_end") for kind in kinds) == sum(
            kind in {"text_start", "reasoning_start", "tool_call_start"} for kind in kinds
        )


@pytest.mark.parametrize("sequence", LEGAL.values(), ids=LEGAL)
def test_legal(sequence):
    """A legal stream is accepted to its end."""
    grammar = follow(sequence)

    grammar.finish()
    assert grammar.started
    assert grammar.finished


@pytest.mark.parametrize(("before", "event", "why"), ILLEGAL.values(), ids=ILLEGAL)
def test_illegal(before, event, why):
    """An event out of order is refused, by its type and with the reason."""
    grammar = follow(before)

    with pytest.raises(StreamError, match=why) as caught:
        grammar.feed(event)
    assert caught.value.message.startswith(event.type)


@pytest.mark.parametrize("sequence", [[], [START], [START, *text()], [START, ERROR]])
def test_stream_without_finish(sequence):
    """A stream that ends without `Finish` is refused at its end."""
    with pytest.raises(StreamError, match="ended without a finish event"):
        follow(sequence).finish()


def test_every_event_has_a_rule():
    """The table knows each kind of event, and each action has one."""
    assert set(RULES) == set(get_args(StreamEvent))
    assert {rule.action for rule in RULES.values()} == set(Action)


class NamesEncoder(SequentialEncoder):
    def _encode(self, event):
        return [Frame(data=event.type)]


def encoded(*events):
    encoder = NamesEncoder()
    names = [frame.data for event in events for frame in encoder.feed(event)]
    encoder.finish()
    return names


def test_an_encoder_sends_nothing_after_an_error():
    """The error is the last frame, and a stream that ends with it is complete."""
    assert encoded(START, FINISH) == ["stream_start", "finish"]
    assert encoded(START, ERROR, FINISH) == encoded(START, ERROR) == ["stream_start", "error"]


def test_an_encoder_needs_a_finish():
    """A stream that just stops is an error of the caller."""
    with pytest.raises(StreamError):
        encoded(START)


@pytest.mark.parametrize("name", dialects.names())
def test_no_encoder_takes_back_what_was_sent(name):
    """A reader of a wire format cannot be told to drop it, so a restart is refused."""
    encoder = dialects.get(name).stream_encoder(None)
    for event in (START, *text()):
        encoder.feed(event)

    with pytest.raises(StreamError, match="cannot take back"):
        encoder.feed(RESTART)
