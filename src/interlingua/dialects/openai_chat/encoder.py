"""Events -> stream frames."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_chat.calls import number_call
from interlingua.dialects.openai_chat.content import MEDIA
from interlingua.dialects.openai_chat.errors import error_body
from interlingua.dialects.openai_chat.facts import (
    ARGUMENTS,
    CHOICE,
    CHOICES,
    CHUNK,
    DETAILS,
    LEGACY,
    NAME,
)
from interlingua.dialects.openai_chat.marks import SENT_AS, TAGS
from interlingua.dialects.openai_chat.messages import encode_assistant
from interlingua.dialects.openai_chat.response import (
    IMAGES,
    encode_finish,
    encode_usage,
    show_image,
)
from interlingua.dialects.openai_chat.thinking import (
    around,
    encode_thinking_part,
    text_fields,
    thought_chunks,
)
from interlingua.prepare.options import options_for
from interlingua.spec.content import Json, Part, Thinking, ToolCall
from interlingua.spec.contracts import (
    Frame,
    StreamEncoder,
)
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
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList
from interlingua.streams.frames import DONE, json_frame
from interlingua.streams.grammar import Grammar
from interlingua.wire.fields import extra_of, merge
from interlingua.wire.tool_calls import ArgumentText

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
        self._plain: set[str] = set()  # open texts without fields of their own
        self._thoughts: dict[str, _Thought] = {}
        self._calls: dict[str, _Call] = {}
        self._numbers = 0

    def feed(self, event: StreamEvent) -> list[Frame]:
        self._grammar.feed(event)
        match event:
            case TextDelta():
                is_said = event.delta and event.id in self._plain
                return self._delta({"content": event.delta} if is_said else None)
            case ReasoningDelta():
                return self._delta(self._thoughts[event.id].text(event.delta))
            case ToolCallDelta():
                return self._delta(self._calls[event.id].arguments(event.delta))
            case TextStart() | ReasoningStart() | ToolCallStart():
                return self._delta(self._open(event))
            case TextEnd() | ReasoningEnd() | ToolCallEnd():
                return self._delta(self._close(event))
            case StreamStart():
                return self._start(event)
            case ProviderEvent():
                return self._provider_event(event)
            case ErrorEvent():
                self._failed = True
                return [json_frame(error_body(event.error))]
            case Finish() if not self._failed:
                return self._finish(event)
        return []

    def finish(self) -> list[Frame]:
        if not self._failed:
            self._grammar.finish()
        return []

    def _open(self, event: TextStart | ReasoningStart | ToolCallStart) -> dict[str, Any] | None:
        if isinstance(event, ReasoningStart):
            self._thoughts[event.id] = thought = _Thought(event)
            return thought.start()
        if isinstance(event, ToolCallStart):
            self._calls[event.id] = call = _Call(event, self._number(), native=self._native)
            return call.start()
        if NAME not in event.extra:  # others are sent as a part, when they are whole
            self._plain.add(event.id)
        return None

    def _close(self, event: TextEnd | ReasoningEnd | ToolCallEnd) -> dict[str, Any] | None:
        if isinstance(event, ReasoningEnd):
            return self._thoughts.pop(event.id).end(event.part)
        if isinstance(event, ToolCallEnd):
            return self._calls.pop(event.id).end(event.tool_call)
        if event.id in self._plain and event.part.text:
            self._plain.remove(event.id)
            return None
        return _whole(event.part)

    def _start(self, event: StreamStart) -> list[Frame]:
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

    def _delta(
        self, delta: dict[str, Any] | None, more: dict[str, Any] | None = None
    ) -> list[Frame]:
        """The frame of a delta, if it says something."""
        if delta is None:
            return []
        return [self._chunk([{"index": 0, "delta": delta, "finish_reason": None}], more)]

    def _provider_event(self, event: ProviderEvent) -> list[Frame]:
        if event.part is not None:
            if isinstance(event.part, MEDIA) and not self._native:
                image = show_image(event.part)
                return self._delta(None if image is None else {IMAGES: [image]})
            delta = _whole(event.part)
            match delta:
                case {"tool_calls": [dict(call)]}:
                    delta = {"tool_calls": [number_call(call, self._number())]}
            return self._delta(delta)
        if event.dialect == NAME and event.data is not None:
            return [json_frame(event.data, None if event.name == CHOICE else event.name)]
        return []

    def _finish(self, event: Finish) -> list[Frame]:
        kept = dict(extra_of(event, NAME))
        late, others = kept.pop(CHOICE, None), kept.pop(CHOICES, None)
        choice = merge(self._choice, late) if isinstance(late, dict) else self._choice
        frames = [self._other(other) for other in [*self._others, *(others or ())]]
        native = self._native or NAME in event.extra
        told = event.message_extra.get(NAME)
        ending = {
            **choice,
            "index": 0,
            "delta": told if isinstance(told, dict) else {},
            "finish_reason": encode_finish(event.finish_reason, native=native),
        }
        usage = encode_usage(event.usage, native=native)
        if usage is not None:
            kept["usage"] = usage
        if usage is not None and self._wants_usage:
            frames += [self._chunk([ending]), self._chunk([], kept)]
        else:
            frames.append(self._chunk([ending], kept))
        return [*frames, Frame(data=DONE)]

    def _other(self, choice: Json) -> Frame:
        """Another choice, all in one chunk."""
        match choice:
            case {"message": {"tool_calls": list(calls), **message}, **rest}:
                numbered = [number_call(call, i) for i, call in enumerate(calls)]
                choice = {**rest, "delta": {**message, "tool_calls": numbered}}
            case {**rest}:
                choice = {"delta": rest.pop("message", None), **rest}
        return self._chunk([choice])


def _asks_usage(request: Request) -> bool:
    asked = options_for(request, NAME).get("stream_options")
    return isinstance(asked, dict) and asked.get("include_usage") is True


def _whole(part: Part) -> dict[str, Any] | None:
    """A part as a whole message has it."""
    if isinstance(part, Thinking) and part.redacted:
        return None
    message = Message(role="assistant", content=(part,))
    wire = encode_assistant(message, WarningList(), answer=True)
    del wire["role"]
    return {name: wire[name] for name in wire if wire[name] is not None} or None


class _Call:
    """How a call is written."""

    def __init__(self, event: ToolCallStart, number: int, *, native: bool) -> None:
        # whoever parses what is no call of this API may not expect empty text
        self._text = None if native else ArgumentText(is_free=event.tool_type == "custom")
        self._event = event
        self._number = number
        self._kept = dict(extra_of(event, NAME))
        self._is_legacy = self._kept.get(SENT_AS) == LEGACY
        self._field = ARGUMENTS[event.tool_type]

    def start(self) -> dict[str, Any]:
        event = self._event
        inner = {"name": event.name, self._field: ""}
        if self._is_legacy:
            return {LEGACY: merge(self._kept.get("function") or {}, inner)}
        kind = event.tool_type
        item = {"index": self._number, "id": event.tool_call_id, "type": kind, kind: inner}
        return {"tool_calls": [{**item, **merge(self._kept, item)}]}

    def arguments(self, fragment: str) -> dict[str, Any] | None:
        if self._text is not None:
            fragment = self._text.feed(fragment)
            if not fragment:
                return None
        inner = {self._field: fragment}
        if self._is_legacy:
            return {LEGACY: inner}
        return {"tool_calls": [{"index": self._number, self._event.tool_type: inner}]}

    def end(self, call: ToolCall) -> dict[str, Any] | None:
        """What is left of the text, and fields that were not known at the start."""
        left = "" if self._text is None else self._text.end(call)
        if left:
            self._text = None
            return self.arguments(left)
        now = extra_of(call, NAME)
        late = {name: now[name] for name in now if self._kept.get(name, self) != now[name]}
        if not late or self._is_legacy:
            return None
        return {"tool_calls": [{**late, "index": self._number}]}


class _Thought:
    """How a thought is written: in the fields, part or tags it came in."""

    def __init__(self, event: ReasoningStart) -> None:
        self._kept = kept = extra_of(event, NAME)
        self._in_tags = isinstance(kept.get(TAGS), dict)
        self._is_part = kept.get(SENT_AS) == "part"
        self._is_odd = "thinking" in kept
        self._fields = text_fields(kept)

    def start(self) -> dict[str, Any] | None:
        return {"content": around(self._kept[TAGS])[0]} if self._in_tags else None

    def text(self, text: str) -> dict[str, Any] | None:
        if not text or self._is_odd:
            return None
        if self._in_tags:
            return {"content": text}
        if self._is_part:
            return {"content": [{"type": "thinking", "thinking": thought_chunks(text)}]}
        return dict.fromkeys(self._fields, text) or None

    def end(self, part: Thinking) -> dict[str, Any] | None:
        kept = extra_of(part, NAME)
        if self._in_tags:
            close = around(kept.get(TAGS) or {})[1]
            return {"content": close} if close else None
        if self._is_part:
            item = encode_thinking_part(part)
            return {"content": [item if self._is_odd else {**item, "thinking": []}]}
        details = kept.get(DETAILS)
        return {DETAILS: details} if isinstance(details, list) else None


def stream_encoder(request: Request | None = None) -> StreamEncoder:
    """For a stream a server sends."""
    return Encoder(request)
