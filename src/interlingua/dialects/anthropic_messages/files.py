"""`/v1/files`: both sides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from interlingua.dialects.anthropic_messages.facts import NAME, VERSION, VERSION_HEADER
from interlingua.prepare.options import form_with_options
from interlingua.spec.content import Json
from interlingua.spec.contracts import FormPart, Profile, WireCall
from interlingua.spec.errors import ConfigurationError, DecodeError, InvalidRequestError
from interlingua.spec.media.files import (
    DeletedFile,
    FileInput,
    ListFilesInput,
    StoredFile,
    UploadInput,
)
from interlingua.spec.operations import Operation, OperationInput, ServedOperation, ServedReply
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import Fields, restore
from interlingua.wire.files import (
    ByteItems,
    file_page,
    listed_files,
    take_time,
    time_text,
    uploaded_file,
)
from interlingua.wire.json_text import loads
from interlingua.wire.operations import read_page

PATH = "/v1/files"
_MAX_PAGE = 1000
_LEAST_EXPIRY, _MOST_EXPIRY = 3600, 7_776_000  # seconds: an hour, ninety days


# The client side.


def _call(method: str, path: str, profile: Profile, **fields: Any) -> WireCall:
    headers = {VERSION_HEADER: profile.api_version or VERSION}
    return WireCall(method=method, path=path, headers=headers, **fields)


def _path(value: FileInput) -> str:
    return f"{PATH}/{quote(value.file_id, safe='')}"


def _encode_upload(value: UploadInput, profile: Profile) -> WireCall:
    form: tuple[FormPart, ...] = (
        FormPart(
            name="file",
            content=value.content,
            file_name=value.file_name,
            media_type=value.media_type,
        ),
    )
    seconds = value.expires_after
    if seconds is not None:
        if not _LEAST_EXPIRY <= seconds <= _MOST_EXPIRY:
            raise ConfigurationError(
                f"expires_after must be between {_LEAST_EXPIRY} and {_MOST_EXPIRY} seconds here, "
                f"not {seconds:g}."
            )
        # Before the file, so that a server can check it before it reads the file.
        form = (FormPart(name="expires_in_seconds", content=str(round(seconds))), *form)
    form = form_with_options(form, value, NAME)
    return _call("POST", PATH, profile, form=form, warnings=_no_purpose(value))


def _no_purpose(value: UploadInput | ListFilesInput) -> tuple[Warning, ...]:
    if value.purpose is None:
        return ()
    fields = {"target": NAME, "setting": "purpose", "when": ""}
    return (make_warning("setting_dropped", path="purpose", **fields),)


def _encode_list(value: ListFilesInput, profile: Profile) -> WireCall:
    query = {} if value.limit is None else {"limit": str(value.limit)}
    if value.after is not None:
        query["after_id"] = value.after
    return _call("GET", PATH, profile, query=query, warnings=_no_purpose(value))


def _next_page(call: WireCall, _headers: Mapping[str, str], body: bytes) -> WireCall | None:
    """The newer API has `next_page`; the beta has `has_more` and `last_id`."""
    page = read_page(body)
    following, last = page.get("next_page"), page.get("last_id")
    if isinstance(following, str):
        return replace(call, query={**call.query, "page": following}, warnings=())
    if page.get("has_more") is not True or not isinstance(last, str):
        return None
    return replace(call, query={**call.query, "after_id": last}, warnings=())


def _decode_file(_status: int, _headers: Mapping[str, str], body: bytes) -> StoredFile:
    return read_file(loads(body))


def _decode_list(_status: int, _headers: Mapping[str, str], body: bytes) -> list[StoredFile]:
    rows = Fields(loads(body), strict=False).array("data")
    if rows is None:
        raise DecodeError("the reply has no list of files")
    return [read_file(row) for row in rows]


def _decode_deleted(_status: int, _headers: Mapping[str, str], body: bytes) -> DeletedFile:
    value = loads(body)
    return DeletedFile(file_id=Fields(value).need("id"), raw=value)


def read_file(value: Json) -> StoredFile:
    """A file as the provider describes it."""
    fields = Fields(value, strict=False)
    fields.take("type")
    return StoredFile(
        id=fields.need("id"),
        file_name=fields.text("filename"),
        media_type=fields.text("mime_type"),
        size=fields.integer("size_bytes"),
        created_at=take_time(fields, "created_at"),
        expires_at=take_time(fields, "expires_at"),
        downloadable=fields.flag("downloadable"),
        extra={NAME: fields.left} if fields.left else {},
        raw=value,
    )


def _operation(name: str, encode: Any, decode: Any = None, **fields: Any) -> Operation:
    return Operation(name=name, encode=encode, decode=decode, **fields)


OPERATIONS: Mapping[str, Operation] = {
    operation.name: operation
    for operation in (
        _operation("upload_file", _encode_upload, _decode_file),
        _operation(
            "retrieve_file",
            lambda value, profile: _call("GET", _path(value), profile),
            _decode_file,
        ),
        _operation("list_files", _encode_list, _decode_list, next_page=_next_page),
        _operation(
            "delete_file",
            lambda value, profile: _call("DELETE", _path(value), profile),
            _decode_deleted,
        ),
        _operation(
            "download_file",
            lambda value, profile: _call("GET", f"{_path(value)}/content", profile),
            stream_decoder=lambda _value: ByteItems(),
            is_download=True,
        ),
    )
}


# The server side.


def write_file(file: StoredFile) -> dict[str, Any]:
    """A file as the provider describes it."""
    body: dict[str, Any] = {
        "type": "file",
        "id": file.id,
        "filename": file.file_name or "unnamed",
        "mime_type": file.media_type or "application/octet-stream",
        "size_bytes": file.size or 0,
    }
    known = file.extra.get(NAME, {})
    for name, seconds in (("created_at", file.created_at), ("expires_at", file.expires_at)):
        if name not in known and seconds is not None:
            body[name] = time_text(seconds)
    if file.downloadable is not None:
        body["downloadable"] = file.downloadable
    return restore(body, file, NAME)


def _served_upload(call: WireCall, _params: Mapping[str, str]) -> UploadInput:
    file, fields = uploaded_file(call)
    seconds = fields.get("expires_in_seconds", "")
    if seconds and not (
        seconds.isdecimal() and len(seconds) < 9 and _LEAST_EXPIRY <= int(seconds) <= _MOST_EXPIRY
    ):
        message = f"expires_in_seconds: must be between {_LEAST_EXPIRY} and {_MOST_EXPIRY}"
        raise InvalidRequestError(message, status_code=400)
    return UploadInput(
        content=file.content if isinstance(file.content, bytes) else b"",
        file_name=file.file_name or "unnamed",
        media_type=file.media_type,
        expires_after=int(seconds) if seconds else None,
    )


def _served_list(call: WireCall, _params: Mapping[str, str]) -> ListFilesInput:
    after = "page" if "page" in call.query else "after_id"
    return listed_files(call.query, limit="limit", after=after, highest=_MAX_PAGE)


def _served_id(_call: WireCall, params: Mapping[str, str]) -> FileInput:
    return FileInput(file_id=params["file"])


def _write_list(files: list[StoredFile], value: ListFilesInput) -> ServedReply:
    """The page with the cursors of the API and of its beta."""
    page, has_more = file_page(files, value, _MAX_PAGE)
    last = page[-1].id if page else None
    return ServedReply(
        body={
            "data": [write_file(file) for file in page],
            "has_more": has_more,
            "first_id": page[0].id if page else None,
            "last_id": last,
            "next_page": last if has_more else None,
        }
    )


def _write_one(file: StoredFile, _value: OperationInput) -> ServedReply:
    return ServedReply(body=write_file(file))


def _write_deleted(file: DeletedFile, _value: FileInput) -> ServedReply:
    return ServedReply(body={"id": file.file_id, "type": "file_deleted"})


_ALL = re.compile(r".*/files")
_ONE = re.compile(r".*/files/(?P<file>[^/]+)")
_CONTENT = re.compile(r".*/files/(?P<file>[^/]+)/content")


def _serve(
    name: str, method: str, pattern: re.Pattern[str], decode: Any, encode: Any
) -> ServedOperation:
    return ServedOperation(
        name=name, method=method, pattern=pattern, decode=decode, encode=encode, is_shared=True
    )


SERVED = (
    _serve("upload_file", "POST", _ALL, _served_upload, _write_one),
    _serve("list_files", "GET", _ALL, _served_list, _write_list),
    _serve("download_file", "GET", _CONTENT, _served_id, lambda data, _: ServedReply(content=data)),
    _serve("retrieve_file", "GET", _ONE, _served_id, _write_one),
    _serve("delete_file", "DELETE", _ONE, _served_id, _write_deleted),
)
