"""Both ends of a stream together."""

import json

from interlingua.dialects.openai_chat import ChatQuirks, stream_decoder, stream_encoder
from interlingua.spec.contracts import Frame, Profile
from interlingua.spec.request import Request
from interlingua.wire.accumulate import StreamAccumulator


def chunk(delta, finish=None, **fields):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "created": 1, "model": "m", "choices": [choice], **fields}


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


def test_decoded_encoded_decoded():
    """A stream that is passed on adds up to the same, to the last field."""
    events = decode([Frame(data=json.dumps(item)) for item in STREAM])
    encoder = stream_encoder(None)
    frames = [frame for event in events for frame in encoder.feed(event)] + encoder.finish()

    assert fold(decode(frames)) == fold(events)
    assert frames[-1].data == "[DONE]"


def test_ids_are_made_by_the_caller():
    """`new_id` names calls that came without an id."""
    events = decode([Frame(data=json.dumps(item)) for item in STREAM], new_id=lambda: "01")

    assert fold(events).tool_calls[0].id == "call_01"


def test_tags_pass_through():
    """With the quirk, what was taken apart is put together again."""
    options = {"profile": Profile(quirks=ChatQuirks(think_tags=True))}
    text = "\n<think>hm</think>a"
    frames = [Frame(data=json.dumps(chunk({"content": text}, "stop"))), Frame(data="[DONE]")]
    encoder = stream_encoder(Request())
    passed = [frame for event in decode(frames, **options) for frame in encoder.feed(event)]

    assert fold(decode(passed)).text == text
    assert fold(decode(passed, **options)) == fold(decode(frames, **options))
