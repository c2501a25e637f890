"""
Frames -> events.

Items are identified by their position, `output_index`: some proxies send another item id in
each event. The item in its `done` event replaces its deltas, and the item in the last event
replaces both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, TypeAlias

from interlingua.dialects.openai_responses.facts import (
    ARGUMENTS,
    ITEM,
    NAME,
    OUTPUT_TEXT,
    PARAGRAPH,
    SEARCH,
    SECTIONS,
    TOOL_TYPES,
)
from interlingua.dialects.openai_responses.hosted_uses import OwnCalls
from interlingua.dialects.openai_responses.messages import is_turn, read_item
from interlingua.dialects.openai_responses.response import decode_response
from interlingua.dialects.openai_responses.tool_calls import tool_call_id_of
from interlingua.spec.content import Json, Part, Text, Thinking, ToolCall, ToolType
from interlingua.spec.contracts import NEUTRAL_PROFILE, Frame, NewId, Profile, StreamDecoder
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
from interlingua.spec.request import Request
from interlingua.streams.frames import is_bare_error, read_frame
from interlingua.streams.segments import (
    ReasoningSegment,
    Segment,
    TextSegment,
    ToolCallSegment,
    join_pieces,
)
from interlingua.wire.fields import text_of, text_or_none
from interlingua.wire.tool_calls import counting_ids

Place: TypeAlias = int | str | None
"""The position of an item in the output; its id if a server sends no position."""
Data: TypeAlias = dict[str, Json]
_ADDED = "response.output_item.added"
_DONE = "response.output_item.done"
_STREAMED = ("content", *ARGUMENTS.values())
# Complete only in the done item: «The `encrypted_content` in `response.output_item.added` may be
# incomplete» (the SDK's `ResponseReasoningItem`).
_LATER = ("type", *_STREAMED, "summary", "encrypted_content")
_MESSAGE = ("type", "role", "content")
# Their data comes again in the done item. Annotations have a second name, with an
# underscore, in two recorded events; `keepalive` has no data at all.
_REPEATED = (
    "response.reasoning_summary_part.added", "response.reasoning_summary_part.done",
    "response.reasoning_summary_text.done", "response.reasoning_text.done",
    "response.content_part.added", "response.content_part.done", "response.output_text.done",
    "response.output_text.annotation.added", "response.output_text_annotation.added",
    "response.refusal.delta", "response.refusal.done", "keepalive",
)  # fmt: skip


class _Item:
    """An item that is being streamed: the text parts of a message, or one segment."""

    __slots__ = ("keys", "kind", "section", "segment", "start", "texts")

    def __init__(self, start: Data, own_calls: OwnCalls) -> None:
        self.start = start
        is_part = is_turn(start) and own_calls.read(start) is None
        self.kind: str | None = text_or_none(start.get("type", "message")) if is_part else None
        self.segment: ReasoningSegment | ToolCallSegment | None = None
        self.texts: dict[int, TextSegment] = {}
        self.keys: list[tuple[Json, Json]] = []  # of `texts` in `Decoder._texts`
        self.section: tuple[str, Json] | None = None  # of the reasoning, in the last delta

    def so_far(self) -> Data:
        """The item as streamed until now, for one that has no done event."""
        if self.kind == "message":
            content = [
                {"type": OUTPUT_TEXT, "text": "".join(part.pieces), "annotations": []}
                for part in self.texts.values()
            ]
            return {**self.start, "content": content}
        text = "".join(self.segment.pieces) if self.segment else ""
        if isinstance(self.segment, ToolCallSegment):
            return {**self.start, ARGUMENTS[self.segment.tool_type]: text}
        if self.section and text:
            key = self.section[0]
            return {**self.start, key: [{"type": SECTIONS[key], "text": text}]}
        return self.start

    def complete(self, item: Data) -> Data:
        """The done item, with the streamed fields that some servers leave out of it."""
        streamed = self.so_far()
        missing = {
            key: streamed[key] for key in _STREAMED if streamed.get(key) and not item.get(key)
        }
        return {**item, **missing} if missing else item


class Decoder:
    """Follows one stream."""

    def __init__(self, new_id: NewId, profile: Profile, request: Request | None) -> None:
        self._new_id = new_id
        self._profile, self._request = profile, request
        self._own_calls = OwnCalls(profile, request)
        self._new_ids: list[str] = []  # of tool calls that came without an id
        self._open: dict[Place, _Item] = {}
        self._texts: dict[tuple[Json, Json], TextSegment] = {}  # by output and content index
        self._done: list[tuple[Place, Data]] = []
        self._next = 0
        self._start: StreamStart | None = None
        self._ended = False

    @property
    def held(self) -> int:
        """The number of items so far: the last event may have to end or repeat them all."""
        return len(self._open) + len(self._done)

    def feed(self, frame: Frame) -> list[StreamEvent]:
        """The events of this frame; raises the provider's error if the frame has one."""
        data = None if self._ended else read_frame(frame)
        if data is None:
            return []
        kind = data.get("type") or frame.event
        # First, because most frames are these: 7,950 of 13,501 in recordings of OpenAI.
        if kind == "response.output_text.delta":
            try:
                segment = self._texts.get((data.get("output_index"), data.get("content_index")))
            except TypeError as error:
                raise StreamError("The index of a stream event is not a number.") from error
            if segment is not None and type(data.get("delta")) is str:
                return [segment.delta(data["delta"])]
            return self._text_delta(data)
        handler = self._HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            return handler(self, data)
        if is_bare_error(data):
            return self._error(data)
        return [*self._begin(), ProviderEvent(dialect=NAME, name=str(kind), data=data)]

    def finish(self) -> list[StreamEvent]:
        """End of body: raises `StreamError` if there was no terminal event."""
        if not self._ended:
            raise StreamError(
                "The stream ended before response.completed: the answer may be cut off."
            )
        return []

    # The start and the end.

    def _begin(self, data: Data | None = None) -> list[StreamEvent]:
        """`StreamStart` if it was not sent yet; any event may come first."""
        if self._start is not None:
            return []
        response = data.get("response") if data else None
        unread = dict(response) if isinstance(response, dict) else {}
        for name in ("status", "output", "usage"):
            unread.pop(name, None)
        self._start = StreamStart(
            id=text_of(unread.pop("id", None)),
            model=text_of(unread.pop("model", None)),
            extra={NAME: unread},
        )
        return [self._start]

    def _terminal(self, data: Data) -> list[StreamEvent]:
        events = self._begin(data)
        response = data.get("response")
        whole = dict(response) if isinstance(response, dict) else {"status": "completed"}
        if "status" in whole:  # a response; anything else is a body that is carried verbatim
            whole.setdefault("output", [])
        output = whole.get("output")
        if isinstance(output, list) and output:
            events += self._catch_up(output)
        for place in list(self._open):
            events += self._end(place, self._open[place].so_far())
        if self._done and not output:  # some servers leave out the items that they streamed
            self._done.sort(key=lambda done: done[0] if isinstance(done[0], int) else math.inf)
            whole["output"] = [item for _, item in self._done]
        for name in ("id", "model"):
            if value := getattr(self._start, name):
                whole.setdefault(name, value)
        new_ids = iter(self._new_ids)
        answer = decode_response(
            whole,
            new_id=lambda: next(new_ids, None) or self._new_id(),
            profile=self._profile,
            request=self._request,
        )
        self._ended = True
        finish = Finish(finish_reason=answer.finish_reason, usage=answer.usage, response=answer)
        return [*events, finish]

    def _catch_up(self, output: list[Json]) -> list[StreamEvent]:
        """The items of the last event that had no done event."""
        if len(self._done) >= len(output):
            return []
        seen = {place for place, _ in self._done}
        return [
            event
            for place, item in enumerate(output)
            if place not in seen and isinstance(item, dict)
            for event in self._end(place, item)
        ]

    def _failed(self, data: Data) -> list[StreamEvent]:
        # An `error` event usually comes first and was raised already; not all servers send one.
        response = data.get("response")
        error = response.get("error") if isinstance(response, dict) else None
        return self._error({"error": error} if isinstance(error, dict) else data)

    def _error(self, data: Data) -> list[StreamEvent]:
        from interlingua.dialects.openai_responses.errors import read_error

        raise read_error(None, {}, data)

    def _ignore(self, _: Data) -> list[StreamEvent]:
        return self._begin()

    # Items.

    def _added(self, data: Data) -> list[StreamEvent]:
        events = self._begin()
        item = data.get("item")
        if not isinstance(item, dict):
            raise StreamError(f"The event {_ADDED} has no item.")
        place = _place(data, item)
        if place in self._open:  # a server that reuses a position: the item before has ended
            events += self._end(place, self._open[place].so_far())
        state = self._open[place] = _Item(item, self._own_calls)
        if state.kind is None:
            return [*events, ProviderEvent(dialect=NAME, name=_ADDED, data=data)]
        return events + self._start_segment(state)

    def _start_segment(self, state: _Item) -> list[StreamEvent]:
        """The start of reasoning or of a tool call; a message starts with its first text."""
        if state.kind in (None, "message"):
            return []
        unread = {name: value for name, value in state.start.items() if name not in _LATER}
        if state.kind == "reasoning":
            state.segment = ReasoningSegment(self._next, {NAME: unread})
        else:
            state.segment = self._start_tool_call(unread, TOOL_TYPES[state.kind])
        self._next += 1
        return [state.segment.start()]

    def _start_tool_call(self, unread: Data, tool_type: ToolType) -> ToolCallSegment:
        call_id = tool_call_id_of(unread)
        if call_id is None:
            self._new_ids.append(self._new_id())
            call_id = f"call_{self._new_ids[-1]}"
        unread.pop("call_id", None)
        namespace = unread.pop("namespace", None)
        return ToolCallSegment(
            self._next,
            call_id=call_id,
            name=SEARCH if tool_type == "search" else text_of(unread.pop("name", None)),
            tool_type=tool_type,
            namespace=namespace if isinstance(namespace, str) else None,
            extra={NAME: unread},
        )

    def _item_done(self, data: Data) -> list[StreamEvent]:
        item = data.get("item")
        if not isinstance(item, dict):
            raise StreamError(f"The event {_DONE} has no item.")
        return self._begin() + self._end(_place(data, item), item)

    def _end(self, place: Place, item: Data) -> list[StreamEvent]:
        """The rest of an item and its end; `item` is its final form."""
        events: list[StreamEvent] = []
        state = self._open.pop(place, None)
        if state is None:
            state = _Item(item, self._own_calls)
            events += self._start_segment(state)
        item = state.complete(item)
        self._done.append((place, item))
        segment = state.segment
        call_id = segment.call_id if isinstance(segment, ToolCallSegment) else ""
        parts = read_item(item, lambda: call_id, self._own_calls)
        if segment is not None:
            return [*events, *_end_segment(segment, parts[0])]
        if state.kind is None:
            return [*events, self._whole(parts[0], {"output_index": place})]
        for key in state.keys:
            self._texts.pop(key, None)
        return [*events, *self._end_message(state.texts, parts)]

    def _end_message(self, texts: dict[int, TextSegment], parts: list[Part]) -> list[StreamEvent]:
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

    def _whole(self, part: Part, data: Json = None) -> ProviderEvent:
        """A part without deltas; `data` identifies its item."""
        self._next += 1
        name = None if data is None else _DONE
        return ProviderEvent(dialect=NAME, name=name, data=data, part=part, index=self._next - 1)

    # Deltas.

    def _find(self, data: Data, **start: Json) -> tuple[_Item, list[StreamEvent]]:
        """The item of a delta, and the events that start it if it is new."""
        place = _place(data)
        if place in self._open:
            return self._open[place], self._begin()
        state = self._open[place] = _Item(start, self._own_calls)
        return state, self._begin() + self._start_segment(state)

    def _text_delta(self, data: Data) -> list[StreamEvent]:
        """The first delta of a text part."""
        delta = _delta(data)
        state, events = self._find(data, type="message", role="assistant")
        if state.kind != "message":
            name = text_or_none(data.get("type"))
            return [*events, ProviderEvent(dialect=NAME, name=name, data=data)]
        index = data.get("content_index")
        number = index if isinstance(index, int) else 0
        segment = state.texts.get(number)
        if segment is None:
            fields = {name: value for name, value in state.start.items() if name not in _MESSAGE}
            segment = TextSegment(self._next, {} if state.texts else {NAME: {ITEM: fields}})
            self._next += 1
            state.texts[number] = segment
            events.append(segment.start())
        key = (data.get("output_index"), index)
        self._texts[key] = segment
        state.keys.append(key)
        return [*events, segment.delta(delta)]

    def _reasoning_delta(self, data: Data) -> list[StreamEvent]:
        key = "summary" if "summary_index" in data else "content"
        section = (key, data.get(f"{key}_index"))
        delta = _delta(data)
        state, events = self._find(data, type="reasoning")
        if not isinstance(state.segment, ReasoningSegment):
            return events
        if state.section is not None and state.section != section:
            if state.section[0] != section[0]:
                return events  # the item has both lists: only the first is the part's text
            events.append(state.segment.delta(PARAGRAPH))
        state.section = section
        return [*events, state.segment.delta(delta)]

    def _tool_call_delta(self, data: Data) -> list[StreamEvent]:
        delta = _delta(data)
        segment = self._tool_call_at(data)
        return self._begin() if segment is None else [segment.delta(delta)]

    def _tool_call_done(self, data: Data) -> list[StreamEvent]:
        segment = self._tool_call_at(data)
        whole = data.get("arguments", data.get("input"))
        if segment is None:
            return self._begin()
        return _rest(segment, whole) if isinstance(whole, str) else []

    def _tool_call_at(self, data: Data) -> ToolCallSegment | None:
        """The tool call of an event; None if it has not started: its done item has it whole."""
        state = self._open.get(_place(data))
        segment = None if state is None else state.segment
        return segment if isinstance(segment, ToolCallSegment) else None

    _HANDLERS: ClassVar[dict[str, Callable[[Decoder, Data], list[StreamEvent]]]] = {
        "response.created": _begin,
        "response.in_progress": _begin,
        _ADDED: _added,
        _DONE: _item_done,
        "response.function_call_arguments.delta": _tool_call_delta,
        "response.function_call_arguments.done": _tool_call_done,
        "response.custom_tool_call_input.delta": _tool_call_delta,
        "response.custom_tool_call_input.done": _tool_call_done,
        "response.reasoning_summary_text.delta": _reasoning_delta,
        "response.reasoning_text.delta": _reasoning_delta,
        **dict.fromkeys(_REPEATED, _ignore),
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
    return [segment.end()]  # the done item has another type


def _rest(segment: Segment, whole: str) -> list[StreamEvent]:
    """A delta with the text that is still missing; some servers send no deltas at all."""
    sent = join_pieces(segment.pieces)
    if len(whole) > len(sent) and whole.startswith(sent):
        return [segment.delta(whole[len(sent) :])]
    return []


def _delta(data: Data) -> str:
    delta = data.get("delta")
    if not isinstance(delta, str):
        raise StreamError(f"The event {data.get('type')} has no delta.")
    return delta


def _place(data: Data, item: Data | None = None) -> Place:
    index = data.get("output_index")
    if isinstance(index, int):
        return index
    # Servers that number nothing send one item at a time, whose id has to do.
    return text_of(data.get("item_id")) or text_of((item or {}).get("id")) or None


def stream_decoder(
    *,
    new_id: NewId | None = None,
    profile: Profile = NEUTRAL_PROFILE,
    request: Request | None = None,
) -> StreamDecoder:
    """A decoder for the stream that a client receives."""
    return Decoder(new_id or counting_ids(), profile, request)
