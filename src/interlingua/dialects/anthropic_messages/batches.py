"""
`/v1/messages/batches`: both sides. The requests are in the call, the results are a file.

https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from interlingua.dialects.anthropic_messages.facts import NAME, VERSION, VERSION_HEADER
from interlingua.dialects.anthropic_messages.facts import PATH as MESSAGES
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError
from interlingua.spec.modalities.batch import (
    ENDED,
    Batch,
    BatchCounts,
    BatchInput,
    BatchQuery,
    BatchReply,
    BatchState,
    BatchSubmission,
    ServedBatch,
)
from interlingua.spec.operations import ItemFormat, Operation, ServedReply
from interlingua.wire.batches import (
    MEGABYTE,
    ONE_BATCH,
    ReplyLines,
    batch_page,
    cancelled,
    expired,
    is_expired,
    operations_on_batch,
    serve_batches,
    served_batch,
)
from interlingua.wire.fields import Fields, count, request_errors, restore
from interlingua.wire.files import seconds_of, time_text
from interlingua.wire.json_text import dumps
from interlingua.wire.jsonl import encode_lines
from interlingua.wire.operations import page_after_last, page_size
from interlingua.wire.resources import by_name, decode_list, decode_one, resource_path, serve

PATH = f"{MESSAGES}/batches"
_COUNTS = {
    "succeeded": "succeeded",
    "errored": "failed",
    "canceled": "cancelled",
    "expired": "expired",
}
# `ended` is the third: `_state` says what it means.
_STATES: dict[str, BatchState] = {"in_progress": "in_progress", "canceling": "cancelling"}
_PAGE = 20
_MAX_PAGE = 1000
_MAX_ITEMS = 100_000
_ID = "[a-zA-Z0-9_-]{1,64}"  # of `custom_id`


# Client side.


def _envelope(value: BatchInput) -> tuple[bytes, bytes]:
    fields = body_with_options({}, value, NAME)
    start = dumps(fields)[:-1] + b"," if fields else b"{"
    return start + b'"requests":[', b"]}"


def _wrap(item_id: str) -> tuple[bytes, bytes]:
    return dumps({"custom_id": item_id})[:-1] + b',"params":', b"}"


_REQUESTS = ItemFormat(
    name="requests",
    envelope=_envelope,
    wrap=_wrap,
    separator=b",",
    endpoint="/messages",
    max_items=_MAX_ITEMS,  # «100,000 Message requests or 256 MB in size»
    max_bytes=256 * MEGABYTE,
    id_pattern=_ID,
)


def _encode_submit(value: BatchInput, profile: Profile) -> WireCall:
    headers = {**_version(profile), **value.headers, "content-type": "application/json"}
    return WireCall(path=PATH, content=value.content, headers=headers, starts_job=True)


def _encode_list(value: BatchQuery, profile: Profile) -> WireCall:
    query = {"limit": str(min(value.limit or _MAX_PAGE, _MAX_PAGE))}
    return WireCall(method="GET", path=PATH, query=query, headers=_version(profile))


def _version(profile: Profile) -> dict[str, str]:
    return {VERSION_HEADER: profile.api_version or VERSION}


def read_batch(value: UncheckedJson) -> Batch:
    """A batch as the provider describes it."""
    fields = Fields(value, strict=False)
    fields.take("type")
    status = fields.need("processing_status")
    figures = fields.object("request_counts") or {}
    counts = {field: count(figures.get(name)) for name, field in _COUNTS.items()}
    total = sum(count(figure) or 0 for figure in figures.values())  # the API has no total
    output = fields.text("results_url")
    return Batch(
        id=fields.need("id"),
        state=_state(status, counts, is_cancelled=bool(fields.left.get("cancel_initiated_at"))),
        raw_state=status,
        counts=BatchCounts(total=total, **counts),
        created_at=seconds_of(fields.left.get("created_at")),
        expires_at=seconds_of(fields.left.get("expires_at")),
        ended_at=seconds_of(fields.left.get("ended_at")),
        outputs=() if output is None else (output,),
        extra={NAME: fields.left} if fields.left else {},
        raw=value,
    )


def _state(status: str, counts: Mapping[str, int | None], *, is_cancelled: bool) -> BatchState:
    """A batch that has ended may have been cancelled, or may have run out of time."""
    if status != "ended":
        return _STATES.get(status, "in_progress")
    if is_cancelled:
        return "cancelled"
    return "expired" if counts["expired"] else "completed"


def read_reply(value: UncheckedJson, _index: int) -> BatchReply:
    """A line of the results."""
    fields = Fields(value, strict=False)
    item_id, result = fields.need("custom_id"), fields.fields("result")
    if result is None:
        raise DecodeError("The line has no result.")
    match result.need("type"):
        case "succeeded":
            return BatchReply(id=item_id, body=result.take("message"), raw=value)
        case "canceled":
            return BatchReply(id=item_id, error=cancelled(), raw=value)
        case "expired":
            return BatchReply(id=item_id, error=expired(), raw=value)
        case _:
            return _read_failure(item_id, result.take("error"), value)


def _read_failure(item_id: str, body: UncheckedJson, raw: UncheckedJson) -> BatchReply:
    """A request that failed. Its error has a type, but no status."""
    inner = body.get("error") if isinstance(body, dict) else None
    kind = inner.get("type") if isinstance(inner, dict) else None
    request_id = body.get("request_id") if isinstance(body, dict) else None
    return BatchReply(
        id=item_id,
        status=_STATUS_OF.get(kind if isinstance(kind, str) else "", 500),
        body=body,
        provider_request_id=request_id if isinstance(request_id, str) else None,
        raw=raw,
    )


# https://platform.claude.com/docs/en/api/errors
_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}

OPERATIONS: Mapping[str, Operation] = by_name(
    Operation(
        name="submit_batch",
        encode=_encode_submit,
        decode=decode_one(read_batch),
        formats=(_REQUESTS,),
    ),
    Operation(
        name="list_batches",
        encode=_encode_list,
        decode=decode_list(read_batch, "data", required="batches"),
        next_page=page_after_last("after_id"),
    ),
    Operation(
        name="batch_results",
        # The key is sent only to the own host, whatever this address is.
        encode=lambda value, profile: WireCall(
            method="GET", path=value.output, headers=_version(profile)
        ),
        stream_decoder=lambda _value: ReplyLines(read_reply),
    ),
    Operation(
        name="delete_batch",
        encode=lambda value, profile: WireCall(
            method="DELETE", path=resource_path(PATH, value.id), headers=_version(profile)
        ),
        decode=lambda _status, _headers, _body: None,
    ),
    *operations_on_batch(PATH, read_batch, _version),
)


# Server side.


def write_batch(served: ServedBatch) -> dict[str, Json]:
    """A batch as the provider describes it."""
    batch = served.batch
    counts = {name: getattr(batch.counts, field) or 0 for name, field in _COUNTS.items()}
    total = batch.counts.total or 0
    has_ended = batch.state in ENDED
    status = batch.raw_state or ("ended" if has_ended else _STATUSES.get(batch.state))
    described: dict[str, Json] = {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": status or "in_progress",
        "request_counts": {"processing": total - sum(counts.values()), **counts},
        "results_url": batch.outputs[0] if batch.outputs else None,
    }
    if NAME not in batch.extra:  # a batch that was read has these fields in `extra`
        is_cancelled = batch.state in ("cancelling", "cancelled")
        described |= {
            "created_at": _time(batch.created_at),
            "expires_at": _time(batch.expires_at),
            "ended_at": _time(batch.ended_at),
            "archived_at": None,
            "cancel_initiated_at": _time(batch.created_at) if is_cancelled else None,
            "results_url": f"{PATH}/{batch.id}/results" if has_ended else None,
        }
    return restore(described, batch, NAME)


_STATUSES = {state: status for status, state in _STATES.items()}


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else time_text(seconds)


def write_reply(reply: BatchReply) -> dict[str, Json]:
    """A line of the results."""
    if reply.error is not None:
        result: dict[str, Json] = {"type": "expired" if is_expired(reply) else "canceled"}
    elif reply.status < 300:
        result = {"type": "succeeded", "message": reply.body}
    else:
        result = {"type": "errored", "error": reply.body}
    return {"custom_id": reply.id, "result": result}


def _served_submit(call: WireCall, _params: Mapping[str, str]) -> BatchSubmission:
    with request_errors():
        rows = Fields(call.body).array("requests")
        if not rows:
            raise DecodeError("`requests` is required: a list of at least one request.")
        calls = tuple(_read_item(row, index, call.headers) for index, row in enumerate(rows))
    return BatchSubmission(owner=NAME, id_prefix="msgbatch_", calls=calls, max_items=_MAX_ITEMS)


def _read_item(row: UncheckedJson, index: int, headers: Mapping[str, str]) -> tuple[str, WireCall]:
    fields = Fields(row, f"requests.{index}")
    body = fields.object("params")
    if body is None:
        raise DecodeError(f"`requests.{index}.params` is required.")
    item_id = fields.need("custom_id")
    if re.fullmatch(_ID, item_id) is None:
        raise DecodeError(f"`requests.{index}.custom_id` must match the pattern {_ID}.")
    return item_id, WireCall(path=MESSAGES, body=body, headers=headers)


def _served_list(call: WireCall, _params: Mapping[str, str]) -> BatchQuery:
    size = page_size(call.query, "limit", default=_PAGE, highest=_MAX_PAGE)
    return BatchQuery(owner=NAME, limit=size, after=call.query.get("after_id") or None)


def _write_list(batches: list[ServedBatch], value: BatchQuery) -> ServedReply:
    page, has_more = batch_page(batches, value, _PAGE)
    ids = [served.batch.id for served in page]
    body = {
        "data": [write_batch(served) for served in page],
        "has_more": has_more,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
    }
    return ServedReply(body=body)


def _write_results(served: ServedBatch, _value: BatchQuery) -> ServedReply:
    lines = encode_lines(map(write_reply, served.replies))
    return ServedReply(content=lines, content_type="application/x-jsonl")


def _write_deleted(served: ServedBatch, _value: BatchQuery) -> ServedReply:
    return ServedReply(body={"id": served.batch.id, "type": "message_batch_deleted"})


_ALL = ".*/messages/batches"
_ONE = f"{_ALL}/{ONE_BATCH}"
SERVED = (
    *serve_batches(
        _ALL,
        write_batch,
        read_submission=_served_submit,
        read_list=_served_list,
        write_list=_write_list,
    ),
    serve("batch_results", "GET", f"{_ONE}/results", served_batch, _write_results),
    serve("delete_batch", "DELETE", _ONE, served_batch, _write_deleted),
)
