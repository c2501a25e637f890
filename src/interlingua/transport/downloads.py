"""Writes the bytes of a reply to a file, as they arrive."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import AsyncIterable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from uuid import uuid4

from interlingua.spec.check import refuse
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from interlingua.spec.modalities.files import ByteProgress

_PIECE = 256 * 1024
"""How many bytes are collected before a thread writes them."""

_HEAD = 4096
"""How many of the first bytes are given to a patch."""

Result = TypeVar("Result")
Patch: TypeAlias = Callable[[bytes, int], Mapping[int, bytes]]


async def save(
    chunks: AsyncIterable[bytes],
    path: str | os.PathLike[str],
    *,
    limit: int | None = None,
    total: int | None = None,
    on_progress: ByteProgress | None = None,
    patch: Patch | None = None,
) -> int:
    """
    Write the chunks to a file; returns its size.

    The file appears when it is complete: the bytes go to a temporary file beside it, which then
    replaces it, and which is removed after a failure or a cancellation. More than `limit` bytes
    are an error. `on_progress` is called with the bytes so far and with `total`. `patch` says
    what to write over at the end, from the first bytes and the size.
    """
    part = _PartFile(check_target(path), limit, patch)
    try:
        await _in_thread(part.open)
        async for chunk in chunks:
            part.add(chunk)
            if part.is_full:
                await _in_thread(part.write)
            if on_progress is not None:
                outcome = on_progress(part.size, total)
                if inspect.isawaitable(outcome):
                    await outcome
        await _in_thread(part.finish)
    except BaseException:
        await _in_thread(part.discard)
        raise
    return part.size


def as_path(path: str | os.PathLike[str]) -> Path:
    """The path of a file as a `Path`; `ConfigurationError` if it is another type."""
    given: object = path  # a caller without a type checker may pass anything
    if not isinstance(given, (str, os.PathLike)) or not isinstance(os.fspath(given), str):
        refuse("The path of a file", "a string or a Path", given)
    return Path(given)


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path of a file to write; `ConfigurationError` if no file can be there."""
    target = as_path(path)
    try:
        os.fsencode(target)
        if not target.name or target.is_dir():
            raise ConfigurationError(f"Cannot write {target}: it is a folder. Name a file.")
        if "\0" in str(target):
            raise ConfigurationError(f"Cannot write {str(target)!r}: it has a null byte.")
        if not target.parent.is_dir():
            raise ConfigurationError(f"Cannot write {target}: there is no folder {target.parent}.")
    except (OSError, UnicodeError) as error:  # the second if it is no name of a file here
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"Cannot write {str(target)!r}: {reason}.") from error
    return target


def others_can_read(path: Path) -> bool:
    """Whether another user of this machine can read the file; False where that is not known."""
    try:
        return os.name == "posix" and bool(path.stat().st_mode & 0o044)
    except OSError:
        return False


def copy_mode(target: Path, successor: Path) -> None:
    """Copy the permissions of the target, if it exists, to the file that will replace it."""
    with suppress(FileNotFoundError):
        successor.chmod(target.stat().st_mode & 0o777)


async def _in_thread(function: Callable[..., Result], *arguments: object) -> Result:
    """As `asyncio.to_thread`; if the task is cancelled, the function still runs to its end."""
    future = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait((future,))
        if not future.cancelled():
            future.exception()  # it would be reported as never retrieved
        raise


class _PartFile:
    """
    A file that is being written, beside its target. All methods but `add` run in threads.

    A task that is cancelled twice does not wait for its thread, hence the lock.
    """

    def __init__(self, target: Path, limit: int | None, patch: Patch | None = None) -> None:
        self.size: int = 0
        self._patch = patch
        self._head = b""
        self._target = target
        self._limit = limit
        self._path = target.with_name(f".{uuid4().hex}.part")
        self._lock = threading.Lock()
        self._file: FileIO | None = None
        self._is_discarded = False
        self._pieces: list[bytes] = []
        self._held = 0

    @property
    def is_full(self) -> bool:
        """Whether enough bytes were added to write them."""
        return self._held >= _PIECE

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if self._limit is not None and self.size > self._limit:
            raise ConfigurationError(
                f"The download is larger than {self._limit} bytes. {self._target} was not written."
            )
        if len(self._head) < _HEAD:
            self._head += chunk[:_HEAD]
        self._pieces.append(chunk)
        self._held += len(chunk)

    def open(self) -> None:
        with self._lock, _typed_errors(self._target):
            if not self._is_discarded:
                self._file = FileIO(self._path, "x")

    def write(self) -> None:
        with self._lock, _typed_errors(self._target):
            if self._file is None:
                return
            view = memoryview(b"".join(self._pieces))
            self._pieces, self._held = [], 0
            while view:
                view = view[self._file.write(view) :]

    def finish(self) -> None:
        """Write the rest, make the bytes durable, and put the file in the place of the target."""
        self.write()
        with self._lock, _typed_errors(self._target):
            if self._file is None:
                return
            if self._patch is not None:
                for at, data in self._patch(self._head, self.size).items():
                    self._file.seek(at)
                    self._file.write(data)
            os.fsync(self._file.fileno())
            self._file.close()
            copy_mode(self._target, self._path)
            self._path.replace(self._target)

    def discard(self) -> None:
        with self._lock:
            self._is_discarded = True
            if self._file is not None:
                self._file.close()
                self._file = None
                with suppress(OSError):
                    self._path.unlink(missing_ok=True)


@contextmanager
def _typed_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"Cannot write {target}: {error.strerror or error}.") from error
