"""Files that providers store: upload, get, list, delete, download, wait."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Mapping
from contextlib import aclosing
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, Unpack

from interlingua.api.modalities.perform import MediaCall, MediaOptions
from interlingua.api.modalities.polling import check_interval, poll
from interlingua.api.modalities.references import find_stored
from interlingua.api.run.clients import find_client
from interlingua.client.configured import find_adapter
from interlingua.providers.rows import row_name
from interlingua.runtime.callbacks import settle
from interlingua.spec.check import describe, refuse
from interlingua.spec.errors import ConfigurationError, InvalidRequestError
from interlingua.spec.modalities.files import (
    ByteProgress,
    DeletedFile,
    FileInput,
    ListFilesInput,
    StoredFile,
    UploadInput,
)
from interlingua.transport.bodies import FileBody
from interlingua.transport.downloads import save
from interlingua.transport.uploads import ObservedBody, SpoolFile, open_file, read_head, spool
from interlingua.wire.media import media_type_for

FileSource: TypeAlias = "bytes | PathLike[str] | BinaryIO | AsyncIterable[bytes]"
"""Bytes, a `Path`, a file that is open for reading bytes, or an async iterable of bytes."""
FileName: TypeAlias = "StoredFile | str"
"""A file, its `reference` (`openai:file-…`), or its id together with `provider=`."""

READ_LIMIT = 64 * 1024 * 1024
"""How many bytes `read` returns at most, by default."""


async def upload(
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
    """
    Store a file at a provider, which is named by itself or by one of its models.

        file = await upload("gemini", Path("talk.mp4"))
        file = await wait(file)
        result = await generate("gemini:gemini-2.5-flash", [file.part(), "Summarise it."])

    A file of any size is read while it is sent. The media type is found from the first bytes and
    the name, if it is not given. `purpose` is the provider's word for what the file is for, and
    `expires_after` is in seconds. `on_progress(sent, total)` may be async; after a failed attempt
    it starts again at the beginning.
    """
    texts = {"file_name": file_name, "media_type": media_type, "purpose": purpose}
    given: object  # a caller without a type checker may pass anything
    for name, given in texts.items():
        if given is not None and not isinstance(given, str):
            refuse(name, "a string", given)
    call = _call(target, options)
    spooled = SpoolFile()

    async def work() -> StoredFile:
        content, name = await _content(source, spooled)
        chosen = file_name or name or "file"
        kind = media_type or media_type_for(await read_head(content), chosen)
        value = UploadInput(
            content=_observed(content, on_progress),
            file_name=chosen,
            media_type=kind,
            purpose=purpose,
            expires_after=expires_after,
            **call.fields(),
        )
        stored: StoredFile = await call.perform("upload_file", value)
        return stored

    try:
        return await call.run(work())
    finally:
        spooled.discard()


async def get(file: FileName, **options: Unpack[MediaOptions]) -> StoredFile:
    """Return the file as its provider describes it now."""
    call, file_id = _find(file, options)
    value = FileInput(file_id=file_id, **call.fields())
    stored: StoredFile = await call.run(call.perform("retrieve_file", value))
    return stored


async def list_files(
    target: str, *, purpose: str | None = None, **options: Unpack[MediaOptions]
) -> list[StoredFile]:
    """List all files that a provider stores for this key; every page is read."""
    call = _call(target, options)
    value = ListFilesInput(purpose=purpose, **call.fields())
    files: list[StoredFile] = await call.run(call.perform("list_files", value))
    return files


async def delete(file: FileName, **options: Unpack[MediaOptions]) -> DeletedFile:
    """Delete a file at its provider."""
    call, file_id = _find(file, options)
    value = FileInput(file_id=file_id, **call.fields())
    deleted: DeletedFile = await call.run(call.perform("delete_file", value))
    return deleted


async def download(
    file: FileName,
    path: str | PathLike[str],
    *,
    on_progress: ByteProgress | None = None,
    **options: Unpack[MediaOptions],
) -> int:
    """
    Write the content of a file to this path as it arrives; returns the number of bytes.

    The file appears at the path when it is complete. Some providers return only the files that
    their models have made.
    """
    call, file_id = _find(file, options)
    value = FileInput(file_id=file_id, **call.fields())
    total = file.size if isinstance(file, StoredFile) else None
    async with aclosing(call.stream("download_file", value)) as chunks:
        return await save(chunks, path, total=total, on_progress=on_progress)


async def read(
    file: FileName, *, max_bytes: int = READ_LIMIT, **options: Unpack[MediaOptions]
) -> bytes:
    """Return the content of a file, in memory; more than `max_bytes` are an error."""
    call, file_id = _find(file, options)
    value = FileInput(file_id=file_id, **call.fields())
    content = bytearray()
    async with aclosing(call.stream("download_file", value)) as chunks:
        async for chunk in chunks:
            content += chunk
            if len(content) > max_bytes:
                raise ConfigurationError(
                    f"The file {file_id!r} is larger than {max_bytes} bytes. Pass a larger "
                    "max_bytes, or use `download`."
                )
    return bytes(content)


async def wait(
    file: FileName, *, poll_interval: float | None = None, **options: Unpack[MediaOptions]
) -> StoredFile:
    """
    Wait until the provider has processed a file and requests can refer to it.

    Returns at once if it is ready. Raises `InvalidRequestError` if the provider cannot process it.
    `timeout` limits the wait.
    """
    check_interval(poll_interval)
    if isinstance(file, StoredFile) and file.state == "ready":
        return file
    call, file_id = _find(file, options)
    value = FileInput(file_id=file_id, **call.fields())

    async def ask() -> StoredFile:
        stored: StoredFile = await call.perform("retrieve_file", value)
        return stored

    stored = await call.run(
        poll(ask, lambda each: each.state != "processing", interval=poll_interval or _INTERVAL)
    )
    if stored.state == "failed":
        reason = stored.error or "no reason was given"
        message = f"The file {stored.id!r} could not be processed: {reason}"
        raise InvalidRequestError(message, provider=stored.provider, raw=stored.raw)
    return stored


_INTERVAL = 1.0  # seconds


# What is uploaded.


async def _content(source: Any, spooled: SpoolFile) -> tuple[bytes | FileBody, str | None]:
    """The content, which can be sent repeatedly, and its name."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        if not source:
            raise ConfigurationError("The bytes to upload are empty.")
        return bytes(source), None
    if isinstance(source, PathLike):
        path = Path(fspath(source))
        return await open_file(path), path.name
    if isinstance(source, AsyncIterable) or callable(getattr(source, "read", None)):
        name = getattr(source, "name", None)
        content = await spool(source, spooled)
        return content, Path(name).name if isinstance(name, str) else None
    raise ConfigurationError(
        f"A file to upload must be bytes, a Path, an open file or an async iterable of bytes, not "
        f"{describe(source)}. For the name of a file, use pathlib.Path(name)."
    )


def _observed(
    content: bytes | FileBody, on_progress: ByteProgress | None
) -> bytes | FileBody | ObservedBody:
    if on_progress is None:
        return content
    report: Callable[[int, int | None], Any] = on_progress

    async def observe(sent: int) -> None:
        await settle(report(sent, body.size))

    body = ObservedBody(content, observe)
    return body


# Where.


def _call(target: str, options: MediaOptions) -> MediaCall:
    """A call at a provider, or at the provider of a model."""
    name: object = target
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"Name a provider or a model, not {describe(target)}.")
    if options.get("provider") is None and ":" not in target and _is_provider(target, options):
        return MediaCall("", {**options, "provider": target})
    return MediaCall(target, options)


def _is_provider(name: str, options: Mapping[str, Any]) -> bool:
    adapters = find_client(options.get("client")).calls.adapters
    return (find_adapter(name, adapters) or row_name(name)) is not None


def _find(file: object, options: MediaOptions) -> tuple[MediaCall, str]:
    """The call and the id of a file."""
    return find_stored(file, StoredFile, options, word="file", example="openai:file-abc")
