"""`/v1/files`: both sides; also as Mistral has it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from interlingua.dialects.openai_shared.models import list_body
from interlingua.prepare.options import form_with_options
from interlingua.spec.content import Json
from interlingua.spec.contracts import FormPart, Profile, WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.modalities.files import (
    DeletedFile,
    FileInput,
    FileState,
    ListFilesInput,
    StoredFile,
    UploadInput,
)
from interlingua.spec.operations import Operation, ServedReply
from interlingua.wire.fields import Fields, restore
from interlingua.wire.files import (
    file_page,
    file_part,
    listed_files,
    operations_on_file,
    serve_files,
    uploaded_file,
)
from interlingua.wire.integers import read_integer
from interlingua.wire.operations import page_after_last, read_page
from interlingua.wire.resources import by_name, decode_list, decode_one, serve, write_body

PATH = "/v1/files"
# The SDK's `FileObject.status`, which is deprecated. 33 of 39 recorded files are `processed` at
# once.
_STATES: dict[str, FileState] = {"uploaded": "processing", "processed": "ready", "error": "failed"}
_STATUSES = {state: status for status, state in _STATES.items()}
_OWNER = "openai"
"""The key of other fields in `StoredFile.extra`."""
_HOUR = 3600
_MAX_PAGE = 10_000  # the SDK's `FileListParams.limit`: «between 1 and 10,000»


class FileRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a host's `/v1/files` differs."""

    # The SDK: «Flexible file type for any purpose».
    purpose: str = "user_data"
    """The purpose of files without one."""
    expiry_in_hours: bool = False
    """`expiry` in hours, not `expires_after` in seconds."""
    numbered_pages: bool = False
    """Lists have pages with numbers, not `after`."""


# https://docs.mistral.ai/api: the purposes are `fine-tune`, `batch`, `ocr` and `audio`, of which
# `ocr` is for documents in chats; lists have `page` and `page_size`, and `expiry` is in hours.
MISTRAL = FileRules(purpose="ocr", expiry_in_hours=True, numbered_pages=True)


def file_operations(name: str, rules: FileRules | None = None) -> dict[str, Operation]:
    """The operations on files for a dialect of this name."""
    rules = rules or FileRules()

    def encode_upload(value: UploadInput, _profile: Profile) -> WireCall:
        return WireCall(path=PATH, form=form_with_options(_form(value, rules), value, name))

    return by_name(
        Operation(name="upload_file", encode=encode_upload, decode=decode_one(read_file)),
        Operation(
            name="list_files",
            encode=lambda value, _profile: _encode_list(value, rules),
            decode=decode_list(read_file, "data", required="files"),
            next_page=_numbered_page if rules.numbered_pages else page_after_last("after"),
        ),
        *operations_on_file(PATH, read_file),
    )


def _form(value: UploadInput, rules: FileRules) -> tuple[FormPart, ...]:
    # The fields come before the file, so that a server can check them before it reads the file.
    fields = [FormPart(name="purpose", content=value.purpose or rules.purpose)]
    if value.expires_after is not None and rules.expiry_in_hours:
        hours = math.ceil(value.expires_after / _HOUR)
        fields.append(FormPart(name="expiry", content=str(hours)))
    elif value.expires_after is not None:
        seconds = str(round(value.expires_after))
        # Nested fields have brackets in forms; `created_at` is the only anchor.
        fields.append(FormPart(name="expires_after[anchor]", content="created_at"))
        fields.append(FormPart(name="expires_after[seconds]", content=seconds))
    return (*fields, file_part(value))


def _encode_list(value: ListFilesInput, rules: FileRules) -> WireCall:
    query = {} if value.purpose is None else {"purpose": value.purpose}
    if value.limit is not None:
        query["page_size" if rules.numbered_pages else "limit"] = str(value.limit)
    if value.after is not None and not rules.numbered_pages:
        query["after"] = value.after
    return WireCall(method="GET", path=PATH, query=query)


def _numbered_page(call: WireCall, _headers: Mapping[str, str], body: bytes) -> WireCall | None:
    page, number = read_page(body), int(call.query.get("page", "0")) + 1
    rows, total = page.get("data"), page.get("total")
    # A server without `total` may ignore the number and send the same page for ever.
    if not isinstance(rows, list) or type(total) is not int or number * len(rows) >= total:
        return None
    return replace(call, query={**call.query, "page": str(number)})


def read_file(value: Json) -> StoredFile:
    """A file as the provider describes it."""
    fields = Fields(value, strict=False)
    fields.take("object")
    return StoredFile(
        id=fields.need("id"),
        file_name=fields.text("filename"),
        media_type=fields.text("mimetype"),
        size=fields.integer("bytes"),
        purpose=fields.text("purpose"),
        state=_STATES.get(fields.text("status") or "", "ready"),
        error=fields.text("status_details"),
        created_at=fields.number("created_at"),
        expires_at=fields.number("expires_at"),
        extra={_OWNER: fields.left} if fields.left else {},
        raw=value,
    )


def write_file(file: StoredFile) -> dict[str, Json]:
    """A file as the provider describes it."""
    described: dict[str, Json] = {
        "object": "file",
        "id": file.id,
        "purpose": file.purpose or FileRules().purpose,
        "filename": file.file_name or "",
        "bytes": file.size or 0,
        "created_at": int(file.created_at or 0),
        "expires_at": None if file.expires_at is None else int(file.expires_at),
        "status": _STATUSES[file.state],
        "status_details": file.error,
    }
    if file.media_type is not None:
        described["mimetype"] = file.media_type
    return restore(described, file, _OWNER)


def _served_upload(call: WireCall, _params: Mapping[str, str]) -> UploadInput:
    file, fields = uploaded_file(call)
    if not fields.get("purpose"):
        raise InvalidRequestError("'purpose' is a required property.", status_code=400)
    hours, seconds = fields.get("expiry"), fields.get("expires_after[seconds]")
    given = hours or seconds or ""
    expiry = read_integer(given)
    if given and expiry is None:
        raise InvalidRequestError("The expiry must be an integer.", status_code=400)
    return UploadInput(
        content=file.content if isinstance(file.content, bytes) else b"",
        file_name=file.file_name or "",
        media_type=file.media_type,
        purpose=fields["purpose"],
        expires_after=None if expiry is None else expiry * (_HOUR if hours else 1),
    )


def _served_list(call: WireCall, _params: Mapping[str, str]) -> ListFilesInput:
    limit = "page_size" if "page_size" in call.query else "limit"
    return listed_files(call.query, limit=limit, after="after", highest=_MAX_PAGE)


def _write_list(files: list[StoredFile], value: ListFilesInput) -> ServedReply:
    page, has_more = file_page(files, value, _MAX_PAGE)
    return ServedReply(body=list_body([write_file(file) for file in page], has_more=has_more))


def _write_deleted(file: DeletedFile, _value: FileInput) -> ServedReply:
    return ServedReply(body={"object": "file", "id": file.file_id, "deleted": True})


SERVED = (
    serve(
        "upload_file", "POST", r".*/files", _served_upload, write_body(write_file), is_shared=True
    ),
    *serve_files(
        write_file, read_list=_served_list, write_list=_write_list, write_deleted=_write_deleted
    ),
)
