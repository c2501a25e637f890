"""Stream frames -> events. Frames are answers, each with more of the parts."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.gemini_generate.calls import PartialArguments, response_links
from interlingua.dialects.gemini_generate.content import is_signed, read_part
from interlingua.dialects.gemini_generate.errors import read_error
from interlingua.dialects.gemini_generate.facts import ABSENT, FINISH, NAME, NO_REASON
from interlingua.dialects.gemini_generate.names import RESPONSE, to_camel
from interlingua.dialects.gemini_generate.response import (
    Frames,
    decode_finish,
    decode_usage,
    is_answer,
    read_envelope,
)
from interlingua.spec.content import Text, Thinking, ToolCall
from interlingua.spec.contracts import (
    NEUTRAL_PROFILE,
    Frame,
    NewId,
    Profile,
    StreamDecoder,
)
from interlingua.spec.errors import StreamError
from interlingua.spec.events import (
    Finish,
    ProviderEvent,
    ReasoningDelta,
    StreamEvent,
    StreamStart,
    TextDelta,
)
from interlingua.streams.frames import read_frame
from interlingua.streams.segments import ReasoningSegment, TextSegment, ToolCallSegment
from interlingua.wire.fields import carry_body
from interlingua.wire.json_text import dump_text, loads

_USAGE = "usageMetadata"
_MORE = (TextDelta, ReasoningDelta)


class _Last:
    """
    The frame before, of one text and no other part.

    Most frames say what the one before said, but for the text and the figures: to read the
    rest again would change nothing, and of the figures the last count.
    """

    __slots__ = ("_frame", "_part", "_segment", "_usage_names")

    def __init__(
        self,
        frame: dict[str, Any],
        part: dict[str, Any],
        segment: TextSegment | ReasoningSegment,
    ) -> None:
        self._frame = frame
        self._part = part
        self._segment = segment
        self._usage_names = [*self.usage] if isinstance(self.usage, dict) else None

    @property
    def usage(self) -> Any:
        return self._frame.get(_USAGE)

    def feed(self, frame: dict[str, Any]) -> TextDelta | ReasoningDelta | None:
        """The event of a frame that only goes on with the text; None for any other."""
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
    The wire has no part boundaries: text goes on from frame to frame until another kind comes.

    Two parts in one frame are two parts; a signed part is always one of its own. There is no
    last frame either: a finish reason must have come, but more may follow it.
    """

    def __init__(self, new_id: NewId | None) -> None:
        self._links = response_links(new_id)
        self._next = 0
        self._open: TextSegment | ReasoningSegment | None = None
        self._call: ToolCallSegment | None = None  # one whose arguments come in pieces
        self._arguments = PartialArguments()
        self._call_ended = False
        self._has_calls = False
        self._started = False
        self._ended = False  # a finish reason has come, and nothing that was said after it
        self._unknown: dict[str, Any] | None = None  # a first frame that is no answer
        self._names = ("", "")  # of the response and its model, as the first frame has them
        self._frames = Frames()
        self._last: _Last | None = None

    def feed(self, frame: Frame) -> list[StreamEvent]:
        try:
            data = read_frame(frame)
        except StreamError as error:
            data = _unwrap(frame, error)
        if data is None:
            return []
        last = self._last
        if last is not None:
            more = last.feed(data)
            if more is not None:
                return [more]
            self._settle()
        events = self._feed_frame(to_camel(data, RESPONSE) if "_" in frame.data else data)
        if self._open is not None and events and isinstance(events[-1], _MORE):
            self._last = _keep_last(data, self._open)
        return events

    def finish(self) -> list[StreamEvent]:
        if self._unknown is not None:  # a whole body that is no answer
            whole = carry_body(NAME, self._unknown)
            start = StreamStart(extra=whole.extra)
            return [start, Finish(finish_reason=whole.finish_reason, response=whole)]
        self._settle()
        envelope = read_envelope(self._frames.whole())
        if not self._ended and envelope.block is None:
            raise StreamError("the stream ended before a finish reason came")
        events: list[StreamEvent] = [] if self._started else self._start({})
        reason = decode_finish(envelope, has_calls=self._has_calls)
        self._close(events, cut=reason.reason == "length")
        extra = envelope.extra
        _keep_name(extra, "responseId", self._names[0], envelope.id)
        _keep_name(extra, "modelVersion", self._names[1], envelope.model)
        events.append(Finish(finish_reason=reason, usage=envelope.usage, extra={NAME: extra}))
        return events

    def _settle(self) -> None:
        """Take in the figures of the frames that only went on with the text."""
        if self._last is not None:
            self._frames.feed_usage(to_camel(self._last.usage, RESPONSE.inner[_USAGE]))
            self._last = None

    def _feed_frame(self, data: dict[str, Any]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if data == NO_REASON:
            self._ended = True
            return events
        if (not self._started or "candidates" not in data) and not self._feed_rare(data, events):
            return events
        for candidate in self._frames.feed(data):
            content = candidate.get("content")
            parts = content.get("parts") if isinstance(content, dict) else None
            if not isinstance(parts, list):
                parts = []
            reason = candidate.get(FINISH)
            for place, part in enumerate(parts):
                self._feed_part(part, events, is_first=place == 0, is_last=reason is not None)
            self._follow_end(reason, [part for part in parts if _says(part)])
        return events

    def _feed_rare(self, data: dict[str, Any], events: list[StreamEvent]) -> bool:
        """The first frame, or one without candidates; whether there is more to read in it."""
        if data.get("error") and "candidates" not in data:
            raise read_error(None, {}, data)
        if is_answer(data) or data.keys() == {_USAGE}:
            if not self._started:
                events += self._start(data)
            return True
        if not self._started and self._unknown is None:
            self._unknown = data
            return False
        if not self._started:
            events += self._start({})
        events.append(ProviderEvent(dialect=NAME, data=data))
        return False

    def _start(self, data: dict[str, Any]) -> list[StreamEvent]:
        self._started = True
        envelope = read_envelope(data)
        self._names = (envelope.id, envelope.model)
        usage = data.get(_USAGE)
        events: list[StreamEvent] = [
            StreamStart(
                id=envelope.id,
                model=envelope.model,
                usage=decode_usage(usage) if usage else None,
                extra={NAME: _about_frames(envelope.extra)},
            )
        ]
        if self._unknown is not None:
            events.append(ProviderEvent(dialect=NAME, data=self._unknown))
            self._unknown = None
        return events

    def _follow_end(self, reason: Any, said: list[Any]) -> None:
        """
        A finish reason ends the answer only if nothing follows.

        The code that the API runs comes with one, and its result and more text come after.
        """
        if reason is not None:
            runs = bool(said) and isinstance(said[-1], dict) and "executableCode" in said[-1]
            self._ended = not (runs and reason in ("STOP", 1))
        elif said:
            self._ended = False

    def _feed_part(
        self, part: Any, events: list[StreamEvent], *, is_first: bool, is_last: bool
    ) -> None:
        if self._feed_partial_call(part, events):
            return
        self._call_ended = False
        read = read_part(part, self._links)
        if isinstance(read, (Text, Thinking)):
            self._feed_text(read, events, is_first=is_first, is_last=is_last)
            return
        self._close(events)
        index, self._next = self._next, self._next + 1
        if isinstance(read, ToolCall):
            self._has_calls = True
            call = ToolCallSegment(index, call_id=read.id, name=read.name, extra=read.extra)
            events += [call.start(), call.delta(dump_text(read.arguments)), call.end()]
        else:
            events.append(ProviderEvent(dialect=NAME, part=read, index=index))

    # Text and thoughts.

    def _feed_text(
        self, part: Text | Thinking, events: list[StreamEvent], *, is_first: bool, is_last: bool
    ) -> None:
        segment = self._open
        kind = TextSegment if isinstance(part, Text) else ReasoningSegment
        signed = is_signed(part)
        goes_on = is_first and isinstance(segment, kind) and segment.extra == part.extra
        if not part.text and not signed and (goes_on or (is_last and not part.extra)):
            return  # the empty text that some streams end with
        if signed and not part.text and goes_on and isinstance(part, Thinking):
            self._sign(part, events)  # the proof of a thought that has come before
            return
        if segment is None or signed or not goes_on:
            self._close(events)
            segment = self._open = kind(self._next, part.extra)
            self._next += 1
            events.append(segment.start())
        if part.text:
            events.append(segment.delta(part.text))
        if signed:
            self._sign(part, events)

    def _sign(self, part: Text | Thinking, events: list[StreamEvent]) -> None:
        if isinstance(part, Thinking) and isinstance(self._open, ReasoningSegment):
            self._open.signature = part.signature
        self._close(events)

    # Calls whose arguments come in pieces.

    def _feed_partial_call(self, part: Any, events: list[StreamEvent]) -> bool:
        call = part.get("functionCall") if isinstance(part, dict) else None
        if not isinstance(call, dict):
            return False
        goes_on = bool(call.get("willContinue"))
        if call.get("name"):
            if not goes_on and "partialArgs" not in call:
                return False
            self._open_call(part, call, events)
        elif self._call is None:
            return self._call_ended and not call  # the end of a call that had ended already
        else:
            self._keep_beside(part, self._call)
        if self._call is None:
            return False
        pieces = call.get("partialArgs")
        for piece in pieces if isinstance(pieces, list) else ():
            self._arguments.feed(piece)
        if not goes_on:
            self._close(events)
            self._call_ended = True
        return True

    def _keep_beside(self, part: dict[str, Any], call: ToolCallSegment) -> None:
        """A signature may come with any piece. The start event keeps what it was given."""
        beside = {name: value for name, value in part.items() if name != "functionCall"}
        if beside:
            call.extra = {**call.extra, NAME: {**call.extra.get(NAME, {}), **beside}}

    def _open_call(
        self, part: dict[str, Any], call: dict[str, Any], events: list[StreamEvent]
    ) -> None:
        self._close(events)
        known = {name: value for name, value in call.items() if name not in _STREAMING}
        read = read_part({**part, "functionCall": {"args": {}, **known}}, self._links)
        if not isinstance(read, ToolCall):
            return
        self._has_calls = True
        self._call = ToolCallSegment(self._next, call_id=read.id, name=read.name, extra=read.extra)
        self._next += 1
        self._arguments = PartialArguments()
        events.append(self._call.start())

    def _close(self, events: list[StreamEvent], *, cut: bool = False) -> None:
        """End what is open. A call cut by the length limit must not look like a whole one."""
        if self._open is not None:
            events.append(self._open.end())
            self._open = None
        call = self._call
        if call is not None:
            text = dump_text(self._arguments.finish())
            events.append(call.delta(text[:-1] if cut else text))
            events.append(call.end())
            self._call = None


_STREAMING = ("partialArgs", "willContinue")


def _keep_name(extra: dict[str, Any], key: str, first: str, last: str) -> None:
    """The start told it, or it came too late for that."""
    if first:
        extra.pop(key, None)
    elif last:
        extra[key] = last


def _says(part: Any) -> bool:
    return not (isinstance(part, dict) and part.get("text") == "")


def _about_frames(extra: dict[str, Any]) -> dict[str, Any]:
    """What every frame of the stream says besides its parts, where that is unusual."""
    candidate = extra.get("candidate", {})
    kept: dict[str, Any] = {}
    if candidate.get("index", 0) != 0:
        kept["index"] = candidate["index"]
    content = candidate.get("content")
    if isinstance(content, dict) and "role" in content.get(ABSENT, ()):
        kept["content"] = {ABSENT: ["role"]}
    return {"candidate": kept} if kept else {}


def _keep_last(data: dict[str, Any], segment: TextSegment | ReasoningSegment) -> _Last | None:
    match data:
        case {"candidates": [{"content": {"parts": [{"text": _} as part]}}]}:
            return _Last(data, part, segment)
    return None


def _unwrap(frame: Frame, error: StreamError) -> dict[str, Any]:
    """An error may come in an array of one."""
    if error.__cause__ is None and frame.data.startswith("[{"):
        found: list[dict[str, Any]] = loads(frame.data)
        if len(found) == 1:
            return found[0]
    raise error


def stream_decoder(
    *,
    new_id: NewId | None = None,
    profile: Profile = NEUTRAL_PROFILE,  # noqa: ARG001
) -> StreamDecoder:
    """For a stream a client receives."""
    return Decoder(new_id)
