"""
A stream that is one JSON array, object by object: bytes -> frames.

Gemini without `alt=sse` sends its answers in this form.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from interlingua.spec.contracts import Frame
from interlingua.spec.defaults import Limits
from interlingua.spec.errors import StreamError
from interlingua.wire.framing import allow, drop_bom, too_many

_LIMITS = Limits()
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
            self._failure = StreamError(f"The JSON stream ended {where}.")
            raise self._failure
        return []

    def _scan(self, frames: list[Frame]) -> None:
        begin = 0
        while self._depth or (begin := self._find_object(begin)) >= 0:
            end = self._find_end()
            if (len(self._buffer) if end < 0 else end) - begin > self._limit:
                raise StreamError(
                    f"A JSON object is larger than {self._limit} bytes. {allow('event')}",
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
            raise StreamError(f"Expected a JSON object in the stream, found {chr(byte)!r}.")

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
