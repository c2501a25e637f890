"""Bodies: streamed requests, decompression, and limits on the size of responses."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import ConfigurationError, DecodeError, SDKError

_PIECE = 256 * 1024


class FileBody:
    """
    The bytes of a file, read in a thread while they are sent.

    It can be sent repeatedly, so a failed attempt can be retried.
    """

    def __init__(self, path: str | Path) -> None:
        self.path: Path = Path(path)
        try:
            self.size: int = self.path.stat().st_size
        except OSError as error:
            raise ConfigurationError(f"cannot read {self.path}: {error.strerror}") from error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        file = await asyncio.to_thread(self.path.open, "rb")
        try:
            while piece := await asyncio.to_thread(file.read, _PIECE):
                yield piece
        finally:
            file.close()


class OutgoingBody:
    """
    A streamed body that keeps the error that occurred while it was read.

    HTTP libraries report such an error as a lost connection. `error` is the original one: an
    `SDKError` that the body raised, or a `ConfigurationError` for any other exception.
    """

    def __init__(self, request: HttpRequest) -> None:
        self._body = request.body
        self._size = request.body_size
        self.error: SDKError | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        sent = 0
        try:
            if isinstance(self._body, bytes):
                yield self._body
                return
            async for piece in self._body:
                sent += len(piece)
                if self._size is not None and sent > self._size:
                    break
                if piece:
                    yield piece
        except SDKError as error:
            self.error = error
            raise
        except Exception as error:
            self.error = ConfigurationError(f"cannot read the body of the request: {error!r}")
            raise self.error from error
        if self._size is not None and sent != self._size:
            self.error = ConfigurationError(
                f"the body of the request does not have its declared size of {self._size} bytes"
            )
            raise self.error


async def read_whole(request: HttpRequest) -> bytes:
    """The body of the request, read to its end."""
    if isinstance(request.body, bytes):
        return request.body
    return b"".join([piece async for piece in OutgoingBody(request)])


async def with_whole_body(request: HttpRequest) -> HttpRequest:
    """The request with its body as bytes, for transports that store requests."""
    return replace(request, body=await read_whole(request))


def sent_headers(request: HttpRequest) -> Mapping[str, str]:
    """The headers of the request, with those that its body and its connection need."""
    is_sized = request.body_size is not None and not isinstance(request.body, bytes)
    if request.keep_alive and not is_sized:
        return request.headers
    headers = dict(request.headers)
    if is_sized:
        headers["content-length"] = str(request.body_size)
    if not request.keep_alive:
        headers["connection"] = "close"
    return headers


ACCEPTED = "gzip, deflate"
"""The value of the `accept-encoding` header."""

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
