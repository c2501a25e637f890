"""
`/v1beta/files`: both sides.

An upload has two steps: the first names the file and is told an address, to which the second sends
the bytes. «Files are stored for 48 hours»: https://ai.google.dev/gemini-api/docs/files
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from interlingua.dialects.gemini_generate.facts import NAME
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError
from interlingua.spec.modalities.files import (
    DeletedFile,
    FileInput,
    FileState,
    ListFilesInput,
    StoredFile,
    UploadChunk,
    UploadInput,
    UploadProgress,
)
from interlingua.spec.operations import (
    Operation,
    Script,
    ServedOperation,
    ServedReply,
)
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import Fields, restore, text_of
from interlingua.wire.files import (
    download,
    file_page,
    listed_files,
    serve_files,
    take_time,
    time_text,
)
from interlingua.wire.integers import read_integer
from interlingua.wire.json_text import loads
from interlingua.wire.operations import page_by_token
from interlingua.wire.resources import (
    by_name,
    decode_list,
    decode_one,
    resource_path,
    served_address,
)

_FILES = "/v1beta/files"
_UPLOAD = "/upload/v1beta/files"
PREFIX = "files/"
ADDRESS = "https://generativelanguage.googleapis.com/v1beta/"
_LIFETIME = 48 * 3600  # seconds
_MAX_PAGE = 100
_UNKNOWN_TYPE = "application/octet-stream"
_STATES: dict[str, FileState] = {"PROCESSING": "processing", "ACTIVE": "ready", "FAILED": "failed"}
_STATE_NAMES = {state: name for name, state in _STATES.items()}


# The client side.


def _upload(value: UploadInput, _profile: Profile) -> Script:
    headers = {
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-type": value.media_type or _UNKNOWN_TYPE,
    }
    if value.size is not None:
        headers["x-goog-upload-header-content-length"] = str(value.size)
    body = body_with_options({"file": {"displayName": value.file_name}}, value, NAME)
    warnings = (*_dropped(value, "purpose"), *_dropped(value, "expires_after"))
    reply = yield WireCall(path=_UPLOAD, body=body, headers=headers, warnings=warnings)
    address = reply.headers.get("x-goog-upload-url")
    if address is None:
        raise DecodeError("The reply to the start of an upload has no x-goog-upload-url.")
    reply = yield WireCall(
        path=address,
        content=value.content,
        headers={
            "content-type": value.media_type or _UNKNOWN_TYPE,
            "x-goog-upload-offset": "0",
            "x-goog-upload-command": "upload, finalize",
        },
    )
    status = reply.headers.get("x-goog-upload-status", "final")
    if status != "final":
        raise DecodeError(f"The upload has not ended: its status is {status!r}.")
    return read_file(Fields(loads(reply.body), strict=False).object("file"))


def _dropped(value: UploadInput | ListFilesInput, setting: str) -> tuple[Warning, ...]:
    if getattr(value, setting) is None:
        return ()
    fields = {"target": NAME, "setting": setting, "when": ""}
    return (make_warning("setting_dropped", path=setting, **fields),)


def _path(value: FileInput) -> str:
    """The path of a file by its name, with or without `files/`, or by its URI."""
    name = value.file_id.removeprefix(ADDRESS).removeprefix(PREFIX)
    return resource_path(_FILES, name)


def _encode_list(value: ListFilesInput, _profile: Profile) -> WireCall:
    query = {} if value.limit is None else {"pageSize": str(value.limit)}
    if value.after is not None:
        query["pageToken"] = value.after
    return WireCall(method="GET", path=_FILES, query=query, warnings=_dropped(value, "purpose"))


def read_file(value: Json) -> StoredFile:
    """A file as the provider describes it."""
    fields = Fields(value, strict=False)
    name = fields.need("name")
    size = fields.left.get("sizeBytes")  # an int64, which is a string in the JSON of protobuf
    size = read_integer(size) if isinstance(size, str) else None
    if size is not None:
        fields.take("sizeBytes")
    state = text_of(fields.left.get("state"))
    if state in _STATES:
        fields.take("state")
    error = fields.left.get("error")
    return StoredFile(
        id=name,
        file_name=fields.text("displayName"),
        media_type=fields.text("mimeType"),
        size=size,
        state=_STATES.get(state, "ready"),  # a video is PROCESSING before it can be used
        created_at=take_time(fields, "createTime"),
        expires_at=take_time(fields, "expirationTime"),
        uri=fields.text("uri"),
        downloadable=fields.left.get("source") == "GENERATED" or "downloadUri" in fields.left,
        error=str(error.get("message") or error) if isinstance(error, dict) else None,
        extra={NAME: fields.left} if fields.left else {},
        raw=value,
    )


OPERATIONS: Mapping[str, Operation] = by_name(
    Operation(name="upload_file", script=_upload),
    Operation(
        name="retrieve_file",
        encode=lambda value, _profile: WireCall(method="GET", path=_path(value)),
        decode=decode_one(read_file),
        error_is_data=True,  # of a file that could not be processed
    ),
    Operation(
        name="list_files",
        encode=_encode_list,
        decode=decode_list(read_file, "files"),
        next_page=page_by_token,
    ),
    Operation(
        name="delete_file",
        script=lambda value, _profile: _delete(value),
    ),
    download(
        "download_file",
        lambda value, _profile: WireCall(
            method="GET", path=f"{_path(value)}:download", query={"alt": "media"}
        ),
    ),
)


def _delete(value: FileInput) -> Script:
    """Delete a file; the reply has no id."""
    reply = yield WireCall(method="DELETE", path=_path(value))
    return DeletedFile(file_id=value.file_id, raw=loads(reply.body) if reply.body else None)


# The server side.


def write_file(file: StoredFile) -> dict[str, Json]:
    """A file as the provider describes it."""
    name = file.id if file.id.startswith(PREFIX) else f"{PREFIX}{file.id}"
    body: dict[str, Json] = {"name": name, "uri": file.uri or f"{ADDRESS}{name}"}
    if file.file_name is not None:
        body["displayName"] = file.file_name
    if file.media_type is not None:
        body["mimeType"] = file.media_type
    if file.size is not None:
        body["sizeBytes"] = str(file.size)
    known = file.extra.get(NAME, {})
    for field, seconds in (("createTime", file.created_at), ("expirationTime", file.expires_at)):
        if field not in known and seconds is not None:
            body[field] = time_text(seconds)
    if "state" not in known:
        body["state"] = _STATE_NAMES[file.state]
    if file.error is not None and "error" not in known:
        body["error"] = {"code": 3, "message": file.error}
    if not known:
        body["source"] = "GENERATED" if file.downloadable else "UPLOADED"
    return restore(body, file, NAME)


def _served_upload(call: WireCall, _params: Mapping[str, str]) -> UploadChunk:
    headers, upload_id = call.headers, call.query.get("upload_id")
    commands = {word.strip() for word in headers.get("x-goog-upload-command", "").split(",")}
    content = call.content if isinstance(call.content, bytes) else b""
    address = served_address(headers, "localhost")
    if commands == {"start"}:
        return UploadChunk(file=_announced(content, headers), address=address)
    if upload_id is None or "upload" not in commands:
        message = "The request names no upload: it has no start command and no upload_id."
        raise InvalidRequestError(message, status_code=400)
    offset = read_integer(headers.get("x-goog-upload-offset", "0"))
    return UploadChunk(
        upload_id=upload_id,
        offset=-1 if offset is None else offset,
        content=content,
        is_last="finalize" in commands,
        address=address,
    )


def _announced(content: bytes, headers: Mapping[str, str]) -> UploadInput:
    """The file that the start of an upload names."""
    body = loads(content) if content else {}
    file = body.get("file") if isinstance(body, dict) else None
    file = file if isinstance(file, dict) else {}
    media_type = headers.get("x-goog-upload-header-content-type") or file.get("mimeType")
    # Both spellings are valid in the JSON form of protobuf; Google's own client sends the second.
    name = file.get("displayName", file.get("display_name"))
    return UploadInput(
        file_name=name if isinstance(name, str) else "",
        media_type=media_type,
        expires_after=_LIFETIME,
    )


def _write_upload(result: StoredFile | UploadProgress, value: UploadChunk) -> ServedReply:
    if isinstance(result, StoredFile):
        return ServedReply(
            body={"file": write_file(result)}, headers={"x-goog-upload-status": "final"}
        )
    address = f"{value.address}{_UPLOAD}?upload_id={result.upload_id}&upload_protocol=resumable"
    headers = {"x-goog-upload-url": address, "x-goog-upload-status": "active"}
    return ServedReply(content=b"", content_type="text/plain", headers=headers)


def _served_list(call: WireCall, _params: Mapping[str, str]) -> ListFilesInput:
    return listed_files(call.query, limit="pageSize", after="pageToken", highest=_MAX_PAGE)


def _write_list(files: list[StoredFile], value: ListFilesInput) -> ServedReply:
    page, has_more = file_page(files, value, _MAX_PAGE)
    body: dict[str, Json] = {"files": [write_file(file) for file in page]} if page else {}
    if has_more:
        body["nextPageToken"] = page[-1].id
    return ServedReply(body=body)


SERVED = (
    ServedOperation(
        name="upload_chunk",
        method="POST",
        pattern=re.compile(r".*/upload/v1(?:alpha|beta)?/files"),
        decode=_served_upload,
        encode=_write_upload,
        reads_bytes=True,
    ),
    *serve_files(
        write_file,
        read_list=_served_list,
        write_list=_write_list,
        write_deleted=lambda _file, _value: ServedReply(body={}),
        content=":download",
        only_generated=True,
    ),
)
