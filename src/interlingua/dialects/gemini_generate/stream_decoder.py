"""Stream frames -> events. Frames are answers, each with more of the parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlingua.dialects.gemini_generate.candidates import OtherCandidates, fold
from interlingua.dialects.gemini_generate.content import is_signed, read_part
from interlingua.dialects.gemini_generate.errors import read_error
from interlingua.dialects.gemini_generate.links import response_links
from interlingua.dialects.gemini_generate.partial import PartialArguments
from interlingua.dialects.gemini_generate.response import (
    decode_finish,
    decode_usage,
    is_answer,
    read_envelope,
)
from interlingua.dialects.gemini_generate.wire import ABSENT, NAME, NO_REASON, RESPONSE, to_camel
from interlingua.spec.content import Text, Thinking, ToolCall
from interlingua.spec.contracts import Frame, NewId
from interlingua.spec.errors import DecodeError, StreamError
from interlingua.spec.events import Finish, ProviderEvent, StreamEvent, StreamStart
from interlingua.wire.carry import carry_body
from interlingua.wire.frames import read_frame
from interlingua.wire.jsontext import dump_text, loads
from interlingua.wire.segments import ReasoningSegment, TextSegment, ToolCallSegment

_FINISH = "finishReason"
_USAGE_ONLY = {"usageMetadata"}


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
        self._plain: TextSegment | None = None  # the same, if it is text and nothing else
        self._call: ToolCallSegment | None = None  # one whose arguments come in pieces
        self._arguments = PartialArguments()
        self._call_ended = False
        self._has_calls = False
        self._started = False
        self._ended = False  # a finish reason has come, and nothing that was said after it
        self._unknown: dict[str, Any] | None = None  # a first frame that is no answer
        self._names = ("", "")  # of the response and its model, as the first frame has them
        self._top: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._main: int | None = None  # the index of the candidate that is the answer
        self._candidate: dict[str, Any] = {}
        self._content: dict[str, Any] = {}
        self._others = OtherCandidates()

    def feed(self, frame: Frame) -> list[StreamEvent]:
        data = _read(frame)
        if data is None:
            return []
        has_null = "null" in frame.data
        if self._plain is not None and not has_null:
            more = self._more_text(self._plain, data)
            if more is not None:
                return more
        return self._feed_frame(data, fold if has_null else dict.update)

    def finish(self) -> list[StreamEvent]:
        if self._unknown is not None:  # a whole body that is no answer
            whole = carry_body(NAME, self._unknown)
            start = StreamStart(extra=whole.extra)
            return [start, Finish(finish_reason=whole.finish_reason, response=whole)]
        envelope = read_envelope(self._whole())
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

    def _more_text(self, segment: TextSegment, data: dict[str, Any]) -> list[StreamEvent] | None:
        """The events of a frame that only adds to the text in hand, as most do; else None."""
        try:
            (candidate,) = data["candidates"]
            content = candidate["content"]
            (part,) = content["parts"]
            text = part["text"]
            usage = data["usageMetadata"]
        except (KeyError, TypeError, ValueError):
            return None
        if len(part) > 1 or type(text) is not str or type(usage) is not dict or not usage:
            return None
        if candidate.get("index", 0) != self._main:
            return None
        self._usage.update(usage)
        # what the first frame told need not be kept again; anything else is
        names = data.get("responseId"), data.get("modelVersion")
        if len(data) != 4 or names != self._names:
            self._top.update(data)
        if len(candidate) != 2 or "index" not in candidate:
            self._candidate.update(candidate)
        if len(content) != 2 or content.get("role") != "model":
            self._content.update(content)
        if _FINISH in candidate:
            self._ended = True
        elif text:
            self._ended = False
        return [segment.delta(text)] if text else []

    def _feed_frame(self, data: dict[str, Any], put: Callable[..., None]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if data == NO_REASON:
            self._ended = True
            return events
        if (not self._started or "candidates" not in data) and not self._feed_rare(data, events):
            return events
        put(self._top, data)
        usage = data.get("usageMetadata")
        if isinstance(usage, dict):  # cumulative, but a later one may leave fields out
            put(self._usage, usage)
        candidates = data.get("candidates")
        for place, candidate in enumerate(candidates if isinstance(candidates, list) else ()):
            if not isinstance(candidate, dict):
                self._others.feed_odd(candidate)
            elif self._is_main(candidate, place):
                put(self._candidate, candidate)
                self._feed_content(candidate, put, events)
                self._follow_end(candidate)
        return events

    def _feed_rare(self, data: dict[str, Any], events: list[StreamEvent]) -> bool:
        """The first frame, or one without candidates; whether there is more to read in it."""
        if data.get("error") and "candidates" not in data:
            raise read_error(None, {}, data)
        if is_answer(data) or data.keys() == _USAGE_ONLY:
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
        usage = data.get("usageMetadata")
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

    def _whole(self) -> dict[str, Any]:
        """All frames as one body, but for the parts of the answer."""
        whole = dict(self._top)
        if self._usage or isinstance(whole.get("usageMetadata"), dict):
            whole["usageMetadata"] = self._usage
        if self._main is not None:
            candidate = dict(self._candidate)
            if self._content or isinstance(candidate.get("content"), dict):
                candidate["content"] = dict(self._content)
                if isinstance(self._content.get("parts"), list):
                    candidate["content"]["parts"] = []
            whole["candidates"] = [candidate, *self._others.finish()]
        return whole

    # Candidates.

    def _is_main(self, candidate: dict[str, Any], place: int) -> bool:
        """Whether it is the answer; others are kept aside."""
        index = candidate.get("index")
        if type(index) is not int:  # 0 is often left out
            index = place
        if self._main is None:
            self._main = index
        if index == self._main:
            return True
        self._others.feed(index, candidate)
        return False

    def _follow_end(self, candidate: dict[str, Any]) -> None:
        """
        A finish reason ends the answer only if nothing follows.

        The code that the API runs comes with one, and its result and more text come after.
        """
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        said = [part for part in parts if _says(part)] if isinstance(parts, list) else []
        reason = candidate.get(_FINISH)
        if reason is not None:
            runs = bool(said) and isinstance(said[-1], dict) and "executableCode" in said[-1]
            self._ended = not (runs and reason in ("STOP", 1))
        elif said:
            self._ended = False

    def _feed_content(
        self, candidate: dict[str, Any], put: Callable[..., None], events: list[StreamEvent]
    ) -> None:
        content = candidate.get("content")
        if not isinstance(content, dict):
            return
        put(self._content, content)
        parts = content.get("parts")
        if not isinstance(parts, list):
            return
        is_last = candidate.get(_FINISH) is not None
        for place, part in enumerate(parts):
            self._feed_part(part, events, is_first=place == 0, is_last=is_last)

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
            if isinstance(segment, TextSegment) and not part.extra:
                self._plain = segment
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
            self._open = self._plain = None
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


def _read(frame: Frame) -> dict[str, Any] | None:
    if frame.data.startswith("[{"):  # an error may come in an array of one
        try:
            found = loads(frame.data)
        except DecodeError as error:
            raise StreamError(f"a stream event cannot be read: {error.message}") from error
        data = found[0] if len(found) == 1 else None
        if not isinstance(data, dict):
            raise StreamError("a stream event is not a JSON object")
    else:
        data = read_frame(frame)
    if data is not None and "_" in frame.data:
        data = to_camel(data, RESPONSE)
    return data
