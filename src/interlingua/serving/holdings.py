"""
What a `ClientApplication` keeps for its callers: their files, and where their jobs are.

Everything is in a store under the name of the caller, so that nobody finds what others have. An id
that a client gets ends in a ULID, by which it is found again, whatever stands before it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from secrets import token_urlsafe
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from interlingua.client.stores.contract import Reservation, Store
from interlingua.client.stores.memory import MemoryStore
from interlingua.runtime.ulid import new_ulid
from interlingua.serving.storage import Room, Storage
from interlingua.spec.content import Audio, Document, Image, Record
from interlingua.spec.errors import InvalidRequestError, NotFoundError
from interlingua.spec.messages import Message
from interlingua.spec.modalities.files import (
    DeletedFile,
    FileInput,
    StoredFile,
    UploadChunk,
    UploadInput,
    UploadProgress,
)
from interlingua.spec.request import Request

KEEP = 30 * 86_400.0
"""Seconds that files and the places of jobs are kept; providers keep results as long."""
_UPLOAD = 86_400.0
"""Seconds that an upload may take."""
_MEDIA = (Image, Audio, Document)
_find_key = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}$").search
_Kept = TypeVar("_Kept", bound=msgspec.Struct)


class HeldJob(Record, frozen=True, kw_only=True):
    """Where a batch or a video is, and how it was asked for."""

    provider: str
    id: str
    """At the provider."""
    dialect: str
    """In which the requests were written."""
    owner: str = ""
    """The vendor in whose lists a batch is."""
    shown_id: str = ""
    """The id that the client got."""
    model: str = ""
    """At the provider; empty if the requests have several."""
    asked_model: str = ""
    endpoint: str = ""
    input_file: str | None = None
    has_files: bool = False
    """Results are read as files."""
    extra: Mapping[str, Mapping[str, Any]] = {}
    """Fields that the vendor repeats."""


class Holdings:
    """What is kept for all callers, in a store; without one, in this process."""

    def __init__(self, store: Store | None = None) -> None:
        self._store = store or MemoryStore()

    def of_caller(self, name: str, most: Storage | None = None) -> Holding:
        """Return what is kept for one caller, and the most that is."""
        return Holding(self._store, name, most or Storage())

    async def find_uploader(self, upload_id: str) -> tuple[str, Storage] | None:
        """
        Find who has started an upload, and the most that is stored for it.

        The id of an upload is secret, as clients send no key with it.
        """
        data = await self._store.get(_upload_name(upload_id))
        begun = None if data is None else msgspec.json.decode(data, type=_Upload)
        return None if begun is None else (begun.caller, begun.most)


class _Upload(msgspec.Struct, frozen=True):
    caller: str
    file_name: str
    media_type: str | None
    expires_after: float | None
    most: Storage


def _upload_name(upload_id: str) -> str:
    return f"held/upload/{upload_id}"


class _Found(NamedTuple):
    key: str
    """The part of an id by which it is found."""
    name: str
    """Of the record in the store."""


class Holding:
    """What is kept for one caller."""

    def __init__(self, store: Store, caller: str, most: Storage) -> None:
        self._store = store
        self._caller = caller
        self._room = Room(store, caller, most)

    # Jobs.

    async def check_jobs(self) -> None:
        """Raise `QuotaExceededError` if there is no room for one more job."""
        await self._room.check("jobs")

    async def add_job(self, kind: str, job: HeldJob) -> HeldJob:
        """Keep where a job is; its new id begins as `shown_id` says."""
        key = new_ulid()
        job = replace(job, shown_id=f"{job.shown_id}{key}")
        await self._put_room(key, await self._room.count(KEEP, jobs=1), KEEP)
        await self._put(self._name(kind, key), job)
        await self._list(kind, key)
        return job

    async def find_job(self, kind: str, shown_id: str) -> HeldJob | None:
        """Find a job by the id that the client got; None if it is not one of these."""
        found = self._find(kind, shown_id)
        return None if found is None else await self._get(found.name, HeldJob)

    async def jobs(self, kind: str) -> list[str]:
        """The keys of all jobs, the newest first."""
        return await self._listed(kind)

    async def forget_job(self, kind: str, shown_id: str) -> None:
        """Forget a job."""
        found = self._find(kind, shown_id)
        if found is not None:
            await self._store.delete(found.name)
            await self._give_back(found.key)

    # Files.

    async def upload(self, value: UploadInput) -> StoredFile:
        """Keep a file."""
        content = value.content if isinstance(value.content, bytes) else b""
        now = float(int(time.time()))
        wanted = value.expires_after
        file = StoredFile(
            id=f"file-{new_ulid()}",
            file_name=value.file_name,
            media_type=value.media_type,
            size=len(content),
            purpose=value.purpose,
            created_at=now,
            expires_at=None if wanted is None else now + min(wanted, KEEP),
            downloadable=True,
        )
        key, ttl = file.id[-26:], KEEP if wanted is None else max(1.0, min(wanted, KEEP))
        taken = await self._room.take(ttl, files=1, file_bytes=len(content))
        await self._put_room(key, taken, ttl)
        await self._store.put(self._name("content", key), content, ttl=ttl)
        await self._put(self._name("file", key), file, ttl)
        await self._list("file", key)
        return file

    async def receive(self, value: UploadChunk) -> StoredFile | UploadProgress:
        """Keep a piece of an upload; the whole file after the last one."""
        if value.upload_id is None:
            key = token_urlsafe(24)
            file = value.file
            expiry, most = file.expires_after, self._room.most
            start = _Upload(self._caller, file.file_name, file.media_type, expiry, most)
            await self._take_for(key, files=1)
            await self._put(_upload_name(key), start, _UPLOAD)
            return UploadProgress(upload_id=key)
        name = _upload_name(value.upload_id)
        begun = await self._get(name, _Upload)
        if begun is None or begun.caller != self._caller:
            raise NotFoundError(f"No such upload: {value.upload_id}.", status_code=404)
        received = int(await self._store.add(name, 0, ttl=_UPLOAD))
        if value.offset != received:
            message = f"The upload has {received} bytes, and the offset is {value.offset}."
            raise InvalidRequestError(message, status_code=400)
        await self._take_for(value.upload_id, file_bytes=len(value.content))
        if not value.is_last:
            await self._store.append(name, value.content, ttl=_UPLOAD)
            received = int(await self._store.add(name, len(value.content)))
            return UploadProgress(upload_id=value.upload_id, received=received)
        content = b"".join((*await self._store.items(name), value.content))
        await self._end_upload(value.upload_id)
        if len(content) != received + len(value.content):
            message = "A piece of the upload was received twice. Begin a new upload."
            raise InvalidRequestError(message, status_code=400)
        return await self.upload(
            UploadInput(
                content=content,
                file_name=begun.file_name,
                media_type=begun.media_type,
                expires_after=begun.expires_after,
            )
        )

    async def file(self, value: FileInput) -> StoredFile:
        """Find a file."""
        found = self._find("file", value.file_id)
        file = None if found is None else await self._get(found.name, StoredFile)
        if file is None:
            raise _no_file(value.file_id)
        return file

    async def content(self, file_id: str) -> bytes:
        """Read a file."""
        found = self._find("content", file_id)
        content = None if found is None else await self._store.get(found.name)
        if content is None:
            raise _no_file(file_id)
        return content

    async def files(self) -> list[StoredFile]:
        """List the files, the newest first."""
        names = [self._name("file", key) for key in await self._listed("file")]
        found = [await self._get(name, StoredFile) for name in names]
        return [file for file in found if file is not None]

    async def delete_file(self, value: FileInput) -> DeletedFile:
        """Delete a file."""
        file = await self.file(value)
        for kind in ("content", "file"):
            await self._store.delete(self._name(kind, file.id[-26:]))
        await self._give_back(file.id[-26:])
        return DeletedFile(file_id=file.id)

    async def with_files(self, request: Request, address: str | None) -> Request:
        """
        The request with the bytes of the kept files that it refers to, for any provider.

        `address` is how the addresses of files begin, if the dialect refers to them so.
        """
        messages = [await self._with_files(message, address) for message in request.messages]
        changed = any(one is not other for one, other in zip(messages, request.messages))  # noqa: B905
        return replace(request, messages=tuple(messages)) if changed else request

    async def _with_files(self, message: Message, address: str | None) -> Message:
        if not any(isinstance(part, _MEDIA) for part in message.content):
            return message
        parts = [
            await self._with_content(part, address) if isinstance(part, _MEDIA) else part
            for part in message.content
        ]
        return replace(message, content=tuple(parts))

    async def _with_content(
        self, part: Image | Audio | Document, address: str | None
    ) -> Image | Audio | Document:
        file_id = part.file_id
        if file_id is None and address and part.url and part.url.startswith(address):
            file_id = part.url.removeprefix(address)
        found = None if file_id is None else self._find("content", file_id)
        content = None if found is None else await self._store.get(found.name)
        if content is None:
            return part  # it may be a file that the provider has
        file = await self.file(FileInput(file_id=file_id or ""))
        media_type = part.media_type or file.media_type
        return replace(part, file_id=None, url=None, data=content, media_type=media_type)

    # Room.

    async def _put_room(self, key: str, taken: Reservation | None, ttl: float) -> None:
        """Remember what a file or a job has taken, to give it back."""
        if taken is not None:
            await self._put(self._name("room", key), taken, ttl)

    async def _give_back(self, key: str) -> None:
        name = self._name("room", key)
        taken = await self._get(name, Reservation)
        if taken is not None and await self._store.delete(name):
            await self._room.give_back(taken)

    async def _take_for(self, upload_id: str, **amounts: int) -> None:
        """Take room for an upload that has not ended."""
        taken = await self._room.take(_UPLOAD, **amounts)
        name = self._name("room", upload_id)
        await self._store.append(name, msgspec.json.encode(taken), ttl=_UPLOAD)

    async def _end_upload(self, upload_id: str) -> None:
        """Forget an upload and its pieces."""
        name = self._name("room", upload_id)
        for taken in await self._store.items(name):
            await self._room.give_back(msgspec.json.decode(taken, type=Reservation))
        await self._store.delete(name)
        await self._store.delete(_upload_name(upload_id))

    # Lists: each has what was added in one period, and ends when all of that has ended.

    async def _list(self, kind: str, key: str) -> None:
        period = int(time.time() // KEEP)
        await self._store.append(self._name(kind, f"all{period}"), key.encode(), ttl=2 * KEEP)

    async def _listed(self, kind: str) -> list[str]:
        """The keys of what is kept, the newest first; some may be gone."""
        period = int(time.time() // KEEP)
        names = [self._name(kind, f"all{each}") for each in (period, period - 1)]
        lists = [await self._store.items(name) for name in names]
        return [key.decode() for keys in lists for key in reversed(keys)]

    # Records.

    def _find(self, kind: str, shown_id: str) -> _Found | None:
        match = _find_key(shown_id)
        return None if match is None else _Found(match[0], self._name(kind, match[0]))

    def _name(self, kind: str, key: str) -> str:
        return f"held/{kind}/{len(self._caller)}/{self._caller}/{key}"

    async def _put(self, name: str, value: msgspec.Struct, ttl: float = KEEP) -> None:
        await self._store.put(name, msgspec.json.encode(value), ttl=ttl)

    async def _get(self, name: str, kind: type[_Kept]) -> _Kept | None:
        data = await self._store.get(name)
        return None if data is None else msgspec.json.decode(data, type=kind)


def _no_file(file_id: str) -> NotFoundError:
    return NotFoundError(f"No such File object: {file_id}.", status_code=404)
