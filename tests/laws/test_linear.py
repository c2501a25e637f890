"""Decoding a stream takes time in proportion to it, whatever a server sends."""

import json

import pytest

from interlingua import dialects
from interlingua.spec.contracts import Frame
from interlingua.streams.accumulate import StreamAccumulator
from support.patterns import LINEAR, seconds

COUNT = 1_000
TEXT = "x" * 2_000


def field(number):
    """Fields that no frame before had, also in an object that every frame has."""
    return {f"field_{number}": number, "same": {f"field_{number}": {"deep": number}}}


def chat(delta, **choice):
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, **choice}]}


def chat_call(number):
    return chat({"tool_calls": [{"index": 0, "function": {"arguments": " "}, **field(number)}]})


def detail(kind, number):
    item = {"type": kind, "index": 0, "text": "x", "data": "x", **field(number)}
    return chat({"reasoning_details": [item]})


def audio(number):
    return chat({"audio": {"id": "a", "data": TEXT, "transcript": TEXT, **field(number)}})


CHAT_CALL = {"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}
CHAT_START = (chat({"role": "assistant"}),)
CHAT_END = (chat({}, finish_reason="stop"), "[DONE]")


def block(kind, **fields):
    start = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}
    content = {"type": kind, **fields}
    return (start, {"type": "content_block_start", "index": 0, "content_block": content})


def delta(kind, **fields):
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **fields}}


BLOCK_END = (
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    {"type": "message_stop"},
)


def item(kind, **fields):
    start = {"type": "response.created", "response": {"id": "r", "model": "m"}}
    added = {"id": "i", "type": kind, **fields}
    return (start, {"type": "response.output_item.added", "output_index": 0, "item": added})


ITEM_END = ({"type": "response.completed", "response": {"status": "completed"}},)


def parts(*parts, **fields):
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **fields}]}


def piece(number):
    arguments = [{"jsonPath": f"$.a{number}", "stringValue": "x"}]
    call = {"partialArgs": arguments, "willContinue": True}
    return parts({"functionCall": call, **field(number)})


PIECES = (parts({"functionCall": {"name": "f", "willContinue": True}}),)
PARTS_END = (parts(finishReason="STOP"),)


def delta_of(index=0, **delta):
    return ("contentBlockDelta", {"delta": delta, "contentBlockIndex": index})


def thought_of(**delta):
    return delta_of(reasoningContent=delta)


def begun(**start):
    return (("contentBlockStart", {"start": start, "contentBlockIndex": 0}),)


USE = begun(toolUse={"toolUseId": "1", "name": "f"})
RESULT = begun(toolResult={"toolUseId": "1", "type": "t"})
IMAGE = begun(image={"format": "png"})
EVENT_END = (("messageStop", {"stopReason": "end_turn"}), ("metadata", {"usage": {}}))
CALL_DONE = {"type": "response.function_call_arguments.done", "output_index": 0}

# The frames before, the frame that is repeated (a function of its number), and the frames after.
STREAMS = {
    "openai_chat": {
        "choice": (CHAT_START, lambda n: chat({"content": "x"}, **field(n)), CHAT_END),
        "envelope": (CHAT_START, lambda n: {**chat({"content": "x"}), **field(n)}, CHAT_END),
        "message": (CHAT_START, lambda n: chat(field(n)), CHAT_END),
        "list": (CHAT_START, lambda n: chat({"list": [field(n)]}), CHAT_END),
        "logprobs": (
            CHAT_START,
            lambda n: chat({}, logprobs={"content": [{"token": "x"}], **field(n)}),
            CHAT_END,
        ),
        "audio": (CHAT_START, audio, CHAT_END),
        "tool call": ((chat({"tool_calls": [CHAT_CALL]}),), chat_call, CHAT_END),
        "detail": (CHAT_START, lambda n: detail("reasoning.text", n), CHAT_END),
        "encrypted detail": (CHAT_START, lambda n: detail("reasoning.encrypted", n), CHAT_END),
    },
    "anthropic_messages": {
        "text": (block("text", text=""), lambda _: delta("text_delta", text=TEXT), BLOCK_END),
        "citation": (
            block("text", text=""),
            lambda n: delta("citations_delta", citation={"type": "x", **field(n)}),
            BLOCK_END,
        ),
        "signature": (
            block("thinking", thinking=""),
            lambda _: delta("signature_delta", signature=TEXT),
            BLOCK_END,
        ),
        "whole block": (
            block("compaction"),
            lambda n: delta("compaction_delta", **field(n)),
            BLOCK_END,
        ),
        "usage": (
            block("text", text=""),
            lambda n: {"type": "message_delta", "delta": {}, "usage": field(n)},
            BLOCK_END,
        ),
    },
    "openai_responses": {
        "text": (
            item("message", role="assistant", content=[]),
            lambda n: {"type": "response.output_text.delta", "output_index": 0, "content_index": n,
                       "delta": TEXT},
            ITEM_END,
        ),
        "tool call": (
            item("function_call", name="f", call_id="c", arguments=""),
            lambda n: {**CALL_DONE, "arguments": TEXT + "x" * n},
            ITEM_END,
        ),
        "items": (
            item("message", role="assistant", content=[]),
            lambda n: {"type": "response.output_item.added", "output_index": n,
                       "item": {"type": "function_call", "name": "f", **field(n)}},
            ITEM_END,
        ),
    },
    "gemini_generate": {
        "text": ((), lambda n: parts({"text": "x", **field(n)}), PARTS_END),
        "candidate": ((), lambda n: parts({"text": "x"}, **field(n)), PARTS_END),
        "another candidate": (
            (),
            lambda n: parts({"text": TEXT}, index=n % 2, **field(n)),
            PARTS_END,
        ),
        "tool call": (PIECES, piece, PARTS_END),
    },
    "bedrock_converse": {
        "text": ((), lambda n: delta_of(text=TEXT, **field(n)), EVENT_END),
        "reasoning": ((), lambda n: thought_of(text="x", **field(n)), EVENT_END),
        "signature": ((), lambda _: thought_of(signature=TEXT), EVENT_END),
        "redacted": ((), lambda _: thought_of(redactedContent=TEXT), EVENT_END),
        "citation": ((), lambda n: delta_of(citation={"title": TEXT, **field(n)}), EVENT_END),
        "tool call": (USE, lambda _: delta_of(toolUse={"input": "x"}), EVENT_END),
        "result": (RESULT, lambda n: delta_of(toolResult=[{"text": "x", **field(n)}]), EVENT_END),
        "image": (IMAGE, lambda n: delta_of(image=field(n)), EVENT_END),
        "event": ((), lambda n: ("messageStop", field(n)), EVENT_END),
        "blocks": ((), lambda n: delta_of(n, text="x"), EVENT_END),
    },
}  # fmt: skip


def frame(value):
    if isinstance(value, tuple):  # the name of an event and its data
        return Frame(event=value[0], data=json.dumps(value[1]))
    return Frame(data=value if isinstance(value, str) else json.dumps(value))


def read(dialect, frames):
    """Decode and fold the frames."""
    decoder, accumulator = dialects.get(dialect).stream_decoder(), StreamAccumulator()
    for each in frames:
        for event in decoder.feed(each):
            accumulator.feed(event)
    for event in decoder.finish():
        accumulator.feed(event)
    accumulator.response()


def test_every_dialect_has_hostile_streams():
    """A new dialect needs its own."""
    assert set(STREAMS) == set(dialects.names())


@pytest.mark.parametrize(
    ("dialect", "name"), [(dialect, name) for dialect in STREAMS for name in STREAMS[dialect]]
)
def test_a_frame_that_is_repeated_takes_linear_time(dialect, name):
    """Also if each repetition brings another field, or a long text (law 11)."""
    before, make, after = STREAMS[dialect][name]
    middle = [frame(make(number)) for number in range(4 * COUNT)]
    ends = [frame(value) for value in before], [frame(value) for value in after]

    ratios = []
    for _ in range(3):  # another process can only make a ratio larger
        once, more = (
            seconds(read, dialect, [*ends[0], *middle[:count], *ends[1]], times=1)
            for count in (COUNT, 4 * COUNT)
        )
        ratios.append(more / once / 2)  # of four times as many frames: 2 if linear, 8 if quadratic
        if ratios[-1] < LINEAR:
            break

    assert min(ratios) < LINEAR
