"""
Segments: parts that are being streamed.

A decoder creates one segment per part and calls `start`, `delta` and `end`; each returns the
event to emit. `cut` ends a segment early, `peek` shows the part so far. The text is a list of
pieces that is joined only when the whole text is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from interlingua.spec.content import Citation, Extra, Text, Thinking, ToolCall, ToolType
from interlingua.spec.events import (
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.wire.json_text import loads_object

if TYPE_CHECKING:
    from interlingua.wire.partial_json import PartialJSON


class TextSegment:
    """A text part that is being streamed."""

    __slots__ = ("citations", "extra", "id", "index", "pieces")

    def __init__(self, index: int, extra: Extra | None = None) -> None:
        self.id: str = f"text_{index}"
        self.index: int = index
        self.pieces: list[str] = []
        self.extra: dict[str, Any] = dict(extra or {})
        self.citations: tuple[Citation, ...] = ()

    def start(self) -> TextStart:
        """Return the event that begins the part."""
        return TextStart(id=self.id, index=self.index, extra=self.extra)

    def delta(self, text: str) -> TextDelta:
        """Add a piece; returns its event."""
        self.pieces.append(text)
        return TextDelta(id=self.id, index=self.index, delta=text)

    def end(self) -> TextEnd:
        """Return the event that ends the part, with the whole part."""
        part = Text(text=join_pieces(self.pieces), citations=self.citations, extra=self.extra)
        return TextEnd(id=self.id, index=self.index, part=part)

    def peek(self) -> TextEnd:
        """Return the part so far."""
        return self.end()

    def cut(self) -> TextEnd:
        """Return the event that ends the part early."""
        return self.end()


class ReasoningSegment:
    """A thinking part that is being streamed; `signature` and `data` are set when they arrive."""

    __slots__ = ("data", "extra", "id", "index", "pieces", "signature")

    def __init__(self, index: int, extra: Extra | None = None) -> None:
        self.id: str = f"reasoning_{index}"
        self.index: int = index
        self.pieces: list[str] = []
        self.extra: dict[str, Any] = dict(extra or {})
        self.signature: str | None = None
        self.data: str | None = None

    def start(self) -> ReasoningStart:
        """Return the event that begins the part."""
        return ReasoningStart(id=self.id, index=self.index, extra=self.extra)

    def delta(self, text: str) -> ReasoningDelta:
        """Add a piece; returns its event."""
        self.pieces.append(text)
        return ReasoningDelta(id=self.id, index=self.index, delta=text)

    def end(self) -> ReasoningEnd:
        """Return the event that ends the part, with the whole part."""
        part = Thinking(
            text=join_pieces(self.pieces),
            signature=self.signature,
            data=self.data,
            extra=self.extra,
        )
        return ReasoningEnd(id=self.id, index=self.index, part=part)

    def peek(self) -> ReasoningEnd:
        """Return the part so far."""
        return self.end()

    def cut(self) -> ReasoningEnd:
        """Return the event that ends the part early."""
        return self.end()


class ToolCallSegment:
    """A tool call that is being streamed; the arguments are parsed once, at the end."""

    __slots__ = (
        "_partial",
        "_partial_length",
        "call_id",
        "extra",
        "id",
        "index",
        "name",
        "namespace",
        "pieces",
        "tool_type",
    )

    def __init__(
        self,
        index: int,
        *,
        call_id: str,
        name: str,
        tool_type: ToolType = "function",
        namespace: str | None = None,
        extra: Extra | None = None,
    ) -> None:
        self.id: str = f"tool_call_{index}"
        self.index: int = index
        self.call_id: str = call_id
        self.name: str = name
        self.tool_type = tool_type
        self.namespace = namespace
        self.pieces: list[str] = []
        self.extra: dict[str, Any] = dict(extra or {})
        self._partial: PartialJSON | None = None
        self._partial_length = 0  # characters that were fed to it

    def start(self) -> ToolCallStart:
        """Return the event that begins the part."""
        return ToolCallStart(
            id=self.id,
            index=self.index,
            tool_call_id=self.call_id,
            name=self.name,
            tool_type=self.tool_type,
            namespace=self.namespace,
            extra=self.extra,
        )

    def delta(self, fragment: str) -> ToolCallDelta:
        """Add a piece; returns its event."""
        self.pieces.append(fragment)
        return ToolCallDelta(id=self.id, index=self.index, delta=fragment)

    def end(self) -> ToolCallEnd:
        """Return the complete tool call, which is invalid if its text is not a JSON object."""
        raw = "".join(self.pieces)
        arguments = None if self.tool_type == "custom" else loads_object(raw)
        return self._end(raw, arguments or {})

    def cut(self) -> ToolCallEnd:
        """Return the incomplete tool call: the arguments that can be parsed, else `{}`."""
        # Imported here because compiling its patterns takes 15 ms and streams are rarely cut.
        from interlingua.wire.partial_json import parse_partial

        raw = join_pieces(self.pieces)
        arguments = None if self.tool_type == "custom" else parse_partial(raw)
        return self._end(raw, arguments if isinstance(arguments, dict) else {}, is_cut=not raw)

    def peek(self) -> ToolCallEnd:
        """Return the tool call so far; long arguments may be slightly behind their text."""
        raw = join_pieces(self.pieces)
        if self.tool_type == "custom":
            return self._end(raw, {}, is_cut=not raw)
        if self._partial is None:
            from interlingua.wire.partial_json import PartialJSON  # slow to import, as in `cut`

            self._partial = PartialJSON()
        self._partial.feed(raw[self._partial_length :])
        self._partial_length = len(raw)
        arguments = self._partial.value
        return self._end(raw, arguments if isinstance(arguments, dict) else {}, is_cut=not raw)

    def unread(self) -> ToolCallEnd:
        """Return the tool call so far, with its arguments only as text."""
        return self._end(join_pieces(self.pieces), {})

    def _end(self, raw: str, arguments: dict[str, Any], *, is_cut: bool = False) -> ToolCallEnd:
        call = ToolCall(
            id=self.call_id,
            name=self.name,
            arguments=arguments,
            raw_arguments=raw,
            type=self.tool_type,
            namespace=self.namespace,
            is_cut=is_cut,
            extra=self.extra,
        )
        return ToolCallEnd(id=self.id, index=self.index, tool_call=call)


def join_pieces(pieces: list[str]) -> str:
    """Return the joined text, which replaces the pieces: the next call has one piece to join."""
    if len(pieces) > 1:
        pieces[:] = ["".join(pieces)]
    return pieces[0] if pieces else ""


Segment: TypeAlias = TextSegment | ReasoningSegment | ToolCallSegment


def reopen(event: TextStart | ReasoningStart | ToolCallStart) -> Segment:
    """Return a new segment for a start event, for code that follows a stream of events."""
    segment: Segment
    if isinstance(event, TextStart):
        segment = TextSegment(event.index, event.extra)
    elif isinstance(event, ReasoningStart):
        segment = ReasoningSegment(event.index, event.extra)
    elif isinstance(event, ToolCallStart):
        segment = ToolCallSegment(
            event.index,
            call_id=event.tool_call_id,
            name=event.name,
            tool_type=event.tool_type,
            namespace=event.namespace,
            extra=event.extra,
        )
    else:
        assert_never(event)
    segment.id = event.id
    return segment
