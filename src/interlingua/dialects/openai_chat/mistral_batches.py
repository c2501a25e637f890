"""
Mistral's `/v1/batch/jobs`: both sides. A job has one model, and its lines have no URL.

https://docs.mistral.ai/capabilities/batch
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from interlingua.dialects.openai_shared.batches import (
    delete_file,
    file_operations_of_batches,
    name_in_metadata,
    name_of,
    upload_requests,
    whole_seconds,
    write_replies,
)
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError
from interlingua.spec.modalities.batch import (
    Batch,
    BatchCounts,
    BatchFault,
    BatchInput,
    BatchQuery,
    BatchState,
    BatchSubmission,
    ServedBatch,
)
from interlingua.spec.operations import ItemFormat, Operation, Script, ServedReply
from interlingua.wire.batches import (
    batch_page,
    create_or_clean,
    operations_on_batch,
    read_requests,
    serve_batches,
)
from interlingua.wire.fields import Fields, request_errors, restore, text_of
from interlingua.wire.integers import read_integer
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.operations import page_size, read_page
from interlingua.wire.resources import by_name, decode_list

PATH = "/v1/batch/jobs"
_OWNER = "mistral"
_ENDPOINT = "/v1/chat/completions"
_STATES: dict[str, BatchState] = {
    "QUEUED": "queued",
    "RUNNING": "in_progress",
    "SUCCESS": "completed",
    "FAILED": "failed",
    "TIMEOUT_EXCEEDED": "expired",
    "CANCELLATION_REQUESTED": "cancelling",
    "CANCELLED": "cancelled",
}
_STATUSES = {state: status for status, state in _STATES.items()}
_COUNTS = {
    "total_requests": "total",
    "succeeded_requests": "succeeded",
    "failed_requests": "failed",
}
_PAGE = 100
_MAX_ITEMS = 1_000_000


def mistral_batch_operations(name: str) -> dict[str, Operation]:
    """The operations on batches for a dialect of this name."""
    lines = ItemFormat(
        name="lines",
        wrap=_wrap_line,
        endpoint=_ENDPOINT.removeprefix("/v1"),
        max_items=_MAX_ITEMS,  # «large batches of up to 1M requests»
        single_model=True,  # the model is a field of the job
    )

    def submit(value: BatchInput, _profile: Profile) -> Script:
        file_id = yield from upload_requests(value)
        body: dict[str, Json] = {"input_files": [file_id], "endpoint": _ENDPOINT}
        body["model"] = value.model
        body |= name_in_metadata(value)
        body = body_with_options(body, value, name)
        call = WireCall(path=PATH, body=body, headers=value.headers, starts_job=True)
        reply = yield from create_or_clean(call, delete_file(file_id))
        return read_job(loads(reply.body))

    return by_name(
        Operation(name="submit_batch", script=submit, formats=(lines,)),
        Operation(
            name="list_batches",
            encode=_encode_list,
            decode=decode_list(read_job, "data"),
            next_page=_next_page,
        ),
        *operations_on_batch(PATH, read_job),
        *file_operations_of_batches(),
    )


def _wrap_line(item_id: str) -> tuple[bytes, bytes]:
    return dumps({"custom_id": item_id})[:-1] + b',"body":', b"}"


def _encode_list(value: BatchQuery, _profile: Profile) -> WireCall:
    size = min(value.limit or _PAGE, _PAGE)
    return WireCall(method="GET", path=PATH, query={"page": "0", "page_size": str(size)})


def _next_page(call: WireCall, _headers: Mapping[str, str], body: bytes) -> WireCall | None:
    # Pages are numbered, and the reply has the number of all jobs instead of a cursor.
    page, number = read_page(body), int(call.query["page"]) + 1
    rows, total, size = page.get("data"), page.get("total"), int(call.query["page_size"])
    if not isinstance(rows, list) or not rows or type(total) is not int or number * size >= total:
        return None
    return replace(call, query={**call.query, "page": str(number)})


def read_job(value: Json) -> Batch:
    """A job as the provider describes it."""
    fields = Fields(value, strict=False)
    status = fields.need("status")
    fields.take("object")
    counts = {field: fields.integer(name) for name, field in _COUNTS.items()}
    inputs = fields.left.get("input_files")
    files = (fields.left.get(name) for name in ("output_file", "error_file"))
    return Batch(
        id=fields.need("id"),
        model=fields.text("model") or "",
        state=_STATES.get(status, "in_progress"),
        raw_state=status,
        name=name_of(fields),
        counts=BatchCounts(**counts),
        endpoint=fields.text("endpoint") or "",
        created_at=fields.number("created_at"),
        ended_at=fields.number("completed_at"),
        input_file=inputs[0] if isinstance(inputs, list) and inputs else None,
        outputs=tuple(file for file in files if isinstance(file, str) and file),
        faults=_read_faults(fields.left.get("errors")),
        extra={_OWNER: fields.left} if fields.left else {},
        raw=value,
    )


def _read_faults(rows: Json) -> tuple[BatchFault, ...]:
    listed = rows if isinstance(rows, list) else ()
    return tuple(
        BatchFault(message=text_of(row.get("message"))) for row in listed if isinstance(row, dict)
    )


def write_job(served: ServedBatch) -> dict[str, Json]:
    """A job as the provider describes it."""
    batch = served.batch
    described: dict[str, Json] = {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "model": batch.model or None,
        "status": batch.raw_state or _STATUSES.get(batch.state, "RUNNING"),
        "created_at": whole_seconds(batch.created_at),
        "completed_at": whole_seconds(batch.ended_at),
    }
    described |= {name: getattr(batch.counts, field) for name, field in _COUNTS.items()}
    if served.output_file is not None:
        described["output_file"] = served.output_file
    if served.error_file is not None:
        described["error_file"] = served.error_file
    if "errors" not in batch.extra.get(_OWNER, {}):
        # Mistral counts equal errors; ours are one by one.
        described["errors"] = [{"message": each.message, "count": 1} for each in batch.faults]
    return restore(described, batch, _OWNER)


# Server side.


def _served_submit(call: WireCall, _params: Mapping[str, str]) -> BatchSubmission:
    with request_errors():
        fields = Fields(call.body)
        endpoint, model = fields.need("endpoint"), fields.need("model")
        files = fields.texts("input_files")
        if not files:
            raise DecodeError("`input_files` must have at least one file.")
    return BatchSubmission(
        owner=_OWNER,
        id_prefix="job-",
        model=model,
        file_id=files[0],
        endpoint=endpoint,
        read=partial(read_requests, read=partial(_read_line, endpoint, model), first=1),
        write=write_replies,
        splits_errors=True,
        max_items=_MAX_ITEMS,
        extra={_OWNER: {"input_files": list(files), **fields.left}},
    )


def _read_line(endpoint: str, model: str, value: Json, number: int) -> tuple[str, WireCall]:
    fields = Fields(value, f"line {number}")
    # The model in a line is «optional when you specify the model at job creation time».
    body = {"model": model, **(fields.object("body") or {})}
    return fields.need("custom_id"), WireCall(path=endpoint, body=body)


def _served_list(call: WireCall, _params: Mapping[str, str]) -> BatchQuery:
    size = page_size(call.query, "page_size", default=_PAGE, highest=_PAGE)
    number = read_integer(call.query.get("page", "0"))
    return BatchQuery(owner=_OWNER, limit=size, after=str(number or 0))


def _write_list(batches: list[ServedBatch], value: BatchQuery) -> ServedReply:
    start = int(value.after or 0) * (value.limit or _PAGE)
    page, _ = batch_page(batches[start:], replace(value, after=None), _PAGE)
    rows = [write_job(served) for served in page]
    return ServedReply(body={"object": "list", "data": rows, "total": len(batches)})


SERVED = serve_batches(
    r".*/batch/jobs",
    write_job,
    read_submission=_served_submit,
    read_list=_served_list,
    write_list=_write_list,
)
