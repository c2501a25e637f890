"""Files that the simulator keeps in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from msgspec.structs import replace

from interlingua.spec.content import Audio, Document, Image
from interlingua.spec.errors import InvalidRequestError, NotFoundError
from interlingua.spec.messages import Message
from interlingua.spec.modalities.files import (
    DeletedFile,
    FileInput,
    ListFilesInput,
    StoredFile,
    UploadChunk,
    UploadInput,
    UploadProgress,
)

PROCESSED = ("video/", "audio/")
"""Media of these types is processed when it is first asked for after its upload."""


class SimulatedFiles:
    """The files, newest first, as the vendors list them."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._files: dict[str, tuple[StoredFile, bytes]] = {}
        self._uploads: dict[str, tuple[UploadInput, bytearray]] = {}
        self._numbers: Iterator[int] = count(1)

    def upload_file(self, value: UploadInput) -> StoredFile:
        """The file, which exists from now on."""
        return self._store(value, is_generated=False)

    def add_generated(self, value: UploadInput) -> StoredFile:
        """A file that the provider itself has made, such as the results of a batch."""
        return self._store(value, is_generated=True)

    def check_messages(self, messages: Iterable[Message], address: str | None) -> None:
        """
        `NotFoundError` if a part refers to a file that does not exist.

        With `address`, the beginning of the addresses of files, parts refer to them by these.
        """
        self._drop_expired()
        for message in messages:
            for part in message.content:
                if not isinstance(part, (Image, Audio, Document)):
                    continue
                file_id = part.file_id
                if address is not None and part.url is not None and part.url.startswith(address):
                    file_id = part.url.removeprefix(address)
                if file_id is not None and file_id not in self._files:
                    raise _not_found(file_id)

    def _store(self, value: UploadInput, *, is_generated: bool) -> StoredFile:
        data = value.content if isinstance(value.content, bytes) else b""
        now = float(int(self._clock()))
        is_processed = (value.media_type or "").startswith(PROCESSED)
        file = StoredFile(
            id=f"file-{next(self._numbers):012d}",
            file_name=value.file_name,
            media_type=value.media_type,
            size=len(data),
            purpose=value.purpose,
            state="processing" if is_processed else "ready",
            created_at=now,
            expires_at=None if value.expires_after is None else now + value.expires_after,
            downloadable=is_generated,
        )
        self._files[file.id] = (file, data)
        return file

    def upload_chunk(self, value: UploadChunk) -> StoredFile | UploadProgress:
        """The beginning of an upload, or its state after this piece; the file after the last."""
        if value.upload_id is None:
            upload_id = f"upload-{next(self._numbers):012d}"
            self._uploads[upload_id] = (value.file, bytearray())
            return UploadProgress(upload_id=upload_id)
        announced, received = self._uploads.get(value.upload_id, (None, bytearray()))
        if announced is None:
            raise NotFoundError(f"No such upload: {value.upload_id}.", status_code=404)
        if value.offset != len(received):
            message = f"The upload has {len(received)} bytes, and the offset is {value.offset}."
            raise InvalidRequestError(message, status_code=400)
        received += value.content
        if not value.is_last:
            return UploadProgress(upload_id=value.upload_id, received=len(received))
        del self._uploads[value.upload_id]
        return self.upload_file(replace(announced, content=bytes(received)))

    def retrieve_file(self, value: FileInput) -> StoredFile:
        """The file; one that was being processed is ready the next time."""
        file, data = self._find(value)
        self._files[file.id] = (replace(file, state="ready"), data)
        return file

    def list_files(self, _value: ListFilesInput) -> list[StoredFile]:
        """All files."""
        self._drop_expired()
        return [file for file, _ in reversed(self._files.values())]

    def delete_file(self, value: FileInput) -> DeletedFile:
        """The id of the file, which no longer exists."""
        file, _ = self._find(value)
        del self._files[file.id]
        return DeletedFile(file_id=file.id)

    def download_file(self, value: FileInput) -> bytes:
        """The bytes of a file."""
        file, data = self._find(value)
        if file.state == "failed":
            raise InvalidRequestError(f"File {file.id} has failed", status_code=400)
        if value.only_generated and not file.downloadable:
            message = f"File {file.id} was uploaded: only generated files can be downloaded."
            raise InvalidRequestError(message, status_code=400)
        return data

    def _find(self, value: FileInput) -> tuple[StoredFile, bytes]:
        self._drop_expired()
        entry = self._files.get(value.file_id)
        if entry is None:
            raise _not_found(value.file_id)
        return entry

    def _drop_expired(self) -> None:
        now = self._clock()
        for file, _ in list(self._files.values()):
            if file.expires_at is not None and file.expires_at <= now:
                del self._files[file.id]


def _not_found(file_id: str) -> NotFoundError:
    return NotFoundError(f"No such File object: {file_id}.", status_code=404)
