"""Events -> stream frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from interlingua.dialects.gemini_generate.content import encode_answer_part, is_signed
from interlingua.dialects.gemini_generate.errors import error_body
from interlingua.dialects.gemini_generate.facts import NAME, NO_REASON, SIGNATURE
from interlingua.dialects.gemini_generate.response import (
    encode_finish,
    frame_fields,
    ground,
    write_content,
    write_envelope,
)
from interlingua.spec import events
from interlingua.spec.content import Json, Part, Text
from interlingua.spec.contracts import Frame, StreamEncoder
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.accumulate import with_late_fields
from interlingua.streams.declared_calls import declared_encoder
from interlingua.streams.frames import json_frame
from interlingua.streams.grammar import Grammar, Sequencer
from interlingua.wire.fields import extra_of, merge
from interlingua.wire.seal_marks import is_seal


class _Text:
    """A text or thought that is being sent; `fields` go with each of its pieces."""

    __slots__ = ("fields", "is_held", "is_sent", "needs_separator", "place", "seal")

    def __init__(self, fields: dict[str, Json], *, is_held: bool, needs_separator: bool) -> None:
        self.fields = fields
        self.is_held = is_held
        self.is_sent = False
        self.needs_separator = needs_separator
        self.place = 0  # among the parts that were sent
        self.seal: Json = None  # sent with the first piece


class Encoder:
    """
    Each delta is a frame; the last frame has the finish reason and the usage.

    The last frame needs a part: Google's SDK forgets an answer with a frame that has none, and
    keeps an empty text as a turn of its own. So the last character of a text, and any other part,
    is sent with what follows it. No piece of a text is blank: clients return the pieces as parts,
    and not every model accepts blank ones.
    """

    def __init__(self) -> None:
        self._grammar = Grammar(restarts=False)
        self._sequencer = Sequencer()  # the wire has no indexes, only an order
        self._start = events.StreamStart()
        self._candidate: dict[str, Json] = {}  # the fields of the candidate in each frame
        self._content: dict[str, Json] = {}
        self._texts: dict[str, _Text] = {}
        self._last: dict[str, Json] | None = None  # the fields of the text before
        self._waiting: list[Any] = []  # the parts that are sent with what follows
        self._owner: _Text | None = None  # the text whose end is waiting
        self._sent = False
        self._failed = False
        self._ended_texts: dict[int, Part] = {}  # the texts that have ended, by index
        self._places: dict[int, _Text] = {}  # and where they are
        self._count = 0  # the parts that were sent

    def feed(self, event: events.StreamEvent) -> list[Frame]:
        self._grammar.feed(event)
        return [frame for ready in self._sequencer.feed(event) for frame in self._encode(ready)]

    def finish(self) -> list[Frame]:
        if not self._failed:
            self._grammar.finish()
        return []

    def _encode(self, event: events.StreamEvent) -> list[Frame]:
        match event:
            case events.TextDelta() | events.ReasoningDelta():
                return self._delta(event.id, event.delta)
            case events.TextStart() | events.ReasoningStart():
                return self._open(event)
            case events.TextEnd() | events.ReasoningEnd():
                return self._end(event)
            case events.ToolCallEnd():
                return self._whole(encode_answer_part(event.tool_call))
            case events.ProviderEvent():
                return self._provider_event(event)
            case events.StreamStart():
                return self._begin(event)
            case events.Finish() | events.ErrorEvent():
                return self._finish(event)
            case events.ToolCallStart() | events.ToolCallDelta():
                return []  # a tool call is sent whole, at its end
            case (
                events.ToolResultEvent()
                | events.StepStart()
                | events.StepFinish()
                | events.StreamRestart()
            ):
                return []  # events of runs and retries, which the API does not have
        assert_never(event)

    def _begin(self, event: events.StreamStart) -> list[Frame]:
        self._start = event
        if NAME in event.extra:
            self._candidate = frame_fields(extra_of(event, NAME))
            content = self._candidate.pop("content", {})
            self._content = dict(content) if isinstance(content, Mapping) else {}
        else:
            self._candidate = {"index": 0}  # as the vendor sends it
        return []

    def _flush(self) -> list[Frame]:
        """The frame of the parts that were waiting."""
        parts, self._waiting, self._owner = self._waiting, [], None
        return self._frame(parts) if parts else []

    def _frame(self, parts: Sequence[Json]) -> list[Frame]:
        self._sent = True
        candidate = {"content": write_content(self._content, parts), **self._candidate}
        body: dict[str, Json] = {"candidates": [candidate]}
        if self._start.model:
            body["modelVersion"] = self._start.model
        if self._start.id:
            body["responseId"] = self._start.id
        return [json_frame(body)]

    # Text. A signed text is sent whole, with its signature; the signature of a thought follows
    # it. Two texts with the same fields would be read as one: an empty piece before the second,
    # in the same frame, separates them.

    def _open(self, event: events.TextStart | events.ReasoningStart) -> list[Frame]:
        fields = dict(extra_of(event, NAME))
        if isinstance(event, events.ReasoningStart):
            fields["thought"] = True
        signature = fields.get(SIGNATURE) if isinstance(event, events.TextStart) else None
        # A seal has the state of what came before the text, so that nothing has to wait for it.
        is_held = signature is not None and not is_seal(signature)
        is_alike = not is_held and self._last == fields
        self._texts[event.id] = _Text(fields, is_held=is_held, needs_separator=is_alike)
        self._last = None
        return []

    def _delta(self, id: str, delta: str) -> list[Frame]:  # noqa: A002 -- the name of the event's field
        text = self._texts[id]
        if text.is_held:
            return []
        frames = [] if self._owner is text else self._open_piece(text)
        *before, last = self._waiting
        whole = f"{last['text']}{delta}"
        end = max(len(whole.rstrip()) - 1, 0)
        if not whole[:end].strip():
            self._waiting = [*before, {**last, "text": whole}]
            return frames
        self._waiting = [{"text": whole[end:], **text.fields}]
        return frames + self._frame([*before, {**last, "text": whole[:end]}])

    def _open_piece(self, text: _Text) -> list[Frame]:
        """Let an empty piece of this text wait; the frame of what was waiting."""
        frames = self._flush()
        separators = [{"text": "", **text.fields}] if text.needs_separator else []
        self._waiting = [*separators, {"text": "", **text.fields}]
        self._owner = text
        text.needs_separator = False
        if not text.is_sent:
            text.place, self._count = self._count, self._count + 1
            text.is_sent = True
            text.seal = text.fields.pop(SIGNATURE, None)
        return frames

    def _end(self, event: events.TextEnd | events.ReasoningEnd) -> list[Frame]:
        text = self._texts[event.id]
        if isinstance(event, events.TextEnd):
            self._ended_texts[event.index] = event.part
            self._places[event.index] = text
            if text.is_held:
                text.place = self._count
                return self._whole(encode_answer_part(event.part))
        if not text.is_sent and not encode_answer_part(event.part):
            return []  # an empty or redacted thought of another model
        frames = [] if text.is_sent else self._delta(event.id, "")
        self._last = text.fields
        if is_signed(event.part) and text.seal != extra_of(event.part, NAME).get(SIGNATURE, self):
            # the signature needs a part of its own
            for signed in encode_answer_part(event.part):
                if isinstance(signed, Mapping) and SIGNATURE in signed:
                    frames += self._whole([{**signed, "text": ""}])
                    self._count -= 1  # it belongs to the thought before it
        return frames

    def _whole(self, parts: list[Json]) -> list[Frame]:
        if not parts:
            return []
        self._last = None
        self._count += len(parts)
        frames = self._flush()
        self._waiting = parts
        return frames

    def _provider_event(self, event: events.ProviderEvent) -> list[Frame]:
        if event.part is not None:
            return self._whole(encode_answer_part(event.part))
        return [*self._flush(), json_frame(event.data)] if event.dialect == NAME else []

    def _finish(self, event: events.Finish | events.ErrorEvent) -> list[Frame]:
        if isinstance(event, events.ErrorEvent):
            self._failed = True
            return [*self._flush(), json_frame(error_body(event.error))]
        if self._failed:  # the error was the last frame
            return []
        return self._last_frames(event)

    def _last_frames(self, event: events.Finish) -> list[Frame]:
        start = self._start
        extra = merge(extra_of(start, NAME), extra_of(event, NAME))
        if "body" in extra:  # not an answer: see `carry_body`
            return [*self._flush(), json_frame(extra["body"])]
        native = NAME in start.extra or NAME in event.extra
        envelope = Response(
            id=start.id,
            model=start.model,
            finish_reason=event.finish_reason,
            usage=event.usage,
            created_at=start.created_at,
            extra={NAME: extra} if native else {},
        )
        has_reason = encode_finish(event.finish_reason, native=native) is not None
        parts: list[Json] | None = self._waiting or (None if self._sent else [])
        # an empty text that ends a stream says nothing: one that was said has a frame of its own
        frames = self._flush() if parts == [{"text": ""}] else []
        parts_of_texts = with_late_fields(self._ended_texts, event)
        places = [self._places[index].place for index in sorted(self._ended_texts)]
        pairs = zip(places, parts_of_texts, strict=True)
        texts = [(place, part) for place, part in pairs if isinstance(part, Text)]
        frames.append(json_frame(ground(write_envelope(envelope, parts), envelope, texts)))
        return frames if has_reason else [*frames, json_frame(NO_REASON)]


def stream_encoder(request: Request | None = None) -> StreamEncoder:
    """Return an encoder for the stream that a server sends."""
    return declared_encoder(Encoder(), request)
