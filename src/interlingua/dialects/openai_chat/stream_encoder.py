"""Events -> stream frames."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_chat.calls import LEGACY, number_calls
from interlingua.dialects.openai_chat.content import encode_part
from interlingua.dialects.openai_chat.errors import error_body
from interlingua.dialects.openai_chat.marks import SENT_AS, TAGS, mark_of
from interlingua.dialects.openai_chat.response import CHOICE, CHOICES, encode_finish, encode_usage
from interlingua.dialects.openai_chat.thinking import DETAILS, tag_after, tag_before, text_fields
from interlingua.dialects.openai_chat.wire import CHUNK, NAME
from interlingua.spec.content import Json, Opaque, Part, Refusal, Text, Thinking, ToolCall
from interlingua.spec.contracts import Frame
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
from interlingua.wire.frames import DONE, json_frame
from interlingua.wire.grammar import Grammar
from interlingua.wire.options import merge, options_for
from interlingua.wire.shape import extra_of

# Fields of a choice that mean something else in a chunk; they travel in the envelope.
_OF_CHUNKS = ("index", "delta", "message", "finish_reason")


class Encoder:
    """
    Calls are numbered as they start, whatever the events' own indexes.

    Usage has a chunk of its own; for a client that did not ask for one, whose code may not
    expect a chunk without choices, it comes with the finish reason instead.
    """

    def __init__(self, request: Request | None) -> None:
        self._grammar = Grammar()
        self._native = False
        self._failed = False
        self._envelope: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._others: list[Json] = []
        self._wants_usage = request is None or _asks_usage(request)
        self._calls: dict[str, _Call] = {}
        self._numbers = 0
        self._thoughts: dict[str, _Thought] = {}
        self._texts: dict[str, bool] = {}

    def feed(self, event: StreamEvent) -> list[Frame]:
        self._grammar.feed(event)
        match event:
            case TextDelta():
                is_plain = self._texts[event.id] and event.delta
                return [self._delta({"content": event.delta})] if is_plain else []
            case ToolCallDelta():
                return [self._delta(self._calls[event.id].arguments(event.delta))]
            case ReasoningDelta():
                return self._deltas(self._thoughts[event.id].text(event.delta))
            case TextStart() | TextEnd():
                return self._text(event)
            case ReasoningStart():
                self._thoughts[event.id] = thought = _Thought(event)
                return self._deltas(thought.start())
            case ReasoningEnd():
                return self._deltas(self._thoughts.pop(event.id).end(event.part))
            case ToolCallStart():
                self._calls[event.id] = call = _Call(event, self._number())
                return [self._delta(call.start())]
            case ToolCallEnd():
                return self._deltas(self._calls.pop(event.id).end(event.tool_call))
            case _:
                return self._feed_rare(event)

    def finish(self) -> list[Frame]:
        if not self._failed:
            self._grammar.finish()
        return []

    def _feed_rare(self, event: StreamEvent) -> list[Frame]:
        match event:
            case StreamStart():
                return [self._start(event)]
            case ProviderEvent():
                return self._provider_event(event)
            case ErrorEvent():
                self._failed = True
                return [json_frame(error_body(event.error))]
            case Finish():
                return [] if self._failed else self._finish(event)
        return []

    def _start(self, event: StreamStart) -> Frame:
        self._native = NAME in event.extra
        kept = dict(extra_of(event, NAME))
        self._envelope = {"id": event.id, "object": CHUNK, "model": event.model}
        if not self._native:
            self._envelope["created"] = 0
        elif "created" in kept:
            self._envelope["created"] = kept.pop("created")
        choice, others = kept.pop(CHOICE, None), kept.pop(CHOICES, None)
        if isinstance(choice, dict):
            self._choice = {name: choice[name] for name in choice if name not in _OF_CHUNKS}
            if len(self._choice) < len(choice):
                kept[CHOICE] = {name: choice[name] for name in choice if name in _OF_CHUNKS}
        self._others = others if isinstance(others, list) else []
        return self._delta({"role": "assistant", "content": None}, kept)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers - 1

    def _chunk(self, choices: list[Json], more: dict[str, Any] | None = None) -> Frame:
        return json_frame({**self._envelope, **(more or {}), "choices": choices})

    def _delta(self, delta: dict[str, Any], more: dict[str, Any] | None = None) -> Frame:
        return self._chunk([{"index": 0, "delta": delta, "finish_reason": None}], more)

    def _deltas(self, delta: dict[str, Any] | None) -> list[Frame]:
        return [] if delta is None else [self._delta(delta)]

    def _text(self, event: TextStart | TextEnd) -> list[Frame]:
        """Text with fields of its own is sent as a part, when it is whole."""
        if isinstance(event, TextStart):
            self._texts[event.id] = NAME not in event.extra
            return []
        if not self._texts.pop(event.id):
            return self._whole(event.part)
        return [] if event.part.text else [self._delta({"content": ""})]

    def _whole(self, part: Part) -> list[Frame]:
        match part:
            case Refusal() if mark_of(part, SENT_AS) != "part":
                return [self._delta({"refusal": part.text})]
            case Opaque() if part.dialect == NAME and mark_of(part, SENT_AS) == "tool_call":
                data = part.data
                item = {"index": self._number(), **data} if isinstance(data, dict) else data
                return [self._delta({"tool_calls": [item]})]
            case Thinking() if mark_of(part, SENT_AS) != "part":
                return []  # redacted: there is nothing to show
            case Text() if mark_of(part, SENT_AS) == "json":
                return [self._delta({"content": encode_part(part, Losses(), "")})]
        item = encode_part(part, Losses(), "")
        return [] if item is None else [self._delta({"content": [item]})]

    def _provider_event(self, event: ProviderEvent) -> list[Frame]:
        if event.part is not None:
            return self._whole(event.part)
        if event.dialect == NAME and event.data is not None:
            return [json_frame(event.data, None if event.name == CHOICE else event.name)]
        return []

    def _finish(self, event: Finish) -> list[Frame]:
        kept = dict(extra_of(event, NAME))
        late, others = kept.pop(CHOICE, None), kept.pop(CHOICES, None)
        choice = merge(self._choice, late) if isinstance(late, dict) else self._choice
        frames = [self._other(other) for other in [*self._others, *(others or ())]]
        native = self._native or NAME in event.extra
        ending = {
            **choice,
            "index": 0,
            "delta": dict(extra_of_message(event)),
            "finish_reason": encode_finish(event.finish_reason, native=native),
        }
        usage = encode_usage(event.usage, native=native)
        if usage is None:
            frames.append(self._chunk([ending], kept))
        elif self._wants_usage:
            frames += [self._chunk([ending]), self._chunk([], {**kept, "usage": usage})]
        else:
            frames.append(self._chunk([ending], {**kept, "usage": usage}))
        return [*frames, Frame(data=DONE)]

    def _other(self, choice: Json) -> Frame:
        """Another choice, all in one chunk."""
        if isinstance(choice, dict):
            rest = {name: choice[name] for name in choice if name != "message"}
            choice = {**rest, "delta": number_calls(choice.get("message"))}
        return self._chunk([choice])


def extra_of_message(event: Finish) -> dict[str, Any]:
    """Fields of the message known only at the end."""
    kept = event.message_extra.get(NAME)
    return kept if isinstance(kept, dict) else {}


def _asks_usage(request: Request) -> bool:
    asked = options_for(request, NAME).get("stream_options")
    return isinstance(asked, dict) and asked.get("include_usage") is True


class _Call:
    """How a call is written."""

    def __init__(self, event: ToolCallStart, number: int) -> None:
        self._event = event
        self._number = number
        self._kept = dict(extra_of(event, NAME))
        self._is_legacy = self._kept.get(SENT_AS) == LEGACY
        self._field = "input" if event.tool_type == "custom" else "arguments"

    def start(self) -> dict[str, Any]:
        event = self._event
        inner = {"name": event.name, self._field: ""}
        if self._is_legacy:
            return {LEGACY: merge(self._kept.get("function") or {}, inner)}
        kind = event.tool_type
        item = {"index": self._number, "id": event.tool_call_id, "type": kind, kind: inner}
        return {"tool_calls": [{**item, **merge(self._kept, item)}]}

    def arguments(self, fragment: str) -> dict[str, Any]:
        inner = {self._field: fragment}
        if self._is_legacy:
            return {LEGACY: inner}
        return {"tool_calls": [{"index": self._number, self._event.tool_type: inner}]}

    def end(self, call: ToolCall) -> dict[str, Any] | None:
        """Fields that were not known at the start."""
        now = extra_of(call, NAME)
        late = {name: now[name] for name in now if self._kept.get(name, self) != now[name]}
        if not late or self._is_legacy:
            return None
        return {"tool_calls": [{**late, "index": self._number}]}


class _Thought:
    """How a thought is written: in the fields, part or tags it came in."""

    def __init__(self, event: ReasoningStart) -> None:
        kept = extra_of(event, NAME)
        tags = kept.get(TAGS)
        self._tags = tags if isinstance(tags, dict) else None
        self._is_part = kept.get(SENT_AS) == "part"
        self._is_odd = "thinking" in kept
        self._fields = text_fields(kept)

    def start(self) -> dict[str, Any] | None:
        return None if self._tags is None else {"content": tag_before(self._tags)}

    def text(self, text: str) -> dict[str, Any] | None:
        if not text or self._is_odd:
            return None
        if self._tags is not None:
            return {"content": text}
        if self._is_part:
            chunks = [{"type": "text", "text": text}]
            return {"content": [{"type": "thinking", "thinking": chunks}]}
        return dict.fromkeys(self._fields, text) or None

    def end(self, part: Thinking) -> dict[str, Any] | None:
        kept = extra_of(part, NAME)
        if self._tags is not None:
            close = tag_after(kept.get(TAGS) or {})
            return {"content": close} if close else None
        if self._is_part:
            item = encode_part(part, Losses(), "")
            if not self._is_odd:
                item = {**(item or {}), "thinking": []}
            return {"content": [item]}
        details = kept.get(DETAILS)
        return {DETAILS: details} if isinstance(details, list) else None
