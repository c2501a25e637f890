"""
What an upload sends: files, bytes and streams, with progress, in bounded memory.

`SpoolFile` is the temporary file for a body that is too large for the memory.
"""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
import threading
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from interlingua.spec.contracts import Content
from interlingua.spec.errors import ConfigurationError
from interlingua.transport.bodies import FileBody

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


_PIECE = 256 * 1024
"""How many bytes are read, or collected before they are written, at a time."""
_HEAD = 4096

Chunks: TypeAlias = AsyncIterable[bytes] | BinaryIO
"""A stream of bytes: an async iterable, or a file that is open for reading bytes."""


class SpoolFile:
    """
    A temporary file that is written piece by piece, in threads, and then sent.

    The file is made when the first piece is full, and `discard` removes it.
    """

    def __init__(self) -> None:
        self.size: int = 0
        self._pieces: list[bytes] = []
        self._held = 0
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._is_discarded = False
        self._lock = threading.Lock()  # a cancelled task does not wait for its thread

    async def write(self, data: bytes) -> None:
        """Add bytes at the end."""
        self._pieces.append(data)
        self.size += len(data)
        self._held += len(data)
        if self._held >= _PIECE:
            await asyncio.to_thread(self._flush)

    async def body(self) -> bytes | FileBody:
        """All bytes: in memory if there are few, else as a file that can be sent repeatedly."""
        if self._path is None and self._held < _PIECE:
            return b"".join(self._pieces)
        return await asyncio.to_thread(self._finish)

    def discard(self) -> None:
        """Remove the file."""
        with self._lock:
            self._is_discarded = True
            self._pieces = []
            if self._file is not None:
                self._file.close()
            if self._path is not None:
                with suppress(OSError):
                    self._path.unlink()

    def _finish(self) -> FileBody:
        self._flush()
        with self._lock:
            if self._file is None or self._path is None:
                raise ConfigurationError("The temporary file was removed while it was written.")
            self._file.close()
            return FileBody(self._path)

    def _flush(self) -> None:
        with self._lock:
            if self._is_discarded:
                return
            try:
                if self._file is None:
                    number, name = tempfile.mkstemp(prefix="interlingua-", suffix=".spool")
                    self._path, self._file = Path(name), os.fdopen(number, "wb", 0)
                view = memoryview(b"".join(self._pieces))
                while view:
                    view = view[self._file.write(view) :]
            except OSError as error:
                folder = tempfile.gettempdir()
                raise ConfigurationError(
                    f"Cannot write a temporary file in {folder}: {error.strerror or error}. "
                    "The variable TMPDIR names another folder."
                ) from error
            self._pieces, self._held = [], 0


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
