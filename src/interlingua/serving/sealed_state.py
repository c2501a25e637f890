"""
Reasoning state of one dialect, sealed into the answers for a client of another.

Signatures and encrypted thinking must be sent back to the provider that made them. A client of
another dialect cannot do so; but it sends back its own dialect's opaque field unchanged. So
the state travels in that field, and is restored in the client's next request.

Thinking has the field itself. The state of a text, image or call is in a thinking part beside it,
where the client's dialect has the field only there. Where clients lose thinking, other parts of the
answer carry its state too: see `sealed_answer`. The first valid seal counts on the way back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from interlingua.serving.sealed_answer import (
    AnswerSealer,
    Before,
    SealingEncoder,
    State,
    checksum_of,
)
from interlingua.spec.content import Image, Json, Part, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.contracts import StreamEncoder
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.facts import Facts, SealedField
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import extra_of
from interlingua.wire.seal import Origin, Unsealed, in_usual_letters, seal, unseal
from interlingua.wire.seal_marks import (
    is_seal,
    refer_to,
    reference_in,
    split_id,
    with_own_id,
    without_seal,
)

_UNKNOWN = -1
"""The place of a part whose seal is elsewhere."""


class SealedState:
    """
    The state of one upstream model, for clients of one dialect.

        state = SealedState(key, client=client.FACTS, upstream=upstream.FACTS, model=model)
        request, warnings = state.unseal_request(client.decode_request(call))
        response = await ask_upstream(request)
        body = client.encode_response(state.seal_response(response), request)

    The key is the program's own, at least 16 bytes, the same in all of its processes. A seal of
    another key, provider or model is dropped. Where client and upstream have one dialect, only the
    ids of calls are sealed, if clients of the dialect lose the field of thinking. `expires_at` and
    `now` are in seconds since 1970. `kept` has the seals that are too large for ids.
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
        kept: KeptSeals | None = None,
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
        self._kept = kept
        self._is_own = client.name == upstream.name
        in_ids = bool(self._field.id_length) and not self._field.ids_if_hidden
        self._seals = not self._is_own or in_ids
        self._target = model or upstream.name

    # To the client.

    def seal_response(self, response: Response) -> Response:
        """Return the response with its state sealed."""
        if not self._seals:
            return response
        sealer = self._sealer()
        parts: list[Part] = []
        before = Before()
        for part in response.message.content:
            parts += sealer.seal_part(part, before)
            before = before.after(type(part), part.text if isinstance(part, Text) else "")
        return replace(
            response,
            message=replace(response.message, content=tuple(parts)),
            warnings=(*response.warnings, *sealer.warnings),
        )

    def encoder(self, encoder: StreamEncoder) -> StreamEncoder:
        """Return an encoder that seals the state of the events that it encodes."""
        if not self._seals:
            return encoder
        return SealingEncoder(encoder, self._sealer(), self.seal_response)

    def _sealer(self) -> AnswerSealer:
        keep = None if self._kept is None else self._kept.add
        return AnswerSealer(self._seal, self._client, self._field, self._upstream, keep)

    def _seal(self, states: Sequence[State]) -> str | None:
        plain = msgspec.to_builtins(states)
        return seal(plain, self._key, self._origin, expires_at=self._expires_at)

    # From the client.

    def unseal_request(self, request: Request) -> tuple[Request, tuple[Warning, ...]]:
        """Restore the state of a request; returns also warnings about seals that were dropped."""
        warnings = WarningList(self._target)
        messages: list[Message | None] = []
        opened = _Opened(self._open, warnings)
        for warnings.message, message in enumerate(request.messages):
            if message.role != "assistant":
                opened = _Opened(self._open, warnings)  # the next turn has states of its own
                messages.append(self._with_own_ids(message))
            else:
                messages.append(self._unseal_message(message, opened, warnings))
        changed = [one is not other for one, other in zip(messages, request.messages, strict=True)]
        if any(changed):
            present = tuple(message for message in messages if message is not None)
            request = replace(request, messages=present)
        return request, tuple(warnings.warnings)

    def _unseal_message(
        self, message: Message, opened: _Opened, warnings: WarningList
    ) -> Message | None:
        """The message without seals; None if nothing else was in it."""
        rest: list[Part] = []
        whole: list[tuple[int, State]] = []  # with their places here
        states: list[State] = []  # those of other parts
        is_changed = False
        for warnings.part, part in enumerate(message.content):
            seals = self._seals_of(part)
            if not seals:
                rest.append(part)
                continue
            is_changed = True
            restored = part
            for state in opened.new_states(seals):
                if state.whole is not None:
                    is_hidden = self._field.ids_if_hidden and isinstance(part, ToolCall)
                    whole.append((_UNKNOWN if is_hidden else len(rest), state))
                elif state.part:
                    states.append(state)
                else:
                    restored = self._with_fields(part, state.fields)
            if not isinstance(part, Thinking):
                rest.append(self._without_seal(restored))
        if not is_changed:
            return message
        if self._is_own:
            rest, whole = self._without_doubles(rest, whole)
        if not self._field.is_placed:
            rest, states = self._separate(rest, states, _known_places(rest, whole))
            whole = [(_UNKNOWN, state) for _, state in whole]
        spots = _Spots(rest) if whole else None
        whole = [(spots.find(each) if spots and here < 0 else here, each) for here, each in whole]
        fields = {state.part: state.fields for state in states}
        parts = self._place(rest, sorted(whole, key=_number_of), fields)
        return replace(message, content=parts) if parts else None

    def _without_doubles(
        self, rest: list[Part], whole: list[tuple[int, State]]
    ) -> tuple[list[Part], list[tuple[int, State]]]:
        """The parts, and thinking from seals, unless the client has returned its state itself."""
        thoughts = [part for part in rest if isinstance(part, Thinking)]
        if any(self._field.read(part) for part in thoughts):
            return rest, []
        if whole:
            rest = [part for part in rest if not isinstance(part, Thinking)]
        return rest, whole

    def _with_own_ids(self, message: Message) -> Message:
        """The message, whose results have the ids that the model gave to their calls."""
        parts = message.content
        if not self._field.id_length or not any(isinstance(part, ToolResult) for part in parts):
            return message
        own = tuple(with_own_id(part) if isinstance(part, ToolResult) else part for part in parts)
        is_changed = any(one is not other for one, other in zip(own, parts, strict=True))
        return replace(message, content=own) if is_changed else message

    def _seals_of(self, part: Part) -> list[str]:
        """The seals in all places of a part."""
        values: list[Json] = [*self._field.read(part)]
        if isinstance(part, ToolCall):
            value: Json = dict(extra_of(part, self._client)) if self._field.call_path else None
            for name in self._field.call_path:
                value = value.get(name) if isinstance(value, dict) else None
            values.append(value)
            if self._field.id_length:
                values.append(split_id(part.id)[1])
        return [value for value in values if isinstance(value, str) and is_seal(value)]

    def _separate(
        self, parts: list[Part], states: list[State], places: Iterable[int]
    ) -> tuple[list[Part], list[State]]:
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

    def _cut(self, text: Text, begin: int, marks: deque[State], unfound: list[State]) -> list[Part]:
        """The pieces of a text; the marks in it are removed."""
        pieces: list[Part] = []
        at, end = 0, len(text.text)
        while marks and marks[0].start - begin + bool(marks[0].length) <= end:
            mark = marks.popleft()
            start = mark.start - begin
            piece = text.text[start : start + mark.length]
            if start < at or (mark.fields is not None and checksum_of(piece) != mark.checksum):
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

    def _open(self, text: str) -> Unsealed:
        name = reference_in(text)
        if name is not None:
            text = "" if self._kept is None else self._kept.known.get(name, "")
            if not text:
                return Unsealed(None, "It was kept by the gateway, and is no longer")
        return unseal(text, self._key, self._origin, now=self._now)

    def _place(
        self,
        rest: list[Part],
        whole: list[tuple[int, State]],
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
        """The part without the seals of the client's dialect."""
        own = part.extra.get(self._client)
        others = {name: fields for name, fields in part.extra.items() if name != self._client}
        rest = without_seal(replace(part, extra={self._client: own} if own else {})) or part
        return replace(rest, extra={**others, **rest.extra})


class KeptSeals:
    """Seals that are too large for the ids of calls, which have references to them."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self.known = known
        """Those that the request refers to, by their names."""
        self.new: dict[str, str] = {}
        """Those of the answer, to be kept."""

    def add(self, text: str) -> str:
        """Have a seal kept; returns the reference to it."""
        reference = refer_to(text)
        self.new[reference_in(reference) or ""] = text
        return reference


def kept_seals_in(request: Request) -> tuple[str, ...]:
    """The names of the kept seals that the ids of calls refer to."""
    ids = [call.id for message in request.messages for call in message.tool_calls]
    names = [reference_in(split_id(id)[1]) for id in ids]
    return tuple(dict.fromkeys(name for name in names if name is not None))


class _Opened:
    """
    The states in the seals of one turn; several places may have the same ones.

    Google's SDK sends each piece of a stream back as a message of its own.
    """

    def __init__(self, open_seal: Callable[[str], Unsealed], warnings: WarningList) -> None:
        self._open = open_seal
        self._warnings = warnings
        self._seals: set[str] = set()
        self._states: set[bytes] = set()

    def new_states(self, seals: list[str]) -> list[State]:
        """The states in these seals that no earlier seal had."""
        states: list[State] = []
        for text in seals:
            usual = in_usual_letters(text)
            if usual in self._seals:
                continue
            self._seals.add(usual)
            opened = self._open(text)
            if opened.problem:
                self._warnings.add_here("seal_dropped", reason=opened.problem)
                continue
            for state in msgspec.convert(opened.state, list[State]):
                known = msgspec.json.encode(state)
                # fields without a part belong to the part that has the seal
                if known not in self._states or not (state.part or state.whole):
                    states.append(state)
                self._states.add(known)
        return states


def _known_places(parts: list[Part], whole: list[tuple[int, State]]) -> list[int]:
    """Where whole parts were in the texts, if the texts before them are the same."""
    text = "".join([part.text for part in parts if isinstance(part, Text)])
    places: list[int] = []
    last = checksum = 0
    for place, expected in sorted({(each.start, each.checksum or 0) for _, each in whole}):
        checksum, last = checksum_of(text[last:place], checksum), place
        if checksum == expected and place <= len(text):
            places.append(place)
    return places


def _number_of(placed: tuple[int, State]) -> int:
    return placed[1].number


def _place_mark(place: int) -> State:
    return State(start=place)


def _start_of(state: State) -> tuple[int, int]:
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

    def find(self, state: State) -> int:
        """The place of a part: by the characters and parts before it, else by the parts alone."""
        usual = min(state.after, self._last)
        spot = self._spots.get((state.start, state.beside))
        return usual if spot is None else min(max(usual, spot.start), spot.stop - 1)
