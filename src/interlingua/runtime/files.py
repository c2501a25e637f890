"""
The user's folders, and files that are replaced as a whole.

What is kept for the user, only the user may read.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from interlingua.runtime.folders import config_path, data_path
from interlingua.transport.downloads import copy_mode


def config_folder() -> Path:
    """The configuration, keys, templates and fragments: `~/.config/interlingua`."""
    return Path(config_path(os.environ))


def data_folder() -> Path:
    """The log, sessions and the history of prompts: `~/.local/share/interlingua`."""
    return Path(data_path(os.environ))


def private_file(path: Path) -> Path:
    """Make the file, if there is none, so that only its owner can read and write it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    return path


def private_folder(path: Path) -> Path:
    """Make the folder, if there is none, so that only its owner can look into it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.mkdir(exist_ok=True, mode=0o700)
    return path


def replace_file(path: Path, data: bytes, *, keeps_mode: bool = True) -> None:
    """
    Write a file durably, all of it or nothing: no reader sees a part.

    Only its owner can read a new file, from its first byte on. A file that is there keeps its
    permissions, unless `keeps_mode` is False.
    """
    successor = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    descriptor = os.open(successor, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if keeps_mode:
            copy_mode(path, successor)
        successor.replace(path)
    except BaseException:
        with suppress(OSError):
            successor.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_private(path: Path, text: str) -> None:
    """Replace a file by one that only its owner can read; its folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(path, text.encode(), keeps_mode=False)


def sync_folder(folder: Path) -> None:
    """Make a renaming durable, where a folder can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
