"""Events."""

import re
from typing import get_args

import msgspec
import pytest

from interlingua.spec.content import Text, Thinking, ToolCall, ToolResult
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
    ToolResultEvent,
)
from interlingua.spec.response import (
    FinishReason,
    Response,
    Usage,
    Warning,
)

EVENTS = [
    StreamStart(),
    StreamRestart(start=StreamStart(model="n"), reason="cut"),
    TextStart(id="a", index=0),
    TextDelta(id="a", index=0, delta=""),
    TextEnd(id="a", index=0, part=Text(text="")),
    ReasoningStart(id="b", index=1),
    ReasoningDelta(id="b", index=1, delta="hm"),
    ReasoningEnd(id="b", index=1, part=Thinking(text="hm")),
    ToolCallStart(id="c", index=2, tool_call_id="call_1", name="look"),
    ToolCallDelta(id="c", index=2, delta="{}"),
    ToolCallEnd(id="c", index=2, tool_call=ToolCall(id="call_1", name="look")),
    ProviderEvent(),
    ToolResultEvent(result=ToolResult(tool_call_id="call_1", content="x")),
    StepStart(step=0),
    StepFinish(step=0, response=Response()),
    ErrorEvent(error=StreamError("cut")),
    Finish(finish_reason=FinishReason(reason="stop")),
]
IDS = [event.type for event in EVENTS]


def test_all_kinds_are_here():
    """The examples above have every kind of event."""
    assert [type(event) for event in EVENTS] == list(get_args(StreamEvent))


@pytest.mark.parametrize("event", EVENTS, ids=IDS)
def test_type_is_the_name_in_snake_case(event):
    """`TextDelta` says `text_delta`; names that a part or an error has too end with `Event`."""
    name = type(event).__name__
    snake = re.sub("(?<!^)(?=[A-Z])", "_", name).lower()

    short = name in ("ErrorEvent", "ToolResultEvent")
    assert event.type == (snake.removesuffix("_event") if short else snake)


@pytest.mark.parametrize("event", EVENTS, ids=IDS)
def test_type_is_the_tag(event):
    """The type an event says is the type its JSON says."""
    assert msgspec.to_builtins(event, enc_hook=str)["type"] == event.type


@pytest.mark.parametrize("event", EVENTS, ids=IDS)
def test_events_are_frozen(event):
    """No field of an event can be set."""
    for field in type(event).__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(event, field, None)


@pytest.mark.parametrize("event", [e for e in EVENTS if hasattr(e, "id")][1:], ids=IDS[1:10])
def test_segment_events_have_id_and_index(event):
    """Each event of a segment says which one, and where it is."""
    assert event.id in {"a", "b", "c"}
    assert event.index in {0, 1, 2}


def test_defaults():
    """A start knows no usage; a finish has an empty one and no response."""
    finish = Finish(finish_reason=FinishReason(reason="stop"))

    assert StreamStart().usage is None
    assert (finish.usage, finish.response) == (Usage(), None)
    assert ProviderEvent().part is None


def test_warnings_from_a_list():
    """Warnings given in a list are a tuple."""
    warning = Warning(code="a", message="b")

    assert StreamStart(warnings=[warning]).warnings == (warning,)
