"""Events -> stream frames."""

import json

import pytest

from interlingua.dialects import gemini_generate
from interlingua.spec.content import Text, Thinking, ToolCall
from interlingua.spec.errors import RateLimitError, StreamError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
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
from interlingua.spec.response import FinishReason, Usage

STOP = Finish(
    finish_reason=FinishReason(reason="stop"), usage=Usage(input_tokens=1, output_tokens=2)
)


def encode(*events):
    encoder = gemini_generate.stream_encoder(None)
    frames = [frame for event in events for frame in encoder.feed(event)]
    return [json.loads(frame.data) for frame in [*frames, *encoder.finish()]]


def test_each_delta_is_a_frame():
    """Text is sent as it comes; reason and usage are in the last frame, with its end."""
    frames = encode(
        StreamStart(id="r", model="m"),
        TextStart(id="t", index=4),
        TextDelta(id="t", index=4, delta="a"),
        TextDelta(id="t", index=4, delta="b"),
        TextEnd(id="t", index=4, part=Text(text="ab")),
        STOP,
    )

    def frame(text, **candidate):
        content = {"parts": [{"text": text}], "role": "model"}
        return {
            "candidates": [{"content": content, "index": 0, **candidate}],
            "modelVersion": "m",
            "responseId": "r",
        }

    usage = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}
    assert frames == [
        frame("a"),
        {**frame("b", finishReason="STOP"), "usageMetadata": usage},
    ]


def test_a_call_is_sent_when_it_is_whole():
    """Fragments of arguments wait for the end of the call."""
    call = ToolCall(id="c", name="f", arguments={"a": 1}, raw_arguments='{"a":1}')
    frames = encode(
        StreamStart(),
        ToolCallStart(id="x", index=0, tool_call_id="c", name="f"),
        ToolCallDelta(id="x", index=0, delta='{"a"'),
        ToolCallDelta(id="x", index=0, delta=":1}"),
        ToolCallEnd(id="x", index=0, tool_call=call),
        Finish(finish_reason=FinishReason(reason="tool_calls")),
    )

    assert frames[0]["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"name": "f", "args": {"a": 1}, "id": "c"}}
    ]
    assert frames[-1]["candidates"][0]["finishReason"] == "STOP"


def test_events_of_this_dialect_are_passed_on():
    """Frames of this API come back verbatim; those of others have no place here."""
    frames = encode(
        StreamStart(),
        ProviderEvent(dialect="gemini_generate", data={"new": 1}),
        ProviderEvent(dialect="openai_chat", data={"new": 2}),
        STOP,
    )

    assert frames[0] == {"new": 1}
    assert len(frames) == 2


def test_an_error_ends_the_stream():
    """The error is the last frame: no finish follows it."""
    frames = encode(
        StreamStart(),
        ErrorEvent(error=RateLimitError("slow down", retry_after=1.5)),
        Finish(finish_reason=FinishReason(reason="error")),
    )

    assert frames == [
        {
            "error": {
                "code": 429,
                "message": "slow down",
                "status": "RESOURCE_EXHAUSTED",
                "details": [
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}
                ],
            }
        }
    ]


def test_an_unfinished_stream_is_refused():
    """Events that do not end, or are out of order, are an error of the sender."""
    with pytest.raises(StreamError):
        encode(StreamStart())
    with pytest.raises(StreamError):
        encode(TextStart(id="t", index=0))


def test_overlapping_calls_keep_their_order():
    """Parts have no numbers here: the first call that began is the first sent (field bug 47)."""
    frames = encode(
        StreamStart(),
        ToolCallStart(id="a", index=0, tool_call_id="a", name="f"),
        ToolCallStart(id="b", index=1, tool_call_id="b", name="f"),
        ToolCallEnd(id="b", index=1, tool_call=ToolCall(id="b", name="f")),
        ToolCallEnd(id="a", index=0, tool_call=ToolCall(id="a", name="f")),
        STOP,
    )

    parts = [frame["candidates"][0]["content"]["parts"][0] for frame in frames]
    assert [part["functionCall"]["id"] for part in parts] == ["a", "b"]


def test_a_thought_of_another_without_words():
    """There is nothing to show."""
    thought = Thinking(data="encrypted", extra={"openai_responses": {}})
    frames = encode(
        StreamStart(),
        ReasoningStart(id="a", index=0, extra=thought.extra),
        ReasoningEnd(id="a", index=0, part=thought),
        STOP,
    )

    assert len(frames) == 1


@pytest.mark.parametrize(
    "deltas",
    [["One", " ", "two"], ["\n\n", "x", "\n"], [" "], ["a", "  ", " \n", "b"], ["", "ab "]],
)
def test_no_piece_of_a_text_is_blank(deltas):
    """Clients return the pieces as parts, and some models refuse blank ones."""
    text = "".join(deltas)
    frames = encode(
        StreamStart(),
        TextStart(id="t", index=0),
        *(TextDelta(id="t", index=0, delta=delta) for delta in deltas),
        TextEnd(id="t", index=0, part=Text(text=text)),
        STOP,
    )

    pieces = [frame["candidates"][0]["content"]["parts"][0]["text"] for frame in frames]
    assert "".join(pieces) == text
    assert all(piece.strip() for piece in pieces) or not text.strip()
    assert frames[-1]["candidates"][0]["finishReason"] == "STOP"


def test_an_error_comes_after_what_was_said():
    """The end of a text that waits is sent before the error."""
    frames = encode(
        StreamStart(),
        TextStart(id="t", index=0),
        TextDelta(id="t", index=0, delta="ab"),
        TextEnd(id="t", index=0, part=Text(text="ab")),
        ErrorEvent(error=StreamError("cut")),
        STOP,
    )

    texts = [f["candidates"][0]["content"]["parts"][0]["text"] for f in frames if "error" not in f]
    assert "".join(texts) == "ab"
    assert "error" in frames[-1]
