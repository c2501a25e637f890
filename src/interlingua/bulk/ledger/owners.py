"""The owners of claims: processes, each with a file that it keeps locked as long as it lives."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from io import FileIO
from pathlib import Path
from uuid import uuid4

if sys.platform == "win32":
    import msvcrt

    def try_lock(file: FileIO) -> bool:
        """Lock a file for this process; False if another one has it. Closing it unlocks it."""
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(file: FileIO) -> bool:
        """Lock a file for this process; False if another one has it. Closing it unlocks it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class Owner:
    """The running process, as the others see it."""

    def __init__(self, folder: Path) -> None:
        """Make and lock the file of this process in a folder of this machine."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self.id: str = uuid4().hex
        self._path = self._place(self.id)
        # It is locked before it has its name: nobody finds it unlocked while its owner lives.
        scratch = self._path.with_suffix(".new")
        self._file = FileIO(scratch, "w")
        try_lock(self._file)
        scratch.rename(self._path)

    def _place(self, owner: str) -> Path:
        return self._folder / f"{owner}.lock"

    def is_dead(self, owner: str) -> bool:
        """
        Whether a process of this machine has ended without ending its claims.

        False if that cannot be known, because it is on another machine.
        """
        if owner == self.id:
            return False
        try:
            file = FileIO(self._place(owner), "r+")
        except OSError:
            return False
        with file:
            return try_lock(file)

    def is_alone(self) -> bool:
        """Whether no other process of this machine lives that has a file here."""
        owners = (path.stem for path in self._folder.glob("*.lock"))
        return all(owner == self.id or self.is_dead(owner) for owner in owners)

    def bury(self, owner: str) -> None:
        """Remove the file of a dead process, after its claims were ended."""
        with suppress(OSError):
            self._place(owner).unlink()

    def close(self) -> None:
        """Remove the file; the claims must have ended."""
        with suppress(OSError):
            self._path.unlink()
        self._file.close()


def machine_folder() -> Path:
    """Where processes of this machine find one another, for ledgers that are elsewhere."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    return Path(tempfile.gettempdir()) / f"interlingua-bulk-{user}"
