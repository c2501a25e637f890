"""Bodies: streamed requests, decompression, and limits on the size of responses."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Limits
from interlingua.spec.errors import ConfigurationError, DecodeError, SDKError

_PIECE = 256 * 1024
_INFLATED_PIECE = 32 * 1024  # its reader may have to decode thousands of events


class FileBody:
    """
    The bytes of a file, read in a thread while they are sent.

    It can be sent repeatedly, so a failed attempt can be retried.
    """

    def __init__(self, path: str | Path) -> None:
        self.path: Path = Path(path)
        try:
            self.size: int = self.path.stat().st_size
        except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(f"Cannot read {self.path!s}: {reason}") from error

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
            self.error = ConfigurationError(f"Cannot read the body of the request: {error!r}")
            raise self.error from error
        if self._size is not None and sent != self._size:
            self.error = ConfigurationError(
                f"The body of the request does not have its declared size of {self._size} bytes."
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
    """The headers of the request, and the headers that its body and its connection need."""
    is_sized = not isinstance(request.body, bytes) and request.body_size is not None
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


_STEPS = 8  # members of a gzip file, perhaps empty ones, after which other tasks run


class Inflater:
    """Decompresses gzip and deflate; refuses more than `limit` bytes in all."""

    def __init__(self, limit: int) -> None:
        self._limit = self._room = limit
        self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._is_first = True
        self._first_byte = b""  # one byte alone does not show which header it belongs to

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Small pieces of the result, some empty; `DecodeError` if there are too many in all."""
        data = self._first_byte + data
        self._first_byte = b""
        if self._is_first and len(data) == 1:
            self._first_byte = data
            return
        has_more = bool(data)
        while has_more:
            piece = self._step(data)
            self._room -= len(piece)
            if self._room < 0:
                raise DecodeError(
                    f"The response is larger than {self._limit} bytes after decompression. "
                    "To allow it, pass limits=Limits(inflated=…) to the adapter or the transport."
                )
            yield piece
            if not self._decompressor.eof:
                data = self._decompressor.unconsumed_tail
                has_more = bool(data) or len(piece) == _INFLATED_PIECE  # zlib may hold output
                continue
            data = self._decompressor.unused_data
            has_more = bool(data)
            if has_more:  # a gzip file may have several members (RFC 1952)
                self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)

    @property
    def is_complete(self) -> bool:
        """Whether the compressed data has ended."""
        return not self._first_byte and (self._is_first or self._decompressor.eof)

    def _step(self, data: bytes) -> bytes:
        try:
            piece = self._decompressor.decompress(data, _INFLATED_PIECE)
        except zlib.error:
            if not self._is_first:
                raise DecodeError("The response is not valid gzip or deflate data.") from None
            # Some servers send "deflate" without the zlib header that RFC 9110 requires.
            self._decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
            self._is_first = False
            return self._step(data)
        self._is_first = False
        return piece


async def inflate(chunks: AsyncIterable[bytes], inflater: Inflater) -> AsyncIterator[bytes]:
    """
    The decompressed body, piece by piece; `EOFError` if it is incomplete.

    A few kilobytes may become many megabytes, so other tasks run between the pieces.
    """
    async for chunk in chunks:
        for step, piece in enumerate(inflater.feed(chunk), 1):
            if piece:
                yield piece
            if len(piece) == _INFLATED_PIECE or step % _STEPS == 0:
                await asyncio.sleep(0)
    if not inflater.is_complete:
        raise EOFError


def inflater_for(headers: Mapping[str, str], limits: Limits) -> Inflater | None:
    """The decompressor for a reply; None if it is not compressed; `DecodeError` if unsupported."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in {"", "identity"}:
        return None
    if coding in {"gzip", "x-gzip", "deflate"}:
        return Inflater(limits.inflated)
    raise DecodeError(
        f"The response has content-encoding {coding!r}. Only {ACCEPTED} was accepted."
    )
