"""Events -> stream frames."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.anthropic_messages.content import encode_part
from interlingua.dialects.anthropic_messages.errors import error_body
from interlingua.dialects.anthropic_messages.response import (
    encode_stop_reason,
    encode_usage,
)
from interlingua.dialects.anthropic_messages.wire import NAME
from interlingua.spec.content import Json
from interlingua.spec.contracts import Frame
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.wire.carry import Losses
from interlingua.wire.frames import json_frame
from interlingua.wire.grammar import Grammar
from interlingua.wire.shape import extra_of


class Encoder:
    """Blocks are numbered as they are opened, whatever the events' own indexes."""

    def __init__(self) -> None:
        self._grammar = Grammar()
        self._indexes: dict[str, int] = {}
        self._next = 0
        self._native = False
        self._failed = False

    def feed(self, event: StreamEvent) -> list[Frame]:
        self._grammar.feed(event)
        match event:
            case TextDelta():
                return [self._delta(event.id, {"type": "text_delta", "text": event.delta})]
            case ToolCallDelta():
                delta = {"type": "input_json_delta", "partial_json": event.delta}
                return [self._delta(event.id, delta)]
            case ReasoningDelta():
                delta = {"type": "thinking_delta", "thinking": event.delta}
                return [self._delta(event.id, delta)]
            case TextStart() | ReasoningStart() | ToolCallStart():
                return [self._start(event.id, _opening(event))]
            case TextEnd() | ReasoningEnd() | ToolCallEnd():
                return self._end(event)
            case ProviderEvent():
                return self._provider_event(event)
            case StreamStart():
                return [self._message_start(event)]
            case ErrorEvent():
                self._failed = True
                return [json_frame(error_body(event.error), "error")]
            case Finish():
                return [] if self._failed else self._finish(event)
        return []

    def finish(self) -> list[Frame]:
        if not self._failed:
            self._grammar.finish()
        return []

    def _message_start(self, event: StreamStart) -> Frame:
        self._native = NAME in event.extra
        usage = {"input_tokens": 0, "output_tokens": 0}
        message: dict[str, Any] = {
            "id": event.id,
            "type": "message",
            "role": "assistant",
            "model": event.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage if event.usage is None else encode_usage(event.usage),
            **extra_of(event, NAME),
        }
        return _frame({"type": "message_start", "message": message})

    def _start(self, id: str | None, block: Json) -> Frame:  # noqa: A002 -- the event's word
        index, self._next = self._next, self._next + 1
        if id is not None:
            self._indexes[id] = index
        return _frame({"type": "content_block_start", "index": index, "content_block": block})

    def _delta(self, id: str, delta: dict[str, Any]) -> Frame:  # noqa: A002
        index = self._indexes[id]
        return _frame({"type": "content_block_delta", "index": index, "delta": delta})

    def _end(self, event: TextEnd | ReasoningEnd | ToolCallEnd) -> list[Frame]:
        frames: list[Frame] = []
        if isinstance(event, TextEnd):
            for citation in extra_of(event.part, NAME).get("citations") or ():
                delta = {"type": "citations_delta", "citation": citation}
                frames.append(self._delta(event.id, delta))
        elif isinstance(event, ReasoningEnd) and event.part.signature is not None:
            delta = {"type": "signature_delta", "signature": event.part.signature}
            frames.append(self._delta(event.id, delta))
        frames.append(_stop(self._indexes[event.id]))
        return frames

    def _provider_event(self, event: ProviderEvent) -> list[Frame]:
        if event.part is not None:
            block = encode_part(event.part, Losses(), "")
            return [] if block is None else [self._start(None, block), _stop(self._next - 1)]
        if event.dialect == NAME and event.name is not None:
            return [json_frame(event.data, event.name)]
        return []

    def _finish(self, event: Finish) -> list[Frame]:
        native = self._native or NAME in event.extra
        stop = encode_stop_reason(event.finish_reason, native=native)
        kept = dict(extra_of(event, NAME))
        delta = {name: kept.pop(name) for name in _DELTA_FIELDS if name in kept}
        data = {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None, **delta},
            "usage": encode_usage(event.usage),
            **kept,
        }
        return [_frame(data), _frame({"type": "message_stop"})]


_DELTA_FIELDS = ("stop_sequence", "stop_details", "container")


def _opening(event: TextStart | ReasoningStart | ToolCallStart) -> dict[str, Any]:
    kept = dict(extra_of(event, NAME))
    if isinstance(event, TextStart):
        if kept.get("citations"):
            kept["citations"] = []  # they follow as deltas
        return {"type": "text", "text": "", **kept}
    if isinstance(event, ReasoningStart):
        return {"type": "thinking", "thinking": "", "signature": "", **kept}
    return {"type": "tool_use", "id": event.tool_call_id, "name": event.name, "input": {}, **kept}


def _stop(index: int) -> Frame:
    return _frame({"type": "content_block_stop", "index": index})


def _frame(data: dict[str, Any]) -> Frame:
    return json_frame(data, data["type"])
