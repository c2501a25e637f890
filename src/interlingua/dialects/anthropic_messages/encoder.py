"""Events -> stream frames."""

from __future__ import annotations

from typing import assert_never

from interlingua.dialects.anthropic_messages.content import citations_of, is_native
from interlingua.dialects.anthropic_messages.errors import error_body
from interlingua.dialects.anthropic_messages.facts import NAME
from interlingua.dialects.anthropic_messages.response import (
    encode_answer_part,
    encode_stop_reason,
    encode_usage,
)
from interlingua.dialects.anthropic_messages.vendor_fields import (
    complete_late_usage,
    complete_usage,
)
from interlingua.spec.content import Json
from interlingua.spec.contracts import Frame, StreamEncoder
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepStart,
    StreamEvent,
    StreamRestart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResultEvent,
)
from interlingua.spec.request import Request
from interlingua.streams.declared_calls import declared_encoder
from interlingua.streams.frames import json_frame
from interlingua.streams.grammar import SequentialEncoder
from interlingua.wire.fields import extra_of
from interlingua.wire.tool_calls import ArgumentText

# `MessageDelta` has them beside `stop_reason`; the other fields are beside `delta`.
_DELTA_FIELDS = ("stop_sequence", "stop_details", "container")


class Encoder(SequentialEncoder):
    """One block is open at a time; blocks are numbered as they open, not by the events' indexes."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0
        self._thinking: dict[str, Json] | None = None  # a block that waits for its first text
        self._arguments = ArgumentText()
        self._native = False
        self._is_complete = False  # all fields of the vendor are sent

    def _encode(self, event: StreamEvent) -> list[Frame]:
        match event:
            case TextDelta():
                return [self._delta("text_delta", text=event.delta)]
            case ToolCallDelta():
                return self._input_delta(event.delta)
            case ReasoningDelta():
                return self._thinking_delta(event.delta)
            case TextStart() | ReasoningStart() | ToolCallStart():
                return self._open(event)
            case TextEnd() | ReasoningEnd() | ToolCallEnd():
                return self._end(event)
            case ProviderEvent():
                return self._provider_event(event)
            case StreamStart():
                return [self._message_start(event)]
            case Finish() | ErrorEvent():
                return self._finish(event)
            case ToolResultEvent() | StepStart() | StepFinish() | StreamRestart():
                return []  # events of runs and retries, which the API does not have
        assert_never(event)

    def _message_start(self, event: StreamStart) -> Frame:
        self._native = NAME in event.extra
        # Clients read the figures of the input here, and require both fields.
        usage: dict[str, Json] = {"input_tokens": 0, "output_tokens": 0}
        if event.usage is not None:
            usage = encode_usage(event.usage, native=self._native)
        self._is_complete = event.created_at is not None
        if self._is_complete:
            usage = complete_usage(usage)
        message: dict[str, Json] = {
            "id": event.id,
            "type": "message",
            "role": "assistant",
            "model": event.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
            **extra_of(event, NAME),
        }
        return _frame({"type": "message_start", "message": message})

    def _open(self, event: TextStart | ReasoningStart | ToolCallStart) -> list[Frame]:
        block = _opening(event)
        if isinstance(event, ReasoningStart) and NAME not in event.extra:
            self._thinking = block  # another model's thinking may have no visible text
            return []
        if isinstance(event, ToolCallStart):
            is_free = self._native or event.tool_type == "custom"  # native text stays unchanged
            self._arguments = ArgumentText(wrap=not self._native, is_free=is_free)
        return [self._start(block)]

    def _start(self, block: dict[str, Json]) -> Frame:
        self._next += 1
        return _frame(
            {"type": "content_block_start", "index": self._next - 1, "content_block": block}
        )

    def _delta(self, kind: str, **fields: Json) -> Frame:
        delta = {"type": kind, **fields}
        return _frame({"type": "content_block_delta", "index": self._next - 1, "delta": delta})

    def _input_delta(self, delta: str) -> list[Frame]:
        text = self._arguments.feed(delta)
        # Recorded: the API sends an empty delta for a tool call without arguments.
        return [self._input(text)] if text or self._native else []

    def _input(self, text: str) -> Frame:
        return self._delta("input_json_delta", partial_json=text)

    def _thinking_delta(self, text: str) -> list[Frame]:
        if not text and self._thinking is not None:
            return []
        return [*self._start_thinking(), self._delta("thinking_delta", thinking=text)]

    def _start_thinking(self) -> list[Frame]:
        block, self._thinking = self._thinking, None
        return [] if block is None else [self._start(block)]

    def _stop(self) -> Frame:
        return _frame({"type": "content_block_stop", "index": self._next - 1})

    def _end(self, event: TextEnd | ReasoningEnd | ToolCallEnd) -> list[Frame]:
        frames: list[Frame] = []
        if isinstance(event, TextEnd):
            items = citations_of(event.part) if event.part.citations else ()
            frames += [self._delta("citations_delta", citation=item) for item in items]
        elif isinstance(event, ToolCallEnd):
            text = self._arguments.end(event.tool_call)
            frames += [self._input(text)] if text else []
        elif is_native(event.part):
            frames += self._start_thinking()
            if event.part.signature is not None:  # the last delta of a block of thinking
                frames.append(self._delta("signature_delta", signature=event.part.signature))
        elif self._thinking is not None:
            self._thinking = None
            return []
        return [*frames, self._stop()]

    def _provider_event(self, event: ProviderEvent) -> list[Frame]:
        if event.part is not None:
            block = encode_answer_part(event.part, native=self._native)
            return [] if block is None else self._whole(block)
        if event.dialect == NAME and event.name is not None:
            return [json_frame(event.data, event.name)]
        return []

    def _whole(self, block: dict[str, Json]) -> list[Frame]:
        """A block at once, as the API sends results of its own tools."""
        signature = block.get("signature") if block["type"] == "thinking" else None
        if not signature:
            return [self._start(block), self._stop()]
        # Claude Code and others lose what the start has of a signature.
        start = self._start({**block, "signature": ""})
        return [start, self._delta("signature_delta", signature=signature), self._stop()]

    def _finish(self, event: Finish | ErrorEvent) -> list[Frame]:
        if isinstance(event, ErrorEvent):
            return [json_frame(error_body(event.error), "error")]
        native = self._native or NAME in event.extra
        stop = encode_stop_reason(event.finish_reason, native=native)
        extra = dict(extra_of(event, NAME))
        delta = {name: extra.pop(name) for name in _DELTA_FIELDS if name in extra}
        usage = encode_usage(event.usage, native=native)
        data: dict[str, Json] = {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None, **delta},
            "usage": complete_late_usage(usage) if self._is_complete else usage,
            **extra,
        }
        return [_frame(data), _frame({"type": "message_stop"})]


def _opening(event: TextStart | ReasoningStart | ToolCallStart) -> dict[str, Json]:
    extra = dict(extra_of(event, NAME))
    if isinstance(event, TextStart):
        if extra.get("citations"):
            extra["citations"] = []  # they follow as deltas
        return {"type": "text", "text": "", **extra}
    if isinstance(event, ReasoningStart):
        return {"type": "thinking", "thinking": "", "signature": "", **extra}
    return {"type": "tool_use", "id": event.tool_call_id, "name": event.name, "input": {}, **extra}


def _frame(data: dict[str, Json]) -> Frame:
    return json_frame(data, str(data["type"]))  # clients may read either


def stream_encoder(request: Request | None = None) -> StreamEncoder:
    """Return an encoder for the stream that a server sends."""
    return declared_encoder(Encoder(), request)
