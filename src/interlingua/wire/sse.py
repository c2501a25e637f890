"""
Server-sent events: bytes <-> frames.

The rules are WHATWG's: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import re

from interlingua.spec.contracts import Frame
from interlingua.spec.errors import ConfigurationError, StreamError

MAX_EVENT_BYTES = 16 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(r"\r\n|\r|\n")
# The two usual shapes, `data` alone and `event` then `data`, else every line up to a blank one.
# One search over a whole block costs half of looking at each line. Few lines are taken line by
# line, which is fast; many are not, because a repeated group remembers each round. No group is
# possessive: before CPython 3.11.5 those keep the position of a failed last try.
_find_events = re.compile(
    r"(?:event: ?+(.++)\n)?data: ?+(.*+)\n\n|((?:.++\n){0,8}\n|(?s:.+?)\n\n)",
).findall
_RETRY_DIGITS = 18  # more would overflow the peers that keep it as an int64


class SSEDecoder:
    """
    Cut bytes into frames.

    Chunk boundaries never show: feeding one byte at a time gives the same frames as feeding
    the whole body, and the same error after them.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._buffer = bytearray()  # what follows the last whole event, line ends all \n
        self._after_cr = False
        self._at_start = True
        self._failure: StreamError | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames this chunk completes; `StreamError` if an event is too large."""
        if self._failure is not None:
            raise self._failure
        if self._after_cr or b"\r" in chunk:
            chunk = self._unify_line_ends(chunk)
        buffer = self._buffer
        if not buffer and not self._at_start and chunk.endswith(b"\n\n"):
            block: bytes | bytearray = chunk  # whole events, as most networks deliver them
        else:
            searched = len(buffer)
            buffer += chunk
            if self._at_start:
                if not self._drop_bom():
                    return []
                searched = 0
            end = buffer.rfind(b"\n\n", searched - 1 if searched else 0) + 2
            if end < 2:
                return self._wait([])
            block = buffer[:end]
            del buffer[:end]
        if len(block) > self._limit:
            return self._feed_large(block)
        frames = _decode_block(block.decode("utf-8", "replace"))
        return self._wait(frames) if buffer else frames

    def finish(self) -> list[Frame]:
        """
        End of body: the event that no blank line closed, if it has data.

        Many servers leave the last blank line out, and some the last line end. A line cut
        before its data is no event; one cut later is for the reader of the data to refuse.
        """
        if self._failure is not None:
            raise self._failure
        text = self._buffer.decode("utf-8", "replace")
        self._buffer.clear()
        frame = _decode_event(text.strip("\n"))
        if frame is None or not (frame.data.strip("\n") or text.endswith("\n")):
            return []
        return [frame]

    def _unify_line_ends(self, chunk: bytes) -> bytes:
        if not chunk:
            return chunk
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]  # the second half of a CRLF
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _drop_bom(self) -> bool:
        """Whether the start is known; it is not while it may still become a BOM."""
        start = self._buffer[:3]
        if start == _BOM:
            del self._buffer[:3]
        elif _BOM.startswith(start):
            return False
        self._at_start = False
        return True

    def _wait(self, frames: list[Frame]) -> list[Frame]:
        """Keep the unfinished event, unless it is already too large."""
        if self._buffer.startswith(b"\n"):  # blank lines before an event say nothing
            self._buffer = self._buffer.lstrip(b"\n")
        if len(self._buffer) > self._limit:
            return self._fail(frames)
        return frames

    def _feed_large(self, block: bytes | bytearray) -> list[Frame]:
        frames: list[Frame] = []
        for event in block.split(b"\n\n"):
            if len(event.strip(b"\n")) >= self._limit:  # its last line end counts too
                return self._fail(frames)
            frames += _decode_block(event.decode("utf-8", "replace") + "\n\n")
        return self._wait(frames)

    def _fail(self, frames: list[Frame]) -> list[Frame]:
        self._buffer.clear()
        self._failure = StreamError(
            f"an SSE event is larger than the limit of {self._limit} bytes", retryable=False
        )
        if not frames:
            raise self._failure
        return frames  # what came before the failure first; the next call raises


def encode_sse(frame: Frame) -> bytes:
    """
    The bytes of one frame.

    Data may have several lines. `StreamError` for a line break in a name or id, which would
    let it write fields of its own.
    """
    lines: list[str] = []
    if frame.event:
        lines.append(f"event: {_one_line(frame.event, 'event name')}")
    if frame.id is not None:
        lines.append(f"id: {_one_line(frame.id, 'id')}")
    if frame.retry is not None:
        lines.append(f"retry: {frame.retry}")
    lines += [f"data: {line}" for line in _LINE_END.split(frame.data)]
    # a lone surrogate cannot be UTF-8; this writes it as the escape that JSON reads
    return ("\n".join(lines) + "\n\n").encode("utf-8", "backslashreplace")


def _one_line(text: str, what: str) -> str:
    if _LINE_END.search(text) or "\0" in text:
        raise ConfigurationError(f"An SSE {what} cannot contain a line break or NUL: {text[:80]!r}")
    return text


def _decode_block(text: str) -> list[Frame]:
    """The frames of whole events."""
    frames: list[Frame] = []
    for event, data, other in _find_events(text):
        if not other:
            frames.append(Frame(data=data, event=event or None))
        elif (frame := _decode_event(other.strip("\n"))) is not None:
            frames.append(frame)
    return frames


def _decode_event(text: str) -> Frame | None:
    """One event line by line; None if it has no data field."""
    data: list[str] = []
    event = ident = None
    retry = None
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            event = value or None
        elif name == "id" and "\0" not in value:
            ident = value
        elif name == "retry" and value.isascii() and value.isdigit():
            retry = int(value) if len(value) <= _RETRY_DIGITS else retry
    return Frame(data="\n".join(data), event=event, id=ident, retry=retry) if data else None
