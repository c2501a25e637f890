"""Stream frames -> events."""

from __future__ import annotations

from typing import Any, ClassVar

from interlingua.dialects.anthropic_messages.content import read_part
from interlingua.dialects.anthropic_messages.errors import read_error
from interlingua.dialects.anthropic_messages.facts import NAME, extra_for
from interlingua.dialects.anthropic_messages.response import (
    decode_stop_reason,
    decode_usage,
    take_constants,
)
from interlingua.spec.content import Part
from interlingua.spec.contracts import (
    NEUTRAL_PROFILE,
    Frame,
    NewId,
    Profile,
    StreamDecoder,
)
from interlingua.spec.errors import StreamError
from interlingua.spec.events import (
    Finish,
    ProviderEvent,
    StreamEvent,
    StreamStart,
)
from interlingua.streams.frames import is_bare_error, read_frame
from interlingua.streams.segments import ReasoningSegment, Segment, TextSegment, ToolCallSegment
from interlingua.wire.json_text import dump_text, loads_object


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


class Decoder:
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
        if is_bare_error(data):
            return self._error(data)
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
            return TextSegment(index, extra_for(left))
        case {"type": "thinking"}:
            left.pop("thinking", None)
            signature = left.pop("signature", None)
            thinking = ReasoningSegment(index, {NAME: left})
            thinking.signature = signature if isinstance(signature, str) and signature else None
            return thinking
        case {"type": "tool_use", "id": str(call_id), "name": str(name)}:
            for taken in ("id", "name", "input"):
                left.pop(taken, None)
            extra = extra_for(left)
            return ToolCallSegment(index, call_id=call_id, name=name, extra=extra)
    return _Whole(block)


def _key(data: dict[str, Any]) -> int | None:
    index = data.get("index")
    return index if isinstance(index, int) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def stream_decoder(
    *,
    new_id: NewId | None = None,  # noqa: ARG001 -- this API always names its calls
    profile: Profile = NEUTRAL_PROFILE,  # noqa: ARG001
) -> StreamDecoder:
    """For a stream a client receives."""
    return Decoder()
