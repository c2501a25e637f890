"""
Segments: a part while it is being streamed.

Decoders open one per part, feed it pieces, and end it; each step gives the event that
says so. Text grows in a list and is joined once, or whenever somebody looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from interlingua.spec.content import Extra, Text, Thinking, ToolCall, ToolType
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
    """A text part on its way."""

    __slots__ = ("extra", "id", "index", "pieces")

    def __init__(self, index: int, extra: Extra | None = None) -> None:
        self.id = f"text_{index}"
        self.index = index
        self.pieces: list[str] = []
        self.extra: dict[str, Any] = dict(extra or {})

    def start(self) -> TextStart:
        return TextStart(id=self.id, index=self.index, extra=self.extra)

    def delta(self, text: str) -> TextDelta:
        self.pieces.append(text)
        return TextDelta(id=self.id, index=self.index, delta=text)

    def end(self) -> TextEnd:
        part = Text(text=_join(self.pieces), extra=self.extra)
        return TextEnd(id=self.id, index=self.index, part=part)

    cut = peek = end


class ReasoningSegment:
    """A thinking part on its way; its signature and data are set as they come."""

    __slots__ = ("data", "extra", "id", "index", "pieces", "signature")

    def __init__(self, index: int, extra: Extra | None = None) -> None:
        self.id = f"reasoning_{index}"
        self.index = index
        self.pieces: list[str] = []
        self.extra: dict[str, Any] = dict(extra or {})
        self.signature: str | None = None
        self.data: str | None = None

    def start(self) -> ReasoningStart:
        return ReasoningStart(id=self.id, index=self.index, extra=self.extra)

    def delta(self, text: str) -> ReasoningDelta:
        self.pieces.append(text)
        return ReasoningDelta(id=self.id, index=self.index, delta=text)

    def end(self) -> ReasoningEnd:
        part = Thinking(
            text=_join(self.pieces),
            signature=self.signature,
            data=self.data,
            extra=self.extra,
        )
        return ReasoningEnd(id=self.id, index=self.index, part=part)

    cut = peek = end


class ToolCallSegment:
    """A tool call on its way; its arguments are parsed once, at the end."""

    __slots__ = (
        "_growing",
        "_seen",
        "call_id",
        "extra",
        "id",
        "index",
        "name",
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
        extra: Extra | None = None,
    ) -> None:
        self.id = f"tool_call_{index}"
        self.index = index
        self.call_id = call_id
        self.name = name
        self.tool_type = tool_type
        self.pieces: list[str] = []
        self.extra: dict[str, Any] = dict(extra or {})
        self._growing: PartialJSON | None = None
        self._seen = 0

    def start(self) -> ToolCallStart:
        return ToolCallStart(
            id=self.id,
            index=self.index,
            tool_call_id=self.call_id,
            name=self.name,
            tool_type=self.tool_type,
            extra=self.extra,
        )

    def delta(self, fragment: str) -> ToolCallDelta:
        self.pieces.append(fragment)
        return ToolCallDelta(id=self.id, index=self.index, delta=fragment)

    def end(self) -> ToolCallEnd:
        """Text that is no JSON object stays in `raw_arguments`, and the call is not valid."""
        raw = "".join(self.pieces)
        arguments = None if self.tool_type == "custom" else loads_object(raw)
        return self._end(raw, arguments or {})

    def cut(self) -> ToolCallEnd:
        """The call as far as it came: what parses of its arguments, else `{}`."""
        from interlingua.wire.partial_json import (
            parse_partial,  # costs 15 ms; streams are rarely cut
        )

        raw = _join(self.pieces)
        arguments = None if self.tool_type == "custom" else parse_partial(raw)
        return self._end(raw, arguments if isinstance(arguments, dict) else {})

    def peek(self) -> ToolCallEnd:
        """The same for one that goes on: of long arguments, it may lag behind a little."""
        raw = _join(self.pieces)
        if self.tool_type == "custom":
            return self._end(raw, {})
        if self._growing is None:
            from interlingua.wire.partial_json import PartialJSON  # as above

            self._growing = PartialJSON()
        self._growing.feed(raw[self._seen :])
        self._seen = len(raw)
        arguments = self._growing.value
        return self._end(raw, arguments if isinstance(arguments, dict) else {})

    def _end(self, raw: str, arguments: dict[str, Any]) -> ToolCallEnd:
        call = ToolCall(
            id=self.call_id,
            name=self.name,
            arguments=arguments,
            raw_arguments=raw,
            type=self.tool_type,
            extra=self.extra,
        )
        return ToolCallEnd(id=self.id, index=self.index, tool_call=call)


def _join(pieces: list[str]) -> str:
    """Their text; who looks often finds one piece and what came since."""
    if len(pieces) > 1:
        pieces[:] = ["".join(pieces)]
    return pieces[0] if pieces else ""


Segment: TypeAlias = TextSegment | ReasoningSegment | ToolCallSegment


def reopen(event: TextStart | ReasoningStart | ToolCallStart) -> Segment:
    """The segment a start event opens, for whoever follows a stream of events."""
    segment: Segment
    if isinstance(event, TextStart):
        segment = TextSegment(event.index, event.extra)
    elif isinstance(event, ReasoningStart):
        segment = ReasoningSegment(event.index, event.extra)
    else:
        segment = ToolCallSegment(
            event.index,
            call_id=event.tool_call_id,
            name=event.name,
            tool_type=event.tool_type,
            extra=event.extra,
        )
    segment.id = event.id
    return segment
