"""Streamed request bodies: files, and any async iterable of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import replace

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import ConfigurationError, SDKError

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
        file = await asyncio.to_thread(_open, self.path)
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


def length_headers(request: HttpRequest) -> dict[str, str]:
    """The headers of the request, with `content-length` for a streamed body of known size."""
    headers = dict(request.headers)
    if request.body_size is not None and not isinstance(request.body, bytes):
        headers["content-length"] = str(request.body_size)
    return headers


def _open(path: Path) -> BinaryIO:
    return path.open("rb")
