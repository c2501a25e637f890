"""
`/v1/batches`: both sides. The requests and the results are files.

https://platform.openai.com/docs/guides/batch
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from interlingua.dialects.openai_shared.files import PATH as FILES
from interlingua.dialects.openai_shared.files import read_file
from interlingua.dialects.openai_shared.models import list_body
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.contracts import FormPart, Profile, WireCall
from interlingua.spec.errors import InvalidRequestError, NotFoundError
from interlingua.spec.modalities.batch import (
    BATCH_TIER,
    Batch,
    BatchCounts,
    BatchFault,
    BatchInput,
    BatchQuery,
    BatchReply,
    BatchState,
    BatchSubmission,
    ServedBatch,
)
from interlingua.spec.operations import (
    ItemFormat,
    Operation,
    OperationReply,
    Script,
)
from interlingua.spec.response import Usage
from interlingua.wire.batches import (
    MEGABYTE,
    ReplyLines,
    batch_page,
    cancelled,
    create_or_clean,
    expired,
    is_expired,
    operations_on_batch,
    read_requests,
)
from interlingua.wire.fields import Fields, count, request_errors, restore, text_of
from interlingua.wire.integers import read_integer
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.jsonl import encode_lines
from interlingua.wire.operations import read_page
from interlingua.wire.resources import by_name, decode_list, resource_path

PATH = "/v1/batches"
OWNER = "openai"
"""The key of other fields in `Batch.extra`."""
_STATES: dict[str, BatchState] = {
    "validating": "queued",
    "in_progress": "in_progress",
    "finalizing": "finalizing",
    "completed": "completed",
    "failed": "failed",
    "expired": "expired",
    "cancelling": "cancelling",
    "cancelled": "cancelled",
}
# Each end has a time of its own.
_ENDS = {
    "completed": "completed_at",
    "failed": "failed_at",
    "expired": "expired_at",
    "cancelled": "cancelled_at",
}
_COUNTS = {"total": "total", "completed": "succeeded", "failed": "failed"}
_EXPIRED = "batch_expired"
_CANCELLED = "batch_cancelled"
_WINDOW = "24h"  # «Currently only `24h` is supported» (`BatchCreateParams`)
MAX_ITEMS = 50_000
MAX_PAGE = 100
PAGE = 20


def batch_operations(name: str, endpoint: str) -> dict[str, Operation]:
    """The operations on batches for a dialect of this name, whose requests have this endpoint."""
    lines = ItemFormat(
        name="lines",
        wrap=partial(wrap_line, endpoint),
        endpoint=endpoint.removeprefix("/v1"),
        max_items=MAX_ITEMS,  # `BatchCreateParams.input_file_id`: «up to 50,000 requests, … 200 MB»
        max_bytes=200 * MEGABYTE,
    )

    def submit(value: BatchInput, _profile: Profile) -> Script:
        file_id = yield from upload_requests(value)
        body: dict[str, Json] = {"input_file_id": file_id, "endpoint": endpoint}
        body |= {"completion_window": _WINDOW, **name_in_metadata(value)}
        body = body_with_options(body, value, name)
        call = WireCall(path=PATH, body=body, headers=value.headers, starts_job=True)
        reply = yield from create_or_clean(call, delete_file(file_id))
        return read_batch(loads(reply.body))

    return by_name(
        Operation(name="submit_batch", script=submit, formats=(lines,)),
        Operation(
            name="list_batches",
            encode=_encode_list,
            decode=decode_list(read_batch, "data", required="batches"),
            next_page=_next_page,
        ),
        *operations_on_batch(PATH, read_batch),
        *file_operations_of_batches(),
    )


def file_operations_of_batches() -> tuple[Operation, ...]:
    """The operations on the files of a batch, where both requests and results are files."""
    return (
        Operation(
            name="batch_results",
            encode=lambda value, _profile: WireCall(
                method="GET", path=f"{resource_path(FILES, value.output)}/content"
            ),
            stream_decoder=lambda _value: ReplyLines(read_reply),
        ),
        Operation(name="delete_batch", script=_delete_batch),
    )


# Submitting.


def wrap_line(endpoint: str, item_id: str) -> tuple[bytes, bytes]:
    """What stands before and after the body of a request in its line."""
    head = {"custom_id": item_id, "method": "POST", "url": endpoint}
    return dumps(head)[:-1] + b',"body":', b"}"


def upload_requests(
    value: BatchInput, *fields: FormPart
) -> Generator[WireCall, OperationReply, str]:
    """Upload the encoded requests, with more fields of the form; returns the id of the file."""
    file = FormPart(
        name="file",
        content=value.content,
        file_name="batch.jsonl",
        media_type="application/jsonl",
    )
    form = (FormPart(name="purpose", content="batch"), *fields, file)
    reply = yield WireCall(path=FILES, form=form, headers=value.headers)
    return read_file(loads(reply.body)).id


def name_in_metadata(value: BatchInput) -> dict[str, Json]:
    """The field with the name of a batch, for vendors whose batches have metadata but no name."""
    return {"metadata": {"name": value.name}} if value.name else {}


def name_of(fields: Fields) -> str:
    """The name in the metadata of a batch, which stay as they are."""
    metadata = fields.left.get("metadata")
    return text_of(metadata.get("name")) if isinstance(metadata, dict) else ""


def _delete_batch(value: BatchQuery, _profile: Profile) -> Script:
    batch = value.batch or Batch(id=value.id)
    return delete_files(batch.input_file, *batch.outputs)


def delete_files(*file_ids: str | None) -> Script:
    """Delete files, of which some may be gone."""
    for file_id in filter(None, file_ids):
        with suppress(NotFoundError):  # it has expired, or was deleted before
            yield delete_file(file_id)
    return None


def delete_file(file_id: str) -> WireCall:
    """The call that deletes a file."""
    return WireCall(method="DELETE", path=resource_path(FILES, file_id))


# Batches.


def _encode_list(value: BatchQuery, _profile: Profile) -> WireCall:
    query = {} if value.limit is None else {"limit": str(min(value.limit, MAX_PAGE))}
    return WireCall(method="GET", path=PATH, query=query)


def _next_page(call: WireCall, _headers: Mapping[str, str], body: bytes) -> WireCall | None:
    page = read_page(body)
    rows = page.get("data")
    last = page.get("last_id") or (rows[-1].get("id") if isinstance(rows, list) and rows else None)
    if page.get("has_more") is not True or not isinstance(last, str):
        return None
    return replace(call, query={**call.query, "after": last})


def read_batch(value: UncheckedJson) -> Batch:
    """A batch as the provider describes it."""
    fields = Fields(value, strict=False)
    status = fields.need("status")
    fields.take("object")
    counts = fields.object("request_counts") or {}
    usage = fields.left.get("usage")
    # Answers and errors are in two files; either may be absent.
    files = (fields.left.get(name) for name in ("output_file_id", "error_file_id"))
    return Batch(
        id=fields.need("id"),
        model=fields.text("model") or "",
        state=_state(status),
        raw_state=status,
        name=name_of(fields),
        counts=BatchCounts(**{ours: count(counts.get(name)) for name, ours in _COUNTS.items()}),
        endpoint=fields.text("endpoint") or "",
        created_at=fields.number("created_at"),
        expires_at=fields.number("expires_at"),
        ended_at=fields.number(_ENDS[status]) if status in _ENDS else None,
        input_file=fields.text("input_file_id"),
        outputs=tuple(file for file in files if isinstance(file, str) and file),
        faults=_read_faults(fields.left.get("errors")),
        total_usage=_read_usage(usage) if isinstance(usage, dict) else None,
        extra={OWNER: fields.left} if fields.left else {},
        raw=value,
    )


def _state(status: str) -> BatchState:
    return _STATES.get(status, "in_progress")


def _read_faults(value: UncheckedJson) -> tuple[BatchFault, ...]:
    rows = value.get("data") if isinstance(value, dict) else None
    return tuple(
        BatchFault(
            message=text_of(row.get("message")),
            code=text_of(row.get("code")) or None,
            line=row["line"] if type(row.get("line")) is int else None,
        )
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
    )


def _read_usage(value: dict[str, UncheckedJson]) -> Usage:
    details = value.get("input_tokens_details"), value.get("output_tokens_details")
    read, thought = (each if isinstance(each, dict) else {} for each in details)
    return Usage(
        input_tokens=count(value.get("input_tokens")) or 0,
        output_tokens=count(value.get("output_tokens")) or 0,
        cache_read_tokens=count(read.get("cached_tokens")),
        reasoning_tokens=count(thought.get("reasoning_tokens")),
        service_tier=BATCH_TIER,
        raw=value,
    )


def write_batch(served: ServedBatch) -> dict[str, Json]:
    """A batch as the provider describes it."""
    batch = served.batch
    status = batch.raw_state or {"queued": "validating"}.get(batch.state, batch.state)
    described: dict[str, Json] = {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "input_file_id": batch.input_file,
        "status": status,
        "created_at": whole_seconds(batch.created_at),
        "expires_at": whole_seconds(batch.expires_at),
        "request_counts": {name: getattr(batch.counts, ours) for name, ours in _COUNTS.items()},
    }
    if batch.model:
        described["model"] = batch.model
    if served.output_file is not None:
        described["output_file_id"] = served.output_file
    if served.error_file is not None:
        described["error_file_id"] = served.error_file
    if status in _ENDS:
        described[_ENDS[status]] = whole_seconds(batch.ended_at)
    if batch.faults and "errors" not in batch.extra.get(OWNER, {}):
        described["errors"] = {"object": "list", "data": [_write_fault(f) for f in batch.faults]}
    return restore(described, batch, OWNER)


def whole_seconds(seconds: float | None) -> int | None:
    """A time as the provider writes it."""
    return None if seconds is None else int(seconds)


def _write_fault(fault: BatchFault) -> dict[str, Json]:
    return {"code": fault.code, "message": fault.message, "param": None, "line": fault.line}


# Results.


def read_reply(value: Json, _index: int) -> BatchReply:
    """A line of an output file or of an error file."""
    fields = Fields(value, strict=False)
    item_id = fields.need("custom_id")
    # A request that was refused has a response with its status; one that never ran has an error.
    response, fault = fields.fields("response"), fields.object("error")
    if response is not None:
        status = response.integer("status_code")
        # A request that the provider lost has the status 0 and no body.
        return BatchReply(
            id=item_id,
            status=200 if status is None else status or 500,
            body=response.take("body"),
            provider_request_id=response.text("request_id"),
            raw=value,
        )
    fault = fault or {}
    code, message = fault.get("code"), text_of(fault.get("message"))
    if code == _EXPIRED:
        return BatchReply(id=item_id, error=expired(message), raw=value)
    if code == _CANCELLED:
        return BatchReply(id=item_id, error=cancelled(message), raw=value)
    status = read_integer(code, least=100, most=999) or 500
    return BatchReply(id=item_id, status=status, body={"error": fault}, raw=value)


def write_reply(reply: BatchReply) -> dict[str, Json]:
    """A line of an output file or of an error file."""
    line: dict[str, Json] = {"id": f"batch_req_{reply.id}", "custom_id": reply.id}
    if reply.error is not None:
        code = _EXPIRED if is_expired(reply) else _CANCELLED
        fault = {"code": code, "message": reply.error.message}
        return {**line, "response": None, "error": fault}
    response: dict[str, Json] = {
        "status_code": reply.status,
        "request_id": reply.provider_request_id or "",
        "body": reply.body,
    }
    return {**line, "response": response, "error": None}


def write_replies(replies: Iterable[BatchReply]) -> bytes:
    """A file of results."""
    return encode_lines(map(write_reply, replies))


# Server side; `batch_serve.py` has the endpoints.


def served_submit(call: WireCall) -> BatchSubmission:
    """The batch that a request asks for."""
    with request_errors():
        fields = Fields(call.body)
        file_id, endpoint = fields.need("input_file_id"), fields.need("endpoint")
        window = fields.need("completion_window")
    if window != _WINDOW:
        raise InvalidRequestError(f"`completion_window` must be {_WINDOW}.", status_code=400)
    return BatchSubmission(
        owner=OWNER,
        id_prefix="batch_",
        file_id=file_id,
        endpoint=endpoint,
        read=partial(read_requests, read=read_line, first=1),
        write=write_replies,
        splits_errors=True,
        max_items=MAX_ITEMS,
        single_model=True,  # «each input file can only include requests to a single model»
        extra={OWNER: {"completion_window": window, **fields.left}},
    )


def read_line(value: Json, number: int) -> tuple[str, WireCall]:
    """A request in a line of an uploaded file, with its id."""
    fields = Fields(value, f"line {number}")
    call = WireCall(
        method=fields.need("method"), path=fields.need("url"), body=fields.object("body")
    )
    return fields.need("custom_id"), call


def write_list(batches: list[ServedBatch], value: BatchQuery) -> dict[str, Json]:
    """One page of a list."""
    page, has_more = batch_page(batches, value, PAGE)
    return list_body([write_batch(each) for each in page], has_more=has_more)
