"""What the file endpoints of all dialects share: streamed bytes, times, uploads in forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from interlingua.spec.contracts import FormPart, WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.media.files import ListFilesInput, StoredFile
from interlingua.wire.fields import Fields
from interlingua.wire.operations import page_size


class ByteItems:
    """The decoder of a download: its items are the chunks."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The chunk itself."""
        return [chunk]

    def finish(self) -> list[bytes]:
        """Nothing: the transport reports a body that is cut short."""
        return []


def seconds_of(value: Any) -> float | None:
    """Seconds since 1970, from a number or from a time as RFC 3339 writes it."""
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number else None


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
    raise InvalidRequestError("'file' is a required part of the form", status_code=400)


def file_page(
    files: Sequence[StoredFile], value: ListFilesInput, highest: int
) -> tuple[list[StoredFile], bool]:
    """One page of a list that a server sends, and whether more follow."""
    chosen = [file for file in files if value.purpose in {None, file.purpose}]
    ids = [file.id for file in chosen]
    if value.after is not None and value.after not in ids:
        raise InvalidRequestError(f"No such File object: {value.after}", status_code=400)
    start = 0 if value.after is None else ids.index(value.after) + 1
    end = start + (value.limit or highest)
    return chosen[start:end], end < len(chosen)


def listed_files(
    query: Mapping[str, str], *, limit: str, after: str, highest: int
) -> ListFilesInput:
    """The value of a list from the query of its request: these are the names of its parameters."""
    return ListFilesInput(
        purpose=query.get("purpose") or None,
        limit=page_size(query, limit, default=highest, highest=highest),
        after=query.get(after) or None,
    )
