"""A temporary file for a body that is too large for the memory."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from interlingua.spec.errors import ConfigurationError
from interlingua.transport.bodies import FileBody

_PIECE = 256 * 1024
"""How many bytes are collected before a thread writes them."""


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
