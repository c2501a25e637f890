"""`/v1/files`: both sides; also as Mistral and xAI have it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

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
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning
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
from interlingua.wire.operations import (
    PAGE_TOKEN,
    NextPage,
    page_after_last,
    page_by_last_token,
    page_size,
    read_page,
)
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
    pages: Literal["after", "numbers", "tokens"] = "after"
    """How the next page of a list is named."""


# https://docs.mistral.ai/api: the purposes are `fine-tune`, `batch`, `ocr` and `audio`, of which
# `ocr` is for documents in chats; lists have `page` and `page_size`, and `expiry` is in hours.
MISTRAL = FileRules(purpose="ocr", expiry_in_hours=True, pages="numbers")
# https://docs.x.ai/developers/rest-api-reference/files/manage: `after` is only accepted. It does
# not interpret `purpose`, for which «assistants» is «the conventional choice».
XAI = FileRules(purpose="assistants", pages="tokens")
_NEWEST = {"order": "desc", "sort_by": "created_at"}
"""The order of xAI's lists that others have; it is the default."""
_XAI_PAGE = 100  # the most, and the default


def file_operations(name: str, rules: FileRules | None = None) -> dict[str, Operation]:
    """The operations on files for a dialect of this name."""
    rules = rules or FileRules()

    def encode_upload(value: UploadInput, _profile: Profile) -> WireCall:
        return WireCall(path=PATH, form=form_with_options(_form(value, rules), value, name))

    return by_name(
        Operation(name="upload_file", encode=encode_upload, decode=decode_one(read_file)),
        Operation(
            name="list_files",
            encode=lambda value, _profile: _encode_list(value, rules, name),
            decode=decode_list(read_file, "data", required="files"),
            next_page=_NEXT_PAGES[rules.pages],
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


def _encode_list(value: ListFilesInput, rules: FileRules, name: str) -> WireCall:
    if rules.pages == "tokens":
        return _encode_xai_list(value, name)
    query = {} if value.purpose is None else {"purpose": value.purpose}
    if value.limit is not None:
        query["page_size" if rules.pages == "numbers" else "limit"] = str(value.limit)
    if value.after is not None and rules.pages == "after":
        query["after"] = value.after
    return WireCall(method="GET", path=PATH, query=query)


def _encode_xai_list(value: ListFilesInput, name: str) -> WireCall:
    query = {"limit": str(min(value.limit or _XAI_PAGE, _XAI_PAGE)), **_NEWEST}
    if value.after is not None:
        query[PAGE_TOKEN] = value.after  # a token is the id of the last file
    warnings: tuple[Warning, ...] = ()
    if value.purpose is not None:  # its `filter` has no field for it
        fields = {"target": name, "setting": "purpose", "when": ""}
        warnings = (make_warning("setting_dropped", path="purpose", **fields),)
    return WireCall(method="GET", path=PATH, query=query, warnings=warnings)


def _numbered_page(call: WireCall, _headers: Mapping[str, str], body: bytes) -> WireCall | None:
    page, number = read_page(body), int(call.query.get("page", "0")) + 1
    rows, total = page.get("data"), page.get("total")
    # A server without `total` may ignore the number and send the same page for ever.
    if not isinstance(rows, list) or type(total) is not int or number * len(rows) >= total:
        return None
    return replace(call, query={**call.query, "page": str(number)})


_NEXT_PAGES: Mapping[str, NextPage] = {
    "after": page_after_last("after"),
    "numbers": _numbered_page,
    "tokens": page_by_last_token("data"),
}


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
        "purpose": FileRules().purpose if file.purpose is None else file.purpose,
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


class _XaiList(ListFilesInput, frozen=True, kw_only=True):
    """A list that was asked for as xAI's clients do."""


def _served_list(call: WireCall, _params: Mapping[str, str]) -> ListFilesInput:
    if "sort_by" in call.query or PAGE_TOKEN in call.query:  # no other host has them
        size = page_size(call.query, "limit", default=_XAI_PAGE, highest=_XAI_PAGE)
        return _XaiList(limit=size, after=call.query.get(PAGE_TOKEN) or None)
    limit = "page_size" if "page_size" in call.query else "limit"
    return listed_files(call.query, limit=limit, after="after", highest=_MAX_PAGE)


def _write_list(files: list[StoredFile], value: ListFilesInput) -> ServedReply:
    page, has_more = file_page(files, value, _MAX_PAGE)
    rows = [write_file(file) for file in page]
    if isinstance(value, _XaiList):  # the last page has a token too
        token = page[-1].id if page else value.after
        return ServedReply(body={"data": rows, PAGE_TOKEN: token})
    return ServedReply(body=list_body(rows, has_more=has_more))


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
