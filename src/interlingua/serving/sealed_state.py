"""
Reasoning state of one dialect, sealed into the answers for a client of another.

Signatures and encrypted thinking must be sent back to the provider that made them. A client of
another dialect cannot do so; but it sends back its own dialect's opaque field unchanged. So
the state travels in that field, and is restored in the client's next request.

Thinking has the field itself. The state of a text, image or call is in a thinking part beside it,
where the client's dialect has the field only there: before a call, after a text or an image.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, TypeVar, assert_never

import msgspec
from msgspec.structs import replace

from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Json,
    Opaque,
    Part,
    Record,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.contracts import StreamEncoder
from interlingua.spec.errors import ConfigurationError
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
from interlingua.spec.facts import Facts, SealedField
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning
from interlingua.spec.warnings import WarningList
from interlingua.streams.grammar import RewritingEncoder
from interlingua.wire.fields import extra_of
from interlingua.wire.seal import Origin, seal, unseal
from interlingua.wire.seal_marks import is_seal

_Last = TypeVar("_Last", Finish, ErrorEvent)
_WHOLE = (Thinking, Opaque)
"""The kinds of parts that the client does not send back as they were."""


class _State(Record, frozen=True, kw_only=True):
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

    def after(self, kind: type, text: str = "") -> Before:
        """What comes before the part that follows a part of this kind with this text."""
        return Before(
            self.texts + (kind is Text),
            self.images + (kind is Image),
            self.others + (kind not in _WHOLE),
            self.characters,
            self.checksum,
        ).with_text(text)

    def with_text(self, text: str) -> Before:
        """What comes before the part that follows this text."""
        characters, checksum = self.characters + len(text), _checksum(text, self.checksum)
        return self._replace(characters=characters, checksum=checksum)

    def state_of(self, whole: Thinking | Opaque) -> _State:
        """The state of a whole part in this place."""
        return _State(
            whole=whole,
            after=self.others,
            start=self.characters,
            checksum=self.checksum,
            beside=self.others - self.texts,
        )


class SealedState:
    """
    The state of one upstream model, for clients of one dialect.

        state = SealedState(key, client=client.FACTS, upstream=upstream.FACTS, model=model)
        request, warnings = state.unseal_request(client.decode_request(call))
        response = await ask_upstream(request)
        body = client.encode_response(state.seal_response(response), request)

    The key is the program's own, at least 16 bytes, the same in all of its processes. A seal of
    another key, provider or model is dropped. Where client and upstream have one dialect, nothing
    is sealed. `expires_at` and `now` are in seconds since 1970.
    """

    def __init__(
        self,
        key: bytes,
        *,
        client: Facts,
        upstream: Facts,
        provider: str = "",
        model: str = "",
        expires_at: float | None = None,
        now: float | None = None,
    ) -> None:
        if client.sealed_field is None:
            raise ConfigurationError(f"{client.name} has no field for sealed state.")
        self._key = key
        self._field: SealedField = client.sealed_field
        self._client = client.name
        self._upstream = upstream
        self._origin = Origin(dialect=upstream.name, provider=provider, model=model)
        self._expires_at = expires_at
        self._now = now
        self._is_foreign = client.name != upstream.name
        self._target = model or upstream.name

    # To the client.

    def seal_response(self, response: Response) -> Response:
        """Return the response with its state sealed."""
        if not self._is_foreign:
            return response
        parts: list[Part] = []
        before = Before()
        for part in response.message.content:
            parts += self.seal_part(part, before)
            before = before.after(type(part), part.text if isinstance(part, Text) else "")
        return replace(response, message=replace(response.message, content=tuple(parts)))

    def encoder(self, encoder: StreamEncoder) -> StreamEncoder:
        """Return an encoder that seals the state of the events that it encodes."""
        return _SealingEncoder(encoder, self) if self._is_foreign else encoder

    def seal_part(self, part: Part, before: Before) -> list[Part]:
        """Return the part for the client, with a thinking part that has its state if needed."""
        if isinstance(part, Thinking):
            return [self._seal_thinking(part, before)]
        if isinstance(part, Opaque):
            return self._seal_opaque(part, before)
        return self._seal_fields(part, before)

    def _seal_fields(
        self,
        part: Text | Image | Audio | Document | ToolCall | ToolResult | Refusal,
        before: Before,
    ) -> list[Part]:
        """The part, and the state that the upstream added to its fields."""
        fields = dict(extra_of(part, self._upstream.name)) if part.extra else {}
        if not fields.get(self._upstream.history.signature_field):
            return [part]
        if self._field.on_parts:
            return [self._with_seal(part, fields)]
        match part:
            case ToolCall():
                return [*self._carrier(_State(fields=fields, part=f"call {part.id}")), part]
            case Text():
                state = _State(
                    fields=fields,
                    part=f"text {before.texts}",
                    start=before.characters,
                    length=len(part.text),
                    checksum=_checksum(part.text),
                )
                return [part, *self._carrier(state)]
            case Image():
                return [part, *self._carrier(_State(fields=fields, part=f"image {before.images}"))]
            case Audio() | Document() | ToolResult() | Refusal():
                return [part]
        assert_never(part)

    def _seal_thinking(self, part: Thinking, before: Before) -> Thinking:
        """The thinking part for the client; the same one if it has no state."""
        if not (part.signature or part.data or extra_of(part, self._upstream.name)):
            return part
        text = self._seal(before.state_of(part))
        return part if text is None else self._field.make("" if part.redacted else part.text, text)

    def _seal_opaque(self, part: Opaque, before: Before) -> list[Part]:
        """A block of the upstream that has a signature; the client does not see it."""
        signature = self._upstream.history.signature_field
        if part.dialect != self._upstream.name or not isinstance(part.data, dict):
            return [part]
        return [
            part,
            *(self._carrier(before.state_of(part)) if signature in part.data else ()),
        ]

    def _carrier(self, state: _State) -> list[Part]:
        text = self._seal(state)
        return [] if text is None else [self._field.make("", text)]

    def _with_seal(self, part: Part, fields: dict[str, Json]) -> Part:
        text = self._seal(_State(fields=fields))
        if text is None:
            return part
        own = {**extra_of(part, self._client), self._field.name: text}
        return replace(part, extra={**part.extra, self._client: own})

    def _seal(self, state: _State) -> str | None:
        plain = msgspec.to_builtins(state)
        return seal(plain, self._key, self._origin, expires_at=self._expires_at)

    # From the client.

    def unseal_request(self, request: Request) -> tuple[Request, tuple[Warning, ...]]:
        """Restore the state of a request; returns also warnings about seals that were dropped."""
        warnings = WarningList(self._target)
        messages = []
        for warnings.message, message in enumerate(request.messages):
            messages.append(self._unseal_message(message, warnings))
        changed = [one is not other for one, other in zip(messages, request.messages, strict=True)]
        if any(changed):
            present = tuple(message for message in messages if message is not None)
            request = replace(request, messages=present)
        return request, tuple(warnings.warnings)

    def _unseal_message(self, message: Message, warnings: WarningList) -> Message | None:
        """The message without seals; None if nothing else was in it."""
        if message.role != "assistant":
            return message
        rest: list[Part] = []
        whole: list[tuple[int, _State]] = []  # with their places here
        states: list[_State] = []  # those of other parts
        is_changed = False
        for warnings.part, part in enumerate(message.content):
            seals = [text for text in self._field.read(part) if is_seal(text)]
            if not seals:
                rest.append(part)
                continue
            is_changed = True
            restored = part
            for state in self._states(seals, warnings):
                if state.whole is not None:
                    whole.append((len(rest), state))
                elif state.part:
                    states.append(state)
                else:
                    restored = self._with_fields(part, state.fields)
            if not isinstance(part, Thinking):
                rest.append(self._without_seal(restored))
        if not is_changed:
            return message
        if not self._field.is_placed:
            rest, states = self._separate(rest, states, _known_places(rest, whole))
            spots = _Spots(rest)
            whole = [(spots.find(state), state) for _, state in whole]
        fields = {state.part: state.fields for state in states}
        parts = self._place(rest, whole, fields)
        return replace(message, content=parts) if parts else None

    def _separate(
        self, parts: list[Part], states: list[_State], places: Iterable[int]
    ) -> tuple[list[Part], list[_State]]:
        """
        The parts, with joined texts separated again, and the states that belong to no text.

        At the places, which count the characters of all texts, texts are cut too.
        """
        apart: list[Part] = []
        unfound = [state for state in states if state.checksum is None]  # of calls and images
        texts = [state for state in states if state.checksum is not None]
        marks = deque(sorted([*texts, *map(_place_mark, places)], key=_start_of))
        begin = 0
        for part in parts:
            if isinstance(part, Text):
                apart += self._cut(part, begin, marks, unfound)
                begin += len(part.text)
            else:
                apart.append(part)
        return apart, [*unfound, *(mark for mark in marks if mark.fields is not None)]

    def _cut(
        self, text: Text, begin: int, marks: deque[_State], unfound: list[_State]
    ) -> list[Part]:
        """The pieces of a text; the marks in it are removed."""
        pieces: list[Part] = []
        at, end = 0, len(text.text)
        while marks and marks[0].start - begin + bool(marks[0].length) <= end:
            mark = marks.popleft()
            start = mark.start - begin
            piece = text.text[start : start + mark.length]
            if start < at or (mark.fields is not None and _checksum(piece) != mark.checksum):
                unfound += [] if mark.fields is None else [mark]
                continue
            if start > at:
                pieces.append(replace(text, text=text.text[at:start]))
            if mark.fields is not None:
                pieces.append(self._with_fields(replace(text, text=piece), mark.fields))
            at = start + mark.length
        if at < end or not pieces:
            pieces.append(replace(text, text=text.text[at:]))
        return pieces

    def _states(self, seals: list[str], warnings: WarningList) -> list[_State]:
        states: list[_State] = []
        for text in seals:
            opened = unseal(text, self._key, self._origin, now=self._now)
            if opened.problem:
                warnings.add_here("seal_dropped", reason=opened.problem)
            else:
                states.append(msgspec.convert(opened.state, _State))
        return states

    def _place(
        self,
        rest: list[Part],
        whole: list[tuple[int, _State]],
        fields: dict[str, dict[str, Json] | None],
    ) -> tuple[Part, ...]:
        """The parts in their order, with their fields."""
        parts: list[Part] = []
        before = Before()
        placed: dict[int, list[Part]] = {}
        for here, state in whole:
            placed.setdefault(here, []).extend([] if state.whole is None else [state.whole])
        for i in range(len(rest) + 1):
            parts += placed.get(i, ())
            part = rest[i] if i < len(rest) else None
            if isinstance(part, ToolCall):
                part = self._with_fields(part, fields.get(f"call {part.id}"))
            elif isinstance(part, Text):
                part = self._with_fields(part, fields.get(f"text {before.texts}"))
            elif isinstance(part, Image):
                part = self._with_fields(part, fields.get(f"image {before.images}"))
            if part is not None:
                before = before.after(type(part))
                parts.append(part)
        return tuple(parts)

    def _with_fields(self, part: Part, fields: dict[str, Json] | None) -> Part:
        if fields is None:
            return part
        return replace(part, extra={**part.extra, self._upstream.name: fields})

    def _without_seal(self, part: Part) -> Part:
        own = {
            name: value
            for name, value in extra_of(part, self._client).items()
            if name != self._field.name
        }
        extra = {name: value for name, value in part.extra.items() if name != self._client}
        return replace(part, extra={**extra, self._client: own} if own else extra)


def _checksum(text: str, before: int = 0) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), before)


def _known_places(parts: list[Part], whole: list[tuple[int, _State]]) -> list[int]:
    """Where whole parts were in the texts, if the texts before them are the same."""
    text = "".join([part.text for part in parts if isinstance(part, Text)])
    places: list[int] = []
    last = checksum = 0
    for place, expected in sorted({(each.start, each.checksum or 0) for _, each in whole}):
        checksum, last = _checksum(text[last:place], checksum), place
        if checksum == expected and place <= len(text):
            places.append(place)
    return places


def _place_mark(place: int) -> _State:
    return _State(start=place)


def _start_of(state: _State) -> tuple[int, int]:
    return state.start, state.length


class _Spots:
    """Where whole parts were among the parts that the client has."""

    def __init__(self, parts: list[Part]) -> None:
        self._last = len(parts)
        self._spots: dict[tuple[int, int], range] = {}  # by characters, and parts that are no text
        characters = beside = 0
        for place, part in enumerate((*parts, None)):
            spot = self._spots.get((characters, beside), range(place, place))
            self._spots[characters, beside] = range(spot.start, place + 1)
            if isinstance(part, Text):
                characters += len(part.text)
            else:
                beside += 1

    def find(self, state: _State) -> int:
        """The place of a part: by the characters and parts before it, else by the parts alone."""
        usual = min(state.after, self._last)
        spot = self._spots.get((state.start, state.beside))
        return usual if spot is None else min(max(usual, spot.start), spot.stop - 1)


_KINDS: dict[type, type] = {TextStart: Text, ReasoningStart: Thinking, ToolCallStart: ToolCall}


class _SealingEncoder(RewritingEncoder):
    """Gives an encoder the events of the answer with sealed state."""

    def __init__(self, encoder: StreamEncoder, state: SealedState) -> None:
        super().__init__(encoder)
        self._state = state
        self._before = Before()  # parts that have begun
        self._added = 0  # thinking parts that were added
        self._sent: dict[int, int] = {}  # the index of each part -> the index that is sent
        self._places: dict[str, Before] = {}  # what came before each open segment

    def _events(self, event: StreamEvent) -> list[StreamEvent]:
        match event:
            case TextDelta() | ReasoningDelta() | ToolCallDelta():
                return [replace(event, index=self._sent[event.index])]
            case TextStart() | ReasoningStart() | ToolCallStart():
                return self._start(event)
            case TextEnd() | ReasoningEnd() | ToolCallEnd():
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
        return replace(event, response=self._state.seal_response(event.response))

    def _finish(self, event: Finish) -> Finish:
        """The end, whose citations and logprobs have the indexes with which the parts were sent."""
        return replace(
            event,
            citations={self._sent.get(i, i): each for i, each in event.citations.items()},
            logprobs={self._sent.get(i, i): each for i, each in event.logprobs.items()},
        )

    def _start(self, event: TextStart | ReasoningStart | ToolCallStart) -> list[StreamEvent]:
        """A start, after the state of a call."""
        added: list[StreamEvent] = []
        self._places[event.id] = self._before
        if isinstance(event, ToolCallStart):
            call = ToolCall(id=event.tool_call_id, name=event.name, extra=event.extra)
            *carriers, sealed = self._state.seal_part(call, self._before)
            event = replace(event, extra=sealed.extra)
            added = [self._add(part, event.index) for part in carriers]
        self._before = self._before.after(_KINDS[type(event)])
        self._sent[event.index] = event.index + self._added
        return [*added, replace(event, index=self._sent[event.index])]

    def _end(self, event: TextEnd | ReasoningEnd | ToolCallEnd) -> list[StreamEvent]:
        """An end, before the state of a text."""
        index, before = self._sent[event.index], self._places.pop(event.id)
        if isinstance(event, ToolCallEnd):
            call = self._state.seal_part(event.tool_call, before)[-1]
            return [replace(event, index=index, tool_call=call)]
        if isinstance(event.part, Text):
            known = self._before
            before = before._replace(characters=known.characters, checksum=known.checksum)
            self._before = known.with_text(event.part.text)
        part, *carriers = self._state.seal_part(event.part, before)
        end = replace(event, index=index, part=part)
        return [end, *(self._add(carrier, event.index + 1) for carrier in carriers)]

    def _whole(self, event: ProviderEvent, part: Part) -> list[StreamEvent]:
        index = (event.index or 0) + self._added
        self._sent[event.index or 0] = index
        parts = self._state.seal_part(part, self._before)
        self._before = self._before.after(type(part), part.text if isinstance(part, Text) else "")
        self._added += len(parts) - 1
        events: list[StreamEvent] = [replace(event, index=index, part=parts[0])]
        return events + [
            ProviderEvent(part=each, index=index + i) for i, each in enumerate(parts[1:], 1)
        ]

    def _add(self, part: Part, index: int) -> ProviderEvent:
        self._added += 1
        return ProviderEvent(part=part, index=index + self._added - 1)
