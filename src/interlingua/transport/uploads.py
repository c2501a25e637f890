"""What an upload sends: files, bytes and streams, with progress, in bounded memory."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from interlingua.spec.contracts import Content
from interlingua.spec.errors import ConfigurationError
from interlingua.transport.bodies import FileBody
from interlingua.transport.spool import SpoolFile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_PIECE = 256 * 1024
_HEAD = 4096

Chunks: TypeAlias = AsyncIterable[bytes] | BinaryIO
"""A stream of bytes: an async iterable, or a file that is open for reading bytes."""


class ObservedBody:
    """A body that calls `observe` with the bytes read so far, each time from the beginning."""

    def __init__(
        self, content: bytes | FileBody, observe: Callable[[int], Awaitable[None]]
    ) -> None:
        self._content = content
        self._observe = observe
        self.size: int = len(content) if isinstance(content, bytes) else content.size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        content, sent = self._content, 0
        pieces = _cut(content) if isinstance(content, bytes) else content
        async for piece in pieces:
            yield piece
            sent += len(piece)
            await self._observe(sent)


async def _cut(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]


async def open_file(path: Path) -> FileBody:
    """The body of a regular file that is not empty; `ConfigurationError` for anything else."""
    return await asyncio.to_thread(_open_file, path)


def _open_file(path: Path) -> FileBody:
    body = FileBody(path.expanduser())
    # Opening a pipe may block for ever, and a device may be endless.
    if not stat.S_ISREG(body.path.stat().st_mode):
        raise ConfigurationError(f"Cannot read {path}: it is not a regular file.")
    if not body.size:
        raise ConfigurationError(f"Cannot read {path}: it is empty.")
    return body


async def spool(chunks: Chunks, file: SpoolFile) -> bytes | FileBody:
    """The whole of a stream, on disk if it is large, so that it can be sent repeatedly."""
    pieces = chunks if isinstance(chunks, AsyncIterable) else _read(chunks)
    piece: Any  # a caller without a type checker may yield anything
    async for piece in pieces:
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            kind = type(piece).__name__
            raise ConfigurationError(f"The stream to upload yielded a {kind}, not bytes.")
        await file.write(bytes(piece))
    if not file.size:
        raise ConfigurationError("The stream to upload is empty.")
    return await file.body()


async def _read(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, _PIECE):
        yield piece


async def read_head(content: Content) -> bytes:
    """The first bytes, which tell the type."""
    if isinstance(content, bytes):
        return content[:_HEAD]
    return await asyncio.to_thread(_head_of, content.path) if isinstance(content, FileBody) else b""


def _head_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)
