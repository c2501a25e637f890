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
from interlingua.wire.json_text import dump_text, loads

_LIMITS = Limits()
_MAX_LINES = 100_000  # of one event; each line takes time, and the event is read in one step

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
            frames, f"An SSE event is larger than {self._limit} bytes. {allow('event')}"
        )

    def _fail_lines(self, frames: list[Frame]) -> list[Frame]:
        return self._fail(frames, f"An SSE event has more than {_MAX_LINES} lines.")

    def _fail_events(self, frames: list[Frame]) -> list[Frame]:
        return self._fail(frames[: self._room], too_many(self._max_events))

    def _fail(self, frames: list[Frame], why: str) -> list[Frame]:
        self._buffer.clear()
        self._failure = StreamError(why, retryable=False)
        if not frames:
            raise self._failure
        return frames  # frames before the failure are delivered first; the next call raises


def encode_sse(frame: Frame) -> bytes:
    """
    Return the bytes of one frame.

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
