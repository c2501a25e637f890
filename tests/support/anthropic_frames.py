"""Building blocks for streams of Anthropic Messages."""

import json

from interlingua.dialects.anthropic_messages import stream_decoder, stream_encoder
from interlingua.spec.contracts import Frame
from interlingua.streams.accumulate import StreamAccumulator

NAME = "anthropic_messages"


START = {
    "type": "message_start",
    "message": {"id": "m", "model": "c", "usage": {"input_tokens": 12}},
}


STOP = {"type": "message_stop"}


def block(index, **fields):
    return {"type": "content_block_start", "index": index, "content_block": fields}


def delta(index, **fields):
    return {"type": "content_block_delta", "index": index, "delta": fields}


def end(index):
    return {"type": "content_block_stop", "index": index}


def told(reason, **usage):
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def decode(*payloads, finish=True):
    decoder = stream_decoder()
    events = [e for data in payloads for e in decoder.feed(Frame(data=json.dumps(data)))]
    return events + (decoder.finish() if finish else [])


def fold(events):
    accumulator = StreamAccumulator()
    for event in events:
        accumulator.feed(event)
    return accumulator.response()


def encode(events):
    encoder = stream_encoder(None)
    return [json.loads(frame.data) for event in events for frame in encoder.feed(event)]
