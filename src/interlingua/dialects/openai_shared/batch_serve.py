"""The server side of `/v1/batches`, which OpenAI and xAI have at the same paths."""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.dialects.openai_shared import batches, xai_batches
from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.modalities.batch import BatchQuery, BatchSubmission, ServedBatch
from interlingua.spec.operations import ServedReply
from interlingua.wire.batches import serve_batches, served_batch
from interlingua.wire.operations import PAGE_TOKEN, page_size
from interlingua.wire.resources import serve, write_body

# Another dialect has paths that end in the same way, and a third has the same paths.
_ROOT = r"(?!.*/messages/).*/batches"
_ONE = rf"{_ROOT}/(?P<batch>[^/:]+)"


def _served_submit(call: WireCall, _params: Mapping[str, str]) -> BatchSubmission:
    if xai_batches.is_own(call):
        return xai_batches.served_submit(call)
    return batches.served_submit(call)


def _write_batch(served: ServedBatch) -> dict[str, Json]:
    if xai_batches.is_own_batch(served):
        return xai_batches.write_batch(served)
    return batches.write_batch(served)


def _served_list(call: WireCall, _params: Mapping[str, str]) -> BatchQuery:
    size = page_size(call.query, "limit", default=batches.PAGE, highest=batches.MAX_PAGE)
    after = call.query.get("after") or call.query.get(PAGE_TOKEN)
    return BatchQuery(owner=batches.OWNER, limit=size, after=after or None)


def _write_list(served: list[ServedBatch], value: BatchQuery) -> ServedReply:
    """
    One page of the batches of the vendor whose list is asked for.

    The request for a first page does not say whose it is. That page has the batches of both
    vendors, each in the form of its own, of which a client reads one.
    """
    theirs = [each for each in served if xai_batches.is_own_batch(each)]
    ours = [each for each in served if not xai_batches.is_own_batch(each)]
    if value.after is None:
        page = xai_batches.write_list(theirs, value) | batches.write_list(ours, value)
    elif any(each.batch.id == value.after for each in theirs):
        page = xai_batches.write_list(theirs, value)
    else:
        page = batches.write_list(ours, value)
    return ServedReply(body=page)


SERVED = (
    *serve_batches(
        _ROOT,
        _write_batch,
        read_submission=_served_submit,
        read_list=_served_list,
        write_list=_write_list,
        is_shared=True,
    ),
    serve(
        "cancel_batch",
        "POST",
        f"{_ONE}:cancel",
        served_batch,
        write_body(_write_batch),
        is_shared=True,
    ),
    serve(
        "batch_results",
        "GET",
        f"{_ONE}/results",
        xai_batches.served_results,
        xai_batches.write_results,
    ),
)
