"""
`:batchGenerateContent` and `/v1beta/batches`: both sides.

A batch is an operation: its facts are in `metadata`. Few requests are in the call and their results
in the operation; many are in files. https://ai.google.dev/gemini-api/docs/batch-api
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import quote

from interlingua.dialects.gemini_generate import files
from interlingua.dialects.gemini_generate.facts import MODEL_PATH, NAME
from interlingua.dialects.gemini_generate.facts import PATH as GENERATE
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError, NotFoundError
from interlingua.spec.modalities.batch import (
    ENDED,
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
from interlingua.spec.modalities.files import FileInput, UploadInput
from interlingua.spec.operations import (
    ItemFormat,
    Operation,
    OperationReply,
    Script,
    ServedReply,
)
from interlingua.wire.batches import (
    MEGABYTE,
    ReplyLines,
    WholeReplies,
    batch_page,
    cancelled,
    create_or_clean,
    expired,
    is_expired,
    read_requests,
)
from interlingua.wire.fields import Fields, request_errors, restore, text_of
from interlingua.wire.files import seconds_of, time_text
from interlingua.wire.integers import read_integer
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.jsonl import encode_lines
from interlingua.wire.operations import page_by_token, page_size
from interlingua.wire.resources import (
    by_name,
    decode_list,
    decode_one,
    resource_path,
    serve,
    write_body,
)
from interlingua.wire.rpc_codes import status_of_code

_BATCHES = "/v1beta/batches"
_PREFIX = "batches/"
_FILE = "files/"
_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch"
_STATES: dict[str, BatchState] = {
    "PENDING": "queued",
    "QUEUED": "queued",
    "PAUSED": "queued",
    "RUNNING": "in_progress",
    "UPDATING": "in_progress",
    "SUCCEEDED": "completed",
    "PARTIALLY_SUCCEEDED": "completed",
    "FAILED": "failed",
    "CANCELLING": "cancelling",
    "CANCELLED": "cancelled",
    "EXPIRED": "expired",
}
# The Gemini API writes BATCH_STATE_…, Vertex AI and the SDK JOB_STATE_….
_STATE = "BATCH_STATE_"
_WORDS = {
    "queued": "PENDING",
    "in_progress": "RUNNING",
    "finalizing": "RUNNING",
    "completed": "SUCCEEDED",
    "failed": "FAILED",
    "cancelling": "RUNNING",  # the API has no state for it
    "cancelled": "CANCELLED",
    "expired": "EXPIRED",
}
_STATS = {
    "requestCount": "total",
    "successfulRequestCount": "succeeded",
    "failedRequestCount": "failed",
}
_PAGE = 50
_MAX_PAGE = 1000


# Submitting.


def _wrap_inline(item_id: str) -> tuple[bytes, bytes]:
    return b'{"request":', b',"metadata":' + dumps({"key": item_id}) + b"}"


def _wrap_line(item_id: str) -> tuple[bytes, bytes]:
    return dumps({"key": item_id})[:-1] + b',"request":', b"}"


def _envelope(value: BatchInput) -> tuple[bytes, bytes]:
    fields = dumps({"batch": _settings(value)})[:-2]
    comma = b"" if fields.endswith(b"{") else b","
    return fields + comma + b'"inputConfig":{"requests":{"requests":[', b"]}}}}"


_INLINE = ItemFormat(
    name="inline",
    envelope=_envelope,
    wrap=_wrap_inline,
    separator=b",",
    endpoint=":generateContent",
    max_bytes=20 * MEGABYTE,  # for requests in the call, «under 20MB»
    single_model=True,  # the model is in the path of the batch
)
_LINES = ItemFormat(
    name="lines",
    wrap=_wrap_line,
    endpoint=":generateContent",
    max_bytes=2048 * MEGABYTE,  # the limit of the Files API: 2 GB a file
    single_model=True,
)


def _settings(value: BatchInput) -> dict[str, Json]:
    """The fields of the batch besides its requests, such as `displayName`."""
    return body_with_options({"displayName": value.name} if value.name else {}, value, NAME)


def _submit(value: BatchInput, profile: Profile) -> Script:
    path = f"/v1beta/models/{quote(value.model, safe='', errors='replace')}:batchGenerateContent"
    if value.format == _INLINE.name:
        headers = {**value.headers, "content-type": "application/json"}
        reply = yield WireCall(path=path, content=value.content, headers=headers, starts_job=True)
    else:
        name = yield from _upload(value, profile)
        body = {"batch": {**_settings(value), "inputConfig": {"fileName": name}}}
        call = WireCall(path=path, body=body, headers=value.headers, starts_job=True)
        delete = WireCall(
            method="DELETE", path=f"/v1beta/{quote(name, safe='/', errors='replace')}"
        )
        reply = yield from create_or_clean(call, delete)
    return read_batch(loads(reply.body))


def _upload(value: BatchInput, profile: Profile) -> Generator[WireCall, OperationReply, str]:
    """Upload the encoded requests; returns the name of the file. It expires after two days."""
    file = UploadInput(
        content=value.content, file_name="batch.jsonl", media_type="application/jsonl"
    )
    stored = yield from _script("upload_file", file, profile)
    return text_of(stored.id)


def _script(name: str, value: Any, profile: Profile) -> Script:
    script = files.OPERATIONS[name].script
    if script is None:
        raise AssertionError(f"The operation {name} has no script.")
    steps: Script = script(value, profile)
    return steps


# Batches.


def _path(value: BatchQuery) -> str:
    return resource_path(_BATCHES, value.id.removeprefix(_PREFIX))


def _cancel(value: BatchQuery, _profile: Profile) -> Script:
    """The reply to a cancellation is empty, so the batch is asked for."""
    yield WireCall(path=f"{_path(value)}:cancel", body={})
    reply = yield WireCall(method="GET", path=_path(value))
    return read_batch(loads(reply.body))


def _delete(value: BatchQuery, profile: Profile) -> Script:
    batch = value.batch or Batch(id=value.id)
    yield WireCall(method="DELETE", path=_path(value))
    if batch.input_file:
        with suppress(NotFoundError):  # it has expired, or was deleted before
            yield from _script("delete_file", FileInput(file_id=batch.input_file), profile)
    return None


def _encode_list(value: BatchQuery, _profile: Profile) -> WireCall:
    query = {} if value.limit is None else {"pageSize": str(min(value.limit, _MAX_PAGE))}
    return WireCall(method="GET", path=_BATCHES, query=query)


def read_batch(value: Json) -> Batch:
    """
    A batch as the provider describes it.

    Results that are in the operation are not part of it: `batch_results` reads them.
    """
    operation = Fields(value, strict=False)
    name = operation.need("name")
    output, operation.left = _without_results(operation.left)
    raw = {"name": name, **operation.left}
    fields = operation.fields("metadata") or Fields({})
    state = fields.text("state") or ""
    return Batch(
        id=name,
        model=text_of(fields.left.get("model")).removeprefix("models/"),
        state=_state(state, has_failed=bool(operation.left.get("error"))),
        raw_state=state,
        name=text_of(fields.left.get("displayName")),
        counts=_read_stats(fields.left.get("batchStats")),
        created_at=seconds_of(fields.left.get("createTime")),
        ended_at=seconds_of(fields.left.get("endTime")),
        input_file=_input_file(fields.left.get("inputConfig")),
        outputs=_outputs(name, output),
        faults=_read_faults(operation.left.get("error")),
        extra={NAME: {**operation.left, "metadata": fields.left}},
        raw=raw,
    )


def _state(state: str, *, has_failed: bool) -> BatchState:
    word = state.removeprefix(_STATE).removeprefix("JOB_STATE_")
    return _STATES.get(word, "failed" if has_failed else "in_progress")


def _without_results(operation: dict[str, Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    """The output of a batch, and the operation without the results in it."""
    metadata, response = operation.get("metadata"), operation.get("response")
    held = metadata.get("output") if isinstance(metadata, dict) else None
    output = held if isinstance(held, dict) else response
    output = output if isinstance(output, dict) else {}
    if "inlinedResponses" not in output:
        return output, operation
    trimmed = dict(operation)
    if isinstance(metadata, dict) and isinstance(held, dict):
        trimmed["metadata"] = {**metadata, "output": _trim(held)}
    if isinstance(response, dict):
        trimmed["response"] = _trim(response)
    return output, trimmed


def _trim(output: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in output.items() if name != "inlinedResponses"}


def _outputs(name: str, output: Mapping[str, Json]) -> tuple[str, ...]:
    if output.get("responsesFile"):
        return (text_of(output["responsesFile"]),)
    return (name,) if "inlinedResponses" in output else ()


def _input_file(config: Json) -> str | None:
    name = config.get("fileName") if isinstance(config, dict) else None
    return name if isinstance(name, str) else None


def _read_stats(stats: Json) -> BatchCounts:
    figures = stats if isinstance(stats, dict) else {}
    return BatchCounts(**{field: _integer(figures.get(name)) for name, field in _STATS.items()})


def _integer(value: Json) -> int | None:
    """A number; JSON of this API has large integers as strings."""
    return read_integer(value)


def _read_faults(error: Json) -> tuple[BatchFault, ...]:
    if not isinstance(error, dict):
        return ()
    code = error.get("status") or error.get("code")
    message = text_of(error.get("message"))
    return (BatchFault(message=message, code=None if code is None else str(code)),)


# Results.


def read_reply(value: Json, index: int) -> BatchReply:
    """A result, in a line of a file or in the operation; one without a key has its place as id."""
    fields = Fields(value, strict=False)
    metadata = fields.object("metadata") or {}
    key = fields.text("key") or metadata.get("key")
    item_id = key if isinstance(key, str) else str(index)
    fault = fields.object("error")
    if fault is None:
        return BatchReply(id=item_id, body=fields.take("response"), raw=value)
    status = status_of_code(fault.get("status") or fault.get("code"))
    message = text_of(fault.get("message"))
    if status == 499:
        return BatchReply(id=item_id, error=cancelled(message), raw=value)
    if status == 504:
        return BatchReply(id=item_id, error=expired(message), raw=value)
    return BatchReply(id=item_id, status=status, body={"error": fault}, raw=value)


def _read_inlined(operation: Json) -> list[Json]:
    output, _ = _without_results(Fields(operation, strict=False).left)
    inlined = output.get("inlinedResponses")
    if isinstance(inlined, dict):
        inlined = inlined.get("inlinedResponses")
    return inlined if isinstance(inlined, list) else []


def _encode_results(value: BatchQuery, _profile: Profile) -> WireCall:
    if not value.output.startswith(_FILE):
        return WireCall(method="GET", path=_path(value))
    path = f"/download/v1beta/{quote(value.output, safe='/', errors='replace')}:download"
    return WireCall(method="GET", path=path, query={"alt": "media"})


def _results_decoder(value: BatchQuery) -> ReplyLines | WholeReplies:
    if value.output.startswith(_FILE):
        return ReplyLines(read_reply)
    return WholeReplies(_read_inlined, read_reply)  # at most 20 MB, as the requests in a call


OPERATIONS: Mapping[str, Operation] = by_name(
    Operation(name="submit_batch", script=_submit, formats=(_INLINE, _LINES)),
    Operation(
        name="retrieve_batch",
        encode=lambda value, _profile: WireCall(method="GET", path=_path(value)),
        decode=decode_one(read_batch),
        error_is_data=True,
    ),
    Operation(name="batch_results", encode=_encode_results, stream_decoder=_results_decoder),
    Operation(name="cancel_batch", script=_cancel, error_is_data=True),
    Operation(
        name="list_batches",
        encode=_encode_list,
        decode=decode_list(read_batch, "operations"),
        next_page=page_by_token,
    ),
    Operation(name="delete_batch", script=_delete),
)


# Server side.


def write_batch(served: ServedBatch) -> dict[str, Json]:
    """A batch as the provider describes it."""
    batch = served.batch
    has_ended = batch.state in ENDED
    metadata: dict[str, Json] = {
        "name": batch.id,
        "state": batch.raw_state or f"{_STATE}{_WORDS[batch.state]}",
    }
    described: dict[str, Json] = {"name": batch.id, "metadata": metadata}
    known = batch.extra.get(NAME, {})
    if "metadata" in known:  # as it was read
        described["metadata"] = {**known["metadata"], "state": metadata["state"]}
        return restore(described, batch, NAME)
    metadata |= {
        "@type": _TYPE,
        "model": f"models/{batch.model}",
        "createTime": time_text(batch.created_at or 0),
        "updateTime": time_text(batch.ended_at or batch.created_at or 0),
        "batchStats": _write_stats(batch.counts),
        **known,
    }
    if batch.input_file is not None:
        metadata["inputConfig"] = {"fileName": _file_name(batch.input_file)}
    if has_ended:
        metadata["endTime"] = time_text(batch.ended_at or 0)
        described["done"] = True
    if batch.faults:
        described["error"] = {"code": 3, "message": batch.faults[0].message}
    elif has_ended:
        output = metadata["output"] = _write_output(served)
        described["response"] = {"@type": f"{_TYPE}Output", **output}
    return described


def _write_stats(counts: BatchCounts) -> dict[str, str]:
    figures = {name: getattr(counts, field) or 0 for name, field in _STATS.items()}
    figures["pendingRequestCount"] = (counts.total or 0) - counts.ended
    return {name: str(figure) for name, figure in figures.items() if figure}


def _write_output(served: ServedBatch) -> dict[str, Json]:
    if served.output_file is not None:
        return {"responsesFile": _file_name(served.output_file)}
    rows = [{**_write_reply(each), "metadata": {"key": each.id}} for each in served.replies]
    return {"inlinedResponses": {"inlinedResponses": rows}}


def _file_name(file_id: str) -> str:
    return file_id if file_id.startswith(_FILE) else f"{_FILE}{file_id}"


def _write_reply(reply: BatchReply) -> dict[str, Json]:
    if reply.error is not None:
        code = 4 if is_expired(reply) else 1  # of google.rpc.Code
        return {"error": {"code": code, "message": reply.error.message}}
    if reply.status < 300:
        return {"response": reply.body}
    body = reply.body if isinstance(reply.body, dict) else {}
    return {"error": body.get("error", {"code": 13, "message": str(reply.body)})}


def write_lines(replies: Iterable[BatchReply]) -> bytes:
    """A file of results."""
    return encode_lines({"key": each.id, **_write_reply(each)} for each in replies)


def _served_submit(call: WireCall, params: Mapping[str, str]) -> BatchSubmission:
    path = GENERATE.replace("{model}", params["model"])
    with request_errors():
        fields = Fields(call.body).fields("batch") or Fields({})
        config = fields.fields("inputConfig")
        if config is None:
            raise DecodeError("`batch.inputConfig` is required.")
        file_name = config.text("fileName")
        requests = config.fields("requests")
        rows = [] if requests is None else requests.array("requests") or []
        if not rows and file_name is None:
            raise DecodeError("`batch.inputConfig` has no requests and names no file.")
        calls = tuple(_read_item(path, row, index) for index, row in enumerate(rows))
    return BatchSubmission(
        owner=NAME,
        id_prefix=_PREFIX,
        model=params["model"],
        calls=calls,
        file_id=None if file_name is None else file_name.removeprefix(_FILE),
        read=partial(read_requests, read=partial(_read_item, path)),
        write=None if file_name is None else write_lines,
        keeps_order=True,
        extra={NAME: fields.left} if fields.left else {},
    )


def _read_item(path: str, row: Json, index: int) -> tuple[str, WireCall]:
    fields = Fields(row, f"requests[{index}]")
    body = fields.object("request")
    if body is None:
        raise DecodeError(f"`requests[{index}].request` is required.")
    metadata = fields.object("metadata") or {}
    key = fields.text("key") or metadata.get("key")
    return str(index) if key is None else str(key), WireCall(path=path, body=body)


def _served_id(_call: WireCall, params: Mapping[str, str]) -> BatchQuery:
    return BatchQuery(id=f"{_PREFIX}{params['batch']}")


def _served_list(call: WireCall, _params: Mapping[str, str]) -> BatchQuery:
    size = page_size(call.query, "pageSize", default=_PAGE, highest=_MAX_PAGE)
    return BatchQuery(owner=NAME, limit=size, after=call.query.get("pageToken") or None)


def _write_list(batches: list[ServedBatch], value: BatchQuery) -> ServedReply:
    page, has_more = batch_page(batches, value, _PAGE)
    body: dict[str, Json] = {"operations": [write_batch(each) for each in page]} if page else {}
    if has_more:
        body["nextPageToken"] = page[-1].batch.id
    return ServedReply(body=body)


def _write_nothing(_served: ServedBatch, _value: BatchQuery) -> ServedReply:
    return ServedReply(body={})


_SUBMIT = f"{MODEL_PATH}:batchGenerateContent"
_ALL = r"(?!.*/messages/).*/batches"  # the vendor's client may use /v1, as other vendors do
_ONE = r"(?!.*/messages/).*/batches/(?P<batch>[^/:]+)"
SERVED = (
    serve("submit_batch", "POST", _SUBMIT, _served_submit, write_body(write_batch)),
    serve("list_batches", "GET", _ALL, _served_list, _write_list, is_shared=True),
    serve("retrieve_batch", "GET", _ONE, _served_id, write_body(write_batch), is_shared=True),
    serve("cancel_batch", "POST", f"{_ONE}:cancel", _served_id, _write_nothing, is_shared=True),
    serve("delete_batch", "DELETE", _ONE, _served_id, _write_nothing, is_shared=True),
)
