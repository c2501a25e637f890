"""
Framing of streams: bytes <-> frames.

Server-sent events follow the WHATWG standard:
https://html.spec.whatwg.org/multipage/server-sent-events.html

Gemini without `alt=sse` sends one JSON array instead, object by object.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from interlingua.spec.contracts import Frame, Limits
from interlingua.spec.errors import ConfigurationError, DecodeError, StreamError
from interlingua.wire.json_text import dump_text, loads

_LIMITS = Limits()
_MAX_LINES = 100_000  # of one event; each line takes time, and the event is read in one step

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(r"\r\n|\r|\n")
# Matches the two usual forms of an event (`data` alone, `event` then `data`), else every line up
# to a blank one. One search over a whole block takes half the time of a loop over its lines. Up
# to eight lines match as a repeated group, which is fast; more lines match character by character,
# because a greedy repeat stores each iteration. No group is possessive: CPython before 3.11.5
# restores the wrong position after a possessive group fails.
_find_events = re.compile(
    r"(?:event: ?+(.++)\n)?data: ?+(.*+)\n\n|((?:.++\n){0,8}\n|(?s:.+?)(?:\n\n|\Z))",
).findall
_RETRY_DIGITS = 18  # a longer number would overflow an int64, which some peers store it in


class SSEDecoder:
    """
    Splits bytes into frames.

    Chunk boundaries do not change the result: feeding one byte at a time gives the same frames
    as feeding the whole body, and the same error after them.
    """

    def __init__(
        self, max_event_bytes: int = _LIMITS.event, max_events: int = _LIMITS.events
    ) -> None:
        self._limit = max_event_bytes
        self._max_events = self._room = max_events
        self._buffer = bytearray()  # the incomplete event; every line end is \n
        self._lines = 0  # in the buffer
        self._after_cr = False
        self._at_start = True
        self._failure: StreamError | None = None

    def feed(self, chunk: bytes) -> list[Frame]:  # noqa: C901 -- every chunk passes here
        """The frames that this chunk completes; `StreamError` if an event is too large."""
        if self._failure is not None:
            raise self._failure
        if self._after_cr or b"\r" in chunk:
            chunk = self._unify_line_ends(chunk)
        buffer = self._buffer
        if not buffer and not self._at_start and chunk.endswith(b"\n\n"):
            block: bytes | bytearray = chunk  # fast path: the chunk holds complete events only
        else:
            searched = len(buffer)
            buffer += chunk
            if self._at_start:
                if not drop_bom(buffer):
                    return []
                self._at_start = False
                searched = 0
            end = buffer.rfind(b"\n\n", searched - 1 if searched else 0) + 2
            if end < 2:
                self._lines += chunk.count(b"\n")
                return self._wait([])
            block = buffer[:end]
            del buffer[:end]
            self._lines = buffer.count(b"\n")
        if len(block) > self._limit:
            return self._feed_large(block)
        frames: list[Frame] = []
        for name, data, other in _find_events(block.decode("utf-8", "replace")):
            if not other:
                frames.append(Frame(data=data, event=name or None))
            elif not self._add(other, frames):
                return self._fail_lines(frames)
        self._room -= len(frames)
        if self._room < 0:
            return self._fail_events(frames)
        return self._wait(frames) if buffer else frames

    def finish(self) -> list[Frame]:
        """
        End of body: the last event, if it has data and no blank line ended it.

        The standard discards such an event, but many servers omit the last blank line, and
        some the last line end. A line cut before its data is ignored. A line cut inside its
        data is delivered; the reader of the data reports the error.
        """
        if self._failure is not None:
            raise self._failure
        text = self._buffer.decode("utf-8", "replace")
        self._buffer.clear()
        frames: list[Frame] = []
        if not self._add(text, frames):
            return self._fail_lines(frames)
        if not frames or not (frames[0].data.strip("\n") or text.endswith("\n")):
            return []
        self._room -= 1
        return self._fail_events(frames) if self._room < 0 else frames

    def _add(self, text: str, frames: list[Frame]) -> bool:
        """Add the frame of one event, if it has data; False if the event has too many lines."""
        text = text.strip("\n")
        if len(text) >= _MAX_LINES and text.count("\n") >= _MAX_LINES:
            return False
        frame = _decode_event(text)
        if frame is not None:
            frames.append(frame)
        return True

    def _unify_line_ends(self, chunk: bytes) -> bytes:
        if not chunk:
            return chunk
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]  # the second half of a CRLF
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _wait(self, frames: list[Frame]) -> list[Frame]:
        """Keep the incomplete event, unless it is already too large."""
        if self._buffer.startswith(b"\n"):  # blank lines before an event have no meaning
            self._buffer = self._buffer.lstrip(b"\n")
            self._lines = self._buffer.count(b"\n")
        if len(self._buffer) > self._limit:
            return self._fail_size(frames)
        return self._fail_lines(frames) if self._lines > _MAX_LINES else frames

    def _feed_large(self, block: bytes | bytearray) -> list[Frame]:
        frames: list[Frame] = []
        for event in block.split(b"\n\n"):
            if len(event.strip(b"\n")) >= self._limit:  # its last line end also counts
                return self._fail_size(frames)
            if not self._add(event.decode("utf-8", "replace"), frames):
                return self._fail_lines(frames)
        self._room -= len(frames)
        return self._fail_events(frames) if self._room < 0 else self._wait(frames)

    def _fail_size(self, frames: list[Frame]) -> list[Frame]:
        return self._fail(
            frames, f"an SSE event is larger than {self._limit} bytes; {allow('event')}"
        )

    def _fail_lines(self, frames: list[Frame]) -> list[Frame]:
        return self._fail(frames, f"an SSE event has more than {_MAX_LINES} lines")

    def _fail_events(self, frames: list[Frame]) -> list[Frame]:
        return self._fail(frames[: self._room], too_many(self._max_events))

    def _fail(self, frames: list[Frame], why: str) -> list[Frame]:
        self._buffer.clear()
        self._failure = StreamError(why, retryable=False)
        if not frames:
            raise self._failure
        return frames  # frames before the failure are delivered first; the next call raises


def allow(limit: str) -> str:
    """How to allow more of something."""
    return f"to allow it, pass limits=Limits({limit}=…) to the adapter"


def too_many(events: int) -> str:
    """The message for a stream with too many events."""
    return f"the stream has more than {events} events; {allow('events')}"


def drop_bom(buffer: bytearray) -> bool:
    """Removes a byte order mark; False while more bytes are needed to recognise one."""
    if buffer.startswith(_BOM):
        del buffer[:3]
        return True
    return not _BOM.startswith(buffer)


def encode_sse(frame: Frame) -> bytes:
    """
    The bytes of one frame.

    Data may have several lines. A line break in the event name or the id raises `StreamError`:
    it could inject other fields.
    """
    lines: list[str] = []
    if frame.event:
        lines.append(f"event: {_one_line(frame.event, 'event name')}")
    if frame.id is not None:
        lines.append(f"id: {_one_line(frame.id, 'id')}")
    if frame.retry is not None:
        lines.append(f"retry: {frame.retry}")
    lines += [f"data: {line}" for line in _LINE_END.split(frame.data)]
    # A lone surrogate has no UTF-8 form; "backslashreplace" writes the escape that JSON reads.
    return ("\n".join(lines) + "\n\n").encode("utf-8", "backslashreplace")


def _one_line(text: str, what: str) -> str:
    if _LINE_END.search(text) or "\0" in text:
        raise ConfigurationError(f"An SSE {what} cannot contain a line break or NUL: {text[:80]!r}")
    return text


def _decode_event(text: str) -> Frame | None:
    """
    The frame of one event, read line by line; None if the event has no data field.

    llama.cpp writes an error as a field of its own: `error: {…}`.
    """
    data: list[str] = []
    event = ident = None
    retry = None
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "error" and value:
            data.append(_error_body(value))
        elif name == "event":
            event = value or None
        elif name == "id" and "\0" not in value:
            ident = value
        elif name == "retry" and value.isascii() and value.isdigit():
            retry = int(value) if len(value) <= _RETRY_DIGITS else retry
    return Frame(data="\n".join(data), event=event, id=ident, retry=retry) if data else None


def _error_body(text: str) -> str:
    """The text of an `error` field as the body of an error response."""
    try:
        error = loads(text)
    except DecodeError:
        error = text
    is_body = isinstance(error, dict) and "error" in error
    return dump_text(error if is_body else {"error": error})


_BACKSLASH = 0x5C
# Skips complete strings in one match; stops at a bracket, or at the opening quote of a string
# that is still incomplete. The groups are not possessive: CPython before 3.11.5 restores the
# wrong position after a possessive group fails. A greedy repeat stores each iteration, so the
# repeats are bounded, and the caller matches again for the rest.
_skip_outside_string = re.compile(
    rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+){0,32}"){0,64}', re.DOTALL
).match
_skip_inside_string = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+){0,1000}', re.DOTALL).match
_skip_between = re.compile(rb"[ \t\r\n,]*+").match


class JSONArrayDecoder:
    """
    Splits bytes into frames, one for each top-level object, inside an array or not.

    Chunk boundaries do not change the result. This class only matches brackets; the reader of
    the frame finds out whether its data is valid JSON.
    """

    def __init__(
        self, max_event_bytes: int = _LIMITS.event, max_events: int = _LIMITS.events
    ) -> None:
        self._limit = max_event_bytes
        self._max_events = self._room = max_events
        self._buffer = bytearray()  # starts at the start of the current object
        self._position = 0  # the buffer is scanned up to here
        self._depth = 0
        self._in_string = False
        self._in_array = False
        self._at_start = True
        self._failure: StreamError | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes; `StreamError` for anything but objects."""
        if self._failure is not None:
            raise self._failure
        self._buffer += chunk
        if self._at_start:
            if not drop_bom(self._buffer):
                return []
            self._at_start = False
        frames: list[Frame] = []
        try:
            self._scan(frames)
        except StreamError as failure:
            self._failure = failure
            self._buffer.clear()
            if not frames:
                raise
        return frames  # frames before a failure are delivered first; the next call raises

    def finish(self) -> list[Frame]:
        """End of body: `StreamError` if an object or the array is not closed."""
        if self._failure is not None:
            raise self._failure
        if self._depth or self._in_array or self._buffer:
            where = "inside an object" if self._depth else "before its array was closed"
            self._failure = StreamError(f"the JSON stream ended {where}")
            raise self._failure
        return []

    def _scan(self, frames: list[Frame]) -> None:
        begin = 0
        while self._depth or (begin := self._find_object(begin)) >= 0:
            end = self._find_end()
            if (len(self._buffer) if end < 0 else end) - begin > self._limit:
                raise StreamError(
                    f"a JSON object is larger than {self._limit} bytes; {allow('event')}",
                    retryable=False,
                )
            if end < 0:
                del self._buffer[:begin]
                self._position -= begin
                return
            self._room -= 1
            if self._room < 0:
                raise StreamError(too_many(self._max_events), retryable=False)
            frames.append(Frame(data=self._buffer[begin:end].decode("utf-8", "replace")))
            begin = end
        self._buffer.clear()

    def _find_object(self, position: int) -> int:
        """The position where the next object starts; -1 if none starts in the buffer."""
        buffer = self._buffer
        while True:
            position = _end_of(_skip_between, buffer, position)
            if position == len(buffer):
                return -1
            byte = buffer[position]
            if byte == 0x7B:  # {
                self._depth = 1
                self._position = position + 1
                return position
            if (byte == 0x5B and not self._in_array) or (byte == 0x5D and self._in_array):
                self._in_array = not self._in_array  # [ or ]
                position += 1
                continue
            # One byte only: what follows it depends on the chunk, and chunks must not show.
            raise StreamError(f"expected a JSON object in the stream, found {chr(byte)!r}")

    def _find_end(self) -> int:
        """The end of the current object; -1 if it is incomplete."""
        buffer = self._buffer
        position = self._position
        while self._depth:
            skip = _skip_inside_string if self._in_string else _skip_outside_string
            position = _end_of(skip, buffer, position)
            byte = buffer[position] if position < len(buffer) else _BACKSLASH
            if byte == 0x22:  # "
                self._in_string = not self._in_string
            elif not self._in_string and byte in b"{}[]":
                self._depth += 1 if byte in b"{[" else -1
            elif position + 1 < len(buffer):
                continue  # the bounded match stopped early; match again
            else:  # the end of the buffer, or a backslash whose second byte is missing
                self._position = position
                return -1
            position += 1
        return position


def _end_of(
    match: Callable[[bytearray, int], re.Match[bytes] | None], buffer: bytearray, start: int
) -> int:
    result = match(buffer, start)
    return result.end() if result else start
