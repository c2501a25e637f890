"""Files that a provider stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from interlingua.spec.content import STORED, Audio, Document, Extra, Image
from interlingua.spec.contracts import Content
from interlingua.spec.operations import OperationInput, OperationResult

ByteProgress: TypeAlias = Callable[[int, int | None], Any]
"""
Called with the bytes so far, and with their number in all (None if it is unknown); may be async.
"""
FileState: TypeAlias = Literal["processing", "ready", "failed"]


class UploadInput(OperationInput, frozen=True, kw_only=True):
    """A file to upload."""

    content: Content = b""
    file_name: str = "file"
    media_type: str | None = None
    purpose: str | None = None
    """What the file is for, such as `batch`; its values are the provider's."""
    expires_after: float | None = None
    """Seconds after which the provider deletes the file."""

    @property
    def size(self) -> int | None:
        """The number of bytes, if it is known."""
        if isinstance(self.content, bytes):
            return len(self.content)
        size = getattr(self.content, "size", None)
        return size if isinstance(size, int) else None


class UploadChunk(OperationInput, frozen=True, kw_only=True):
    """
    A piece of a resumable upload that a server receives.

    The first one has no id and no content: it says what will be uploaded.
    """

    upload_id: str | None = None
    offset: int = 0
    content: bytes = b""
    is_last: bool = False
    file: UploadInput = UploadInput()
    """Of the first piece: the name, the media type and the expiry."""
    address: str = ""
    """Where the client reaches the server."""


class UploadProgress(OperationResult, frozen=True, kw_only=True):
    """A resumable upload that a server has not received completely."""

    upload_id: str = ""
    received: int = 0


class FileInput(OperationInput, frozen=True, kw_only=True):
    """One stored file, by its id."""

    file_id: str = ""
    only_generated: bool = False
    """For a server: a file that was uploaded cannot be downloaded, only one that was generated."""


class ListFilesInput(OperationInput, frozen=True, kw_only=True):
    """The files to list."""

    purpose: str | None = None
    limit: int | None = None
    """How many are fetched at once; all of them are listed."""
    after: str | None = None
    """The id after which the list starts."""


class DeletedFile(OperationResult, frozen=True, kw_only=True):
    """The id of a file that was deleted."""

    file_id: str = ""
    """The id of the file."""


class StoredFile(OperationResult, frozen=True, kw_only=True):
    """
    A file that a provider stores.

    `file.part()` refers to it in a message.
    """

    id: str = ""
    """The provider's id of the file."""
    file_name: str | None = None
    """Its name."""
    media_type: str | None = None
    """The media type, such as `application/pdf`."""
    size: int | None = None
    """Its size in bytes."""
    purpose: str | None = None
    """What it may be used for, in the provider's words."""
    state: FileState = "ready"
    """Whether it can be used already."""
    created_at: float | None = None
    """Seconds since 1970."""
    expires_at: float | None = None
    """Seconds since 1970; None if the provider keeps the file until it is deleted."""
    uri: str | None = None
    """The address by which requests refer to the file, where that is not the id."""
    downloadable: bool | None = None
    """Whether its content can be downloaded; None if the provider does not say."""
    error: str | None = None
    """Why the file has failed."""
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""

    @property
    def reference(self) -> str:
        """The provider and the id in one string, such as `openai:file-68f1…`."""
        return f"{self.provider}:{self.id}"

    def part(self) -> Image | Audio | Document:
        """
        Return the file as a part of a message: an image, audio or a document, by its media type.

        The part knows its provider and when the file expires. It cannot be sent to another
        provider or after that time.
        """
        known = {"provider": self.provider, "expires_at": self.expires_at}
        extra = {STORED: {name: value for name, value in known.items() if value}}
        source = self.uri or self.id
        kind = (self.media_type or "").partition("/")[0]
        if kind == "image":
            return Image(file_id=source, media_type=self.media_type, extra=extra)
        if kind == "audio":
            return Audio(file_id=source, media_type=self.media_type, extra=extra)
        return Document(file_id=source, media_type=self.media_type, extra=extra)
