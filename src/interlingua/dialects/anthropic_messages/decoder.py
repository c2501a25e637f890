"""
Stream frames -> events.

https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from interlingua.dialects.anthropic_messages.content import decode_citations, read_part
from interlingua.dialects.anthropic_messages.facts import NAME, extra_for
from interlingua.dialects.anthropic_messages.response import (
    decode_stop_reason,
    decode_usage,
    take_constants,
)
from interlingua.spec.content import Json, Part
from interlingua.spec.contracts import NEUTRAL_PROFILE, Frame, NewId, Profile, StreamDecoder
from interlingua.spec.errors import StreamError
from interlingua.spec.events import Finish, ProviderEvent, StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.streams.frames import is_bare_error, read_frame
from interlingua.streams.segments import ReasoningSegment, Segment, TextSegment, ToolCallSegment
from interlingua.wire.fields import text_of
from interlingua.wire.json_text import dump_text, loads_object

_DELTA_TEXTS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}


class _WholeBlock:
    """
    A block that becomes a part only when it is complete.

    Seen in recordings: results of server tools and redacted thinking arrive whole in their start;
    the input of `server_tool_use` follows in deltas.
    """

    __slots__ = ("block", "pieces")

    def __init__(self, block: dict[str, Json]) -> None:
        self.block = dict(block)
        self.pieces: list[str] = []

    def part(self) -> Part:
        """Return the part of the complete block."""
        if not self.pieces:
            return read_part(self.block)
        text = "".join(self.pieces)
        arguments = loads_object(text)
        return read_part({**self.block, "input": text if arguments is None else arguments})


class Decoder:
    """Blocks are found by their index: a proxy may send the deltas of several in turns."""

    def __init__(self) -> None:
        self._blocks: dict[int | None, Segment | _WholeBlock] = {}
        self._inputs: dict[int | None, str] = {}  # of tool calls whose start has all the arguments
        # What is sent in pieces is joined once, at the end of its block.
        self._signatures: dict[Segment, list[str]] = {}
        self._citations: dict[Segment, list[Json]] = {}
        self._next = 0
        self._started = False
        self._ended = False
        self._usage: dict[str, Json] = {}
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
        kind = data.get("type") or frame.event  # the API sends both, some servers only one
        if kind == "content_block_delta":  # first, because most frames are deltas
            return self._delta(data)
        handler = self._HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            return handler(self, data)
        # Unknown events are passed on. A version may «add new variants to enum-like output values
        # (for example, streaming event types)»: https://platform.claude.com/docs/en/api/versioning
        if is_bare_error(data):
            return self._error(data)
        return [ProviderEvent(dialect=NAME, name=str(kind), data=data)]

    def finish(self) -> list[StreamEvent]:
        if not self._ended:
            raise StreamError("The stream ended before message_stop.")
        return []

    def _message_start(self, data: dict[str, Json]) -> list[StreamEvent]:
        if self._started:
            return []  # some proxies send it twice
        self._started = True
        message = data.get("message")
        unread = dict(message) if isinstance(message, dict) else {}
        take_constants(unread)
        for name in ("content", "stop_reason"):
            unread.pop(name, None)
        usage = unread.pop("usage", None)
        if isinstance(usage, dict):
            self._usage = dict(usage)
        return [
            StreamStart(
                id=text_of(unread.pop("id", None)),
                model=text_of(unread.pop("model", None)),
                usage=decode_usage(usage),
                extra={NAME: unread},
            )
        ]

    def _block_start(self, data: dict[str, Json]) -> list[StreamEvent]:
        events = self._message_start({})
        block = data.get("content_block")
        if not isinstance(block, dict):
            raise StreamError("A content_block_start event has no content_block.")
        segment = self._blocks[_index(data)] = _open(block, self._next)
        if isinstance(segment, _WholeBlock):
            return events
        self._next += 1
        events.append(segment.start())
        if isinstance(segment, ToolCallSegment):
            if block.get("input"):  # the API starts with `{}`, some servers with all of it
                self._inputs[_index(data)] = dump_text(block["input"])
            return events
        first = text_of(block.get("text" if isinstance(segment, TextSegment) else "thinking"))
        if first:
            events.append(segment.delta(first))
        return events

    def _delta(self, data: dict[str, Json]) -> list[StreamEvent]:
        delta, index = data.get("delta"), data.get("index")
        segment = self._blocks.get(index if isinstance(index, int) else None)
        if type(delta) is not dict:
            raise StreamError("A content_block_delta event has no delta.")
        if segment is None:
            raise StreamError(
                f"A content_block_delta event is for block {index!r}, which is not open."
            )
        kind = delta.get("type")
        field = _DELTA_TEXTS.get(kind) if type(kind) is str else None
        if field is None:
            return self._other_delta(segment, data, delta)
        text = delta.get(field)
        if type(text) is not str:
            raise StreamError(f"A delta of the type {kind} has no {field}.")
        if isinstance(segment, _WholeBlock):
            segment.pieces.append(text)
            return []
        return [segment.delta(text)]

    def _other_delta(
        self, segment: Segment | _WholeBlock, data: dict[str, Json], delta: dict[str, Json]
    ) -> list[StreamEvent]:
        """A delta that is not a piece of text."""
        kind = delta.get("type")
        if kind == "signature_delta" and isinstance(segment, ReasoningSegment):
            pieces = self._signatures.setdefault(segment, [segment.signature or ""])
            pieces.append(text_of(delta.get("signature")))
        elif kind == "citations_delta" and isinstance(segment, TextSegment):
            # one delta for each citation, all after the text
            self._citations.setdefault(segment, []).append(delta.get("citation"))
        elif isinstance(segment, _WholeBlock):  # such as `compaction_delta` with its `content`
            segment.block.update(_without(delta, "type"))
        else:
            return [ProviderEvent(dialect=NAME, name="content_block_delta", data=data)]
        return []

    def _block_stop(self, data: dict[str, Json]) -> list[StreamEvent]:
        index = _index(data)
        return self._end(index) if index in self._blocks else []

    def _end(self, index: int | None) -> list[StreamEvent]:
        segment = self._blocks.pop(index)
        if isinstance(segment, _WholeBlock):
            self._next += 1
            return [ProviderEvent(dialect=NAME, part=segment.part(), index=self._next - 1)]
        self._join_pieces(segment)
        if type(segment) is TextSegment and segment.pieces and not segment.extra:
            if all(map(str.isspace, segment.pieces)):
                segment.extra = {NAME: {}}  # see `decode_content`
        elif index in self._inputs and not segment.pieces:
            return [segment.delta(self._inputs[index]), segment.end()]
        return [segment.end()]

    def _join_pieces(self, segment: Segment) -> None:
        """Give a segment the signature or the citations that came in deltas of their own."""
        if isinstance(segment, ReasoningSegment) and segment in self._signatures:
            segment.signature = "".join(self._signatures.pop(segment))
        elif isinstance(segment, TextSegment) and segment in self._citations:
            extra = segment.extra.get(NAME, {})
            citations = [*(extra.get("citations") or ()), *self._citations.pop(segment)]
            segment.extra = {NAME: {**extra, "citations": citations}}
            segment.citations = decode_citations(citations)

    def _message_delta(self, data: dict[str, Json]) -> list[StreamEvent]:
        unread = _without(data, "type", "delta")
        usage = unread.pop("usage", None)
        if isinstance(usage, dict):  # cumulative: the last figures replace earlier ones
            for name, value in usage.items():
                if value is not None or name not in self._usage:
                    self._usage[name] = value
        delta = data.get("delta")
        if isinstance(delta, dict):
            unread.update(delta)
            reason = unread.pop("stop_reason", None)
            self._stop_reason = reason if isinstance(reason, str) else self._stop_reason
        take_constants(unread)
        self._extra.update(unread)
        return []

    def _message_stop(self, _: dict[str, Json]) -> list[StreamEvent]:
        events = self._message_start({})
        self._ended = True
        # Seen in recordings: one stream of 363 has a block without its content_block_stop.
        for index in list(self._blocks):
            events += self._end(index)
        notes: list[Warning] = []
        finish = Finish(
            finish_reason=decode_stop_reason(self._stop_reason),
            usage=decode_usage(self._usage or None, notes),
            warnings=tuple(notes),
            extra={NAME: self._extra},
        )
        return [*events, finish]

    def _ping(self, _: dict[str, Json]) -> list[StreamEvent]:
        return []

    def _error(self, data: dict[str, Json]) -> list[StreamEvent]:
        from interlingua.dialects.anthropic_messages.errors import read_error

        # The status was 200: only the type of the error, such as overloaded_error, tells its class.
        raise read_error(None, {}, data)

    _HANDLERS: ClassVar[dict[str, Callable[[Decoder, dict[str, Json]], list[StreamEvent]]]] = {
        "message_start": _message_start,
        "content_block_start": _block_start,
        "content_block_stop": _block_stop,
        "message_delta": _message_delta,
        "message_stop": _message_stop,
        "ping": _ping,
        "error": _error,
    }


def _open(block: dict[str, Json], index: int) -> Segment | _WholeBlock:
    match block:
        case {"type": "text"}:
            text = TextSegment(index, extra_for(_without(block, "type", "text")))
            text.citations = decode_citations(block.get("citations"))
            return text
        case {"type": "thinking"}:
            unread = _without(block, "type", "thinking", "signature")
            thinking = ReasoningSegment(index, {NAME: unread})
            thinking.signature = text_of(block.get("signature")) or None
            return thinking
        case {"type": "tool_use", "id": str(call_id), "name": str(name)}:
            extra = extra_for(_without(block, "type", "id", "name", "input"))
            return ToolCallSegment(index, call_id=call_id, name=name, extra=extra)
    return _WholeBlock(block)


def _without(fields: dict[str, Json], *names: str) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if name not in names}


def _index(data: dict[str, Json]) -> int | None:
    index = data.get("index")
    return index if isinstance(index, int) else None


def stream_decoder(
    *,
    new_id: NewId | None = None,  # noqa: ARG001 -- this API always sends ids of tool calls
    profile: Profile = NEUTRAL_PROFILE,  # noqa: ARG001
    request: Request | None = None,  # noqa: ARG001
) -> StreamDecoder:
    """Return a decoder for the stream that a client receives."""
    return Decoder()
