"""Streams a server sends."""

import json

from interlingua.conformance.equality import same_response
from interlingua.dialects.openai_chat import stream_decoder, stream_encoder
from interlingua.spec.content import Audio, Image, Opaque, Refusal, Text, Thinking, ToolCall
from interlingua.spec.errors import RateLimitError
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
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import StreamAccumulator, events_from_response

NAME = "openai_chat"
STOP = Finish(finish_reason=FinishReason(reason="stop"))


def encode(*events, request=None):
    encoder = stream_encoder(request)
    frames = [frame for event in events for frame in encoder.feed(event)] + encoder.finish()
    return [frame.data if frame.data == "[DONE]" else json.loads(frame.data) for frame in frames]


def deltas(chunks):
    return [c["choices"][0]["delta"] for c in chunks if c != "[DONE]" and c["choices"]]


def again(response):
    decoder, accumulator = stream_decoder(), StreamAccumulator()
    encoder = stream_encoder(None)
    for event in events_from_response(response):
        for frame in encoder.feed(event):
            for decoded in decoder.feed(frame):
                accumulator.feed(decoded)
    return accumulator.response()


def test_foreign_events():
    """Events of any origin become chunks: role, thought, text, calls, reason, usage, end."""
    chunks = encode(
        StreamStart(id="r", model="m"),
        ReasoningStart(id="a", index=0),
        ReasoningDelta(id="a", index=0, delta="hm"),
        ReasoningEnd(id="a", index=0, part=Thinking(text="hm", signature="S")),
        TextStart(id="b", index=1),
        TextDelta(id="b", index=1, delta="t"),
        TextEnd(id="b", index=1, part=Text(text="t")),
        ToolCallStart(id="c", index=4, tool_call_id="x", name="f"),
        ToolCallDelta(id="c", index=4, delta="{}"),
        ToolCallEnd(id="c", index=4, tool_call=ToolCall(id="x", name="f")),
        Finish(
            finish_reason=FinishReason(reason="tool_calls", raw="tool_use"),
            usage=Usage(input_tokens=1, output_tokens=2),
        ),
    )

    assert deltas(chunks) == [
        {"role": "assistant", "content": None},
        {"reasoning_content": "hm"},
        {"content": "t"},
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "x",
                    "type": "function",
                    "function": {"name": "f", "arguments": ""},
                }
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
        {},
    ]
    for chunk in chunks[:-1]:
        assert (chunk["id"], chunk["model"], chunk["created"]) == ("r", "m", 0)
        assert chunk["object"] == "chat.completion.chunk"
    assert chunks[-3]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-2]["choices"] == []
    assert chunks[-2]["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    assert chunks[-1] == "[DONE]"


def test_calls_are_numbered_from_zero():
    """Whatever the events' own indexes (field bug 6)."""
    start = [ToolCallStart(id=f"c{i}", index=i, tool_call_id=f"x{i}", name="f") for i in (3, 5, 9)]
    end = [
        ToolCallEnd(id=f"c{i}", index=i, tool_call=ToolCall(id=f"x{i}", name="f"))
        for i in (3, 5, 9)
    ]
    chunks = encode(StreamStart(), *start, *end, STOP)

    calls = [d["tool_calls"][0] for d in deltas(chunks) if "tool_calls" in d]
    assert [call["index"] for call in calls if "id" in call] == [0, 1, 2]


def test_usage_is_only_for_clients_that_asked():
    """A client that did not ask gets no usage, as the vendor does (field bug 61)."""
    finish = Finish(finish_reason=FinishReason(reason="stop"), usage=Usage(input_tokens=1))
    asked = Request(provider_options={NAME: {"stream_options": {"include_usage": True}}})

    chunks = encode(StreamStart(), finish, request=Request())
    assert all(chunk["choices"] for chunk in chunks[:-1])
    assert not any("usage" in chunk for chunk in chunks[:-1])
    last = encode(StreamStart(), finish, request=asked)[-2]
    assert (last["choices"], last["usage"]["prompt_tokens"]) == ([], 1)
    assert "usage" not in encode(StreamStart(), STOP)[-2]


def test_errors():
    """An error is a frame of its own; after it there is nothing, not even the end."""
    chunks = encode(
        StreamStart(),
        ErrorEvent(error=RateLimitError("slow")),
        Finish(finish_reason=FinishReason(reason="error")),
    )

    assert len(chunks) == 2
    assert chunks[1]["error"]["code"] == "rate_limit_exceeded"


def test_whole_parts():
    """Refusals are a field; what has a content part is one; the rest has nothing to show."""
    strange = {"type": "reference", "ids": [1]}
    parts = [
        Refusal(text="no"),
        Opaque(dialect=NAME, data=strange),
        Opaque(dialect="gemini_generate", data={}),
        Image(url="u"),
        Thinking(redacted=True, data="x"),
    ]
    events = [ProviderEvent(part=part, index=i) for i, part in enumerate(parts)]

    assert deltas(encode(StreamStart(extra={NAME: {}}), *events, STOP))[1:-1] == [
        {"refusal": "no"},
        {"content": [strange]},
        {"content": [{"type": "image_url", "image_url": {"url": "u"}}]},
    ]


def test_own_events_are_written_back():
    """Chunks of other choices and named events go through; another dialect's do not."""
    chunk = {"id": "c", "choices": [{"index": 1, "delta": {"content": "b"}}]}
    encoder = stream_encoder(None)
    encoder.feed(StreamStart())

    (choice,) = encoder.feed(ProviderEvent(dialect=NAME, name="choice", data=chunk))
    (named,) = encoder.feed(ProviderEvent(dialect=NAME, name="progress", data={"n": 1}))
    assert (choice.event, json.loads(choice.data)) == (None, chunk)
    assert (named.event, json.loads(named.data)) == ("progress", {"n": 1})
    assert encoder.feed(ProviderEvent(dialect="gemini_generate", name="x", data={})) == []


def test_native_answers_come_back_whole():
    """Every field that a whole answer keeps survives being said as a stream; marks do not."""
    call = ToolCall(
        id="x",
        name="f",
        arguments={"a": 1},
        raw_arguments='{"a": 1}',
        extra={NAME: {"extra_content": {"s": 1}, "~position": 0, "~without": ["type"]}},
    )
    response = Response(
        id="r",
        model="m",
        message=Message(
            role="assistant",
            content=(
                Thinking(
                    text="hm",
                    extra={NAME: {"~fields": ["reasoning"], "reasoning_details": [{"a": 1}]}},
                ),
                Text(text="t", extra={NAME: {"annotations": []}}),
                call,
            ),
            extra={NAME: {"refusal": None, "annotations": [{"a": 1}]}},
        ),
        finish_reason=FinishReason(reason="tool_calls", raw="stop"),
        usage=Usage(
            input_tokens=1, output_tokens=2, raw={"prompt_tokens": 1, "completion_tokens": 2}
        ),
        extra={
            NAME: {
                "created": 5,
                "service_tier": "x",
                "choice": {"logprobs": {"content": [1]}, "index": 3, "delta": {}},
                "choices": [
                    {
                        "index": 1,
                        "message": {"role": "assistant", "tool_calls": [{"id": "y"}]},
                        "finish_reason": "stop",
                    }
                ],
            }
        },
    )
    found = again(response)

    assert same_response(found, response, marks=False) == []
    assert found.extra == response.extra
    assert found.tool_calls[0].extra == {NAME: {"extra_content": {"s": 1}}}


def test_thoughts_are_written_as_they_came():
    """In tags, in parts, or in the field they had."""
    for kept, expected in (
        ({"~fields": ["reasoning"]}, [{"reasoning": "hm"}]),
        (
            {"~tags": {"before": "", "closed": True}},
            [{"content": "<think>"}, {"content": "hm"}, {"content": "</think>"}],
        ),
    ):
        thought = Thinking(text="hm", extra={NAME: kept})
        response = Response(message=Message.assistant(thought))
        assert deltas(encode(*events_from_response(response)))[1:-1] == expected


def test_empty_text_is_said():
    """Empty text is not the same as none."""
    assert again(Response(message=Message.assistant(""))).message.content == (Text(text=""),)
    assert again(Response()).message.content == ()


def test_no_arguments_are_an_empty_object():
    """A client parses the text; that of our own calls is left as it came (field bug 10)."""
    call = ToolCall(id="t", name="f", raw_arguments="")
    events = events_from_response(Response(message=Message.assistant([call])))
    own = events_from_response(Response(message=Message.assistant([call]), extra={NAME: {}}))

    def said(chunks):
        calls = [call for delta in deltas(chunks) for call in delta.get("tool_calls", ())]
        return [call["function"]["arguments"] for call in calls]

    assert said(encode(*events)) == ["", "{}"]
    assert said(encode(*own)) == ["", ""]


def test_images_of_others():
    """They stand beside the content, where routers put them; a sound cannot be said."""
    image = Image(url="https://e.com/a.png")
    message = Message.assistant([image, Audio(data=b"x", media_type="audio/wav")])

    assert deltas(encode(*events_from_response(Response(message=message))))[1:-1] == [
        {"images": [{"type": "image_url", "image_url": {"url": "https://e.com/a.png"}}]}
    ]
