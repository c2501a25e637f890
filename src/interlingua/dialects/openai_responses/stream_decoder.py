"""
Frames -> events.

The place of an item, its `output_index`, is what tells items apart: some proxies give each
event another item id. What an item says when it is done counts, whatever its deltas said,
and what the last event says counts over that.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from interlingua.dialects.openai_responses.errors import read_error
from interlingua.dialects.openai_responses.items import is_turn, read_item
from interlingua.dialects.openai_responses.response import decode_response
from interlingua.dialects.openai_responses.wire import ITEM, NAME, PARAGRAPH
from interlingua.spec.content import Part, Text, Thinking, ToolCall
from interlingua.spec.contracts import Frame, NewId
from interlingua.spec.errors import StreamError
from interlingua.spec.events import (
    Finish,
    ProviderEvent,
    ReasoningEnd,
    StreamEvent,
    StreamStart,
    TextEnd,
    ToolCallEnd,
)
from interlingua.wire.frames import read_frame
from interlingua.wire.segments import ReasoningSegment, Segment, TextSegment, ToolCallSegment

Place: TypeAlias = int | str | None


class _Item:
    """An item on its way: of a message its text parts, of another its one segment."""

    __slots__ = ("kind", "section", "segment", "start", "texts")

    def __init__(self, start: dict[str, Any]) -> None:
        self.start = start
        self.kind = start.get("type", "message") if is_turn(start) else None
        self.segment: ReasoningSegment | ToolCallSegment | None = None
        self.texts: dict[Any, TextSegment] = {}
        self.section: Any = None  # which part of the reasoning the last delta was for

    def came(self) -> dict[str, Any]:
        """The item as far as it came, for one that is never done."""
        text = "".join(self.segment.pieces) if self.segment else ""
        if self.kind == "message":
            content = [
                {"type": "output_text", "text": "".join(part.pieces), "annotations": []}
                for part in self.texts.values()
            ]
            return {**self.start, "content": content}
        if self.kind == "reasoning" and text:
            return {**self.start, "summary": [{"type": "summary_text", "text": text}]}
        if isinstance(self.segment, ToolCallSegment):
            key = "input" if self.kind == "custom_tool_call" else "arguments"
            return {**self.start, key: text}
        return self.start


class Decoder:
    """Follows one stream."""

    def __init__(self, new_id: NewId) -> None:
        self._new_id = new_id
        self._made: list[str] = []  # ids we gave to calls that had none, in their order
        self._open: dict[Place, _Item] = {}
        self._texts: dict[Any, TextSegment] = {}  # by output and content index, as they come
        self._done: list[tuple[Place, dict[str, Any]]] = []
        self._next = 0
        self._start: StreamStart | None = None
        self._ended = False

    def feed(self, frame: Frame) -> list[StreamEvent]:
        """The events this frame completes; raises the provider's error if it carries one."""
        data = None if self._ended else read_frame(frame)
        if data is None:
            return []
        kind = data.get("type") or frame.event
        if kind == "response.output_text.delta":  # nearly all of them
            try:
                segment = self._texts.get((data.get("output_index"), data.get("content_index")))
            except TypeError as error:
                raise StreamError("a stream event whose index is no number") from error
            if segment is not None and type(data.get("delta")) is str:
                return [segment.delta(data["delta"])]
            return self._text_delta(data)
        handler = self._HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            return handler(self, data)  # type: ignore[no-any-return]
        return [*self._begin(), ProviderEvent(dialect=NAME, name=str(kind), data=data)]

    def finish(self) -> list[StreamEvent]:
        """End of body: raises `StreamError` if the stream was not at its end."""
        if not self._ended:
            raise StreamError("the stream ended before response.completed")
        return []

    # The frame of the stream.

    def _begin(self, response: Any = None) -> list[StreamEvent]:
        if self._start is not None:
            return []
        left = dict(response) if isinstance(response, dict) else {}
        for name in ("status", "output", "usage"):
            left.pop(name, None)
        self._start = StreamStart(
            id=_text(left.pop("id", None)),
            model=_text(left.pop("model", None)),
            extra={NAME: left},
        )
        return [self._start]

    def _created(self, data: dict[str, Any]) -> list[StreamEvent]:
        return self._begin(data.get("response"))

    def _terminal(self, data: dict[str, Any]) -> list[StreamEvent]:
        events = self._begin(data.get("response"))
        response = data.get("response")
        whole = dict(response) if isinstance(response, dict) else {"status": "completed"}
        output = whole.get("output")
        if isinstance(output, list) and output:
            events += self._catch_up(output)
        for place in list(self._open):
            events += self._end(place, self._open[place].came())
        if self._done and not output:  # some servers leave out what they have streamed
            in_place = sorted(self._done, key=lambda done: _order(done[0]))
            whole["output"] = [item for _, item in in_place]
        if self._start is not None:
            whole.setdefault("id", self._start.id)
            whole.setdefault("model", self._start.model)
        made = iter(self._made)
        answer = decode_response(whole, new_id=lambda: next(made, None) or self._new_id())
        self._ended = True
        events.append(
            Finish(finish_reason=answer.finish_reason, usage=answer.usage, response=answer)
        )
        return events

    def _catch_up(self, output: list[Any]) -> list[StreamEvent]:
        """Items that were never done, or never seen: the last event has them."""
        if len(self._done) >= len(output):
            return []
        seen = {place for place, _ in self._done}
        return [
            event
            for place, item in enumerate(output)
            if place not in seen and isinstance(item, dict)
            for event in self._end(place, item)
        ]

    def _failed(self, data: dict[str, Any]) -> list[StreamEvent]:
        response = data.get("response")
        error = response.get("error") if isinstance(response, dict) else None
        raise read_error(None, {}, {"error": error} if isinstance(error, dict) else data)

    def _error(self, data: dict[str, Any]) -> list[StreamEvent]:
        raise read_error(None, {}, data)

    def _silent(self, _: dict[str, Any]) -> list[StreamEvent]:
        """What it says comes again, whole, when the item is done."""
        return self._begin()

    # Items.

    def _added(self, data: dict[str, Any]) -> list[StreamEvent]:
        events = self._begin()
        item = data.get("item")
        if not isinstance(item, dict):
            raise StreamError("response.output_item.added without an item")
        place = _place(data, item)
        if place in self._open:  # a server that numbers badly: the one before it is over
            events += self._end(place, self._open[place].came())
        state = _Item(item)
        self._open[place] = state
        if state.kind is None:
            name = "response.output_item.added"
            return [*events, ProviderEvent(dialect=NAME, name=name, data=data)]
        return events + self._start_segment(state)

    def _start_segment(self, state: _Item) -> list[StreamEvent]:
        """Reasoning and calls start with their item, a message with its first text."""
        left = {name: value for name, value in state.start.items() if name not in _FOUND_LATER}
        if state.kind == "reasoning":
            state.segment = ReasoningSegment(self._next, {NAME: left})
        elif state.kind != "message":
            call_id = _text(left.pop("call_id", None)) or _text(left.get("id"))
            if not call_id:
                call_id = self._new_id()
                self._made.append(call_id)
            state.segment = ToolCallSegment(
                self._next,
                call_id=call_id,
                name=_text(left.pop("name", None)),
                tool_type="custom" if state.kind == "custom_tool_call" else "function",
                extra={NAME: left},
            )
        if state.segment is None:
            return []
        self._next += 1
        return [state.segment.start()]

    def _item_done(self, data: dict[str, Any]) -> list[StreamEvent]:
        item = data.get("item")
        if not isinstance(item, dict):
            raise StreamError("response.output_item.done without an item")
        return self._begin() + self._end(_place(data, item), item)

    def _end(self, place: Place, item: dict[str, Any]) -> list[StreamEvent]:
        """The rest of an item, and its end: `item` is what it came to."""
        events: list[StreamEvent] = []
        state = self._open.pop(place, None)
        if state is None:
            state = _Item(item)
            events += self._start_segment(state)
        self._done.append((place, item))
        parts = read_item(item, state.segment_id if False else self._new_id)
        return events
