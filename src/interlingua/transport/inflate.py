"""Decompresses response bodies, with a limit on the decompressed size."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from interlingua.spec.errors import DecodeError

ACCEPTED = "gzip, deflate"
"""The value of the `accept-encoding` header."""

_PIECE = 256 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS  # zlib detects which header is there


class Inflater:
    """Decompresses gzip and deflate; protects against decompression bombs with `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._is_first = True
        self._first_byte = b""  # one byte alone does not show which header it belongs to

    def feed(self, data: bytes, room: int | None = None) -> bytes:
        """Decompress; raises `DecodeError` if the result is larger than `room` (or the limit)."""
        room = self._limit if room is None else room
        data = self._first_byte + data
        self._first_byte = b""
        if self._is_first and len(data) == 1:
            self._first_byte = data
            return b""
        pieces: list[bytes] = []
        size = 0
        while data:
            piece = self._step(data)
            size += len(piece)
            if size > room:
                raise DecodeError(
                    f"the response is larger than {self._limit} bytes after decompression; "
                    "to allow it, pass a larger max_body= to the transport"
                )
            pieces.append(piece)
            data = self._decompressor.unconsumed_tail
            if not data and self._decompressor.eof and (data := self._decompressor.unused_data):
                # a gzip file may have several members (RFC 1952)
                self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
        return b"".join(pieces)

    def finish(self) -> None:
        """End of body: raises `EOFError` if the compressed data is incomplete."""
        if self._first_byte or not (self._is_first or self._decompressor.eof):
            raise EOFError

    def _step(self, data: bytes) -> bytes:
        try:
            piece = self._decompressor.decompress(data, _PIECE)
        except zlib.error:
            if not self._is_first:
                raise DecodeError("the response is not valid gzip or deflate data") from None
            # Some servers send "deflate" without the zlib header that RFC 9110 requires.
            self._decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
            self._is_first = False
            return self._step(data)
        self._is_first = False
        return piece


def inflater_for(headers: Mapping[str, str], limit: int) -> Inflater | None:
    """The decompressor for a reply; None if it is not compressed; `DecodeError` if unsupported."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in {"", "identity"}:
        return None
    if coding in {"gzip", "x-gzip", "deflate"}:
        return Inflater(limit)
    raise DecodeError(f"the response has content-encoding {coding!r}; only {ACCEPTED} was accepted")
