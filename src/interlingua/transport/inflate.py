"""Compressed bodies -> bytes, in bounded pieces."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from interlingua.spec.errors import DecodeError

ACCEPTED = "gzip, deflate"
"""What is sent as `accept-encoding`."""

_PIECE = 256 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class Inflater:
    """Unpacks gzip and deflate; a small body cannot blow up to more than the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._unpack = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._is_first = True
        self._held = b""  # a first byte alone does not tell which form it is

    def feed(self, data: bytes, room: int | None = None) -> bytes:
        """What these bytes unpack to; `DecodeError` if that is more than what is left of room."""
        room = self._limit if room is None else room
        data = self._held + data
        self._held = b""
        if self._is_first and len(data) == 1:
            self._held = data
            return b""
        pieces: list[bytes] = []
        size = 0
        while data:
            piece = self._step(data)
            size += len(piece)
            if size > room:
                raise DecodeError(
                    f"the reply unpacks to more than {self._limit} bytes; "
                    "give the transport a larger max_body if that is right"
                )
            pieces.append(piece)
            data = self._unpack.unconsumed_tail
            if not data and self._unpack.eof and (data := self._unpack.unused_data):
                self._unpack = zlib.decompressobj(_GZIP_OR_ZLIB)  # gzip may have several members
        return b"".join(pieces)

    def finish(self) -> None:
        """End of body: `EOFError` if the packed data was not at its end."""
        if self._held or not (self._is_first or self._unpack.eof):
            raise EOFError

    def _step(self, data: bytes) -> bytes:
        try:
            piece = self._unpack.decompress(data, _PIECE)
        except zlib.error:
            if not self._is_first:
                raise DecodeError("the reply is not the gzip or deflate it says it is") from None
            # some servers say deflate and leave out the zlib header
            self._unpack = zlib.decompressobj(-zlib.MAX_WBITS)
            self._is_first = False
            return self._step(data)
        self._is_first = False
        return piece


def inflater_for(headers: Mapping[str, str], limit: int) -> Inflater | None:
    """What unpacks this reply; None if it is not packed, `DecodeError` if we cannot."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in {"", "identity"}:
        return None
    if coding in {"gzip", "x-gzip", "deflate"}:
        return Inflater(limit)
    raise DecodeError(f"the reply is packed as {coding!r}, which was not asked for")
