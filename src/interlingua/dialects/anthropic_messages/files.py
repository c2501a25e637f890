"""
`/v1/files`: both sides.

https://platform.claude.com/docs/en/build-with-claude/files
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from interlingua.dialects.anthropic_messages.facts import NAME, VERSION, VERSION_HEADER
from interlingua.prepare.options import form_with_options
from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.contracts import FormPart, Profile, WireCall
from interlingua.spec.errors import ConfigurationError, InvalidRequestError
from interlingua.spec.modalities.files import (
    DeletedFile,
    FileInput,
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
    take_time,
    time_text,
    uploaded_file,
)
from interlingua.wire.integers import read_integer
from interlingua.wire.operations import page_after_last, read_page
from interlingua.wire.resources import by_name, decode_list, decode_one, serve, write_body

PATH = "/v1/files"
_MAX_PAGE = 1000
# Seconds: an hour, ninety days (`FileUploadParams.expires_in_seconds`).
_LEAST_EXPIRY, _MOST_EXPIRY = 3600, 7_776_000


# The client side.


def _headers(profile: Profile) -> dict[str, str]:
    return {VERSION_HEADER: profile.api_version or VERSION}


def _encode_upload(value: UploadInput, profile: Profile) -> WireCall:
    form: tuple[FormPart, ...] = (file_part(value),)
    seconds = value.expires_after
    if seconds is not None:
        if not _LEAST_EXPIRY <= seconds <= _MOST_EXPIRY:
            raise ConfigurationError(
                f"`expires_after` must be between {_LEAST_EXPIRY} and {_MOST_EXPIRY} seconds at "
                f"this provider, not {seconds:g}."
            )
        # Before the file, so that a server can check it before it reads the file.
        form = (FormPart(name="expires_in_seconds", content=str(round(seconds))), *form)
    form = form_with_options(form, value, NAME)
    return WireCall(path=PATH, headers=_headers(profile), form=form, warnings=_no_purpose(value))


def _no_purpose(value: UploadInput | ListFilesInput) -> tuple[Warning, ...]:
    if value.purpose is None:  # which `FileUploadParams` does not have
        return ()
    fields = {"target": NAME, "setting": "purpose", "when": ""}
    return (make_warning("setting_dropped", path="purpose", **fields),)


def _encode_list(value: ListFilesInput, profile: Profile) -> WireCall:
    query = {} if value.limit is None else {"limit": str(value.limit)}
    if value.after is not None:
        query["after_id"] = value.after
    return WireCall(
        method="GET",
        path=PATH,
        headers=_headers(profile),
        query=query,
        warnings=_no_purpose(value),
    )


def _next_page(call: WireCall, headers: Mapping[str, str], body: bytes) -> WireCall | None:
    """The newer API has `next_page`; the beta has `has_more` and `last_id`."""
    following = read_page(body).get("next_page")
    if isinstance(following, str):
        return replace(call, query={**call.query, "page": following}, warnings=())
    return page_after_last("after_id")(call, headers, body)


def read_file(value: UncheckedJson) -> StoredFile:
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


OPERATIONS: Mapping[str, Operation] = by_name(
    Operation(name="upload_file", encode=_encode_upload, decode=decode_one(read_file)),
    Operation(
        name="list_files",
        encode=_encode_list,
        decode=decode_list(read_file, "data", required="files"),
        next_page=_next_page,
    ),
    *operations_on_file(PATH, read_file, _headers),
)


# The server side.


def write_file(file: StoredFile) -> dict[str, Json]:
    """A file as the provider describes it."""
    body: dict[str, Json] = {
        "type": "file",
        "id": file.id,
        "filename": file.file_name or "unnamed",
        "mime_type": file.media_type or "application/octet-stream",
        "size_bytes": file.size or 0,
    }
    # A time in `extra` is the provider's own text, which may have more digits than ours.
    known = file.extra.get(NAME, {})
    for name, seconds in (("created_at", file.created_at), ("expires_at", file.expires_at)):
        if name not in known and seconds is not None:
            body[name] = time_text(seconds)
    if file.downloadable is not None:
        body["downloadable"] = file.downloadable
    return restore(body, file, NAME)


def _served_upload(call: WireCall, _params: Mapping[str, str]) -> UploadInput:
    file, fields = uploaded_file(call)
    given = fields.get("expires_in_seconds", "")
    seconds = read_integer(given, least=_LEAST_EXPIRY, most=_MOST_EXPIRY)
    if given and seconds is None:
        message = f"`expires_in_seconds` must be between {_LEAST_EXPIRY} and {_MOST_EXPIRY}."
        raise InvalidRequestError(message, status_code=400)
    return UploadInput(
        content=file.content if isinstance(file.content, bytes) else b"",
        file_name=file.file_name or "unnamed",
        media_type=file.media_type,
        expires_after=seconds,
    )


def _served_list(call: WireCall, _params: Mapping[str, str]) -> ListFilesInput:
    after = "page" if "page" in call.query else "after_id"
    return listed_files(call.query, limit="limit", after=after, highest=_MAX_PAGE)


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


def _write_deleted(file: DeletedFile, _value: FileInput) -> ServedReply:
    return ServedReply(body={"id": file.file_id, "type": "file_deleted"})


SERVED = (
    serve(
        "upload_file", "POST", r".*/files", _served_upload, write_body(write_file), is_shared=True
    ),
    *serve_files(
        write_file,
        read_list=_served_list,
        write_list=_write_list,
        write_deleted=_write_deleted,
        only_generated=True,  # an uploaded file cannot be downloaded again
    ),
)
