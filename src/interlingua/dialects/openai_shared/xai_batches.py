"""
Batches at xAI: `/v1/batches`. Both sides.

The requests are an uploaded file as OpenAI has it. A batch has no status but counts, and its
results are pages of JSON: https://docs.x.ai/developers/advanced-api-usage/batch-api
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from interlingua.dialects.openai_shared import batches
from interlingua.dialects.openai_shared.batches import PATH
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Json
from interlingua.spec.contracts import FormPart, Profile, WireCall
from interlingua.spec.errors import DecodeError, NotFoundError
from interlingua.spec.modalities.batch import (
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
from interlingua.spec.operations import ItemFormat, Operation, Script, ServedReply
from interlingua.wire.batches import (
    MEGABYTE,
    WholeReplies,
    batch_page,
    cancelled,
    create_or_clean,
    expired,
    is_expired,
    operations_on_batch,
    read_requests,
)
from interlingua.wire.fields import Fields, count, extra_of, request_errors, text_of
from interlingua.wire.files import seconds_of, take_time, time_text
from interlingua.wire.json_text import loads
from interlingua.wire.operations import PAGE_TOKEN, follow_token, page_by_last_token, page_size
from interlingua.wire.resources import by_name, decode_list, page_of, resource_path
from interlingua.wire.rpc_codes import WORDS, code_for, status_of_code

OWNER = "xai"
"""The key of other fields in `Batch.extra`."""
_ANSWER = "chat_get_completion"
_ENDPOINT = "/v1/chat/completions"
_COUNTS = {
    "num_requests": "total",
    "num_success": "succeeded",
    "num_error": "failed",
    "num_cancelled": "cancelled",
}
_PAGE = 100
# Files are kept until they are deleted, and storing them is paid for. A batch may not name its
# file later, so the requests expire: 30 days are the most that xAI accepts.
_EXPIRY = FormPart(name="expires_after", content=str(30 * 86_400))


def xai_batch_operations(name: str) -> dict[str, Operation]:
    """
    The operations on batches for a dialect of this name, which is that of the answers.

    Answers are Chat Completions, also those to requests for `/v1/responses`.
    """
    lines = ItemFormat(
        name="lines",
        wrap=partial(batches.wrap_line, _ENDPOINT),
        endpoint=_ENDPOINT.removeprefix("/v1"),
        max_bytes=48 * MEGABYTE,  # of a file: the guide says 48 MB, the reference 50
    )

    def submit(value: BatchInput, _profile: Profile) -> Script:
        file_id = yield from batches.upload_requests(value, _EXPIRY)
        body = {"name": value.name or value.request_id or "batch", "input_file_id": file_id}
        body = body_with_options(body, value, name)
        call = WireCall(path=PATH, body=body, headers=value.headers, starts_job=True)
        reply = yield from create_or_clean(call, batches.delete_file(file_id))
        return replace(read_batch(loads(reply.body)), input_file=file_id)

    return by_name(
        Operation(name="submit_batch", script=submit, formats=(lines,)),
        Operation(
            name="list_batches",
            encode=_encode_list,
            decode=decode_list(read_batch, "batches", required="batches"),
            next_page=page_by_last_token("batches"),
        ),
        *operations_on_batch(PATH, read_batch, cancel=":cancel"),
        Operation(
            name="batch_results",
            encode=_encode_results,
            stream_decoder=lambda _value: WholeReplies(_read_results, read_reply, _next_results),
        ),
        Operation(name="delete_batch", script=_delete),
    )


def _encode_list(value: BatchQuery, _profile: Profile) -> WireCall:
    query = {"limit": str(min(value.limit or _PAGE, _PAGE))}
    return WireCall(method="GET", path=PATH, query=query)


def _encode_results(value: BatchQuery, _profile: Profile) -> WireCall:
    path = f"{resource_path(PATH, value.id)}/results"
    return WireCall(method="GET", path=path, query={"limit": str(_PAGE)})


def _delete(value: BatchQuery, _profile: Profile) -> Script:
    """A batch cannot be deleted, only the file with its requests, where the batch names it."""
    return batches.delete_files(None if value.batch is None else value.batch.input_file)


# Batches.


def read_batch(value: Json) -> Batch:
    """A batch as the provider describes it; its state follows from its counts and times."""
    fields = Fields(value, strict=False)
    batch_id = fields.need("batch_id")
    held = fields.left.get("state")
    figures = held if isinstance(held, dict) else {}
    counts = BatchCounts(**{ours: count(figures.get(name)) for name, ours in _COUNTS.items()})
    cancel_time = fields.left.get("cancel_time")
    # xAI cancels a batch whose file it cannot read, for example because of its model.
    reason = text_of(fields.left.get("cancel_by_xai_message"))
    state = _state(counts, count(figures.get("num_pending")), reason, bool(cancel_time))
    return Batch(
        id=batch_id,
        state=state,
        name=text_of(fields.left.get("name")),
        counts=counts,
        created_at=take_time(fields, "create_time"),
        expires_at=take_time(fields, "expire_time"),
        ended_at=seconds_of(cancel_time) if state in ("failed", "cancelled") else None,
        input_file=fields.text("input_file_id"),
        outputs=(batch_id,) if counts.ended else (),
        faults=(BatchFault(message=reason),) if reason else (),
        extra={OWNER: fields.left},
        raw=value,
    )


def _state(counts: BatchCounts, pending: int | None, reason: str, is_cancelled: bool) -> BatchState:
    if reason:
        return "failed"
    if is_cancelled:
        return "cancelling" if pending else "cancelled"
    if not counts.total:
        return "queued"  # the file is not read yet: all counts are 0
    if pending or pending is None:
        return "in_progress"
    return "cancelled" if counts.cancelled == counts.total else "completed"


def write_batch(served: ServedBatch) -> dict[str, Json]:
    """A batch as the provider describes it."""
    batch, known = served.batch, extra_of(served.batch, OWNER)
    times = {"create_time": batch.created_at, "expire_time": batch.expires_at}
    described: dict[str, Json] = {
        "batch_id": batch.id,
        **{name: time_text(time) for name, time in times.items() if time is not None},
    }
    if batch.input_file is not None:
        described["input_file_id"] = batch.input_file
    if "state" not in known:  # it was not read from the wire
        described |= _write_progress(batch)
    return {**described, **known}


def _write_progress(batch: Batch) -> dict[str, Json]:
    counts, is_read = batch.counts, batch.state not in ("queued", "failed")
    figures = {name: getattr(counts, ours) or 0 for name, ours in _COUNTS.items()}
    figures["num_error"] += counts.expired or 0
    figures["num_pending"] = figures["num_requests"] - counts.ended
    is_cancelled = batch.state in ("cancelling", "cancelled", "failed")
    time = batch.ended_at or batch.created_at or 0
    return {
        "state": figures if is_read else dict.fromkeys(figures, 0),
        "cancel_time": time_text(time) if is_cancelled else None,
        "cancel_by_xai_message": batch.faults[0].message if batch.faults else None,
    }


# Results.


def _read_results(page: Json) -> list[Json]:
    rows = Fields(page, strict=False).array("results")
    if rows is None:
        raise DecodeError("The reply has no list of results.")
    return rows


def _next_results(call: WireCall, page: Json) -> WireCall | None:
    return follow_token(call, page, "results")


def read_reply(value: Json, _index: int) -> BatchReply:
    """A result of a page."""
    fields = Fields(value, strict=False)
    item_id, message = fields.need("batch_request_id"), fields.text("error_message")
    result = fields.object("batch_result") or {}
    fault = _read_fault(result.get("error"), message)
    if fault is None:
        response = result.get("response")
        body = response.get(_ANSWER) if isinstance(response, dict) else None
        if body is None:
            raise DecodeError("It has neither an answer nor an error.", path="batch_result")
        return BatchReply(id=item_id, body=body, raw=value)
    status = status_of_code(fault.get("code"))
    text = text_of(fault.get("message"))
    if status == 499:
        return BatchReply(id=item_id, error=cancelled(text), raw=value)
    if status == 504:
        return BatchReply(id=item_id, error=expired(text), raw=value)
    return BatchReply(id=item_id, status=status, body={"error": fault}, raw=value)


def _read_fault(error: Json, message: str | None) -> dict[str, Json] | None:
    """The error of a result; an answer may have one with the code 0, which is none."""
    if isinstance(error, str):
        error = {"message": error} if error else None
    fields = dict(error) if isinstance(error, dict) else {}
    code = fields.get("code")
    if message:
        return {**fields, "message": fields.get("message") or message}
    is_fault = bool(fields.get("message")) if code is None else code not in (0, "0")
    return fields if is_fault else None


def write_reply(reply: BatchReply) -> dict[str, Json]:
    """A result of a page."""
    if reply.error is None and reply.status < 300:
        result: dict[str, Json] = {"response": {_ANSWER: reply.body}}
        return {"batch_request_id": reply.id, "batch_result": result}
    return {"batch_request_id": reply.id, "batch_result": {"error": _write_fault(reply)}}


def _write_fault(reply: BatchReply) -> dict[str, Json]:
    if reply.error is not None:
        word = "DEADLINE_EXCEEDED" if is_expired(reply) else "CANCELLED"
        return {"code": WORDS.index(word), "message": reply.error.message}
    body = reply.body if isinstance(reply.body, dict) else {}
    fault = body.get("error")
    fields = fault if isinstance(fault, dict) else {"message": text_of(fault)}
    return {**fields, "code": code_for(reply.status)}


# Server side; `batch_serve.py` has the endpoints.


def is_own(call: WireCall) -> bool:
    """Whether a request to create a batch is for xAI: its batches have a name and no endpoint."""
    return isinstance(call.body, dict) and "name" in call.body and "endpoint" not in call.body


def is_own_batch(served: ServedBatch) -> bool:
    """Whether a batch was created at xAI."""
    return OWNER in served.batch.extra


def served_submit(call: WireCall) -> BatchSubmission:
    """The batch that a request asks for."""
    with request_errors():
        fields = Fields(call.body)
        fields.text("name")
        file_id = fields.need("input_file_id")
    return BatchSubmission(
        owner=batches.OWNER,  # one list has the batches of both
        id_prefix="batch_",
        file_id=file_id,
        read=partial(read_requests, read=_read_line, first=1),
        extra={OWNER: {"name": call.body["name"]}},
    )


def _read_line(value: Json, number: int) -> tuple[str, WireCall]:
    item_id, call = batches.read_line(value, number)
    if call.path != _ENDPOINT:
        raise DecodeError(f"Line {number}: the url {call.path!r} is not supported.")
    return item_id, call


def write_list(served: list[ServedBatch], value: BatchQuery) -> dict[str, Json]:
    """One page of a list."""
    page, has_more = batch_page(served, value, batches.PAGE)
    token = page[-1].batch.id if has_more else None
    return {"batches": [write_batch(each) for each in page], PAGE_TOKEN: token}


def served_results(call: WireCall, params: Mapping[str, str]) -> BatchQuery:
    """The page of results that a request asks for."""
    size = page_size(call.query, "limit", default=_PAGE, highest=1000)
    return BatchQuery(id=params["batch"], limit=size, after=call.query.get(PAGE_TOKEN) or None)


def write_results(served: ServedBatch, value: BatchQuery) -> ServedReply:
    """One page of results."""
    if not is_own_batch(served):  # those of OpenAI are files
        raise NotFoundError(f"No such batch: {value.id}.", status_code=404)
    size = value.limit or _PAGE
    page, has_more = page_of(
        served.replies, lambda reply: reply.id, value.after, size, kind="result"
    )
    token = page[-1].id if has_more else None
    return ServedReply(body={"results": [write_reply(each) for each in page], PAGE_TOKEN: token})
