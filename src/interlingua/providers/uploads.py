"""
`upload="auto"`: large media of a request is stored at the provider while the run lasts.

A request without it whose body is larger than the provider accepts is an error before it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from interlingua.prepare.history.scan import HistoryScan
from interlingua.providers.operations import offers
from interlingua.providers.provider import Provider
from interlingua.runtime.cancel import finish
from interlingua.runtime.log import logger
from interlingua.spec.content import Document
from interlingua.spec.contracts import Content
from interlingua.spec.errors import ConfigurationError, InvalidRequestError, SDKError
from interlingua.spec.facts import Facts
from interlingua.spec.modalities.files import FileInput, StoredFile, UploadInput
from interlingua.spec.modalities.speech import TranscribeInput
from interlingua.spec.request import Request
from interlingua.transport.media import (
    MAX_FILE,
    MAX_FILES,
    Media,
    find_media,
    refuse_files,
    replace_media,
)
from interlingua.transport.uploads import open_file, read_head
from interlingua.wire.media import media_type_for

Perform = Callable[[str, Any], Awaitable[Any]]
"""Performs an operation of the adapter that sends the request."""
Item = TypeVar("Item")

_MEGABYTE = 1024 * 1024
_ROOM = 0.98  # of the limit is used: JSON adds some bytes to what is counted
_DELETE_SECONDS = 10.0
_READY_SECONDS = (0.2, 0.5, 1.0, 2.0)  # between two questions; the last one is repeated


class Place(NamedTuple):
    """Where a request is sent, as far as uploads need to know."""

    name: str
    """The key of the adapter in its client."""
    row: Provider
    facts: Facts
    perform: Perform
    reads_files: bool = True
    """Whether the adapter may read files that parts name by `path`."""


class Uploads:
    """
    The files that one run has stored at providers.

    Each is stored once, however many steps and attempts send it, and `close` deletes them all.
    """

    def __init__(self) -> None:
        self._files: dict[tuple[str, object], StoredFile] = {}
        self._places: list[tuple[Place, StoredFile]] = []
        self._held: list[bytes] = []  # so that the ids of their objects stay theirs
        self._lock = asyncio.Lock()

    async def place(self, request: Request, place: Place) -> Request:
        """The request with references in place of as much media as has to be stored."""
        if not place.reads_files:
            refuse_files(request)
        chosen = await asyncio.to_thread(_too_large, request, place)
        if not chosen:
            return request
        _check_offered(place)
        async with self._lock:  # two attempts may be under way at once
            files = {id(part): await self._store(part, place) for part in chosen}

        def refer(part: Media, _where: str) -> Media:
            return _reference(part, files[id(part)])

        return replace_media(request, lambda part: id(part) in files, refer)

    async def close(self) -> None:
        """Delete the files, also if the task is being cancelled; a failure is only logged."""
        places, self._places, self._files = self._places, [], {}
        if places:
            await finish(_delete_all(places))

    async def _store(self, part: Media, place: Place) -> StoredFile:
        key = (place.name, str(part.path) if part.path is not None else id(part.data))
        if key not in self._files:
            content, name = await _content(part)
            kind = part.media_type or media_type_for(await read_head(content), name)
            value = UploadInput(content=content, file_name=name, media_type=kind)
            file: StoredFile = await place.perform("upload_file", value)
            self._places.append((place, file))
            self._files[key] = await _until_ready(file, place)
            if part.data is not None:
                self._held.append(part.data)
        return self._files[key]


def _too_large(request: Request, place: Place) -> list[Media]:
    """The parts to store, largest first; the rest of the request is small enough then."""
    found = [part for _, part in find_media(request, _has_bytes)]
    sizes = {id(part): _size_of(part) for part in found}
    limit = place.row.sizes.request
    allowed = MAX_FILES if limit is None else min(limit * _ROOM, MAX_FILES)
    from_paths = sum(sizes[id(part)] for part in found if part.path is not None)
    total = HistoryScan(request.messages).rough_size + from_paths
    total += sum(sizes.values()) // 3  # base64
    able = [part for part in found if "file_id" in _sources(part, place.facts)]
    chosen: list[Media] = []
    for part in sorted(able, key=lambda each: -sizes[id(each)]):
        size = sizes[id(part)]
        is_file = part.path is not None and size > MAX_FILE
        if total <= allowed and not is_file:
            continue
        chosen.append(part)
        total -= size + size // 3
    return chosen


def _has_bytes(part: Media) -> bool:
    return part.data is not None or part.path is not None


def _size_of(part: Media) -> int:
    if part.data is not None:
        return len(part.data)
    try:
        return Path(part.path or "").expanduser().stat().st_size
    except (OSError, RuntimeError, ValueError):
        return 0  # it is reported when it is read


def _sources(part: Media, facts: Facts) -> tuple[str, ...]:
    return facts.history.media.get(part.kind, ("file_id",))


async def _content(part: Media) -> tuple[Content, str]:
    given = part.file_name if isinstance(part, Document) else None
    if part.data is not None:
        return part.data, given or part.kind
    path = Path(part.path or "")
    return await open_file(path), given or path.name


def _reference(part: Media, file: StoredFile) -> Media:
    stored = file.part()
    fields: dict[str, Any] = {
        "data": None,
        "path": None,
        "file_id": stored.file_id,
        "media_type": part.media_type or file.media_type,
        "extra": {**part.extra, **stored.extra},
    }
    if isinstance(part, Document):
        fields["file_name"] = None  # the file has it
    return replace(part, **fields)


async def _until_ready(file: StoredFile, place: Place) -> StoredFile:
    for delay in chain(_READY_SECONDS, repeat(_READY_SECONDS[-1])):
        if file.state == "ready":
            return file
        if file.state == "failed":
            reason = file.error or "no reason was given"
            raise InvalidRequestError(f"{place.name} cannot process a file: {reason}")
        await asyncio.sleep(delay)
        file = await place.perform("retrieve_file", FileInput(file_id=file.id))
    raise AssertionError("unreachable")


async def _delete_all(places: list[tuple[Place, StoredFile]]) -> None:
    await asyncio.gather(*(_delete(place, file) for place, file in places))


async def _delete(place: Place, file: StoredFile) -> None:
    try:
        async with asyncio.timeout(_DELETE_SECONDS):
            await place.perform("delete_file", FileInput(file_id=file.id))
    except (SDKError, TimeoutError) as error:
        logger.warning("Cannot delete the uploaded file %s at %s: %s", file.id, place.name, error)


async def closing(
    items: AsyncGenerator[Item, None], uploads: Uploads
) -> AsyncGenerator[Item, None]:
    """The items; at their end the uploads are closed."""
    async with closed(uploads), aclosing(items):
        async for item in items:
            yield item


@asynccontextmanager
async def closed(uploads: Uploads) -> AsyncIterator[Uploads]:
    """The uploads, which are deleted at the end of the block."""
    try:
        yield uploads
    finally:
        await uploads.close()


# Limits.


def check_request_size(size: int, row: Provider, request: Request) -> None:
    """Raise `ConfigurationError` if the body of a request is larger than its provider accepts."""
    limit = row.sizes.request
    if limit is None or size <= limit:
        return
    what = f"The request has {_megabytes(size)}, and {row.name} accepts {_megabytes(limit)}."
    if request.upload == "auto":
        advice = "What it has besides media that can be uploaded is too large."
    elif offers(row, "upload_file"):
        advice = (
            'Pass upload="auto" to store its media at the provider during the call, or store them '
            "with interlingua.files.upload and send file.part()."
        )
    else:
        advice = "Send less media."
    raise ConfigurationError(f"{what} {advice}")


def check_value_size(value: object, row: Provider) -> None:
    """Raise `ConfigurationError` if a file is larger than its provider accepts."""
    sizes = row.sizes
    if isinstance(value, UploadInput):
        _check_size("file", value.size, sizes.file, row, "stores at most", "Split it.")
    elif isinstance(value, TranscribeInput):
        size = len(value.audio.data or b"")
        advice = "Compress it or split it."
        _check_size("audio", size, sizes.audio, row, "transcribes at most", advice)


def check_body_size(size: int, row: Provider) -> None:
    """Raise `ConfigurationError` if the body of an operation is larger than is accepted."""
    limit = row.sizes.request
    if limit is not None and size > limit:
        advice = "Store its media with interlingua.files.upload, and pass file.part()."
        _check_size("request", size, limit, row, "accepts at most", advice)


def _check_size(
    what: str, size: int | None, limit: int | None, row: Provider, verb: str, advice: str
) -> None:
    if size is not None and limit is not None and size > limit:
        raise ConfigurationError(
            f"The {what} has {_megabytes(size)}, and {row.name} {verb} {_megabytes(limit)}. "
            f"{advice}"
        )


def _check_offered(place: Place) -> None:
    if offers(place.row, "upload_file") is False:
        raise ConfigurationError(
            f"{place.name} does not store files, so upload='auto' cannot send media that is larger "
            "than a request. Send less, or use another provider."
        )


def _megabytes(size: int) -> str:
    return f"{size / _MEGABYTE:.1f} MB"
