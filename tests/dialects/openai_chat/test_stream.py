"""Both ends of a stream together."""

import json

from interlingua.conformance.equality import same_response
from interlingua.dialects.openai_chat import stream_decoder, stream_encoder
from interlingua.dialects.openai_chat.facts import ChatQuirks
from interlingua.spec.content import Text, Thinking, ToolCall
from interlingua.spec.contracts import Frame, Profile
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason
from interlingua.streams.accumulate import StreamAccumulator


def chunk(delta, finish=None, **fields):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "created": 1, "model": "m", "choices": [choice], **fields}


NAME = "openai_chat"
CALL = {"index": 0, "id": "", "type": "function", "function": {"name": "f", "arguments": "{"}}
STREAM = [
    chunk({"role": "assistant", "content": "", "reasoning": "hm", "refusal": None}, tier=None),
    chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "E", "index": 0}]}),
    chunk({"content": "a", "annotations": [1]}),
    chunk({"tool_calls": [CALL]}, tier="x"),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": "}"}, "late": 1}]}),
    chunk({}, "stop", usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}),
]


def decode(frames, **options):
    decoder = stream_decoder(**options)
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish()


def fold(events):
    accumulator = StreamAccumulator()
    for event in events:
        accumulator.feed(event)
    return accumulator.response()


def response_of(*chunks, **quirks):
    frames = [Frame(data=json.dumps(item)) for item in chunks] + [Frame(data="[DONE]")]
    return fold(decode(frames, profile=Profile(quirks=ChatQuirks(**quirks))))


def test_decoded_encoded_decoded():
    """A stream that is passed on adds up to the same, to the last field of the wire."""
    events = decode([Frame(data=json.dumps(item)) for item in STREAM])
    encoder = stream_encoder(None)
    frames = [frame for event in events for frame in encoder.feed(event)] + encoder.finish()

    assert same_response(fold(decode(frames)), fold(events), marks=False) == []
    assert frames[-1].data == "[DONE]"


def test_ids_are_made_by_the_caller():
    """`new_id` names calls that came without an id."""
    events = decode([Frame(data=json.dumps(item)) for item in STREAM], new_id=lambda: "01")

    assert fold(events).tool_calls[0].id == "call_01"


def test_tags_pass_through():
    """What was taken apart is put together again."""
    options = {"profile": Profile(quirks=ChatQuirks(think_tags=False))}
    text = "\n<think>hm</think>a"
    frames = [Frame(data=json.dumps(chunk({"content": text}, "stop"))), Frame(data="[DONE]")]
    encoder = stream_encoder(Request())
    passed = [frame for event in decode(frames) for frame in encoder.feed(event)]

    assert fold(decode(passed, **options)).text == text
    assert fold(decode(passed)) == fold(decode(frames))


def test_think_tags_are_taken_out_of_the_text():
    """Tags are taken out of the text, however they are cut (field bug 45)."""
    text = "<think>hm</think>a"
    for size in range(1, len(text)):
        chunks = [chunk({"content": text[i : i + size]}) for i in range(0, len(text), size)]
        response = response_of(*chunks, chunk({}, "stop"))
        assert (response.reasoning, response.text) == ("hm", "a")


def test_empty_thought_in_tags():
    """It is remembered, so that it can go back."""
    response = response_of(chunk({"content": "<think></think>a"}, "stop"))

    assert response.message.content == (
        Thinking(extra={NAME: {"~tags": {"before": "", "closed": True}}}),
        Text(text="a"),
    )


def test_thought_text_and_call():
    """A thought ends where the text begins, and the text where a call begins."""
    response = response_of(
        chunk({"role": "assistant", "content": None, "reasoning_content": "h"}),
        chunk({"reasoning_content": "m", "content": None}),
        chunk({"content": "a"}),
        chunk({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "f"}}]}),
        chunk({}, "tool_calls"),
    )

    assert response.message.content == (
        Thinking(text="hm", extra={NAME: {"~fields": ["reasoning_content"]}}),
        Text(text="a"),
        ToolCall(id="x", name="f", raw_arguments=""),
    )


def test_finish_reason_of_calls():
    """Calls say more than `stop`."""
    call = {"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}
    response = response_of(chunk({"tool_calls": [call]}), chunk({}, "stop"))

    assert response.finish_reason == FinishReason(reason="tool_calls", raw="stop")
