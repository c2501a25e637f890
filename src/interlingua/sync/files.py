"""
The functions of `interlingua.files`, blocking.

Each has the parameters and results of the async function it names.
"""

from __future__ import annotations

import builtins
from os import PathLike
from typing import Unpack

from interlingua.api.modalities import files as async_files
from interlingua.api.modalities.files import FileName, FileSource
from interlingua.spec.modalities.files import ByteProgress, DeletedFile, StoredFile
from interlingua.sync.client import unwrap
from interlingua.sync.loop_thread import background
from interlingua.sync.media import MediaOptions

__all__ = ["delete", "download", "get", "list", "read", "upload", "wait"]


def upload(
    target: str,
    source: FileSource,
    *,
    file_name: str | None = None,
    media_type: str | None = None,
    purpose: str | None = None,
    expires_after: float | None = None,
    on_progress: ByteProgress | None = None,
    **options: Unpack[MediaOptions],
) -> StoredFile:
    """Like `interlingua.files.upload`, blocking."""
    return background.run(
        async_files.upload(
            target,
            source,
            file_name=file_name,
            media_type=media_type,
            purpose=purpose,
            expires_after=expires_after,
            on_progress=on_progress,
            **unwrap(options),
        )
    )


def get(file: FileName, **options: Unpack[MediaOptions]) -> StoredFile:
    """Like `interlingua.files.get`, blocking."""
    return background.run(async_files.get(file, **unwrap(options)))


def list(
    target: str, *, purpose: str | None = None, **options: Unpack[MediaOptions]
) -> builtins.list[StoredFile]:
    """Like `interlingua.files.list`, blocking."""
    return background.run(async_files.list_files(target, purpose=purpose, **unwrap(options)))


def delete(file: FileName, **options: Unpack[MediaOptions]) -> DeletedFile:
    """Like `interlingua.files.delete`, blocking."""
    return background.run(async_files.delete(file, **unwrap(options)))


def download(
    file: FileName,
    path: str | PathLike[str],
    *,
    on_progress: ByteProgress | None = None,
    **options: Unpack[MediaOptions],
) -> int:
    """Like `interlingua.files.download`, blocking."""
    work = async_files.download(file, path, on_progress=on_progress, **unwrap(options))
    return background.run(work)


def read(
    file: FileName,
    *,
    max_bytes: int = async_files.READ_LIMIT,
    **options: Unpack[MediaOptions],
) -> bytes:
    """Like `interlingua.files.read`, blocking."""
    return background.run(async_files.read(file, max_bytes=max_bytes, **unwrap(options)))


def wait(
    file: FileName, *, poll_interval: float | None = None, **options: Unpack[MediaOptions]
) -> StoredFile:
    """Like `interlingua.files.wait`, blocking."""
    return background.run(async_files.wait(file, poll_interval=poll_interval, **unwrap(options)))
