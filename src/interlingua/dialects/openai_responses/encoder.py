"""
Events -> frames.

Items and their parts are numbered as they start. The last frame has the whole response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from interlingua.dialects.openai_responses.content import (
    encode_answer_text,
    encode_part,
    encode_thinking,
)
from interlingua.dialects.openai_responses.errors import error_fields
from interlingua.dialects.openai_responses.facts import (
    ARGUMENTS,
    ITEM,
    NAME,
    OUTPUT_TEXT,
    TOOL_CALLS,
)
from interlingua.dialects.openai_responses.messages import ItemEncoder, item_id, message_item
from interlingua.dialects.openai_responses.request import repeated_fields
from interlingua.dialects.openai_responses.response import (
    close_envelope,
    open_envelope,
    write_response,
)
from interlingua.dialects.openai_responses.tool_calls import encode_tool_call
from interlingua.spec.content import MEDIA_TYPES, Json, Part, Refusal, Text
from interlingua.spec.contracts import Frame, StreamEncoder
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
from interlingua.spec.response import FinishReason
from interlingua.spec.warnings import WarningList
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.declared_calls import declared_encoder
from interlingua.streams.frames import json_frame
from interlingua.streams.grammar import SequentialEncoder
from interlingua.wire.fields import extra_of
from interlingua.wire.tool_calls import ArgumentText, plain_call

_ADDED = "response.output_item.added"
_DONE = "response.output_item.done"
_TERMINAL = {"incomplete": "response.incomplete", "failed": "response.failed"}
_LATER = ("summary", "content", "encrypted_content")
# Of the two lists of a reasoning item: the event of a text, and the field with its number.
_SUMMARY = ("response.reasoning_summary_text", "summary_index")
_THOUGHTS = ("response.reasoning_text", "content_index")
# The event of a part, and the type of the part.
_SECTIONS = {
    _SUMMARY: ("response.reasoning_summary_part", "summary_text"),
    _THOUGHTS: ("response.content_part", "reasoning_text"),
}
_EMPTY: dict[str, Json] = {}


class _Message:
    """A message item whose parts are being sent; `at` is its place, `fields` its other fields."""

    __slots__ = ("at", "blocks", "fields", "is_closing", "is_open")

    def __init__(self, at: dict[str, Json], fields: Mapping[str, Json]) -> None:
        self.at = at
        self.fields = fields
        self.blocks: list[Json] = []
        self.is_open = False  # a part has started and not ended
        self.is_closing = False  # the item ends with that part


class _Single:
    """An item that is one part: reasoning or a tool call."""

    __slots__ = ("at", "has_text", "new_id", "section")

    def __init__(self, at: dict[str, Json], new_id: str | None, section: tuple[str, str]) -> None:
        self.at = at
        self.new_id = new_id  # if it has no id of its own
        self.section = section  # the prefix of its events, and the field that only they have
        self.has_text = False


class Encoder(SequentialEncoder):
    """Encodes one stream; one item is open at a time."""

    def __init__(self, repeated: Mapping[str, Json] = _EMPTY) -> None:
        super().__init__()
        self._repeated = repeated  # fields of the request
        self._accumulator = StreamAccumulator()
        self._sequence = 0
        self._items = 0
        self._id = ""
        self._message: _Message | None = None  # the item to which a part can be added
        self._current = _Message({}, {})  # the item of the part that is being sent
        self._at: dict[str, Json] = {}  # the place of that part
        self._single = _Single({}, None, _SUMMARY)  # the item that is being sent, if not a message
        self._arguments = ArgumentText()
        self._added: dict[Json, int] = {}  # this API's index of an item -> the index sent
        self._native = False

    def _encode(self, event: StreamEvent) -> list[Frame]:
        self._accumulator.feed(event)
        encode = self._ENCODERS.get(type(event))
        return [] if encode is None else encode(self, event)

    def _frame(self, kind: str, at: Mapping[str, Json] = _EMPTY, **fields: Json) -> Frame:
        data = {"type": kind, "sequence_number": self._sequence, **at, **fields}
        self._sequence += 1
        return json_frame(data, kind)

    def _next_index(self) -> int:
        self._items += 1
        return self._items - 1

    # The start and the end.

    def _created(self, event: StreamStart) -> list[Frame]:
        self._id = event.id
        native = self._native = NAME in event.extra
        body = open_envelope(event.id, event.model, native=native)
        body |= {"status": "in_progress", "output": [], "usage": None}
        body = close_envelope(body, event, native=native, repeated=self._repeated)
        body.pop("body", None)  # a carried body is in the last frame only
        return [  # two events with the same body, as OpenAI sends them
            self._frame("response.created", response=body),
            self._frame("response.in_progress", response=body),
        ]

    def _finish(self, _: Finish) -> list[Frame]:
        frames = self._close_message()
        body = write_response(self._accumulator.response(), self._repeated)
        status = body.get("status")
        kind = _TERMINAL.get(status) if isinstance(status, str) else None
        return [*frames, self._frame(kind or "response.completed", response=body)]

    def _error(self, event: ErrorEvent) -> list[Frame]:
        error = error_fields(event.error)
        partial = msgspec.structs.replace(
            event.response or self._accumulator.partial(),
            finish_reason=FinishReason(reason="error", raw="failed"),
        )
        body = write_response(partial, self._repeated)
        body["error"] = {"code": error["code"] or "server_error", "message": error["message"]}
        # The SDK's `ResponseErrorEvent` has the fields at the top, recorded events have them in
        # `error`, and the SDK's client raises only for the latter.
        fields = {name: error[name] for name in ("code", "message", "param")}
        return [
            self._frame("error", fields, error=error),
            self._frame("response.failed", response=body),
        ]

    # Message items.

    def _start_part(self, mark: Json, part: Json) -> list[Frame]:
        """A part of the open message item, or of a new one if there is a mark (see `ITEM`)."""
        frames: list[Frame] = []
        if self._message is None or mark is not None:
            frames = self._close_message()
            index = self._next_index()
            new_id = item_id(self._id, "message", index)
            usual: dict[str, Json] = {"id": new_id, "status": "completed"}
            fields = mark if isinstance(mark, Mapping) else usual
            at: dict[str, Json] = {"item_id": fields.get("id", new_id), "output_index": index}
            self._message = _Message(at, fields)
            item = message_item("assistant", {**fields, "status": "in_progress"}, [])
            frames.append(self._frame(_ADDED, output_index=index, item=item))
        message = self._current = self._message
        message.is_open = True
        self._at = {**message.at, "content_index": len(message.blocks)}
        frames.append(self._frame("response.content_part.added", self._at, part=part))
        return frames

    def _end_part(self, part: Part, block: Json) -> list[Frame]:
        message = self._current
        message.blocks.append(block)
        message.is_open = False
        mark = extra_of(part, NAME).get(ITEM)
        if mark is not None:  # the final fields of the item
            message.fields = mark
        frames = [self._frame("response.content_part.done", self._at, part=block)]
        return [*frames, self._message_done(message)] if message.is_closing else frames

    def _close_message(self) -> list[Frame]:
        message, self._message = self._message, None
        if message is None:
            return []
        message.is_closing = True
        return [] if message.is_open else [self._message_done(message)]

    def _message_done(self, message: _Message) -> Frame:
        item = message_item("assistant", message.fields, message.blocks)
        return self._frame(_DONE, output_index=message.at["output_index"], item=item)

    def _text_start(self, event: TextStart) -> list[Frame]:
        return self._start_part(extra_of(event, NAME).get(ITEM), _empty_text())

    def _text_delta(self, event: TextDelta) -> list[Frame]:
        kind = "response.output_text.delta"
        # The probabilities are known at the end of the text; the SDK's type requires the field.
        return [self._frame(kind, self._at, delta=event.delta, logprobs=[])]

    def _text_end(self, event: TextEnd) -> list[Frame]:
        return self._text_done(event.part)

    def _text_done(self, part: Text) -> list[Frame]:
        block = encode_answer_text(part)
        annotations = block.get("annotations")
        annotations = annotations if isinstance(annotations, list) else []
        added = "response.output_text.annotation.added"
        frames = [
            self._frame(added, self._at, annotation_index=number, annotation=annotation)
            for number, annotation in enumerate(annotations)
        ]
        logprobs = block.get("logprobs") or []
        done = "response.output_text.done"
        frames.append(self._frame(done, self._at, text=part.text, logprobs=logprobs))
        return frames + self._end_part(part, block)

    def _whole_content(self, part: Text | Refusal) -> list[Frame]:
        """A part of a message without deltas."""
        mark = extra_of(part, NAME).get(ITEM)
        empty = {"type": "refusal", "refusal": ""} if isinstance(part, Refusal) else _empty_text()
        frames = self._start_part(mark, empty)
        if isinstance(part, Text):
            return frames + self._text_done(part)
        frames.append(self._frame("response.refusal.delta", self._at, delta=part.text))
        frames.append(self._frame("response.refusal.done", self._at, refusal=part.text))
        return frames + self._end_part(part, encode_part(part, OUTPUT_TEXT, WarningList()))

    # Reasoning and tool calls.

    def _start_single(
        self, event: ReasoningStart | ToolCallStart, item: dict[str, Json], section: tuple[str, str]
    ) -> list[Frame]:
        frames = self._close_message()
        index = self._next_index()
        new_id = item_id(self._id, str(item["type"]), index)
        extra = {k: v for k, v in extra_of(event, NAME).items() if k not in _LATER}
        whole = {"id": new_id, **item, **extra}
        at: dict[str, Json] = {"item_id": whole["id"], "output_index": index}
        self._single = _Single(at, None if NAME in event.extra else new_id, section)
        return [*frames, self._frame(_ADDED, output_index=index, item=whole)]

    def _reasoning_start(self, event: ReasoningStart) -> list[Frame]:
        section = _THOUGHTS if extra_of(event, NAME).get("content") else _SUMMARY
        return self._start_single(event, {"type": "reasoning", "summary": []}, section)

    def _reasoning_delta(self, event: ReasoningDelta) -> list[Frame]:
        single = self._single
        kind, number = single.section
        if not event.delta:
            return []
        frames = [] if single.has_text else [self._section(single, "added", "")]
        single.has_text = True
        return [*frames, self._frame(f"{kind}.delta", single.at, **{number: 0}, delta=event.delta)]

    def _section(self, single: _Single, action: str, text: str) -> Frame:
        kind, part_type = _SECTIONS[single.section]
        part = {"type": part_type, "text": text}
        return self._frame(f"{kind}.{action}", single.at, **{single.section[1]: 0}, part=part)

    def _reasoning_end(self, event: ReasoningEnd) -> list[Frame]:
        single = self._single
        kind, number = single.section
        text = event.part.text
        frames: list[Frame] = []
        if single.has_text:
            frames.append(self._frame(f"{kind}.done", single.at, **{number: 0}, text=text))
            frames.append(self._section(single, "done", text))
        new_id = None if NAME in event.part.extra else single.new_id
        return [*frames, self._item_done(single, encode_thinking(event.part, new_id))]

    def _tool_call_start(self, event: ToolCallStart) -> list[Frame]:
        kind, key = TOOL_CALLS[event.tool_type], ARGUMENTS[event.tool_type]
        item: dict[str, Json] = {"type": kind, "call_id": event.tool_call_id}
        if event.tool_type == "search":
            item |= {key: {}, "execution": "client"}
        else:
            item |= {"name": event.name, key: ""}
        if event.namespace is not None:
            item["namespace"] = event.namespace
        item["status"] = "in_progress"
        is_free = self._native or event.tool_type == "custom"  # native text stays unchanged
        self._arguments = ArgumentText(is_free=is_free)
        prefix = "" if event.tool_type == "search" else f"response.{kind}_{key}"
        return self._start_single(event, item, (prefix, key))

    def _tool_call_delta(self, event: ToolCallDelta) -> list[Frame]:
        text = self._arguments.feed(event.delta)
        has_deltas = bool(self._single.section[0])  # a search has none
        return [self._arguments_frame(text)] if has_deltas and (text or self._native) else []

    def _arguments_frame(self, text: str) -> Frame:
        return self._frame(f"{self._single.section[0]}.delta", self._single.at, delta=text)

    def _tool_call_end(self, event: ToolCallEnd) -> list[Frame]:
        single = self._single
        tool_call = event.tool_call if self._native else plain_call(event.tool_call)
        text = self._arguments.end(tool_call)
        kind, key = single.section
        item = encode_tool_call(tool_call, None if NAME in tool_call.extra else single.new_id)
        if not kind:
            return [self._item_done(single, item)]
        frames = [self._arguments_frame(text)] if text else []
        frames.append(self._frame(f"{kind}.done", single.at, **{key: item[key]}))
        return [*frames, self._item_done(single, item)]

    def _item_done(self, single: _Single, item: Json) -> Frame:
        return self._frame(_DONE, output_index=single.at["output_index"], item=item)

    # Everything else.

    def _provider_event(self, event: ProviderEvent) -> list[Frame]:
        part = event.part
        if isinstance(part, (Text, Refusal)):
            return self._whole_content(part)
        if part is not None:
            return self._whole_item(part, event)
        data = event.data
        if event.dialect != NAME or event.name is None or not isinstance(data, dict):
            return []
        frames: list[Frame] = []
        place = data.get("output_index")
        place = place if isinstance(place, (int, str)) else None
        if event.name == _ADDED:
            frames = self._close_message()
            self._added[place] = self._next_index()
        if place in self._added:
            data = {**data, "output_index": self._added[place]}
        if "sequence_number" in data:
            data = {**data, "sequence_number": self._sequence}
            self._sequence += 1
        return [*frames, json_frame(data, event.name)]

    def _whole_item(self, part: Part, event: ProviderEvent) -> list[Frame]:
        encoder = ItemEncoder(WarningList(), response_id=self._id, first=self._items)
        item = encoder.item(part)
        if item is None:  # the next content starts a new item
            return [] if isinstance(part, MEDIA_TYPES) else self._close_message()
        place = event.data.get("output_index") if isinstance(event.data, dict) else None
        known = self._added.pop(place, None) if isinstance(place, (int, str)) else None
        if known is not None:
            return [self._frame(_DONE, output_index=known, item=item)]
        frames = self._close_message()
        index = self._next_index()
        frames.append(self._frame(_ADDED, output_index=index, item=item))
        return [*frames, self._frame(_DONE, output_index=index, item=item)]

    _ENCODERS: ClassVar[dict[type, Callable[[Encoder, Any], list[Frame]]]] = {
        StreamStart: _created,
        TextStart: _text_start,
        TextDelta: _text_delta,
        TextEnd: _text_end,
        ReasoningStart: _reasoning_start,
        ReasoningDelta: _reasoning_delta,
        ReasoningEnd: _reasoning_end,
        ToolCallStart: _tool_call_start,
        ToolCallDelta: _tool_call_delta,
        ToolCallEnd: _tool_call_end,
        ProviderEvent: _provider_event,
        ErrorEvent: _error,
        Finish: _finish,
    }


def _empty_text() -> dict[str, Json]:
    return {"type": OUTPUT_TEXT, "text": "", "annotations": [], "logprobs": []}


def stream_encoder(request: Request | None = None) -> StreamEncoder:
    """An encoder for the stream that a server sends."""
    repeated = {} if request is None else repeated_fields(request)
    return declared_encoder(Encoder(repeated), request)
