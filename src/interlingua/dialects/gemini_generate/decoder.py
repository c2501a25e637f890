"""Stream frames -> events. Each frame is an answer that adds parts."""

from __future__ import annotations

from typing import TypeAlias

from interlingua.dialects.gemini_generate.annotations import LOGPROBS, read_citations, read_logprobs
from interlingua.dialects.gemini_generate.content import is_signed, read_part
from interlingua.dialects.gemini_generate.facts import (
    FINISH,
    NAME,
    NO_REASON,
    RESPONSE,
    SIGNATURE,
    extra_for,
    to_camel,
)
from interlingua.dialects.gemini_generate.response import (
    Frames,
    decode_finish,
    decode_usage,
    frame_fields,
    is_answer,
    read_envelope,
)
from interlingua.dialects.gemini_generate.tool_calls import PartialArguments, response_links
from interlingua.spec import events
from interlingua.spec.content import Extra, Json, Text, Thinking, ToolCall, UncheckedJson
from interlingua.spec.contracts import NEUTRAL_PROFILE, Frame, NewId, Profile, StreamDecoder
from interlingua.spec.errors import StreamError
from interlingua.spec.request import Request
from interlingua.streams.frames import read_frame
from interlingua.streams.segments import ReasoningSegment, TextSegment, ToolCallSegment
from interlingua.wire.fields import carry_body
from interlingua.wire.json_text import dump_text, loads
from interlingua.wire.seal_marks import is_seal

_USAGE = "usageMetadata"
_PARTIAL_FIELDS = ("partialArgs", "willContinue")
_DELTAS = (events.TextDelta, events.ReasoningDelta)
_OpenText: TypeAlias = TextSegment | ReasoningSegment


class _Last:
    """
    The previous frame, if one text is its only part: the fast path.

    Most frames differ from the previous one only in the text and the token counts. The other
    fields need not be read again, and only the last counts matter.
    """

    __slots__ = ("_frame", "_part", "_segment", "_usage_names")

    def __init__(self, frame: dict[str, Json], part: dict[str, Json], segment: _OpenText) -> None:
        self._frame = frame
        self._part = part
        self._segment = segment
        self._usage_names = [*self.usage] if isinstance(self.usage, dict) else None

    @property
    def usage(self) -> Json:
        return self._frame.get(_USAGE)

    def feed(
        self, frame: dict[str, UncheckedJson]
    ) -> events.TextDelta | events.ReasoningDelta | None:
        """The event of a frame that only adds text; None for any other frame."""
        try:
            text = frame["candidates"][0]["content"]["parts"][0]["text"]
            usage = frame.get(_USAGE)
            if usage:
                if [*usage] != self._usage_names:
                    return None
                if not all(usage.values()) and None in usage.values():  # the first is cheap
                    return None
                self._frame[_USAGE] = usage
            self._part["text"] = text
            if not text or type(text) is not str or frame != self._frame:
                return None
        except (AttributeError, KeyError, IndexError, TypeError, RecursionError):
            return None
        return self._segment.delta(text)


class Decoder:
    """
    The wire has no part boundaries: a text continues until a part of another kind arrives.

    Two parts in one frame are two parts, and a signed part is never joined with another. No
    frame is marked as the last: a finish reason is required, but more frames may follow it.
    """

    def __init__(self, new_id: NewId | None) -> None:
        self._links = response_links(new_id)
        self._next = 0
        self._events: list[events.StreamEvent] = []  # those of the current `feed` or `finish`
        self._open: _OpenText | None = None
        self._call: ToolCallSegment | None = None  # its arguments arrive in pieces
        self._call_extra: dict[str, Json] = {}  # fields of its later pieces
        self._arguments = PartialArguments()
        self._call_ended = False
        self._has_calls = False
        self._started = False
        self._ended = False  # a finish reason has arrived, and no content after it
        self._unknown: dict[str, Json] | None = None  # a first frame that is not an answer
        self._names = ("", "")  # response id and model, from the first frame
        self._frames = Frames()
        self._last: _Last | None = None
        self._ended_texts: dict[int, str] = {}  # the texts that have ended, by index

    def feed(self, frame: Frame) -> list[events.StreamEvent]:
        try:
            data = read_frame(frame)
        except StreamError as error:  # an error may be inside an array of one
            data = _unwrap(frame, error)
        if data is None:
            return []
        if self._last is not None:
            delta = self._last.feed(data)
            if delta is not None:
                return [delta]
            self._settle()
        self._events = []
        self._feed_frame(to_camel(data, RESPONSE) if "_" in frame.data else data)
        if self._open is not None and self._events and type(self._events[-1]) in _DELTAS:
            match data:
                case {"candidates": [{"content": {"parts": [{"text": _} as part]}, **others}]} if (
                    LOGPROBS not in others and "logprobs_result" not in others
                ):
                    self._last = _Last(data, part, self._open)
        return self._events

    def finish(self) -> list[events.StreamEvent]:
        if self._unknown is not None:  # the body is not an answer
            whole = carry_body(NAME, self._unknown)
            start = events.StreamStart(extra=whole.extra)
            return [start, events.Finish(finish_reason=whole.finish_reason, response=whole)]
        self._settle()
        envelope = read_envelope(self._frames.whole())
        if not self._ended and envelope.block is None:
            raise StreamError("The stream ended before a finish reason.")
        self._events = []
        if not self._started:
            self._start({})
        reason = decode_finish(envelope, has_calls=self._has_calls)
        self._close(cut=reason.reason == "length")
        extra = envelope.extra
        candidate = extra.get("candidate") or {}
        tokens = read_logprobs(candidate) if LOGPROBS in candidate else ()
        # Every frame repeats both names.
        _keep_name(extra, "responseId", self._names[0], envelope.id)
        _keep_name(extra, "modelVersion", self._names[1], envelope.model)
        self._events.append(
            events.Finish(
                finish_reason=reason,
                usage=envelope.usage,
                warnings=tuple(envelope.notes),
                citations=read_citations(candidate, self._ended_texts),
                logprobs={max(self._ended_texts): tokens} if tokens and self._ended_texts else {},
                extra={NAME: extra},
            )
        )
        return self._events

    def _settle(self) -> None:
        """Adds the token counts of the frames that took the fast path."""
        if self._last is not None:
            self._frames.feed_usage(to_camel(self._last.usage, RESPONSE.inner[_USAGE]))
            self._last = None

    def _feed_frame(self, data: dict[str, Json]) -> None:
        if data == NO_REASON:
            self._ended = True
            return
        if (not self._started or "candidates" not in data) and not self._feed_rare(data):
            return
        for candidate in self._frames.feed(data):
            content = candidate.get("content")
            parts = content.get("parts") if isinstance(content, dict) else None
            if not isinstance(parts, list):
                parts = []
            reason = candidate.get(FINISH)
            for place, part in enumerate(parts):
                self._feed_part(part, is_first=place == 0, is_last=reason is not None)
            self._check_end(reason, parts)

    def _feed_rare(self, data: dict[str, Json]) -> bool:
        """The first frame, or one without candidates; returns whether it is an answer."""
        if data.get("error") and "candidates" not in data:
            from interlingua.dialects.gemini_generate.errors import read_error

            raise read_error(None, {}, data)
        if is_answer(data) or data.keys() == {_USAGE}:
            if not self._started:
                self._start(data)
            return True
        if not self._started and self._unknown is None:
            self._unknown = data
            return False
        if not self._started:
            self._start({})
        self._events.append(events.ProviderEvent(dialect=NAME, data=data))
        return False

    def _start(self, data: dict[str, Json]) -> None:
        self._started = True
        envelope = read_envelope(data)
        self._names = (envelope.id, envelope.model)
        usage = data.get(_USAGE)
        fields = frame_fields(envelope.extra)
        self._events.append(
            events.StreamStart(
                id=envelope.id,
                model=envelope.model,
                usage=decode_usage(usage) if usage else None,
                extra={NAME: {"candidate": fields} if fields else {}},
            )
        )
        if self._unknown is not None:
            self._events.append(events.ProviderEvent(dialect=NAME, data=self._unknown))
            self._unknown = None

    def _check_end(self, reason: Json, parts: list[Json]) -> None:
        """
        A finish reason ends the answer only if no content follows.

        Seen in recordings: code that the API runs arrives with one (STOP, or 1 where enums are
        numbers), and is followed by its result and more text.
        """
        parts = [part for part in parts if not (isinstance(part, dict) and part.get("text") == "")]
        if reason is not None:
            runs = bool(parts) and isinstance(parts[-1], dict) and "executableCode" in parts[-1]
            self._ended = not (runs and reason in ("STOP", 1))
        elif parts:
            self._ended = False

    def _feed_part(self, part: Json, *, is_first: bool, is_last: bool) -> None:
        if self._feed_partial_call(part):
            return
        self._call_ended = False
        decoded = read_part(part, self._links)
        if isinstance(decoded, (Text, Thinking)):
            self._feed_text(decoded, is_first=is_first, is_last=is_last)
            return
        self._close()
        if isinstance(decoded, ToolCall):
            # A tool call is whole, unless the request asked for `streamFunctionCallArguments`.
            call = self._new_call(decoded)
            self._events += [call.start(), call.delta(dump_text(decoded.arguments)), call.end()]
        else:
            self._events.append(events.ProviderEvent(dialect=NAME, part=decoded, index=self._next))
            self._next += 1

    # Text and thoughts.

    def _feed_text(self, part: Text | Thinking, *, is_first: bool, is_last: bool) -> None:
        segment = self._open
        kind = TextSegment if isinstance(part, Text) else ReasoningSegment
        signed = is_signed(part)
        continues = (
            is_first
            and segment is not None
            and isinstance(segment, kind)
            and part.extra in (segment.extra, _without_seal(segment.extra))
        )
        if not part.text and not signed and (continues or (is_last and not part.extra)):
            return  # recorded: 12 of 227 streams end with an empty text
        if signed and not part.text and continues and isinstance(part, Thinking):
            self._sign(part)  # the signature of the thought before it
            return
        if segment is None or signed or not continues:
            self._close()
            segment = self._open = kind(self._next, part.extra)
            self._next += 1
            self._events.append(segment.start())
        if part.text:
            self._events.append(segment.delta(part.text))
        if signed and _without_seal(part.extra) == part.extra:
            self._sign(part)

    def _sign(self, part: Text | Thinking) -> None:
        if isinstance(part, Thinking) and isinstance(self._open, ReasoningSegment):
            self._open.signature = part.signature
        self._close()

    # Tool calls.

    def _new_call(self, call: ToolCall) -> ToolCallSegment:
        self._has_calls = True
        self._next += 1
        return ToolCallSegment(self._next - 1, call_id=call.id, name=call.name, extra=call.extra)

    def _feed_partial_call(self, part: UncheckedJson) -> bool:
        """Whether the part is a piece of a tool call whose arguments arrive in pieces."""
        call = part.get("functionCall") if isinstance(part, dict) else None
        if not isinstance(call, dict):
            return False
        continues = bool(call.get("willContinue"))
        if call.get("name"):
            if not continues and "partialArgs" not in call:
                return False
            self._open_call(part, call)
        elif self._call is None:
            return self._call_ended and not call  # a second end of the same tool call
        else:  # any piece may carry a signature; the start event has its own copy of `extra`
            others = {name: value for name, value in part.items() if name != "functionCall"}
            self._call_extra.update(others)
        if self._call is None:
            return False
        pieces = call.get("partialArgs")
        for piece in pieces if isinstance(pieces, list) else ():
            self._arguments.feed(piece)
        if not continues:
            self._close()
            self._call_ended = True
        return True

    def _open_call(self, part: dict[str, Json], call: dict[str, Json]) -> None:
        self._close()
        whole = {name: value for name, value in call.items() if name not in _PARTIAL_FIELDS}
        decoded = read_part({**part, "functionCall": {"args": {}, **whole}}, self._links)
        if isinstance(decoded, ToolCall):
            self._call = self._new_call(decoded)
            self._arguments = PartialArguments()
            self._events.append(self._call.start())

    def _close(self, *, cut: bool = False) -> None:
        """Ends the open part. A tool call cut by the length limit must not look complete."""
        if self._open is not None:
            end = self._open.end()
            if isinstance(end, events.TextEnd):
                self._ended_texts[end.index] = end.part.text
            self._events.append(end)
            self._open = None
        if self._call is not None:
            if self._call_extra:
                extra = self._call.extra
                self._call.extra = {**extra, NAME: {**extra.get(NAME, {}), **self._call_extra}}
                self._call_extra = {}
            text = dump_text(self._arguments.finish())
            self._events += [self._call.delta(text[:-1] if cut else text), self._call.end()]
            self._call = None


def _without_seal(extra: Extra) -> Extra:
    """The fields of the pieces that follow: only the first piece of a text has its seal."""
    fields = extra.get(NAME, {})
    if not is_seal(fields.get(SIGNATURE)):
        return extra
    return extra_for({name: fields[name] for name in fields if name != SIGNATURE})


def _keep_name(extra: dict[str, Json], key: str, first: str, last: str) -> None:
    """Keeps a name in the extra of `Finish` only if it was not in `StreamStart`."""
    if first:
        extra.pop(key, None)
    elif last:
        extra[key] = last


def _unwrap(frame: Frame, error: StreamError) -> dict[str, Json]:
    """The error body inside an array of one; raises `error` for any other frame."""
    if error.__cause__ is None and frame.data.startswith("[{"):
        items: list[dict[str, Json]] = loads(frame.data)
        if len(items) == 1:
            return items[0]
    raise error


def stream_decoder(
    *,
    new_id: NewId | None = None,
    profile: Profile = NEUTRAL_PROFILE,  # noqa: ARG001
    request: Request | None = None,  # noqa: ARG001
) -> StreamDecoder:
    """Return a decoder for the stream that a client receives."""
    return Decoder(new_id)
