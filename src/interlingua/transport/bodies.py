"""Bodies: streamed requests, decompression, and limits on the size of responses."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Limits
from interlingua.spec.errors import ConfigurationError, DecodeError, SDKError

_PIECE = 256 * 1024
_INFLATED_PIECE = 32 * 1024  # its reader may have to decode thousands of events
_BROTLI_PIECE = _INFLATED_PIECE // 2  # the library yields up to twice as much
_ZSTD_WINDOW = 23  # 8 MiB: no sender may ask a receiver for more (RFC 9659)


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

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        sent = 0
        try:
            if isinstance(self._body, bytes):
                yield self._body
                return
            async with _closed_at_end(aiter(self._body)) as pieces:
                async for piece in pieces:
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


@asynccontextmanager
async def _closed_at_end(pieces: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """Close a generator that is not read to its end here, not by the collector in a new task."""
    try:
        yield pieces
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


async def read_whole(request: HttpRequest) -> bytes:
    """The body of the request, read to its end."""
    if isinstance(request.body, bytes):
        return request.body
    return b"".join([piece async for piece in OutgoingBody(request)])


async def with_whole_body(request: HttpRequest) -> HttpRequest:
    """The request with its body as bytes, for transports that store requests."""
    return replace(request, body=await read_whole(request))


_BODILESS = ("GET", "HEAD", "OPTIONS", "TRACE")


def sent_headers(request: HttpRequest) -> dict[str, str]:
    """The headers of the request, in lower case, with those of its body and its connection."""
    headers, size = dict(request.headers), request.body_size
    if not "".join(headers).islower():
        headers = {name.lower(): value for name, value in headers.items()}
    # With a length and chunks, or with two lengths, some servers would see two requests.
    headers.pop("content-length", None)
    headers.pop("transfer-encoding", None)
    if size is None:
        headers["transfer-encoding"] = "chunked"
    elif size or request.method not in _BODILESS:
        headers["content-length"] = str(size)
    if not request.keep_alive:
        headers["connection"] = "close"
    return headers


_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS  # zlib detects which header is there


_STEPS = 8  # members of a gzip file, perhaps empty ones, after which other tasks run


class Inflater:
    """Decompresses gzip and deflate; refuses more than `limit` bytes in all."""

    def __init__(self, limit: int) -> None:
        self._limit = self._room = limit
        self._decompressor: Any = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._is_first = True
        self._first_byte = b""  # one byte alone does not show which header it belongs to

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Small pieces of the result, some empty; `DecodeError` if there are too many in all."""
        rest: bytes | None = self._begin(data)
        while rest is not None:
            piece, rest = self._step(rest)
            self._room -= len(piece)
            if self._room < 0:
                raise DecodeError(
                    f"The response is larger than {self._limit} bytes after decompression. "
                    "To allow it, pass limits=Limits(inflated=…) to the adapter or the transport."
                )
            yield piece

    @property
    def is_complete(self) -> bool:
        """Whether the compressed data has ended."""
        return not self._first_byte and (self._is_first or self._decompressor.eof)

    def _begin(self, data: bytes) -> bytes | None:
        data = self._first_byte + data
        is_short = self._is_first and len(data) == 1
        self._first_byte = data if is_short else b""
        return None if is_short or not data else data

    def _step(self, data: bytes) -> tuple[bytes, bytes | None]:
        """A piece of the result, and the data for the next step; None if more must arrive."""
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
        if self._decompressor.eof:
            rest = self._decompressor.unused_data
            if rest:  # a gzip file may have several members (RFC 1952)
                self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
            return piece, rest or None
        rest = self._decompressor.unconsumed_tail
        has_more = bool(rest) or len(piece) == _INFLATED_PIECE  # zlib may hold output
        return piece, rest if has_more else None


class ZstdInflater(Inflater):
    """The same for zstd, with the module of Python 3.14 or its backport."""

    def __init__(self, limit: int, library: Any) -> None:
        super().__init__(limit)
        self._library = library
        self._options = {library.DecompressionParameter.window_log_max: _ZSTD_WINDOW}
        self._decompressor = library.ZstdDecompressor(options=self._options)

    def _begin(self, data: bytes) -> bytes | None:
        return data or None

    def _step(self, data: bytes) -> tuple[bytes, bytes | None]:
        self._is_first = False
        if self._decompressor.eof:  # several frames may follow each other (RFC 8878)
            self._decompressor = self._library.ZstdDecompressor(options=self._options)
        try:
            piece = self._decompressor.decompress(data, _INFLATED_PIECE)
        except self._library.ZstdError:
            raise DecodeError("The response is not valid zstd data.") from None
        if self._decompressor.eof:
            return piece, self._decompressor.unused_data or None
        return piece, None if self._decompressor.needs_input else b""


class BrotliInflater(Inflater):
    """The same for Brotli."""

    def __init__(self, limit: int, library: Any) -> None:
        super().__init__(limit)
        self._library = library
        self._decompressor = library.Decompressor()

    @property
    def is_complete(self) -> bool:
        """Whether the compressed data has ended."""
        return self._is_first or bool(self._decompressor.is_finished())

    def _begin(self, data: bytes) -> bytes | None:
        return data or None

    def _step(self, data: bytes) -> tuple[bytes, bytes | None]:
        self._is_first = False
        try:
            piece = self._decompressor.process(data, output_buffer_limit=_BROTLI_PIECE)
        except self._library.error:
            raise DecodeError("The response is not valid Brotli data.") from None
        # It may hold output, also if it could accept more data.
        return piece, b"" if piece and not self._decompressor.is_finished() else None


@cache
def _inflaters() -> Mapping[str, Callable[[int], Inflater]]:
    """How each coding is decompressed; some need a library, which may be installed or not."""
    found: dict[str, Callable[[int], Inflater]] = {"gzip": Inflater, "deflate": Inflater}
    brotli = _library("brotli")
    # Before 1.2 it had no way to limit what one step yields.
    if hasattr(getattr(brotli, "Decompressor", None), "can_accept_more_data"):
        found["br"] = partial(BrotliInflater, library=brotli)
    zstd = _library("compression.zstd") or _library("backports.zstd")
    if zstd is not None:
        found["zstd"] = partial(ZstdInflater, library=zstd)
    return found


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


def accepted_codings() -> str:
    """The value of the `accept-encoding` header."""
    return ", ".join(_inflaters())


async def inflate(chunks: AsyncIterable[bytes], inflater: Inflater) -> AsyncIterator[bytes]:
    """
    The decompressed body, piece by piece; `EOFError` if it is incomplete.

    A few kilobytes may become many megabytes, so other tasks run between the pieces.
    """
    async for chunk in chunks:
        for step, piece in enumerate(inflater.feed(chunk), 1):
            if piece:
                yield piece
            if len(piece) > _INFLATED_PIECE // 2 or step % _STEPS == 0:
                await asyncio.sleep(0)
    if not inflater.is_complete:
        raise EOFError


def inflater_for(headers: Mapping[str, str], limits: Limits) -> Inflater | None:
    """The decompressor for a reply; None if it is not compressed; `DecodeError` if unsupported."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in {"", "identity"}:
        return None
    make = _inflaters().get(coding.removeprefix("x-"))
    if make is not None:
        return make(limits.inflated)
    raise DecodeError(
        f"The response has content-encoding {coding!r}. Only {accepted_codings()} was accepted."
    )
