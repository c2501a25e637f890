"""Events -> stream frames."""

import pytest

from anthropic_frames import STOP, encode
from interlingua.dialects.anthropic_messages import stream_encoder
from interlingua.spec.content import Opaque, Thinking, ToolCall
from interlingua.spec.errors import ServerError, StreamError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamStart,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.wire.accumulate import replay


def test_field_bug_46_and_47_blocks_are_contiguous():
    """Thinking first opens a thinking block; what cannot be said leaves no hole."""
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


def test_field_bug_57_input_count_in_the_start():
    """What is known of the input is told at once."""
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
    frames = [frame for event in replay(Response()) for frame in encoder.feed(event)]

    assert [frame.event for frame in frames] == ["message_start", "message_delta", "message_stop"]


def test_unfinished_stream_cannot_be_closed():
    """The encoder refuses to end a stream that has not finished."""
    encoder = stream_encoder(None)
    encoder.feed(StreamStart(id="r"))

    with pytest.raises(StreamError, match="without a finish"):
        encoder.finish()
