"""Events -> frames."""

import json

import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from interlingua.dialects.openai_responses import stream_decoder, stream_encoder
from interlingua.spec.content import Image, Opaque, Refusal, Text, Thinking, ToolCall
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import RateLimitError, StreamError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
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

NAME = "openai_responses"
START = StreamStart(id="resp_7", model="m")
FINISH = Finish(finish_reason=FinishReason(reason="stop"), usage=Usage(input_tokens=1))
vendor = TypeAdapter(ResponseStreamEvent)


def encode(*events):
    encoder = stream_encoder(None)
    frames = [frame for event in events for frame in encoder.feed(event)]
    frames += encoder.finish()
    assert all(frame.event == json.loads(frame.data)["type"] for frame in frames)
    return [json.loads(frame.data) for frame in frames]


def decode(payloads):
    decoder = stream_decoder()
    events = [e for data in payloads for e in decoder.feed(Frame(data=json.dumps(data)))]
    return events + decoder.finish()


def kinds(payloads):
    return [data["type"].removeprefix("response.") for data in payloads]


def answer(*parts, reason="stop"):
    return Response(
        id="resp_7",
        model="m",
        message=Message.assistant(parts),
        finish_reason=FinishReason(reason=reason),
        usage=Usage(input_tokens=3, output_tokens=4),
    )


def test_text():
    """The full sequence the vendor sends."""
    payloads = encode(*events_from_response(answer(Text(text="Hi"))))

    assert kinds(payloads) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert list(range(9)) == [data["sequence_number"] for data in payloads]
    assert {"msg_7_0"} == {data["item_id"] for data in payloads if "item_id" in data}
    assert payloads[-2]["item"] == payloads[-1]["response"]["output"][0]


def test_call_and_reasoning():
    """Each is an item of its own."""
    parts = (Thinking(text="hm"), ToolCall(id="c", name="f", arguments={"a": 1}))

    payloads = encode(*events_from_response(answer(*parts, reason="tool_calls")))

    assert kinds(payloads)[2:-1] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert payloads[-3]["arguments"] == '{"a":1}'
    dones = [data["item"] for data in payloads if data["type"] == "response.output_item.done"]
    assert dones == payloads[-1]["response"]["output"]


EVERYTHING = answer(
    Thinking(text="hm", signature="S", extra={"anthropic_messages": {}}),
    Text(text="One"),
    Text(text="Two"),
    Refusal(text="No."),
    ToolCall(id="c", name="f", arguments={"a": 1}),
    ToolCall(id="d", name="sh", raw_arguments="ls", type="custom"),
    Image(url="https://e.com/a.png"),
    Opaque(dialect="gemini_generate", data={}),
    Text(text="Three"),
    reason="tool_calls",
)


def test_vendor_reads_every_frame():
    """The vendor's own types accept each event, and its items are those of the answer."""
    payloads = encode(*events_from_response(EVERYTHING))

    for data in payloads:
        vendor.validate_python(data)
    dones = [data["item"] for data in payloads if data["type"] == "response.output_item.done"]
    assert dones == payloads[-1]["response"]["output"]
    assert list(range(len(dones))) == [
        data["output_index"] for data in payloads if data["type"] == "response.output_item.done"
    ]


def test_what_is_said_is_heard():
    """Our decoder reads what our encoder writes: parts, deltas and end."""
    events = decode(encode(*events_from_response(EVERYTHING)))

    response = events[-1].response
    assert [part.text for part in response.message.content if hasattr(part, "text")] == [
        "hm",
        "One",
        "Two",
        "No.",
        "Three",
    ]
    assert [e.delta for e in events if isinstance(e, TextDelta)] == ["One", "Two", "Three"]
    assert [e.delta for e in events if isinstance(e, ToolCallDelta)] == ['{"a":1}', "ls"]


def test_annotations():
    """Citations are told before the text is done."""
    cited = Text(text="Hi", extra={NAME: {"annotations": [{"type": "url_citation", "url": "u"}]}})

    payloads = encode(*events_from_response(answer(cited)))

    assert "output_text.annotation.added" in kinds(payloads)
    assert [data["annotation"] for data in payloads if "annotation" in data] == [
        {"type": "url_citation", "url": "u"}
    ]


def test_raw_thoughts():
    """Thoughts that came as such are streamed as such."""
    kept = {"id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}

    payloads = encode(*events_from_response(answer(Thinking(text="hm", extra={NAME: kept}))))

    assert "reasoning_text.delta" in kinds(payloads)
    assert {"type": "reasoning", **kept} == payloads[-1]["response"]["output"][0]


def test_events_of_this_api():
    """They are written again as they came, with the numbers of this stream."""
    item = {"type": "web_search_call", "id": "ws"}
    name = "response.output_item.added"
    progress = {
        "type": "response.web_search_call.searching",
        "output_index": 5,
        "sequence_number": 9,
    }

    payloads = encode(
        START,
        ProviderEvent(
            dialect=NAME, name=name, data={"type": name, "output_index": 5, "item": item}
        ),
        ProviderEvent(dialect=NAME, name=progress["type"], data=progress),
        ProviderEvent(
            dialect=NAME,
            name="response.output_item.done",
            data={"output_index": 5},
            part=Opaque(dialect=NAME, data=item),
            index=0,
        ),
        ProviderEvent(dialect=NAME, name="x", data={"type": "x", "y": 1}),
        ProviderEvent(dialect="gemini_generate", name="z", data={"type": "z"}),
        FINISH,
    )

    assert kinds(payloads)[2:] == [
        "output_item.added",
        "web_search_call.searching",
        "output_item.done",
        "x",
        "completed",
    ]
    assert [data["output_index"] for data in payloads[2:5]] == [0, 0, 0]
    assert payloads[3]["sequence_number"] == 2
    assert payloads[5] == {"type": "x", "y": 1}
    assert [item] == payloads[-1]["response"]["output"]


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("length", "response.incomplete"),
        ("content_filter", "response.incomplete"),
        ("stop", "response.completed"),
    ],
)
def test_endings(reason, kind):
    """The last event has the kind of the status."""
    last = encode(*events_from_response(answer(Text(text="Hi"), reason=reason)))[-1]

    assert kind == last["type"]
    vendor.validate_python(last)


def test_error():
    """An error is told as an event, then as a failed response; the finish adds nothing."""
    payloads = encode(
        START,
        TextStart(id="t", index=0),
        TextDelta(id="t", index=0, delta="Hi"),
        TextEnd(id="t", index=0, part=Text(text="Hi")),
        ErrorEvent(error=RateLimitError("slow down")),
        Finish(finish_reason=FinishReason(reason="error")),
    )

    assert kinds(payloads)[-2:] == ["error", "failed"]
    assert (payloads[-2]["code"], payloads[-2]["message"]) == ("rate_limit_exceeded", "slow down")
    assert payloads[-1]["response"]["status"] == "failed"
    assert len(payloads[-1]["response"]["output"]) == 1
    for data in payloads[-2:]:
        vendor.validate_python(data)


def test_error_is_heard():
    """Our decoder raises what our encoder told."""
    payloads = encode(START, ErrorEvent(error=RateLimitError("slow down")))

    with pytest.raises(RateLimitError, match="slow down"):
        decode(payloads)


def test_out_of_order():
    """Events that break the grammar are refused, and so is a stream without an end."""
    with pytest.raises(StreamError):
        encode(TextDelta(id="t", index=0, delta="Hi"))
    with pytest.raises(StreamError):
        encode(START)


def test_parts_that_come_whole():
    """A text or an item in one event is said in full; annotations of a wrong type are kept."""
    text = Text(text="Hi", extra={NAME: {"annotations": 5, "item": {"id": "msg_1"}}})
    payloads = encode(
        START,
        ProviderEvent(part=text, index=0),
        ProviderEvent(part=Opaque(dialect=NAME, data={"type": "x"}), index=1),
        ProviderEvent(part=ToolCall(id="c", name="f"), index=2),
        FINISH,
    )

    dones = [data["item"] for data in payloads if data["type"] == "response.output_item.done"]
    assert [item["type"] for item in dones] == ["message", "x", "function_call"]
    assert dones == payloads[-1]["response"]["output"]


def test_empty_reasoning():
    """A thought without text has no summary."""
    payloads = encode(*events_from_response(answer(Thinking(text="", extra={NAME: {"id": "rs"}}))))

    assert kinds(payloads)[2:4] == ["output_item.added", "output_item.done"]


def test_overlapping_segments_become_one_item_after_the_other():
    """Items are whole, in the order in which they began (field bug 47)."""
    call = ToolCall(id="c", name="f", raw_arguments="{}")

    payloads = encode(
        START,
        TextStart(id="t", index=0),
        ToolCallStart(id="k", index=1, tool_call_id="c", name="f"),
        TextDelta(id="t", index=0, delta="Hi"),
        ToolCallDelta(id="k", index=1, delta="{}"),
        ToolCallEnd(id="k", index=1, tool_call=call),
        TextEnd(id="t", index=0, part=Text(text="Hi")),
        FINISH,
    )

    places = [data["output_index"] for data in payloads if "output_index" in data]
    assert places == sorted(places)
    assert [
        (data["type"].rpartition(".")[2], data["output_index"])
        for data in payloads
        if "output_item" in data["type"]
    ] == [("added", 0), ("done", 0), ("added", 1), ("done", 1)]
    assert [i["type"] for i in payloads[-1]["response"]["output"]] == ["message", "function_call"]


@pytest.mark.parametrize("raw", ["", "null"])
def test_no_arguments_are_an_empty_object(raw):
    """A client parses the text: in the deltas, in the item, in the whole (field bug 10)."""
    payloads = encode(*events_from_response(answer(ToolCall(id="t", name="f", raw_arguments=raw))))

    said = [data["delta"] for data in payloads if data["type"].endswith("arguments.delta")]
    assert said == ["{}"]
    done = [data["arguments"] for data in payloads if data["type"].endswith("arguments.done")]
    assert done == said
    assert payloads[-2]["item"]["arguments"] == "{}"
    assert payloads[-1]["response"]["output"][0]["arguments"] == "{}"


def test_what_cannot_be_said_parts_two_messages():
    """A block of another leaves nothing, but the texts around it are items of their own."""
    block = Opaque(dialect="anthropic_messages", data={})
    payloads = encode(*events_from_response(answer(Text(text="a"), block, Text(text="b"))))

    done = [data["item"] for data in payloads if data["type"] == "response.output_item.done"]
    assert done == payloads[-1]["response"]["output"]
    assert [item["content"][0]["text"] for item in done] == ["a", "b"]


def test_an_item_of_ours_begins_within_a_text():
    """The text is still written to its end, and its item closed after it."""
    added = {"type": "response.output_item.added", "output_index": 1, "item": {"type": "x"}}
    payloads = encode(
        StreamStart(id="resp_7", extra={NAME: {}}),
        TextStart(id="a", index=0),
        ProviderEvent(dialect=NAME, name="response.output_item.added", data=added),
        TextDelta(id="a", index=0, delta="x"),
        TextEnd(id="a", index=0, part=Text(text="x")),
        FINISH,
    )

    done = [data["item"] for data in payloads if data["type"] == "response.output_item.done"]
    assert [item["content"][0]["text"] for item in done] == ["x"]
