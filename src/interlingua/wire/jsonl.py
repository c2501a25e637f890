"""JSON Lines: one JSON value in each line."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua.spec.content import Json
from interlingua.spec.errors import DecodeError, StreamError
from interlingua.wire.json_text import dumps, loads

_MAX_LINE = 128 * 1024 * 1024


class JSONLDecoder:
    """
    Splits bytes into the values of their lines.

    Chunk boundaries do not change the result. A line that is cut or that is not JSON is a
    `StreamError` with the number of the line; the values before it were returned.
    """

    def __init__(self, max_line: int = _MAX_LINE) -> None:
        self._pieces: list[bytes] = []  # of the line that is not complete
        self._held = 0
        self._max_line = max_line
        self._line = 0
        self._failure: StreamError | None = None

    def feed(self, chunk: bytes) -> list[Json]:
        """The values of the lines that this chunk completes."""
        if self._failure is not None:
            raise self._failure
        first, newline, rest = chunk.partition(b"\n")
        if not newline:
            self._hold(chunk)
            return []
        *lines, last = rest.split(b"\n")
        values: list[Json] = []
        try:
            self._read(b"".join((*self._pieces, first)), values)
            self._pieces, self._held = [], 0
            for line in lines:
                self._read(line, values)
        except StreamError as error:
            self._failure = error
            if not values:
                raise
            return values
        self._hold(last)
        return values

    def finish(self) -> list[Json]:
        """The value of a last line without a line end; `StreamError` if it is cut."""
        if self._failure is not None:
            raise self._failure
        values: list[Json] = []
        self._read(b"".join(self._pieces), values)
        return values

    def _hold(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._held += len(piece)
        if self._held > self._max_line:
            self._failure = StreamError(f"Line {self._line + 1} has over {self._max_line} bytes.")
            self._pieces = []
            raise self._failure

    def _read(self, line: bytes, values: list[Json]) -> None:
        self._line += 1
        if not line.strip():
            return
        try:
            values.append(loads(line))
        except DecodeError as error:
            text = f"Line {self._line} is cut or is not JSON. {error.message}"
            raise StreamError(text) from None


def encode_lines(values: Iterable[Json]) -> bytes:
    """One line for each value."""
    return b"".join(dumps(value) + b"\n" for value in values)


def decode_lines(data: bytes) -> list[Json]:
    """The value of each line; `StreamError` as `JSONLDecoder` raises it."""
    decoder = JSONLDecoder()
    values = decoder.feed(data)
    return values + decoder.finish()
