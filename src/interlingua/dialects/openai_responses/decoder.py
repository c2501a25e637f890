"""
Frames -> events.

The place of an item, its `output_index`, is what tells items apart: some proxies give each
event another item id. What an item says when it is done counts, whatever its deltas said,
and what the last event says counts over that.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, TypeAlias

from interlingua.dialects.openai_responses.content import open_call
from interlingua.dialects.openai_responses.errors import read_error
from interlingua.dialects.openai_responses.facts import (
    ARGUMENTS,
    ITEM,
    NAME,
    OUTPUT_TEXT,
    PARAGRAPH,
    SECTIONS,
    TOOL_TYPES,
)
from interlingua.dialects.openai_responses.messages import is_turn, read_item
from interlingua.dialects.openai_responses.response import decode_response
from interlingua.spec.content import Part, Text, Thinking, ToolCall
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
    ReasoningEnd,
    StreamEvent,
    StreamStart,
    TextEnd,
    ToolCallEnd,
)
from interlingua.streams.frames import is_bare_error, read_frame
from interlingua.streams.segments import ReasoningSegment, Segment, TextSegment, ToolCallSegment
from interlingua.wire.tool_calls import counting_ids

Place: TypeAlias = int | str | None
_ADDED = "response.output_item.added"
_DONE = "response.output_item.done"
_STREAMED = ("content", *ARGUMENTS.values())
_FOUND_LATER = ("type", *_STREAMED, "summary", "encrypted_content")
_MESSAGE = ("type", "role", "content")


class _Item:
    """An item on its way: of a message its text parts, of another its one segment."""

    __slots__ = ("keys", "kind", "section", "segment", "start", "texts")

    def __init__(self, start: dict[str, Any]) -> None:
        self.start = start
        self.kind: str | None = start.get("type", "message") if is_turn(start) else None
        self.segment: ReasoningSegment | ToolCallSegment | None = None
        self.texts: dict[Any, TextSegment] = {}
        self.keys: list[Any] = []  # of the texts, where the decoder looks for them
        self.section: Any = None  # which part of the reasoning the last delta was for

    def came(self) -> dict[str, Any]:
        """The item as far as it came, for one that is never done."""
        if self.kind == "message":
            content = [
                {"type": OUTPUT_TEXT, "text": "".join(part.pieces), "annotations": []}
                for part in self.texts.values()
            ]
            return {**self.start, "content": content}
        text = "".join(self.segment.pieces) if self.segment else ""
        if isinstance(self.segment, ToolCallSegment):
            return {**self.start, ARGUMENTS[self.segment.tool_type]: text}
        if text:
            key = self.section[0]
            return {**self.start, key: [{"type": SECTIONS[key], "text": text}]}
        return self.start

    def fill(self, item: dict[str, Any]) -> dict[str, Any]:
        """The item as it is done, with what it leaves out though it was streamed."""
        came = self.came()
        told = {key: came[key] for key in _STREAMED if came.get(key) and not item.get(key)}
        return {**item, **told} if told else item


class Decoder:
    """Follows one stream."""

    def __init__(self, new_id: NewId) -> None:
        self._new_id = new_id
        self._made: list[str] = []  # ids for calls that had none, in their order
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
        if is_bare_error(data):
            return self._error(data)
        return [*self._begin(), ProviderEvent(dialect=NAME, name=str(kind), data=data)]

    def finish(self) -> list[StreamEvent]:
        """End of body: raises `StreamError` if the stream was not at its end."""
        if not self._ended:
            raise StreamError("the stream ended before response.completed")
        return []

    # The frame of the stream.

    def _begin(self, data: dict[str, Any] | None = None) -> list[StreamEvent]:
        """The start, if it has not been told; any event may be the first."""
        if self._start is not None:
            return []
        response = data.get("response") if data else None
        left = dict(response) if isinstance(response, dict) else {}
        for name in ("status", "output", "usage"):
            left.pop(name, None)
        self._start = StreamStart(
            id=_text(left.pop("id", None)),
            model=_text(left.pop("model", None)),
            extra={NAME: left},
        )
        return [self._start]

    def _terminal(self, data: dict[str, Any]) -> list[StreamEvent]:
        events = self._begin(data)
        response = data.get("response")
        whole = dict(response) if isinstance(response, dict) else {"status": "completed"}
        if "status" in whole:
            whole.setdefault("output", [])
        output = whole.get("output")
        if isinstance(output, list) and output:
            events += self._catch_up(output)
        for place in list(self._open):
            events += self._end(place, self._open[place].came())
        if self._done and not output:  # some servers leave out what they have streamed
            self._done.sort(key=lambda done: done[0] if isinstance(done[0], int) else math.inf)
            whole["output"] = [item for _, item in self._done]
        for name in ("id", "model"):
            if known := getattr(self._start, name):
                whole.setdefault(name, known)
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
            raise StreamError(f"{_ADDED} without an item")
        place = _place(data, item)
        if place in self._open:  # a server that numbers badly: the one before it is over
            events += self._end(place, self._open[place].came())
        state = self._open[place] = _Item(item)
        if state.kind is None:
            return [*events, ProviderEvent(dialect=NAME, name=_ADDED, data=data)]
        return events + self._start_segment(state)

    def _start_segment(self, state: _Item) -> list[StreamEvent]:
        """Reasoning and calls start with their item, a message with its first text."""
        if state.kind in (None, "message"):  # what has no canonical form comes whole, at its end
            return []
        left = {name: value for name, value in state.start.items() if name not in _FOUND_LATER}
        if state.kind == "reasoning":
            state.segment = ReasoningSegment(self._next, {NAME: left})
        else:
            tool_type = TOOL_TYPES[state.kind]
            state.segment = open_call(left, tool_type, self._next, self._make_id)
        self._next += 1
        return [state.segment.start()]

    def _make_id(self) -> str:
        self._made.append(self._new_id())
        return f"call_{self._made[-1]}"

    def _item_done(self, data: dict[str, Any]) -> list[StreamEvent]:
        item = data.get("item")
        if not isinstance(item, dict):
            raise StreamError(f"{_DONE} without an item")
        return self._begin() + self._end(_place(data, item), item)

    def _end(self, place: Place, item: dict[str, Any]) -> list[StreamEvent]:
        """The rest of an item, and its end: `item` is what it came to."""
        events: list[StreamEvent] = []
        state = self._open.pop(place, None)
        if state is None:
            state = _Item(item)
            events += self._start_segment(state)
        item = state.fill(item)
        self._done.append((place, item))
        segment = state.segment
        call_id = segment.call_id if isinstance(segment, ToolCallSegment) else ""
        parts = read_item(item, lambda: call_id)
        if segment is not None:
            return [*events, *_end_segment(segment, parts[0])]
        if state.kind is None:
            return [*events, self._whole(parts[0], {"output_index": place})]
        for key in state.keys:
            self._texts.pop(key, None)
        return [*events, *self._end_message(state.texts, parts)]

    def _end_message(self, texts: dict[Any, TextSegment], parts: list[Part]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for index, part in enumerate(parts):
            segment = texts.pop(index, None)
            if isinstance(part, Text):
                if segment is None:
                    segment = TextSegment(self._next, part.extra)
                    self._next += 1
                    events.append(segment.start())
                events += _rest(segment, part.text)
                events.append(TextEnd(id=segment.id, index=segment.index, part=part))
            else:
                if segment is not None:
                    events.append(segment.end())
                events.append(self._whole(part))
        return events + [segment.end() for segment in texts.values()]

    def _whole(self, part: Part, data: Any = None) -> ProviderEvent:
        """A part that comes all at once; `data` tells which item it is."""
        self._next += 1
        name = None if data is None else _DONE
        return ProviderEvent(dialect=NAME, name=name, data=data, part=part, index=self._next - 1)

    # Deltas.

    def _find(self, data: dict[str, Any], **start: str) -> tuple[_Item, list[StreamEvent]]:
        """The item a delta is for; one that was not announced starts with it."""
        place = _place(data)
        if place in self._open:
            return self._open[place], self._begin()
        state = self._open[place] = _Item(start)
        return state, self._begin() + self._start_segment(state)

    def _text_delta(self, data: dict[str, Any]) -> list[StreamEvent]:
        """The first of a text part."""
        delta = _delta(data)
        state, events = self._find(data, type="message", role="assistant")
        if state.kind != "message":
            return [*events, ProviderEvent(dialect=NAME, name=data.get("type"), data=data)]
        index = data.get("content_index")
        number = index if isinstance(index, int) else 0
        segment = state.texts.get(number)
        if segment is None:
            own = {name: value for name, value in state.start.items() if name not in _MESSAGE}
            segment = TextSegment(self._next, {} if state.texts else {NAME: {ITEM: own}})
            self._next += 1
            state.texts[number] = segment
            events.append(segment.start())
        key = (data.get("output_index"), index)
        self._texts[key] = segment
        state.keys.append(key)
        return [*events, segment.delta(delta)]

    def _reasoning_delta(self, data: dict[str, Any]) -> list[StreamEvent]:
        key = "summary" if "summary_index" in data else "content"
        section = (key, data.get(f"{key}_index"))
        delta = _delta(data)
        state, events = self._find(data, type="reasoning")
        if not isinstance(state.segment, ReasoningSegment):
            return events
        if state.section is not None and state.section != section:
            if state.section[0] != section[0]:
                return events  # summary and thoughts both: one of them is the part's text
            events.append(state.segment.delta(PARAGRAPH))
        state.section = section
        return [*events, state.segment.delta(delta)]

    def _call_delta(self, data: dict[str, Any]) -> list[StreamEvent]:
        delta = _delta(data)
        segment = self._call_at(data)
        return self._begin() if segment is None else [segment.delta(delta)]

    def _call_done(self, data: dict[str, Any]) -> list[StreamEvent]:
        segment = self._call_at(data)
        whole = data.get("arguments", data.get("input"))
        if segment is None:
            return self._begin()
        return _rest(segment, whole) if isinstance(whole, str) else []

    def _call_at(self, data: dict[str, Any]) -> ToolCallSegment | None:
        """The call an event is about; None if it has not begun: its item will have it whole."""
        state = self._open.get(_place(data))
        segment = None if state is None else state.segment
        return segment if isinstance(segment, ToolCallSegment) else None

    _HANDLERS: ClassVar[dict[str, Any]] = {
        "response.created": _begin,
        "response.in_progress": _begin,
        _ADDED: _added,
        _DONE: _item_done,
        "response.function_call_arguments.delta": _call_delta,
        "response.function_call_arguments.done": _call_done,
        "response.custom_tool_call_input.delta": _call_delta,
        "response.custom_tool_call_input.done": _call_done,
        "response.reasoning_summary_text.delta": _reasoning_delta,
        "response.reasoning_text.delta": _reasoning_delta,
        "response.reasoning_summary_part.added": _silent,
        "response.reasoning_summary_part.done": _silent,
        "response.reasoning_summary_text.done": _silent,
        "response.reasoning_text.done": _silent,
        "response.content_part.added": _silent,
        "response.content_part.done": _silent,
        "response.output_text.done": _silent,
        "response.output_text.annotation.added": _silent,
        "response.output_text_annotation.added": _silent,
        "response.refusal.delta": _silent,
        "response.refusal.done": _silent,
        "keepalive": _silent,
        "response.completed": _terminal,
        "response.incomplete": _terminal,
        "response.cancelled": _terminal,
        "response.failed": _failed,
        "error": _error,
    }


def _end_segment(segment: ReasoningSegment | ToolCallSegment, part: Part) -> list[StreamEvent]:
    if isinstance(segment, ToolCallSegment) and isinstance(part, ToolCall):
        rest = _rest(segment, part.raw_arguments or "")
        return [*rest, ToolCallEnd(id=segment.id, index=segment.index, tool_call=part)]
    if isinstance(segment, ReasoningSegment) and isinstance(part, Thinking):
        rest = _rest(segment, part.text)
        return [*rest, ReasoningEnd(id=segment.id, index=segment.index, part=part)]
    return [segment.end()]  # it did not become what it began as


def _rest(segment: Segment, whole: str) -> list[StreamEvent]:
    """What of the whole has not come as deltas; some servers send no deltas at all."""
    sent = "".join(segment.pieces)
    if len(whole) > len(sent) and whole.startswith(sent):
        return [segment.delta(whole[len(sent) :])]
    return []


def _delta(data: dict[str, Any]) -> str:
    delta = data.get("delta")
    if not isinstance(delta, str):
        raise StreamError(f"{data.get('type')} without its delta")
    return delta


def _place(data: dict[str, Any], item: dict[str, Any] | None = None) -> Place:
    index = data.get("output_index")
    if isinstance(index, int):
        return index
    return _text(data.get("item_id")) or _text((item or {}).get("id")) or None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def stream_decoder(
    *,
    new_id: NewId | None = None,
    profile: Profile = NEUTRAL_PROFILE,  # noqa: ARG001
) -> StreamDecoder:
    """For a stream a client receives."""
    return Decoder(new_id or counting_ids())
