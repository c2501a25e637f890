"""Segments."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.strategies import json_objects
from interlingua.spec.content import Text, Thinking, ToolCall
from interlingua.spec.events import (
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.streams.grammar import Grammar
from interlingua.streams.segments import ReasoningSegment, TextSegment, ToolCallSegment, reopen
from interlingua.wire.json_text import dump_text

EXTRA = {"openai_chat": {"a": 1}}


def cut_up(text, places):
    """The text in pieces."""
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def call_segment(**fields):
    return ToolCallSegment(0, call_id="call_1", name="look", **fields)


@given(st.lists(st.text()))
def test_text_adds_up(pieces):
    """The whole of a text or thinking part is its pieces, joined."""
    text, thinking = TextSegment(0), ReasoningSegment(0)

    for piece in pieces:
        assert text.delta(piece).delta == thinking.delta(piece).delta == piece

    assert text.end().part == Text(text="".join(pieces))
    assert thinking.end().part == Thinking(text="".join(pieces))


@given(json_objects, st.lists(st.integers(0, 99), max_size=5))
def test_arguments_are_parsed_whole(arguments, places):
    """However its text is cut up, a call has its arguments and the text as it came."""
    segment = call_segment()
    raw = dump_text(arguments)

    for piece in cut_up(raw, places):
        segment.delta(piece)

    assert segment.end().tool_call == ToolCall(
        id="call_1", name="look", arguments=arguments, raw_arguments=raw
    )
    assert segment.cut() == segment.end()


@given(json_objects, st.integers(0, 99))
def test_unfinished_call_has_what_parses(arguments, length):
    """A call cut anywhere has its raw text, some of its arguments, and is valid only if whole."""
    raw = dump_text(arguments)
    segment = call_segment()
    segment.delta(raw[:length])

    call = segment.cut().tool_call

    assert call.raw_arguments == raw[:length]
    assert set(call.arguments) <= set(arguments)
    assert call.is_valid is (length >= len(raw))


def test_text_events():
    """A text segment opens, grows and ends with one id and index."""
    segment = TextSegment(3, EXTRA)

    assert segment.start() == TextStart(id="text_3", index=3, extra=EXTRA)
    assert segment.delta("hi") == TextDelta(id="text_3", index=3, delta="hi")
    assert segment.end() == TextEnd(id="text_3", index=3, part=Text(text="hi", extra=EXTRA))
    assert segment.cut() == segment.end()


def test_reasoning_events():
    """A thinking segment ends with its signature and data."""
    segment = ReasoningSegment(0, EXTRA)
    segment.signature, segment.data = "sig", "data"

    assert segment.start() == ReasoningStart(id="reasoning_0", index=0, extra=EXTRA)
    assert segment.delta("hm") == ReasoningDelta(id="reasoning_0", index=0, delta="hm")
    assert segment.end() == ReasoningEnd(
        id="reasoning_0",
        index=0,
        part=Thinking(text="hm", signature="sig", data="data", extra=EXTRA),
    )


def test_tool_call_events():
    """A call's fragments are passed on as they came."""
    segment = call_segment(extra=EXTRA)

    assert segment.start() == ToolCallStart(
        id="tool_call_0", index=0, tool_call_id="call_1", name="look", extra=EXTRA
    )
    assert segment.delta('{"a"') == ToolCallDelta(id="tool_call_0", index=0, delta='{"a"')
    assert segment.delta(":1}").delta == ":1}"
    assert segment.end() == ToolCallEnd(
        id="tool_call_0",
        index=0,
        tool_call=ToolCall(
            id="call_1", name="look", arguments={"a": 1}, raw_arguments='{"a":1}', extra=EXTRA
        ),
    )


@pytest.mark.parametrize(
    ("raw", "ended", "cut", "valid"),
    [
        ("null", {}, {}, True),
        ('{"a": 1}', {"a": 1}, {"a": 1}, True),
        ('{"a": 1, "b": "x', {}, {"a": 1, "b": "x"}, False),
        ('{"a": tru', {}, {}, False),
        ("[1, 2]", {}, {}, False),
        ("oops", {}, {}, False),
        ('{"a": NaN}', {}, {}, False),
    ],
)
def test_argument_text(raw, ended, cut, valid):
    """Text that does not parse is kept and makes the call invalid; a cut keeps what parses."""
    segment = call_segment()
    segment.delta(raw)

    assert segment.end().tool_call.arguments == ended
    assert segment.cut().tool_call.arguments == cut
    for end in (segment.end(), segment.cut()):
        assert end.tool_call.raw_arguments == raw
        assert end.tool_call.is_valid is valid


def test_custom_call():
    """A custom tool's input is its text, even if it looks like JSON."""
    segment = call_segment(tool_type="custom")
    segment.delta('{"a": 1}')

    for end in (segment.end(), segment.cut()):
        assert end.tool_call == ToolCall(
            id="call_1", name="look", raw_arguments='{"a": 1}', type="custom"
        )


@given(json_objects, st.data())
def test_looking_before_the_end(arguments, data):
    """However often, it is what a cut would give there; and it changes nothing."""
    raw = dump_text(arguments)
    cuts = sorted({0, len(raw), *data.draw(st.lists(st.integers(0, len(raw)), max_size=5))})
    segment, blind = call_segment(), call_segment()
    for start, end in pairwise(cuts):
        segment.delta(raw[start:end])
        blind.delta(raw[start:end])
        assert segment.peek() == segment.cut() == blind.cut()

    assert segment.end() == blind.end()
    custom = ToolCallSegment(0, call_id="1", name="n", tool_type="custom")
    custom.delta('{"a": 1}')
    assert custom.peek().tool_call.arguments == {}


@pytest.mark.parametrize(
    "start",
    [
        TextStart(id="x", index=4, extra=EXTRA),
        ReasoningStart(id="x", index=4, extra=EXTRA),
        ToolCallStart(id="x", index=4, tool_call_id="1", name="n", tool_type="custom", extra=EXTRA),
    ],
    ids=lambda start: start.type,
)
def test_reopen(start):
    """A start event opens the segment it came from, whatever its id."""
    segment = reopen(start)

    assert segment.start() == start
    assert (segment.end().id, segment.end().index) == ("x", 4)


def test_extra_is_copied():
    """What a segment adds to its extra does not reach the caller's."""
    given_extra = {"openai_chat": 1}

    TextSegment(0, given_extra).extra["gemini_generate"] = 2

    assert given_extra == {"openai_chat": 1}


def test_events_obey_the_grammar():
    """Segments at rising indexes may be open together."""
    grammar = Grammar()
    grammar.started = True
    segments = [TextSegment(0), ReasoningSegment(1), call_segment()]
    segments[2].index = 2

    for step in ("start", "end"):
        for segment in segments:
            grammar.feed(getattr(segment, step)())
