"""
Server-sent events: bytes <-> frames.

They follow the WHATWG standard: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import re

from interlingua.spec.contracts import Frame
from interlingua.spec.defaults import Limits
from interlingua.spec.errors import ConfigurationError, DecodeError, StreamError
from interlingua.wire.framing import allow, drop_bom, too_many
from interlingua.wire.integers import read_integer
from interlingua.wire.json_text import dump_text, loads

_LIMITS = Limits()
_MAX_LINES = 100_000  # of one event; each line takes time, and the event is read in one step
_SEARCHED = 64 * 1024  # bytes in which `_find_events` searches

_LINE_END = re.compile(r"\r\n|\r|\n")
# Matches the two usual forms of an event (`data` alone, `event` then `data`), else all blank lines
# there are, else every line up to a blank one. One search over a block takes half the time of a
# loop over its lines, but more than that for a long event of many lines. Up
# to eight lines match as a repeated group, which is fast; more lines match character by character,
# because a greedy repeat stores each iteration. No group is possessive: CPython before 3.11.5
# restores the wrong position after a possessive group fails.
_find_events = re.compile(
    r"(?:event: ?+(.++)\n)?data: ?+(.*+)\n\n|(\n++|(?:.++\n){0,8}\n|(?s:.+?)(?:\n\n|\Z))",
).findall
_find_ends = re.compile(rb"\n\n++").finditer
_RETRY_DIGITS = 18  # a longer number would overflow an int64, which some peers store it in


class SSEDecoder:
    """
    Splits bytes into frames.

    Chunk boundaries do not change the result: feeding one byte at a time gives the same frames
    as feeding the whole body, and the same error after them.

    A line that adds nothing (a comment, an unknown field, a blank line after a blank line) costs
    time as an event does, so `max_events` limits the sum of both.
    """

    def __init__(
        self, max_event_bytes: int = _LIMITS.event, max_events: int = _LIMITS.events
    ) -> None:
        self._limit = max_event_bytes
        self._searched = min(max_event_bytes, _SEARCHED)
        self._max_events = self._room = max_events
        self._buffer = bytearray()  # the incomplete event; every line end is \n
        self._lines = 0  # in the buffer
        self._after_cr = False
        self._at_start = True
        self._failure: StreamError | None = None

    def feed(self, chunk: bytes) -> list[Frame]:  # noqa: C901 -- every chunk passes here
        """Return the frames that this chunk completes; `StreamError` if an event is too large."""
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
        if len(block) > self._searched:
            return self._feed_large(block)
        frames: list[Frame] = []
        for name, data, other in _find_events(block.decode("utf-8", "replace")):
            if not other:
                frames.append(Frame(data=data, event=name or None))
            elif not self._add(other, frames):
                return self._stop(frames)
        self._room -= len(frames)
        if self._room < 0:
            return self._fail_events(frames[: self._room])
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
        if text and not self._add(text, frames):
            return self._stop(frames)
        if not frames or not (frames[0].data.strip("\n") or text.endswith("\n")):
            return []
        self._room -= 1
        return frames

    def _add(self, text: str, frames: list[Frame]) -> bool:
        """Add the frame of an event, if it has data, or blank lines; False if a limit is passed."""
        event = text.strip("\n")
        if len(event) >= _MAX_LINES and event.count("\n") >= _MAX_LINES:
            del frames[max(self._room, 0) :]
            self._failure = _failure(f"An SSE event has more than {_MAX_LINES} lines.")
            return False
        count = len(frames)
        unread = len(text) - len(text.lstrip("\n"))
        if event:
            frame, lines = _decode_event(event)
            unread += lines
            if frame is not None:
                frames.append(frame)
        if self._room < unread + len(frames):
            del frames[min(count, max(self._room, 0)) :]
            self._failure = _failure(too_many(self._max_events))
            return False
        self._room -= unread
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
            size = len(self._buffer)
            self._buffer = self._buffer.lstrip(b"\n")
            self._lines = self._buffer.count(b"\n")
            self._room -= size - len(self._buffer)
            if self._room < 0:
                return self._fail_events(frames)
        if len(self._buffer) > self._limit:
            return self._fail_size(frames)
        if self._lines > _MAX_LINES:
            self._failure = _failure(f"An SSE event has more than {_MAX_LINES} lines.")
            return self._stop(frames)
        return frames

    def _feed_large(self, block: bytes | bytearray) -> list[Frame]:
        frames: list[Frame] = []
        start = 0
        for end in _find_ends(block):
            event = block[start : end.end() - 1]
            start = end.end()
            # The line end of its last line counts, the blank line does not.
            if len(event.strip(b"\n")) >= self._limit:
                del frames[max(self._room, 0) :]
                return self._fail_size(frames)
            if not self._add_large(event.decode("utf-8", "replace"), frames):
                return self._stop(frames)
        self._room -= len(frames)
        if self._room < 0:
            return self._fail_events(frames[: self._room])
        return self._wait(frames)

    def _add_large(self, text: str, frames: list[Frame]) -> bool:
        """Add an event with the blank lines before and after it."""
        event = text.rstrip("\n")
        blank = len(text) - len(event) - 1 if event else len(text) + 1
        is_allowed = not event or self._add(event, frames)
        return is_allowed and (blank == 0 or self._add("\n" * blank, frames))

    def _fail_size(self, frames: list[Frame]) -> list[Frame]:
        self._failure = _failure(
            f"An SSE event is larger than {self._limit} bytes. {allow('event')}"
        )
        return self._stop(frames)

    def _fail_events(self, frames: list[Frame]) -> list[Frame]:
        self._failure = _failure(too_many(self._max_events))
        return self._stop(frames)

    def _stop(self, frames: list[Frame]) -> list[Frame]:
        """Deliver the frames before a failure; the next call raises it."""
        self._buffer.clear()
        if not frames and self._failure is not None:
            raise self._failure
        return frames


def _failure(why: str) -> StreamError:
    return StreamError(why, retryable=False)


def encode_sse(frame: Frame) -> bytes:
    """
    Return the bytes of one frame.

    Data may have several lines. A line break in the event name or the id raises `StreamError`:
    it could inject other fields.
    """
    data = frame.data
    lines: list[str] = []
    if frame.event:
        lines.append(f"event: {_one_line(frame.event, 'event name')}")
    if frame.id is not None:
        lines.append(f"id: {_one_line(frame.id, 'id')}")
    if frame.retry is not None:
        lines.append(f"retry: {frame.retry}")
    if "\n" in data or "\r" in data:
        lines += [f"data: {line}" for line in _LINE_END.split(data)]
    else:
        lines.append(f"data: {data}")
    # A lone surrogate has no UTF-8 form; "backslashreplace" writes the escape that JSON reads.
    return ("\n".join(lines) + "\n\n").encode("utf-8", "backslashreplace")


def _one_line(text: str, what: str) -> str:
    if _LINE_END.search(text) or "\0" in text:
        raise ConfigurationError(f"An SSE {what} cannot contain a line break or NUL: {text[:80]!r}")
    return text


def _decode_event(text: str) -> tuple[Frame | None, int]:
    """
    The frame of one event, read line by line, and the number of lines that add nothing to it.

    An event without a data field has no frame. llama.cpp writes an error as a field of its own:
    `error: {…}`.
    """
    data: list[str] = []
    event = ident = None
    retry = None
    unread = 0
    lines = text.split("\n")
    for line in lines:
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
        elif name == "retry" and (number := read_integer(value, digits=_RETRY_DIGITS)) is not None:
            retry = number
        else:
            unread += 1
    if not data:
        return None, len(lines)
    return Frame(data="\n".join(data), event=event, id=ident, retry=retry), unread


def _error_body(text: str) -> str:
    """The text of an `error` field as the body of an error response."""
    try:
        error = loads(text)
    except DecodeError:
        error = text
    is_body = isinstance(error, dict) and "error" in error
    return dump_text(error if is_body else {"error": error})
