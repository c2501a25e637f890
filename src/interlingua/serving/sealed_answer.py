"""
Seals the reasoning state of an answer, part by part, whole or as a stream.

Each state is sealed in the opaque field of a thinking part, where the dialect of the client has it.
Many clients lose thinking, so a call or a text carries the states before it too, in the places that
the dialect names: an opaque field of its own, or the id of a call, which every client returns.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar, assert_never

from msgspec.structs import replace

from interlingua.spec.content import (
    Extra,
    Image,
    Json,
    Opaque,
    Part,
    Record,
    Text,
    Thinking,
    ToolCall,
)
from interlingua.spec.contracts import StreamEncoder
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepStart,
    StreamEvent,
    StreamRestart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResultEvent,
)
from interlingua.spec.facts import Carrier, Facts, SealedField
from interlingua.spec.response import Response, Warning
from interlingua.spec.warnings import make_warning
from interlingua.streams.grammar import RewritingEncoder
from interlingua.wire.fields import extra_of
from interlingua.wire.seal_marks import append_to_id

_Last = TypeVar("_Last", Finish, ErrorEvent)
_Start: TypeAlias = TextStart | ReasoningStart | ToolCallStart
_WHOLE = (Thinking, Opaque)
"""The kinds of parts that the client does not send back as they were."""


def checksum_of(text: str, before: int = 0) -> int:
    """The checksum of a text, or of all texts, if it is that of the texts before."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), before)


class State(Record, frozen=True, kw_only=True):
    """What a seal contains: a whole part, or the fields of a part that the client has too."""

    whole: Thinking | Opaque | None = None
    after: int = 0
    """The number of parts before it that the client has."""
    fields: dict[str, Json] | None = None
    part: str = ""
    """The part that has these fields: the id of a call, or the number of a text or image."""
    start: int = 0
    """The length of all texts before it: some clients join them."""
    length: int = 0
    """Of a text with these fields."""
    checksum: int | None = None
    """Of this text, or of all texts before a whole part, to know them again."""
    beside: int = 0
    """The number of parts before a whole part that the client has and that are no texts."""
    number: int = 0
    """The number of whole parts before a whole part."""


class Before(NamedTuple):
    """What comes before a part of an answer."""

    texts: int = 0
    images: int = 0
    others: int = 0
    """The number of parts that the client has too, texts and images included."""
    characters: int = 0
    """The length of all texts."""
    checksum: int = 0
    """Of all texts together."""
    wholes: int = 0
    """The number of parts that the client does not send back as they were."""

    def after(self, kind: type, text: str = "") -> Before:
        """What comes before the part that follows a part of this kind with this text."""
        return Before(
            self.texts + (kind is Text),
            self.images + (kind is Image),
            self.others + (kind not in _WHOLE),
            self.characters,
            self.checksum,
            self.wholes + (kind in _WHOLE),
        ).with_text(text)

    def with_text(self, text: str) -> Before:
        """What comes before the part that follows this text."""
        characters, checksum = self.characters + len(text), checksum_of(text, self.checksum)
        return self._replace(characters=characters, checksum=checksum)

    def state_of(self, whole: Thinking | Opaque) -> State:
        """The state of a whole part in this place."""
        return State(
            whole=whole,
            after=self.others,
            start=self.characters,
            checksum=self.checksum,
            beside=self.others - self.texts,
            number=self.wholes,
        )


SealStates: TypeAlias = Callable[[Sequence[State]], str | None]
"""Makes the seal of these states; None if they are too large for one."""


KeepSeal: TypeAlias = Callable[[str], str]
"""Keeps a seal that is too large for an id; returns the reference to it."""


class AnswerSealer:
    """Seals the parts of one answer, in their order."""

    def __init__(
        self,
        seal: SealStates,
        client: str,
        field: SealedField,
        upstream: Facts,
        keep: KeepSeal | None = None,
    ) -> None:
        self._keep = keep
        self._is_own = client == upstream.name
        self._seal = seal
        self._client = client
        self._field = field
        self._upstream = upstream.name
        self._signature = upstream.history.signature_field
        self._carries = field.on_parts or bool(field.call_path or field.id_length)
        self._pending: list[State] = []  # for the next part that carries the states before it
        self._number = 0
        self.warnings: list[Warning] = []
        """About state that clients may lose."""
        self.signs_texts: bool = field.on_parts and not self._is_own
        """Whether a text carries the states before it."""

    def seal_part(self, part: Part, before: Before) -> list[Part]:
        """Return the part for the client, and the thinking parts that have its state if needed."""
        if self._is_own:
            return [self._seal_own(part, before)]
        if isinstance(part, Thinking):
            return [self._seal_thinking(part, before)]
        if isinstance(part, Opaque):
            return self._seal_opaque(part, before)
        if isinstance(part, ToolCall):
            return self._seal_call(part)
        if self._field.on_parts:
            takes = isinstance(part, Text) and part.text
            return [self.sign(part, self.take_pending() if takes else ())]
        state = self._state_of_fields(part, before)
        return [part] if state is None else [part, *self._carry(state)]

    def _seal_own(self, part: Part, before: Before) -> Part:
        """
        The part for a client of the model's own dialect.

        Thinking has its state itself. Where clients lose it, the id of the next call has it too.
        """
        if isinstance(part, Thinking) and self._field.read(part):
            self._pending.append(before.state_of(part))
        elif isinstance(part, ToolCall) and self._pending:
            return replace(part, id=self._sealed_id(part, self._seal(self.take_pending())))
        return part

    def take_pending(self) -> list[State]:
        """The states that the next call or text carries; they are no longer waiting for one."""
        taken, self._pending = self._pending, []
        return taken

    def sign(self, part: Part, states: Sequence[State]) -> Part:
        """The part with these states and its own in its field."""
        fields = self._fields_of(part)
        extra = self.sign_extra(part.extra, [*states, *([State(fields=fields)] if fields else ())])
        return part if extra is part.extra else replace(part, extra=extra)

    def sign_extra(self, extra: Extra, states: Sequence[State]) -> Extra:
        """The `extra` of a part with these states in its field."""
        text = self._seal(states) if states else None
        if text is None:
            return extra
        own = {**extra.get(self._client, {}), self._field.name: text}
        return {**extra, self._client: own}

    def _fields_of(self, part: Part) -> dict[str, Json]:
        """The fields of the upstream, if they have a signature."""
        fields = dict(extra_of(part, self._upstream)) if part.extra else {}
        return fields if fields.get(self._signature) else {}

    def _state_of_fields(self, part: Part, before: Before) -> State | None:
        fields = self._fields_of(part)
        if not fields:
            return None
        if isinstance(part, Text):
            return State(
                fields=fields,
                part=f"text {before.texts}",
                start=before.characters,
                length=len(part.text),
                checksum=checksum_of(part.text),
            )
        return State(fields=fields, part=f"image {before.images}") if type(part) is Image else None

    def _seal_thinking(self, part: Thinking, before: Before) -> Thinking:
        """The thinking part for the client; the same one if it has no state."""
        if not (part.signature or part.data or extra_of(part, self._upstream)):
            return part
        return next(
            iter(self._carry(before.state_of(part), "" if part.redacted else part.text)), part
        )

    def _seal_opaque(self, part: Opaque, before: Before) -> list[Part]:
        """A block of the upstream that has a signature; the client does not see it."""
        is_own = part.dialect == self._upstream and isinstance(part.data, dict)
        if not is_own or self._signature not in part.data:
            return [part]
        return [part, *self._carry(before.state_of(part))]

    def _carry(self, state: State, text: str = "") -> list[Thinking]:
        """A thinking part that has this state, which the next call or text carries too."""
        if self._carries and not (text and self._field.ids_if_hidden):
            self._pending.append(state)
        return self._make([state], text)

    def _make(self, states: Sequence[State], text: str = "", call_id: str = "") -> list[Thinking]:
        sealed = self._seal(states)
        if sealed is None:
            return []
        self._number += 1
        return [self._field.make(Carrier(text, sealed, self._number - 1, call_id))]

    # Calls.

    def _seal_call(self, call: ToolCall) -> list[Part]:
        """The call, and the thinking parts that have its state."""
        if self._field.on_parts:
            return [self.sign(call, self.take_pending())]
        fields = self._fields_of(call)
        own = [State(fields=fields, part=f"call {call.id}")] if fields else []
        if not self._carries:
            return [*(self._make(own) if own else ()), call]
        states = [*self.take_pending(), *own]
        if not states:
            return [call]
        if self._field.ids_if_hidden:
            thinking = self._make(own) if own else []
            return [*thinking, replace(call, id=self._sealed_id(call, self._seal(states)))]
        signed = self._sign_call(call, states)
        # after the call: a client may look for the call with its id
        return [signed, *self._make(states, call_id=signed.id)]

    def _sign_call(self, call: ToolCall, states: Sequence[State]) -> ToolCall:
        """The call with these states in its own field and in its id."""
        text = self._seal(states)
        id = self._sealed_id(call, text)
        if text is None:
            return call
        own = _put(extra_of(call, self._client), self._field.call_path, text)
        return replace(call, id=id, extra={**call.extra, self._client: own})

    def _sealed_id(self, call: ToolCall, text: str | None) -> str:
        """The id of a call with this seal, or as it was, with a warning, if that is too long."""
        most = self._field.id_length
        id = None if text is None else append_to_id(call.id, text, most)
        if id is None and text is not None and most and self._keep is not None:
            id = append_to_id(call.id, self._keep(text), most)
        if id is None and most and not self._field.ids_if_hidden:  # there, thinking has it too
            self.warnings.append(make_warning("state_not_carried", call=call.id))
        return id or call.id


def _put(fields: Mapping[str, Json], path: Sequence[str], value: str) -> dict[str, Json]:
    """The fields with this value at this path."""
    if not path:
        return dict(fields)
    first, *rest = path
    inner = fields.get(first)
    nested = _put(inner if isinstance(inner, dict) else {}, rest, value) if rest else value
    return {**fields, first: nested}


_KINDS: dict[type, type] = {TextStart: Text, ReasoningStart: Thinking, ToolCallStart: ToolCall}


class SealingEncoder(RewritingEncoder):
    """Gives an encoder the events of the answer with sealed state."""

    def __init__(
        self,
        encoder: StreamEncoder,
        sealer: AnswerSealer,
        seal_response: Callable[[Response], Response],
    ) -> None:
        super().__init__(encoder)
        self._sealer = sealer
        self._seal_response = seal_response
        self._before = Before()  # parts that have begun
        self._added = 0  # thinking parts that were added
        self._sent: dict[int, int] = {}  # the index of each part -> the index that is sent
        self._places: dict[str, Before] = {}  # what came before each open segment
        self._taken: dict[str, list[State]] = {}  # what each open text carries
        self._calls: dict[str, list[Part]] = {}  # each open call, and what follows it

    def _events(self, event: StreamEvent) -> list[StreamEvent]:
        match event:
            case TextDelta() | ReasoningDelta() | ToolCallDelta():
                return [replace(event, index=self._sent[event.index])]
            case ToolCallStart():
                return self._start_call(event)
            case TextStart() | ReasoningStart():
                return [self._start(event)]
            case ToolCallEnd():
                return self._end_call(event)
            case TextEnd() | ReasoningEnd():
                return self._end(event)
            case ProviderEvent():
                return [event] if event.part is None else self._whole(event, event.part)
            case Finish():
                return [self._with_sealed_response(self._finish(event))]
            case ErrorEvent():
                return [self._with_sealed_response(event)]
            case StreamStart() | StreamRestart() | ToolResultEvent() | StepStart() | StepFinish():
                return [event]
        assert_never(event)

    def _with_sealed_response(self, event: _Last) -> _Last:
        if event.response is None:
            return event
        return replace(event, response=self._seal_response(event.response))

    def _finish(self, event: Finish) -> Finish:
        """The end, whose citations and logprobs have the indexes with which the parts were sent."""
        return replace(
            event,
            warnings=(*event.warnings, *self._sealer.warnings),
            citations={self._sent.get(i, i): each for i, each in event.citations.items()},
            logprobs={self._sent.get(i, i): each for i, each in event.logprobs.items()},
        )

    def _start(self, event: _Start) -> _Start:
        self._places[event.id] = self._before
        if isinstance(event, TextStart) and self._sealer.signs_texts:
            self._taken[event.id] = states = self._sealer.take_pending()
            event = replace(event, extra=self._sealer.sign_extra(event.extra, states))
        self._before = self._before.after(_KINDS[type(event)])
        self._sent[event.index] = event.index + self._added
        return replace(event, index=self._sent[event.index])

    def _start_call(self, event: ToolCallStart) -> list[StreamEvent]:
        """A start, after the state that comes before its call."""
        call = ToolCall(id=event.tool_call_id, name=event.name, extra=event.extra)
        parts = self._sealer.seal_part(call, self._before)
        place = next(i for i, part in enumerate(parts) if isinstance(part, ToolCall))
        added = [self._add(part, event.index) for part in parts[:place]]
        self._calls[event.id] = parts[place:]
        signed = parts[place]
        start = replace(event, tool_call_id=getattr(signed, "id", call.id), extra=signed.extra)
        return [*added, self._start(start)]

    def _end_call(self, event: ToolCallEnd) -> list[StreamEvent]:
        """An end, before the state that comes after its call."""
        signed, *carriers = self._calls.pop(event.id)
        call = event.tool_call
        call = replace(
            call, id=getattr(signed, "id", call.id), extra={**call.extra, **signed.extra}
        )
        end = replace(event, index=self._sent[event.index], tool_call=call)
        return [end, *(self._add(carrier, event.index + 1) for carrier in carriers)]

    def _end(self, event: TextEnd | ReasoningEnd) -> list[StreamEvent]:
        """An end, before the state of a text."""
        index, before = self._sent[event.index], self._places.pop(event.id)
        if isinstance(event, TextEnd):
            known = self._before
            before = before._replace(characters=known.characters, checksum=known.checksum)
            self._before = known.with_text(event.part.text)
        if event.id in self._taken:
            part = self._sealer.sign(event.part, self._taken.pop(event.id))
            return [replace(event, index=index, part=part)]
        part, *carriers = self._sealer.seal_part(event.part, before)
        end = replace(event, index=index, part=part)
        return [end, *(self._add(carrier, event.index + 1) for carrier in carriers)]

    def _whole(self, event: ProviderEvent, part: Part) -> list[StreamEvent]:
        index = (event.index or 0) + self._added
        parts = self._sealer.seal_part(part, self._before)
        self._sent[event.index or 0] = index
        self._before = self._before.after(type(part), part.text if isinstance(part, Text) else "")
        self._added += len(parts) - 1
        events: list[StreamEvent] = [replace(event, index=index, part=parts[0])]
        return events + [
            ProviderEvent(part=each, index=index + i) for i, each in enumerate(parts[1:], 1)
        ]

    def _add(self, part: Part, index: int) -> ProviderEvent:
        self._added += 1
        return ProviderEvent(part=part, index=index + self._added - 1)
