"""Events -> stream frames."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import assert_never

from interlingua.dialects.openai_chat.annotations import (
    ANNOTATIONS,
    set_logprobs,
    write_annotations,
)
from interlingua.dialects.openai_chat.content import (
    encode_image,
    encode_thinking_part,
    tags_around,
    thinking_chunks,
    thinking_fields,
)
from interlingua.dialects.openai_chat.errors import error_body
from interlingua.dialects.openai_chat.facts import (
    ARGUMENTS,
    CHOICE,
    CHOICES,
    CHUNK,
    DETAILS,
    IMAGES,
    LEGACY,
    MADE,
    NAME,
    SENT_AS,
    TAGS,
    fields_of,
    wire_type,
)
from interlingua.dialects.openai_chat.messages import encode_assistant
from interlingua.dialects.openai_chat.response import (
    encode_finish,
    encode_usage,
)
from interlingua.dialects.openai_chat.tool_calls import number_tool_call
from interlingua.dialects.openai_chat.vendor_fields import (
    CHOICE_FIELDS,
    FIRST_DELTA,
    complete_usage,
    envelope_fields,
)
from interlingua.prepare.options import options_for
from interlingua.spec import events
from interlingua.spec.content import (
    MEDIA_TYPES,
    Json,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    UncheckedJson,
)
from interlingua.spec.contracts import Frame, StreamEncoder
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList
from interlingua.streams.accumulate import with_late_fields
from interlingua.streams.declared_calls import declared_encoder
from interlingua.streams.frames import DONE, json_frame
from interlingua.streams.grammar import Grammar
from interlingua.wire.fields import extra_of, merge
from interlingua.wire.tool_calls import ArgumentText

# Fields of a choice that have another meaning in a chunk; they are sent in the envelope.
_CHUNK_FIELDS = ("index", "delta", "message", "finish_reason")


class Encoder:
    """
    Numbers the tool calls as they start, since the indexes of events count all parts.

    Usage has a chunk of its own, which only a request with `stream_options.include_usage` gets:
    other clients may not expect a chunk without choices.
    """

    def __init__(self, request: Request | None) -> None:
        self._grammar = Grammar(restarts=False)
        self._native = False
        self._failed = False
        self._is_complete = False  # all fields of the vendor are sent
        self._usual: Mapping[str, Json] = {}  # of a choice
        self._envelope: dict[str, Json] = {}
        self._choice: dict[str, Json] = {}
        self._others: list[Json] = []
        self._wants_usage = request is None or _asks_usage(request)
        self._spoken: dict[int, Part] = {}  # what the model said, by index
        self._plain: set[str] = set()  # open texts without `extra`
        self._thinking: dict[str, _Thinking] = {}
        self._tool_calls: dict[str, _ToolCall] = {}
        self._numbers = count()

    def feed(self, event: events.StreamEvent) -> list[Frame]:
        self._grammar.feed(event)
        match event:
            case events.TextDelta() | events.ReasoningDelta() | events.ToolCallDelta():
                return self._delta(self._fragment(event))
            case events.TextStart() | events.ReasoningStart() | events.ToolCallStart():
                return self._delta(self._open(event))
            case events.TextEnd() | events.ReasoningEnd() | events.ToolCallEnd():
                return self._delta(self._close(event))
            case events.StreamStart():
                return self._start(event)
            case events.ProviderEvent():
                return self._provider_event(event)
            case events.ErrorEvent():
                self._failed = True
                return [json_frame(error_body(event.error))]
            case events.Finish():
                return self._finish(event)
            case (
                events.StreamRestart()
                | events.ToolResultEvent()
                | events.StepStart()
                | events.StepFinish()
            ):
                return []  # of a run, not of a response
            case _:
                assert_never(event)

    def finish(self) -> list[Frame]:
        if not self._failed:
            self._grammar.finish()
        return []

    def _fragment(
        self, event: events.TextDelta | events.ReasoningDelta | events.ToolCallDelta
    ) -> dict[str, Json] | None:
        if isinstance(event, events.TextDelta):
            is_sent = event.delta and event.id in self._plain
            return {"content": event.delta} if is_sent else None
        if isinstance(event, events.ReasoningDelta):
            return self._thinking[event.id].text(event.delta)
        return self._tool_calls[event.id].arguments(event.delta)

    def _open(
        self, event: events.TextStart | events.ReasoningStart | events.ToolCallStart
    ) -> dict[str, Json] | None:
        if isinstance(event, events.ReasoningStart):
            self._thinking[event.id] = thinking = _Thinking(event)
            return thinking.start()
        if isinstance(event, events.ToolCallStart):
            self._tool_calls[event.id] = tool_call = _ToolCall(
                event, next(self._numbers), native=self._native
            )
            return tool_call.start()
        if NAME not in event.extra:  # others are sent whole, as a content part, at their end
            self._plain.add(event.id)
        return None

    def _close(
        self, event: events.TextEnd | events.ReasoningEnd | events.ToolCallEnd
    ) -> dict[str, Json] | None:
        if isinstance(event, events.ToolCallEnd):
            return self._tool_calls.pop(event.id).end(event.tool_call)
        self._spoken[event.index] = event.part
        if isinstance(event, events.ReasoningEnd):
            return self._thinking.pop(event.id).end(event.part)
        if event.id in self._plain and event.part.text:
            self._plain.remove(event.id)
            return None
        return _whole(event.part)

    def _start(self, event: events.StreamStart) -> list[Frame]:
        self._native = NAME in event.extra
        extra = fields_of(extra_of(event, NAME))
        self._envelope = {"id": event.id, "object": CHUNK, "model": event.model}
        if not self._native:
            self._envelope["created"] = 0  # required by the SDK's `ChatCompletionChunk`
        elif "created" in extra:
            self._envelope["created"] = extra.pop("created")
        if event.created_at is not None:
            self._complete(event.created_at, extra)
        choice, others = extra.pop(CHOICE, None), extra.pop(CHOICES, None)
        if isinstance(choice, dict):
            choice = fields_of(choice)
            self._choice = {name: choice[name] for name in choice if name not in _CHUNK_FIELDS}
            if len(self._choice) < len(choice):
                extra[CHOICE] = {name: choice[name] for name in choice if name in _CHUNK_FIELDS}
        self._others = others if isinstance(others, list) else []
        first: dict[str, Json] = {"role": "assistant", "content": None}
        return self._delta({**FIRST_DELTA, **first} if self._is_complete else first, extra)

    def _complete(self, created_at: float, extra: dict[str, Json]) -> None:
        """Send all fields of the vendor in each chunk."""
        self._is_complete, self._usual = True, CHOICE_FIELDS
        usual = envelope_fields(created_at)
        if not self._envelope.get("created"):
            self._envelope["created"] = usual["created"]
        for name, value in usual.items():
            self._envelope.setdefault(name, extra.pop(name, value))
        if self._wants_usage:  # null, but in the last chunk
            self._envelope["usage"] = None

    def _chunk(self, choices: list[Json], more: dict[str, Json] | None = None) -> Frame:
        return json_frame({**self._envelope, **(more or {}), "choices": choices})

    def _delta(
        self, delta: dict[str, Json] | None, more: dict[str, Json] | None = None
    ) -> list[Frame]:
        """The frame for a delta, if there is one."""
        if delta is None:
            return []
        choice = {"index": 0, "delta": delta, "finish_reason": None, **self._usual}
        return [self._chunk([choice], more)]

    def _provider_event(self, event: events.ProviderEvent) -> list[Frame]:
        if event.part is not None:
            if event.index is not None and isinstance(event.part, (Text, Refusal)):
                self._spoken[event.index] = event.part
            is_made = MADE in extra_of(event.part, NAME)
            if isinstance(event.part, MEDIA_TYPES) and (is_made or not self._native):
                image = encode_image(event.part)
                return self._delta(None if image is None else {IMAGES: [image]})
            delta = _whole(event.part)
            match delta:
                case {"tool_calls": [dict(tool_call)]}:
                    delta = {"tool_calls": [number_tool_call(tool_call, next(self._numbers))]}
            return self._delta(delta)
        if event.dialect == NAME and event.data is not None:
            return [json_frame(event.data, None if event.name == CHOICE else event.name)]
        return []

    def _finish(self, event: events.Finish) -> list[Frame]:
        if self._failed:  # the error frame was the end
            return []
        extra = fields_of(extra_of(event, NAME))
        late, others = extra.pop(CHOICE, None), extra.pop(CHOICES, None)
        # Other choices were decoded whole, so each is one chunk before the end of the first.
        choice = merge(self._choice, fields_of(late)) if isinstance(late, dict) else self._choice
        frames = [
            self._other(other)
            for other in [*self._others, *(others if isinstance(others, list) else ())]
        ]
        native = self._native or NAME in event.extra
        message_extra = event.message_extra.get(NAME)
        spoken = with_late_fields(self._spoken, event)
        texts = [part for part in spoken if isinstance(part, Text)]
        if not native and any(text.citations for text in texts):
            message_extra = {ANNOTATIONS: write_annotations(texts)}
        ending = {
            **self._usual,
            **choice,
            "index": 0,
            "delta": fields_of(message_extra) if isinstance(message_extra, dict) else {},
            "finish_reason": encode_finish(event.finish_reason, native=native),
        }
        set_logprobs(ending, spoken)
        usage = encode_usage(event.usage, native=native) if self._wants_usage else None
        if self._is_complete and self._wants_usage:
            usage = complete_usage(usage)
        if usage is not None:
            frames += [self._chunk([ending]), self._chunk([], {**extra, "usage": usage})]
        else:
            frames.append(self._chunk([ending], extra))
        return [*frames, Frame(data=DONE)]

    def _other(self, choice: UncheckedJson) -> Frame:
        """Another choice, whole in one chunk."""
        match choice:
            case {"message": {"tool_calls": list(tool_calls), **message}, **rest}:
                numbered = [
                    number_tool_call(tool_call, i) for i, tool_call in enumerate(tool_calls)
                ]
                choice = {**self._usual, **rest, "delta": {**message, "tool_calls": numbered}}
            case {**rest}:
                choice = {**self._usual, "delta": rest.pop("message", None), **rest}
        return self._chunk([choice])


def _asks_usage(request: Request) -> bool:
    options = options_for(request, NAME).get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _whole(part: Part) -> dict[str, Json] | None:
    """The fields that a part has in a whole message, as a delta."""
    if isinstance(part, Thinking) and part.redacted:
        return None
    message = Message(role="assistant", content=(part,))
    wire = encode_assistant(message, WarningList(), answer=True)
    del wire["role"]
    return {name: wire[name] for name in wire if wire[name] is not None} or None


class _ToolCall:
    """Encodes one tool call."""

    def __init__(self, event: events.ToolCallStart, number: int, *, native: bool) -> None:
        # clients parse the arguments, and may not expect the empty text of other dialects
        self._text = None if native else ArgumentText(is_free=event.tool_type == "custom")
        self._event = event
        self._number = number
        extra = extra_of(event, NAME)
        self._is_legacy = extra.get(SENT_AS) == LEGACY
        self._extra = fields_of(extra)
        self._kind = wire_type(event.tool_type)
        self._field = ARGUMENTS[self._kind]

    def start(self) -> dict[str, Json]:
        kind = self._kind
        inner = {"name": self._event.name, self._field: ""}
        if self._is_legacy:
            unread = self._extra.get("function")
            return {LEGACY: merge(unread if isinstance(unread, dict) else {}, inner)}
        item: dict[str, Json] = {
            "index": self._number,
            "id": self._event.tool_call_id,
            "type": kind,
            kind: inner,
        }
        return {"tool_calls": [{**item, **merge(self._extra, item)}]}

    def arguments(self, fragment: str) -> dict[str, Json] | None:
        if self._text is not None:
            fragment = self._text.feed(fragment)
            if not fragment:
                return None
        inner = {self._field: fragment}
        if self._is_legacy:
            return {LEGACY: inner}
        return {"tool_calls": [{"index": self._number, self._kind: inner}]}

    def end(self, tool_call: ToolCall) -> dict[str, Json] | None:
        """The rest of the text, and fields that were not known at the start."""
        rest = "" if self._text is None else self._text.end(tool_call)
        if rest:
            self._text = None
            return self.arguments(rest)
        extra = fields_of(extra_of(tool_call, NAME))
        late = {name: extra[name] for name in extra if self._extra.get(name, self) != extra[name]}
        if not late or self._is_legacy:
            return None
        return {"tool_calls": [{**late, "index": self._number}]}


class _Thinking:
    """Encodes one thinking part in the fields, content part or tags that it came from."""

    def __init__(self, event: events.ReasoningStart) -> None:
        extra = extra_of(event, NAME)
        tags = extra.get(TAGS)
        self._tags: Mapping[str, Json] | None = tags if isinstance(tags, dict) else None
        self._is_part = extra.get(SENT_AS) == "part"
        self._is_whole = "thinking" in extra  # an unusual content part is sent at the end
        self._fields = thinking_fields(extra)

    def start(self) -> dict[str, Json] | None:
        return None if self._tags is None else {"content": tags_around(self._tags)[0]}

    def text(self, text: str) -> dict[str, Json] | None:
        if not text or self._is_whole:
            return None
        if self._tags is not None:
            return {"content": text}
        if self._is_part:
            return {"content": [{"type": "thinking", "thinking": thinking_chunks(text)}]}
        return dict.fromkeys(self._fields, text) or None

    def end(self, part: Thinking) -> dict[str, Json] | None:
        extra = extra_of(part, NAME)
        if self._tags is not None:
            close = tags_around(extra.get(TAGS) or {})[1]
            return {"content": close} if close else None
        if self._is_part:
            item = encode_thinking_part(part)
            return {"content": [item if self._is_whole else {**item, "thinking": []}]}
        details = extra.get(DETAILS)
        return {DETAILS: details} if isinstance(details, list) else None


def stream_encoder(request: Request | None = None) -> StreamEncoder:
    """An encoder for a stream that a server sends."""
    return declared_encoder(Encoder(request), request)
