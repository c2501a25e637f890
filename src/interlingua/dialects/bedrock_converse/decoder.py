"""
Stream frames -> events.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html. The name of
a frame is the type of its event; text and reasoning have no start of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from interlingua.dialects.bedrock_converse.content import (
    decode_citations,
    decode_redacted,
    read_part,
)
from interlingua.dialects.bedrock_converse.facts import NAME, extra_for
from interlingua.dialects.bedrock_converse.response import (
    decode_stop_reason,
    decode_usage,
)
from interlingua.spec.content import Json, Part, UncheckedJson
from interlingua.spec.contracts import NEUTRAL_PROFILE, Frame, NewId, Profile, StreamDecoder
from interlingua.spec.errors import StreamError
from interlingua.spec.events import Finish, ProviderEvent, StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.streams.frames import read_frame
from interlingua.streams.segments import ReasoningSegment, Segment, TextSegment, ToolCallSegment
from interlingua.wire.fields import text_of
from interlingua.wire.json_text import loads_object

_PADDING = "p"  # letters that hide the length of an event; unverified, as InvokeModel has them


class _WholeBlock:
    """A block that becomes a part only when it is complete."""

    __slots__ = ("block", "kind", "pieces")

    def __init__(self, kind: str, block: dict[str, Any]) -> None:
        self.kind = kind
        self.block = dict(block)
        self.pieces: list[Any] = []

    def add(self, delta: UncheckedJson) -> None:
        """Add a delta of its kind: texts of an input, items of a result, or fields."""
        if isinstance(delta, list):
            self.pieces += delta
        elif self.kind == "toolUse" and isinstance(delta, dict):
            self.pieces.append(text_of(delta.get("input")))
        elif self.kind == "reasoningContent":
            self.pieces.append(text_of(delta))
        elif isinstance(delta, dict):
            self.block.update(delta)

    def part(self) -> Part:
        """Return the part of the complete block."""
        if self.kind == "reasoningContent":
            return decode_redacted("".join(self.pieces))
        if self.kind == "toolUse":
            text = "".join(self.pieces)
            arguments = loads_object(text) if text else {}
            return read_part({"toolUse": {**self.block, "input": arguments or {}}})
        if self.kind == "toolResult":
            return read_part({self.kind: {**self.block, "content": self.pieces}})
        return read_part({self.kind: self.block} if self.kind else self.block)


class Decoder:
    """Blocks are found by their index; the event `metadata`, with the usage, is the last."""

    def __init__(self) -> None:
        self._blocks: dict[int, Segment | _WholeBlock] = {}
        # What is sent in pieces is joined once, at the end of its block.
        self._signatures: dict[Segment, list[str]] = {}
        self._citations: dict[Segment, list[Json]] = {}
        self._next = 0
        self._started = False
        self._ended = False
        self._stop_reason: str | None = None
        self._extra: dict[str, Json] = {}

    @property
    def held(self) -> int:
        """The number of open blocks: the end of the message ends them all."""
        return len(self._blocks)

    def feed(self, frame: Frame) -> list[StreamEvent]:
        data = None if self._ended else read_frame(frame)
        if data is None:
            return []
        kind = frame.event or ""
        if kind == "contentBlockDelta":  # first, because most frames are deltas
            return self._delta(data)
        handler = self._HANDLERS.get(kind)
        if handler is not None:
            return handler(self, data)
        if kind.endswith("Exception"):
            from interlingua.wire.aws_event_stream import exception_error

            raise exception_error(kind, frame.data.encode())
        return [*self._start(), ProviderEvent(dialect=NAME, name=kind, data=data)]

    def finish(self) -> list[StreamEvent]:
        if not self._ended:
            raise StreamError("The stream ended before its event `metadata`.")
        return []

    def _message_start(self, _: dict[str, Json]) -> list[StreamEvent]:
        return self._start()

    def _start(self) -> list[StreamEvent]:
        if self._started:
            return []
        self._started = True
        return [StreamStart(extra={NAME: {}})]

    def _block_start(self, data: dict[str, Any]) -> list[StreamEvent]:
        events = self._start()
        start, index = data.get("start"), _index(data)
        if not isinstance(start, dict):
            raise StreamError("A contentBlockStart event has no start.")
        match start:
            case {"toolUse": {"toolUseId": str(call_id), "name": str(name), **rest}} if (
                "type" not in rest
            ):
                segment = ToolCallSegment(
                    self._next, call_id=call_id, name=name, extra=extra_for(rest)
                )
                return [*events, *self._open(index, segment)]
        kind = next(iter(start), "") if len(start) == 1 else ""
        inner = start[kind] if kind else start
        if isinstance(inner, dict):
            self._blocks[index] = _WholeBlock(kind, inner)
        else:  # a block of an unknown form is carried whole
            self._blocks[index] = _WholeBlock("", start)
        return events

    def _open(self, index: int, segment: Segment) -> list[StreamEvent]:
        self._next += 1
        self._blocks[index] = segment
        return [segment.start()]

    def _delta(self, data: dict[str, Any]) -> list[StreamEvent]:
        delta = data.get("delta")
        if type(delta) is not dict:
            raise StreamError("A contentBlockDelta event has no delta.")
        index = _index(data)
        segment = self._blocks.get(index)
        text = delta.get("text")
        if type(text) is str and type(segment) is TextSegment:  # the usual delta
            return [segment.delta(text)]
        events: list[StreamEvent] = []
        if segment is None:
            events = [*self._start(), *self._open_for(index, delta)]
            segment = self._blocks.get(index)
        if segment is None:
            raise StreamError(
                f"A contentBlockDelta event is for block {index!r}, which is not open."
            )
        return [*events, *self._add(segment, data, delta)]

    def _open_for(self, index: int, delta: dict[str, Any]) -> list[StreamEvent]:
        """Open the block that a delta is for: only tool calls and media have a start."""
        if "text" in delta or "citation" in delta:
            return self._open(index, TextSegment(self._next))
        reasoning = delta.get("reasoningContent")
        if isinstance(reasoning, dict) and "redactedContent" in reasoning:
            self._blocks[index] = _WholeBlock("reasoningContent", {})
        elif isinstance(reasoning, dict):
            return self._open(index, ReasoningSegment(self._next, {NAME: {}}))
        return []

    def _add(
        self, segment: Segment | _WholeBlock, data: dict[str, Any], delta: dict[str, Any]
    ) -> list[StreamEvent]:
        match segment, delta:
            case TextSegment(), {"text": str(text)}:
                return [segment.delta(text)]
            case TextSegment(), {"citation": dict(citation)}:
                self._citations.setdefault(segment, []).append(citation)
                return []
            case ToolCallSegment(), {"toolUse": {"input": str(text)}}:
                return [segment.delta(text)]
            case ReasoningSegment(), {"reasoningContent": {"text": str(text)}}:
                return [segment.delta(text)]
            case ReasoningSegment(), {"reasoningContent": {"signature": str(text)}}:
                self._signatures.setdefault(segment, []).append(text)
                return []
            case _WholeBlock(), {"reasoningContent": {"redactedContent": str(text)}}:
                segment.add(text)
                return []
            case _WholeBlock(), _ if segment.kind in delta:
                segment.add(delta[segment.kind])
                return []
        if any(name in delta for name in ("text", "toolUse", "reasoningContent")):
            raise StreamError("A contentBlockDelta event does not fit its block.")
        return [ProviderEvent(dialect=NAME, name="contentBlockDelta", data=data)]

    def _block_stop(self, data: dict[str, Any]) -> list[StreamEvent]:
        index = _index(data)
        return self._end(index) if index in self._blocks else []

    def _end(self, index: int) -> list[StreamEvent]:
        segment = self._blocks.pop(index)
        if isinstance(segment, _WholeBlock):
            self._next += 1
            return [ProviderEvent(dialect=NAME, part=segment.part(), index=self._next - 1)]
        if isinstance(segment, ReasoningSegment) and segment in self._signatures:
            segment.signature = "".join(self._signatures.pop(segment))
        elif isinstance(segment, TextSegment) and segment in self._citations:
            citations = self._citations.pop(segment)
            segment.extra = {NAME: {"citations": citations}}
            segment.citations = decode_citations(citations)
        return [segment.end()]

    def _message_stop(self, data: dict[str, Any]) -> list[StreamEvent]:
        events = self._start()
        for index in list(self._blocks):
            events += self._end(index)
        unread = {name: value for name, value in data.items() if name != _PADDING}
        reason = unread.pop("stopReason", None)
        self._stop_reason = reason if isinstance(reason, str) else None
        self._extra.update(unread)
        return events

    def _metadata(self, data: dict[str, Any]) -> list[StreamEvent]:
        events = self._start()
        for index in list(self._blocks):
            events += self._end(index)
        self._ended = True
        notes: list[Warning] = []
        unread = {name: value for name, value in data.items() if name != _PADDING}
        usage = decode_usage(unread.pop("usage", None), unread, notes)
        self._extra.update(unread)
        finish = Finish(
            finish_reason=decode_stop_reason(self._stop_reason),
            usage=usage,
            warnings=tuple(notes),
            extra={NAME: self._extra},
        )
        return [*events, finish]

    _HANDLERS: ClassVar[dict[str, Callable[[Decoder, dict[str, Any]], list[StreamEvent]]]] = {
        "messageStart": _message_start,
        "contentBlockStart": _block_start,
        "contentBlockStop": _block_stop,
        "messageStop": _message_stop,
        "metadata": _metadata,
    }


def _index(data: dict[str, Any]) -> int:
    index = data.get("contentBlockIndex")
    if not isinstance(index, int):
        raise StreamError("An event of a content block has no contentBlockIndex.")
    return index


def stream_decoder(
    *,
    new_id: NewId | None = None,  # noqa: ARG001 -- this API always sends ids of tool calls
    profile: Profile = NEUTRAL_PROFILE,  # noqa: ARG001
    request: Request | None = None,  # noqa: ARG001
) -> StreamDecoder:
    """Return a decoder for the stream that a client receives."""
    return Decoder()
