"""What the file endpoints of all dialects share: downloads, times, uploads in forms, lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from interlingua.spec.content import Json
from interlingua.spec.contracts import FormPart, Profile, WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.modalities.files import (
    DeletedFile,
    FileInput,
    ListFilesInput,
    StoredFile,
    UploadInput,
)
from interlingua.spec.modalities.video import VideoFile
from interlingua.spec.operations import Operation, ServedOperation, ServedReply
from interlingua.wire.fields import Fields, is_number
from interlingua.wire.media import parse_data_url
from interlingua.wire.operations import page_size
from interlingua.wire.resources import (
    MakeHeaders,
    decode_one,
    no_headers,
    page_of,
    resource_path,
    serve,
    write_body,
)


class ByteItems:
    """The decoder of a download: its items are the chunks."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The chunk itself."""
        return [chunk]

    def finish(self) -> list[bytes]:
        """Nothing: the transport reports a body that is cut short."""
        return []


def download(name: str, encode: Callable[[Any, Profile], WireCall]) -> Operation:
    """An operation whose result is the bytes of a body."""
    return Operation(
        name=name, encode=encode, stream_decoder=lambda _value: ByteItems(), is_download=True
    )


def operations_on_file(
    path: str, read: Callable[[Json], StoredFile], headers: MakeHeaders = no_headers
) -> tuple[Operation, ...]:
    """The operations on a file at `path/id`, whose bytes are at `path/id/content`."""

    def call(method: str, end: str = "") -> Callable[[FileInput, Profile], WireCall]:
        return lambda value, profile: WireCall(
            method=method,
            path=f"{resource_path(path, value.file_id)}{end}",
            headers=headers(profile),
        )

    return (
        Operation(name="retrieve_file", encode=call("GET"), decode=decode_one(read)),
        Operation(name="delete_file", encode=call("DELETE"), decode=decode_one(_read_deleted)),
        download("download_file", call("GET", "/content")),
    )


def _read_deleted(value: Json) -> DeletedFile:
    return DeletedFile(file_id=Fields(value).need("id"), raw=value)


def file_part(value: UploadInput) -> FormPart:
    """The part of a form with the file."""
    return FormPart(
        name="file",
        content=value.content,
        file_name=value.file_name,
        media_type=value.media_type,
    )


_YEAR_1 = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_YEAR_10000 = datetime(9999, 12, 31, tzinfo=UTC).timestamp() + 86400


def seconds_of(value: object) -> float | None:
    """Seconds since 1970, from a number or from a time as RFC 3339 writes it."""
    seconds = value
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            return None
        seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    # A time zone can move a time out of the years that `time_text` writes.
    return seconds if is_number(seconds) and _YEAR_1 <= seconds < _YEAR_10000 else None


def take_time(fields: Fields, key: str) -> float | None:
    """
    A time as RFC 3339 writes it, in seconds since 1970.

    The field stays unread if `time_text` would write it in another way, so that nothing is lost.
    """
    text = fields.left.get(key)
    seconds = seconds_of(text) if isinstance(text, str) else None
    if seconds is not None and time_text(seconds) == text:
        fields.take(key)
    return seconds


def time_text(seconds: float) -> str:
    """A time as RFC 3339 writes it."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def uploaded_file(call: WireCall) -> tuple[FormPart, dict[str, str]]:
    """The file of a form that a server received, and the other fields."""
    fields = {part.name: part.content for part in call.form if isinstance(part.content, str)}
    for part in call.form:
        if part.name == "file" and isinstance(part.content, bytes):
            return part, fields
    raise InvalidRequestError("'file' is a required part of the form.", status_code=400)


def serve_files(
    write: Callable[[StoredFile], Json],
    *,
    read_list: Callable[[WireCall, Mapping[str, str]], ListFilesInput],
    write_list: Callable[[list[StoredFile], ListFilesInput], ServedReply],
    write_deleted: Callable[[DeletedFile, FileInput], ServedReply],
    content: str = "/content",
    only_generated: bool = False,
) -> tuple[ServedOperation, ...]:
    """
    The endpoints of files besides that of uploads; the path of a download ends in `content`.

    With `only_generated`, uploaded files cannot be downloaded.
    """

    def read_download(_call: WireCall, params: Mapping[str, str]) -> FileInput:
        return FileInput(file_id=params["file"], only_generated=only_generated)

    one = rf".*/files/(?P<file>[^/{content[0]}]+)"
    serve_shared = partial(serve, is_shared=True)
    return (
        serve_shared("list_files", "GET", r".*/files", read_list, write_list),
        serve_shared("download_file", "GET", f"{one}{content}", read_download, _write_content),
        serve_shared("retrieve_file", "GET", one, _served_id, write_body(write)),
        serve_shared("delete_file", "DELETE", one, _served_id, write_deleted),
    )


def _served_id(_call: WireCall, params: Mapping[str, str]) -> FileInput:
    return FileInput(file_id=params["file"])


def _write_content(data: bytes, _value: FileInput) -> ServedReply:
    return ServedReply(content=data)


def file_page(
    files: Sequence[StoredFile], value: ListFilesInput, highest: int
) -> tuple[list[StoredFile], bool]:
    """One page of a list that a server sends, and whether more follow."""
    chosen = [file for file in files if value.purpose in {None, file.purpose}]
    size = value.limit or highest
    return page_of(chosen, lambda file: file.id, value.after, size, kind="File object")


def listed_files(
    query: Mapping[str, str], *, limit: str, after: str, highest: int
) -> ListFilesInput:
    """The value of a list from the query of its request: these are the names of its parameters."""
    return ListFilesInput(
        purpose=query.get("purpose") or None,
        limit=page_size(query, limit, default=highest, highest=highest),
        after=query.get(after) or None,
    )


def video_file(url: str) -> VideoFile:
    """The video at a URL; one that the URL itself has, as `data:` URLs do, is decoded."""
    parsed = parse_data_url(url)
    if parsed is None:
        return VideoFile(url=url, media_type="video/mp4")
    data, media_type = parsed
    return VideoFile(data=data, media_type=media_type or "video/mp4")


def failed_text(state: str) -> str:
    """What is said about a job that failed, if the provider gives no reason but its state."""
    return "The job was rejected." if state == "rejected" else f"The job has {state or 'failed'}."
