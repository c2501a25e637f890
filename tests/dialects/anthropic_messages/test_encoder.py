"""Events -> stream frames."""

import pytest

from interlingua.dialects.anthropic_messages import stream_encoder
from interlingua.spec.content import Image, Opaque, Text, Thinking, ToolCall
from interlingua.spec.errors import ServerError, StreamError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from support.anthropic_frames import STOP, block, delta, encode, end


def test_blocks_are_contiguous():
    """Thinking first opens a thinking block; what cannot be said leaves no hole.

    Field bugs 46 and 47.
    """
    frames = encode(
        [
            StreamStart(id="r"),
            ReasoningStart(id="a", index=0),
            ReasoningDelta(id="a", index=0, delta="Hm."),
            ReasoningEnd(id="a", index=0, part=Thinking(text="Hm.")),
            ProviderEvent(part=Opaque(dialect="openai_chat", data={}), index=1),
            ToolCallStart(id="b", index=2, tool_call_id="t", name="f"),
            ToolCallEnd(id="b", index=2, tool_call=ToolCall(id="t", name="f")),
            Finish(finish_reason=FinishReason(reason="tool_calls")),
        ]
    )

    starts = [frame for frame in frames if frame["type"] == "content_block_start"]
    assert [(frame["index"], frame["content_block"]["type"]) for frame in starts] == [
        (0, "thinking"),
        (1, "tool_use"),
    ]
    assert [frame["type"] for frame in frames].count("message_delta") == 1
    assert frames[-1] == STOP


def test_the_input_count_is_in_the_start():
    """What is known of the input is told at once (field bug 57)."""
    start = StreamStart(id="r", usage=Usage(input_tokens=30, cache_read_tokens=10))

    assert encode([start])[0]["message"]["usage"] == {
        "input_tokens": 20,
        "output_tokens": 0,
        "cache_read_input_tokens": 10,
    }


def test_failure_is_told_and_nothing_after_it():
    """An error event ends the stream: no `message_stop` follows."""
    error = ServerError("busy", status_code=529)
    finish = Finish(finish_reason=FinishReason(reason="error"), response=Response())
    frames = encode([StreamStart(id="r"), ErrorEvent(error=error), finish])

    assert [frame["type"] for frame in frames] == ["message_start", "error"]
    assert frames[1]["error"]["type"] == "overloaded_error"


def test_frames_are_named():
    """Each frame's event name is its type."""
    encoder = stream_encoder(None)
    frames = [frame for event in events_from_response(Response()) for frame in encoder.feed(event)]

    assert [frame.event for frame in frames] == ["message_start", "message_delta", "message_stop"]


def test_unfinished_stream_cannot_be_closed():
    """The encoder refuses to end a stream that has not finished."""
    encoder = stream_encoder(None)
    encoder.feed(StreamStart(id="r"))

    with pytest.raises(StreamError, match="without a finish"):
        encoder.finish()


def blocks(*parts):
    """The frames between start and end that say these parts, which are another's."""
    message = Message(role="assistant", content=parts)
    return encode(events_from_response(Response(message=message, extra={"openai_chat": {}})))[1:-2]


def test_overlapping_segments_become_one_block_after_the_other():
    """A client that knows one open block loses nothing (field bug 47)."""
    frames = encode(
        [
            StreamStart(id="r"),
            ToolCallStart(id="a", index=0, tool_call_id="t", name="f"),
            TextStart(id="b", index=1),
            TextDelta(id="b", index=1, delta="x"),
            ToolCallDelta(id="a", index=0, delta="{}"),
            TextEnd(id="b", index=1, part=Text(text="x")),
            ToolCallEnd(id="a", index=0, tool_call=ToolCall(id="t", name="f")),
            Finish(finish_reason=FinishReason(reason="tool_calls")),
        ]
    )

    assert frames[1:-2] == [
        block(0, type="tool_use", id="t", name="f", input={}),
        delta(0, type="input_json_delta", partial_json="{}"),
        end(0),
        block(1, type="text", text=""),
        delta(1, type="text_delta", text="x"),
        end(1),
    ]


def test_a_thought_of_another_is_shown_and_not_proven():
    """Its signature is not one of this API; without words there is nothing to show."""
    shown = Thinking(text="Hm.", signature="S", extra={"gemini_generate": {}})
    hidden = Thinking(data="encrypted", extra={"openai_responses": {}})

    assert blocks(hidden, shown, hidden) == [
        block(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="Hm."),
        end(0),
    ]


def test_a_thought_that_claims_to_be_ours():
    """One made by hand with a signature alone begins when that is known."""
    assert blocks(Thinking(signature="S")) == [
        block(0, type="thinking", thinking="", signature=""),
        delta(0, type="signature_delta", signature="S"),
        end(0),
    ]


@pytest.mark.parametrize(
    ("raw", "kind", "text"),
    [
        ("", "function", "{}"),
        ("null", "function", "{}"),
        ("[1]", "function", '{"input":"[1]"}'),
        ("1 + 1", "custom", '{"input":"1 + 1"}'),
        ("{}", "custom", '{"input":"{}"}'),
        ('{"a":', "function", '{"a":'),
    ],
)
def test_argument_text_is_that_of_an_object(raw, kind, text):
    """What is none goes in one; only what begins as one is sent before it is known.

    Field bug 12.
    """
    frames = blocks(ToolCall(id="t", name="f", raw_arguments=raw, type=kind))

    assert frames[1:-1] == [delta(0, type="input_json_delta", partial_json=text)]


def test_media_have_no_block():
    """What another model has drawn cannot be said."""
    assert blocks(Image(data=b"x", media_type="image/png")) == []
