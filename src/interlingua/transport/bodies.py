"""Bodies that are sent piece by piece: files, and anything that yields bytes."""

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
    The bytes of a file, read in a thread as they are sent.

    It can be sent any number of times, so that a failed attempt may be repeated.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.size = self.path.stat().st_size
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
    A streamed body on its way, which knows why it could not be read.

    HTTP libraries report an error of the body as a lost connection. `error` is what happened, and
    is a `ConfigurationError` unless the body raised an error of ours.
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
            self.error = ConfigurationError(f"the body of the request cannot be read: {error!r}")
            raise self.error from error
        if self._size is not None and sent != self._size:
            self.error = ConfigurationError(
                f"the body of the request says that its size is {self._size} bytes, and has another"
            )
            raise self.error


async def read_whole(request: HttpRequest) -> bytes:
    """The body of the request, read to its end."""
    if isinstance(request.body, bytes):
        return request.body
    return b"".join([piece async for piece in OutgoingBody(request)])


async def with_whole_body(request: HttpRequest) -> HttpRequest:
    """The request with its body read to the end, for transports that keep what was sent."""
    return replace(request, body=await read_whole(request))


def length_headers(request: HttpRequest) -> dict[str, str]:
    """The headers of the request, with the length of a streamed body whose size is known."""
    headers = dict(request.headers)
    if request.body_size is not None and not isinstance(request.body, bytes):
        headers["content-length"] = str(request.body_size)
    return headers


def _open(path: Path) -> BinaryIO:
    return path.open("rb")
