"""Stream frames <-> events, there and back."""

import json

import pytest
from google.genai import types

from interlingua.dialects import gemini_generate
from interlingua.dialects.gemini_generate.tools import hosted_use
from interlingua.spec.content import Image, Refusal, Text, Thinking, ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import StreamAccumulator, events_from_response
from interlingua.streams.grammar import Grammar

NAME = "gemini_generate"


def encode(events):
    encoder = gemini_generate.stream_encoder(None)
    frames = [frame for event in events for frame in encoder.feed(event)]
    return [*frames, *encoder.finish()]


def fold(frames):
    decoder, accumulator, grammar = (
        gemini_generate.stream_decoder(),
        StreamAccumulator(),
        Grammar(),
    )
    events = [event for frame in frames for event in decoder.feed(frame)]
    for event in [*events, *decoder.finish()]:
        grammar.feed(event)
        accumulator.feed(event)
    grammar.finish()
    return accumulator.response()


SIGNED = {NAME: {"thoughtSignature": "U0lH"}}
CONTENTS = [
    (),
    (Text(text=""),),
    (Text(text="a", extra=SIGNED),),
    (Text(text="a"), Text(text="b", extra=SIGNED), Text(text="c")),
    (Text(text="a", extra={NAME: {"thought": False}}), Text(text="b", extra={NAME: {"new": 1}})),
    (
        Text(text="a", extra={NAME: {"thought": False}}),
        Text(text="b", extra={NAME: {"thought": False}}),
    ),
    (
        Thinking(text="a", extra={NAME: {}}),
        Thinking(text="b", extra={NAME: {}}),
        Thinking(text="c", signature="U0lH", extra={NAME: {}}),
        Thinking(text="", signature="U0lH", extra={NAME: {}}),
        Text(text="d"),
    ),
    (
        ToolCall(id="a", name="f", arguments={"x": 1}, raw_arguments='{"x":1}', extra=SIGNED),
        ToolCall(id="b", name="f", raw_arguments="{}"),
        Text(text="", extra=SIGNED),
    ),
    (
        Text(text="a"),
        hosted_use({"executableCode": {"code": "1"}}),
        Image(data=b"\x89PNG", media_type="image/png", extra=SIGNED),
        Text(text="b"),
    ),
]


@pytest.mark.parametrize("content", CONTENTS)
def test_parts_survive_a_stream(content):
    """Part boundaries and signatures, which the wire does not mark, are kept."""
    has_calls = any(isinstance(part, ToolCall) for part in content)
    response = Response(
        id="r",
        model="m",
        message=Message(role="assistant", content=content),
        finish_reason=FinishReason(reason="tool_calls" if has_calls else "stop", raw="STOP"),
        usage=Usage(
            input_tokens=1, output_tokens=2, raw={"promptTokenCount": 1, "candidatesTokenCount": 2}
        ),
        extra={NAME: {"candidate": {"index": 0, "avgLogprobs": -1.0}, "createTime": "now"}},
    )

    assert fold(encode(events_from_response(response))) == response


@pytest.mark.parametrize(
    "body",
    [
        {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]},
        {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": 1}]},
        {"candidates": [{"content": {"parts": [{"text": "a"}], "role": "model"}}]},
        {"candidates": [{"finishReason": "SAFETY"}, {"index": 1, "finishReason": "STOP"}]},
        {"candidates": [{"content": {"parts": [{"text": "a"}]}, "index": 3}], "modelVersion": "m"},
        {"promptFeedback": {"blockReason": "OTHER"}, "usageMetadata": {"promptTokenCount": 1}},
        {"totalTokens": 5},
    ],
)
def test_odd_answers_survive_a_stream(body):
    """A body that comes whole says the same as a stream."""
    frames = encode(events_from_response(gemini_generate.decode_response(body)))

    assert gemini_generate.encode_response(fold(frames)) == body


def test_another_providers_stream_can_be_read_by_the_vendors_types():
    """Each frame is an answer to the vendor's client, the last with reason and usage."""
    response = Response(
        id="r",
        model="claude",
        message=Message(
            role="assistant",
            content=(
                Thinking(text="hm", signature="s", extra={"anthropic_messages": {}}),
                Thinking(redacted=True, data="x", extra={"anthropic_messages": {}}),
                Text(text="hi"),
                ToolCall(id="toolu_1", name="f", arguments={"a": 1}, raw_arguments='{"a": 1}'),
                Refusal(text="no"),
            ),
        ),
        finish_reason=FinishReason(reason="tool_calls", raw="tool_use"),
        usage=Usage(input_tokens=1, output_tokens=2),
    )

    frames = encode(events_from_response(response))

    answers = [types.GenerateContentResponse.model_validate(json.loads(f.data)) for f in frames]
    assert "".join(a.text for a in answers if a.text) == "hino"
    assert [a.function_calls[0].id for a in answers if a.function_calls] == ["toolu_1"]
    assert answers[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert answers[-1].usage_metadata.total_token_count == 3
    assert all(a.candidates[0].content.role == "model" for a in answers)
