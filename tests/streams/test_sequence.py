"""One segment at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.laws import fold
from interlingua.spec.content import Refusal
from interlingua.spec.events import (
    Finish,
    ProviderEvent,
    ReasoningStart,
    StreamStart,
    TextDelta,
    TextStart,
)
from interlingua.spec.response import FinishReason
from interlingua.streams.grammar import RULES, Action, Sequencer
from interlingua.streams.segments import ReasoningSegment, TextSegment, ToolCallSegment

START, FINISH = StreamStart(id="r"), Finish(finish_reason=FinishReason(reason="stop"))


def sequenced(events):
    sequencer = Sequencer()
    return [due for event in events for due in sequencer.feed(event)]


@st.composite
def mixed(draw):
    """A legal stream whose segments overlap in any way."""
    events, open_segments = [START], []
    for index in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(("text", "reasoning", "call", "whole")))
        if kind == "whole":
            events.append(ProviderEvent(part=Refusal(text=str(index)), index=index))
            continue
        segment = {
            "text": TextSegment,
            "reasoning": ReasoningSegment,
            "call": lambda i: ToolCallSegment(i, call_id=f"c{i}", name="f"),
        }[kind](index)
        events.append(segment.start())
        open_segments.append(segment)
        for _ in range(draw(st.integers(0, 4))):
            if not open_segments:
                break
            chosen = draw(st.sampled_from(open_segments))
            if draw(st.booleans()):
                events.append(chosen.delta(draw(st.sampled_from(("", "a", "{}")))))
            else:
                events.append(chosen.end())
                open_segments.remove(chosen)
    ends = [segment.end() for segment in draw(st.permutations(open_segments))]
    return [*events, *ends, FINISH]


@given(mixed())
def test_law_no_two_are_open_and_nothing_is_lost(events):
    """What comes out says the same, in order of index, one segment after the other."""
    found = sequenced(events)

    assert fold(found) == fold(events)
    assert sorted(map(repr, found)) == sorted(map(repr, events))
    current = None
    for event in found:
        action = RULES[type(event)].action
        if action is Action.START:
            assert current is None
            current = event.id
        elif action in (Action.DELTA, Action.END):
            assert event.id == current
            current = current if action is Action.DELTA else None
        else:
            assert current is None
    indexes = [event.index for event in found if RULES[type(event)].action is Action.START]
    assert indexes == sorted(indexes)


@given(mixed())
def test_law_what_is_in_order_is_not_held(events):
    """A stream already in order passes event by event."""
    sequencer = Sequencer()

    assert all(sequencer.feed(event) == [event] for event in sequenced(events))


def test_a_later_segment_waits_for_the_first():
    """Its events follow as soon as the first has ended, its own end after that."""
    sequencer = Sequencer()
    first, second = TextSegment(0), ToolCallSegment(1, call_id="c", name="f")

    assert [type(e) for e in sequencer.feed(first.start())] == [TextStart]
    assert sequencer.feed(second.start()) == []
    assert sequencer.feed(second.delta("{}")) == []
    assert sequencer.feed(first.delta("a")) == [TextDelta(id="text_0", index=0, delta="a")]
    released = sequencer.feed(first.end())

    assert [event.type for event in released] == ["text_end", "tool_call_start", "tool_call_delta"]
    assert [event.type for event in sequencer.feed(second.end())] == ["tool_call_end"]


def test_a_whole_part_waits_too():
    """A part that comes at once keeps its place between segments."""
    first, last = TextSegment(0), ReasoningSegment(2)
    whole = ProviderEvent(part=Refusal(text="no"), index=1)

    found = sequenced([first.start(), whole, last.start(), first.end(), last.end()])

    assert [event.type for event in found] == [
        "text_start",
        "text_end",
        "provider_event",
        "reasoning_start",
        "reasoning_end",
    ]


@pytest.mark.parametrize("event", [ProviderEvent(dialect="d", name="ping", data={}), START, FINISH])
def test_other_events_do_not_wait(event):
    """What adds no part goes on at once."""
    sequencer = Sequencer()
    sequencer.feed(TextStart(id="a", index=0))
    sequencer.feed(ReasoningStart(id="b", index=1))

    assert sequencer.feed(event) == [event]
