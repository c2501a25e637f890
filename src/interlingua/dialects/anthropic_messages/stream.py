"""Stream frames <-> events."""

from __future__ import annotations

from typing import Any, ClassVar

from interlingua.dialects.anthropic_messages.content import encode_part, read_part
from interlingua.dialects.anthropic_messages.errors import error_body, read_error
from interlingua.dialects.anthropic_messages.response import (
    decode_stop_reason,
    decode_usage,
    encode_stop_reason,
    encode_usage,
    take_constants,
)
from interlingua.dialects.anthropic_messages.wire import NAME
from interlingua.spec.content import Json, Part
from interlingua.spec.contracts import DEFAULT, Frame, NewId, Profile, StreamDecoder, StreamEncoder
from interlingua.spec.errors import StreamError
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
from interlingua.spec.request import Request
from interlingua.wire.carry import Losses
from interlingua.wire.frames import json_frame, read_frame
from interlingua.wire.grammar import Grammar
from interlingua.wire.jsontext import dump_text, loads_object
from interlingua.wire.segments import ReasoningSegment, Segment, TextSegment, ToolCallSegment
from interlingua.wire.shape import extra_of


def stream_decoder(
    *,
    new_id: NewId | None = None,  # noqa: ARG001 -- this API always names its calls
    profile: Profile = DEFAULT,  # noqa: ARG001
) -> StreamDecoder:
    """For a stream a client receives."""
    return _Decoder()


def stream_encoder(request: Request | None = None) -> StreamEncoder:  # noqa: ARG001
    """For a stream a server sends."""
    return _Encoder()


class _Whole:
    """A block that becomes a part only when it is complete."""

    __slots__ = ("block", "pieces")

    def __init__(self, block: dict[str, Any]) -> None:
        self.block = block
        self.pieces: list[str] = []

    def part(self) -> Part:
        block = self.block
        if self.pieces:
            text = "".join(self.pieces)
            arguments = loads_object(text)
            block = {**block, "input": text if arguments is None else arguments}
        return read_part(block)


class _Decoder:
    def __init__(self) -> None:
        self._blocks: dict[Any, Segment | _Whole] = {}
        self._inputs: dict[Any, str] = {}  # of calls that came whole, with no deltas
        self._next = 0
        self._started = False
        self._ended = False
        self._usage: dict[str, Any] = {}
        self._stop: str | None = None
        self._extra: dict[str, Any] = {}

    def feed(self, frame: Frame) -> list[StreamEvent]:
        data = None if self._ended else read_frame(frame)
        if data is None:
            return []
        kind = data.get("type") or frame.event
        if kind == "content_block_delta":  # nearly all of them
            return self._delta(data)
        handler = self._HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            return handler(self, data)  # type: ignore[no-any-return]
        return [ProviderEvent(dialect=NAME, name=str(kind), data=data)]

    def finish(self) -> list[StreamEvent]:
        if not self._ended:
            raise StreamError("the stream ended before message_stop")
        return []

    def _message_start(self, data: dict[str, Any]) -> list[StreamEvent]:
        if self._started:
            return []  # some proxies say it twice
        self._started = True
        message = data.get("message")
        left = dict(message) if isinstance(message, dict) else {}
        take_constants(left)
        for name in ("content", "stop_reason"):
            left.pop(name, None)
        usage = left.pop("usage", None)
        if isinstance(usage, dict):
            self._usage = usage
        return [
            StreamStart(
                id=_text(left.pop("id", None)),
                model=_text(left.pop("model", None)),
                usage=decode_usage(usage),
                extra={NAME: left},
            )
        ]

    def _block_start(self, data: dict[str, Any]) -> list[StreamEvent]:
        events = [] if self._started else self._message_start({})
        block = data.get("content_block")
        if not isinstance(block, dict):
            raise StreamError("content_block_start without a content_block")
        key = _key(data)
        segment = _open(block, self._next)
        self._blocks[key] = segment
        if isinstance(segment, ToolCallSegment) and block.get("input"):
            self._inputs[key] = dump_text(block["input"])
        if isinstance(segment, _Whole):
            return events
        self._next += 1
        events.append(segment.start())
        first = (
            block.get("thinking") if isinstance(segment, ReasoningSegment) else block.get("text")
        )
        if isinstance(first, str) and first:
            events.append(segment.delta(first))
        return events

    def _delta(self, data: dict[str, Any]) -> list[StreamEvent]:
        delta = data.get("delta")
        index = data.get("index")
        segment = self._blocks.get(index if isinstance(index, int) else None)
        if not isinstance(delta, dict):
            raise StreamError("content_block_delta without a delta")
        if segment is None:
            raise StreamError(f"content_block_delta for block {index!r}, which is not open")
        kind = delta.get("type")
        field = _FIELDS.get(kind) if isinstance(kind, str) else None
        if field is None:
            return self._odd_delta(segment, data, delta)
        text = delta.get(field)
        if not isinstance(text, str):
            raise StreamError(f"{kind} without its {field}")
        if isinstance(segment, _Whole):
            segment.pieces.append(text)
            return []
        return [segment.delta(text)]

    def _odd_delta(
        self, segment: Segment | _Whole, data: dict[str, Any], delta: dict[str, Any]
    ) -> list[StreamEvent]:
        kind = delta.get("type")
        if kind == "signature_delta" and isinstance(segment, ReasoningSegment):
            segment.signature = (segment.signature or "") + _text(delta.get("signature"))
        elif kind == "citations_delta" and isinstance(segment, TextSegment):
            kept = segment.extra.get(NAME, {})
            citations = [*(kept.get("citations") or ()), delta.get("citation")]
            segment.extra = {NAME: {**kept, "citations": citations}}
        elif isinstance(segment, _Whole):
            changed = {name: value for name, value in delta.items() if name != "type"}
            segment.block = {**segment.block, **changed}
        else:
            return [ProviderEvent(dialect=NAME, name="content_block_delta", data=data)]
        return []

    def _block_stop(self, data: dict[str, Any]) -> list[StreamEvent]:
        key = _key(data)
        return self._end(key) if key in self._blocks else []

    def _end(self, key: Any) -> list[StreamEvent]:
        segment = self._blocks.pop(key)
        if isinstance(segment, _Whole):
            self._next += 1
            return [ProviderEvent(dialect=NAME, part=segment.part(), index=self._next - 1)]
        events: list[StreamEvent] = []
        if key in self._inputs and not segment.pieces:
            events.append(segment.delta(self._inputs[key]))
        events.append(segment.end())
        return events

    def _message_delta(self, data: dict[str, Any]) -> list[StreamEvent]:
        left = {name: value for name, value in data.items() if name not in ("type", "delta")}
        usage = left.pop("usage", None)
        if isinstance(usage, dict):  # cumulative: the last figure counts
            told = {name: value for name, value in usage.items() if value is not None}
            self._usage = {**usage, **self._usage, **told}
        delta = data.get("delta")
        if isinstance(delta, dict):
            left.update(delta)
            stop = left.pop("stop_reason", None)
            self._stop = stop if isinstance(stop, str) else self._stop
        take_constants(left)
        self._extra.update(left)
        return []

    def _message_stop(self, _: dict[str, Any]) -> list[StreamEvent]:
        events = [] if self._started else self._message_start({})
        self._ended = True
        for key in list(self._blocks):
            events += self._end(key)
        events.append(
            Finish(
                finish_reason=decode_stop_reason(self._stop),
                usage=decode_usage(self._usage or None),
                extra={NAME: self._extra},
            )
        )
        return events

    def _ping(self, _: dict[str, Any]) -> list[StreamEvent]:
        return []

    def _error(self, data: dict[str, Any]) -> list[StreamEvent]:
        raise read_error(None, {}, data)

    _HANDLERS: ClassVar[dict[str, Any]] = {
        "message_start": _message_start,
        "content_block_start": _block_start,
        "content_block_stop": _block_stop,
        "message_delta": _message_delta,
        "message_stop": _message_stop,
        "ping": _ping,
        "error": _error,
    }


_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def _open(block: dict[str, Any], index: int) -> Segment | _Whole:
    left = {name: value for name, value in block.items() if name != "type"}
    match block:
        case {"type": "text"}:
            left.pop("text", None)
            return TextSegment(index, {NAME: left} if left else {})
        case {"type": "thinking"}:
            left.pop("thinking", None)
            signature = left.pop("signature", None)
            thinking = ReasoningSegment(index, {NAME: left})
            thinking.signature = signature if isinstance(signature, str) and signature else None
            return thinking
        case {"type": "tool_use", "id": str(call_id), "name": str(name)}:
            for taken in ("id", "name", "input"):
                left.pop(taken, None)
            extra = {NAME: left} if left else {}
            return ToolCallSegment(index, call_id=call_id, name=name, extra=extra)
    return _Whole(block)


def _key(data: dict[str, Any]) -> int | None:
    index = data.get("index")
    return index if isinstance(index, int) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class _Encoder:
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
