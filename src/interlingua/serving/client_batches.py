"""
Batches of a `ClientApplication`: any client asks, any provider with batches answers.

The requests of a batch are read in the client's dialect and submitted in the provider's, and the
results are written in the client's again. The place of the batch is kept for its caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

from msgspec.structs import replace

from interlingua import dialects
from interlingua.api.modalities import batch as batches
from interlingua.client.client import Client
from interlingua.serving.application import Incoming, check_served, find_route
from interlingua.serving.holdings import HeldJob, Holding
from interlingua.serving.sealed_state import SealedState
from interlingua.serving.upstream_errors import for_clients, hosts_of
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import (
    AbortError,
    DecodeError,
    InvalidRequestError,
    NotFoundError,
    ProviderTimeoutError,
    SDKError,
    StreamError,
)
from interlingua.spec.modalities.batch import (
    Batch,
    BatchQuery,
    BatchReply,
    BatchResult,
    BatchSubmission,
    ServedBatch,
)
from interlingua.spec.modalities.files import FileInput
from interlingua.spec.request import Request

_KIND = "batch"
_TURN = 32
"""Requests after which other tasks run."""
_PAGE = 20
OUTPUT, ERRORS = "output-", "errors-"
"""How the ids of files of results begin: those of answers, and those of errors."""


class Addressed(Protocol):
    """A request of a client, and where it goes."""

    @property
    def client(self) -> Client:
        """The client of its route."""

    @property
    def provider(self) -> str:
        """The provider that answers it."""

    @property
    def request(self) -> Request:
        """The request, with the model of its route."""


class ClientBatches:
    """The batches of one caller."""

    def __init__(
        self,
        client: Client,
        held: Holding,
        secret: bytes,
        find: Callable[[Incoming], Awaitable[Addressed]],
    ) -> None:
        self._client = client
        self._held = held
        self._secret = secret
        self._find = find

    async def perform(self, incoming: Incoming, name: str, value: Any, named: str) -> Any:
        """
        Perform an operation on batches.

        `named` is a provider that was named for an id of its own; empty if none was.
        """
        if name == "submit_batch":
            return await self._submit(incoming, value)
        if name == "list_batches":
            return await self._list(value)
        job = await self._job(incoming, value, named)
        query = BatchQuery(id=job.id, request_id=value.request_id)
        if name == "cancel_batch":
            found = await self._client.perform(job.provider, "cancel_batch", query)
            return await self._served(job, found)
        found = await self._client.perform(job.provider, "retrieve_batch", query)
        if name == "delete_batch":
            await batches.delete(found, client=self._client, max_retries=0)
            await self._held.forget_job(_KIND, value.id)
            return ServedBatch(batch=Batch(id=job.shown_id))
        needs_replies = name == "batch_results"
        if needs_replies and not found.is_ended:
            text = f"The batch {job.shown_id} has not ended: it has no results yet."
            raise NotFoundError(text, status_code=404)
        return await self._served(job, found, needs_replies=needs_replies)

    async def read_output(self, value: FileInput) -> bytes | None:
        """The content of a file of results; None if the id is not that of one."""
        file_id = value.file_id
        wants_errors = file_id.startswith(ERRORS)
        job = None
        if wants_errors or file_id.startswith(OUTPUT):
            job = await self._held.find_job(_KIND, file_id)
        write = None if job is None else _writer(job)
        if job is None or write is None:
            return None
        query = BatchQuery(id=job.id)
        found = await self._client.perform(job.provider, "retrieve_batch", query)
        replies = await self._replies(job, found)
        return write([each for each in replies if _is_error(each) is wants_errors])

    # Submitting.

    async def _submit(self, incoming: Incoming, value: BatchSubmission) -> ServedBatch:
        await self._held.check_jobs()
        calls = value.calls
        if value.file_id is not None:
            content = await self._held.content(value.file_id)
            try:
                calls = await asyncio.to_thread(value.read, content) if value.read else ()
            except (DecodeError, StreamError) as error:  # they are of the client, not of a provider
                raise InvalidRequestError(error.message, status_code=400) from None
        if not calls:
            raise InvalidRequestError("The batch has no requests.", status_code=400)
        first: Addressed | None = None
        dialect, requests = "", {}
        for number, (item_id, call) in enumerate(calls):
            if number % _TURN == 0:
                await asyncio.sleep(0)
            if item_id in requests:
                text = f"Two requests of the batch have the id {item_id!r}."
                raise InvalidRequestError(text, status_code=400)
            item = _read_item(incoming, call, item_id)
            found = await self._find(item)
            first, dialect = first or found, dialect or item.dialect
            _check_same(first, found, item_id)
            requests[item_id] = await self._held.with_files(found.request, None)
        if first is None:  # pragma: no cover -- there are calls
            raise AssertionError("A batch without requests was refused above.")
        made = await batches.submit(requests, client=first.client, max_retries=0)
        models = {request.model for request in requests.values()}
        is_one = len(models) == 1
        job = HeldJob(
            provider=first.provider,
            id=made.id,
            dialect=dialect,
            owner=value.owner,
            shown_id=value.id_prefix,
            model=first.client.address(first.request).model if is_one else "",
            asked_model=value.model,
            endpoint=value.endpoint,
            input_file=value.file_id,
            has_files=value.write is not None,
            extra=value.extra,
        )
        return await self._served(await self._held.add_job(_KIND, job), made)

    # Batches.

    async def _job(self, incoming: Incoming, value: BatchQuery, named: str) -> HeldJob:
        job = await self._held.find_job(_KIND, value.id)
        if job is None and named:
            return HeldJob(provider=named, id=value.id, dialect=incoming.dialect, shown_id=value.id)
        if job is None:
            raise NotFoundError(f"No such batch: {value.id}.", status_code=404)
        return job

    async def _list(self, value: BatchQuery) -> list[ServedBatch]:
        """The batches of one page, and one more if there is one; those that are gone are not."""
        keys = await self._held.jobs(_KIND)
        if value.after is not None:
            after = value.after[-26:]
            keys = keys[keys.index(after) + 1 :] if after in keys else []
        listed: list[ServedBatch] = []
        for key in keys:
            job = await self._held.find_job(_KIND, key)
            if job is None or job.owner != value.owner:
                continue
            try:
                query = BatchQuery(id=job.id)
                found = await self._client.perform(job.provider, "retrieve_batch", query)
            except NotFoundError:
                continue
            listed.append(await self._served(job, found))
            if len(listed) > (value.limit or _PAGE):
                break
        return listed

    async def _served(
        self, job: HeldJob, found: Batch, *, needs_replies: bool = False
    ) -> ServedBatch:
        """A batch as the client's vendor would describe it."""
        hosts = hosts_of(self._client)
        faults = tuple(
            replace(each, message=for_clients(SDKError(each.message), hosts).message)
            for each in found.faults
        )
        shown = Batch(
            id=job.shown_id,
            model=job.asked_model,
            state=found.state,
            counts=found.counts,
            endpoint=job.endpoint,
            created_at=found.created_at,
            expires_at=found.expires_at,
            ended_at=found.ended_at,
            input_file=job.input_file,
            faults=faults,
            extra=job.extra,
        )
        has_results = found.is_ended and bool(found.outputs)
        if job.has_files and _writer(job) is not None:
            key, counts = job.shown_id[-26:], found.counts
            return ServedBatch(
                batch=shown,
                output_file=f"{OUTPUT}{key}" if has_results and counts.succeeded != 0 else None,
                error_file=f"{ERRORS}{key}" if has_results and _has_errors(found) else None,
            )
        is_inline = has_results and (needs_replies or not _has_results_path(job))
        replies = await self._replies(job, found) if is_inline else ()
        return ServedBatch(batch=shown, replies=tuple(replies))

    # Results.

    async def _replies(self, job: HeldJob, found: Batch) -> list[BatchReply]:
        async with batches.results(found, client=self._client, max_retries=0) as results:
            return [self._reply(job, each) async for each in results]

    def _reply(self, job: HeldJob, result: BatchResult) -> BatchReply:
        dialect = dialects.get(job.dialect)
        if result.response is not None:
            response = result.response
            adapter = self._client.calls.adapters.get(job.provider)
            upstream = getattr(adapter, "dialect", None)
            if upstream is not None:
                response = SealedState(
                    self._secret,
                    client=dialect.FACTS,
                    upstream=dialects.get(upstream).FACTS,
                    provider=job.provider,
                    model=job.model or response.model,
                ).seal_response(response)
            return BatchReply(id=result.id, body=dialect.encode_response(response))
        error = result.error or SDKError("The request has no result.")
        if isinstance(error, (AbortError, ProviderTimeoutError)):
            return BatchReply(id=result.id, error=error)
        status, _, body = dialect.encode_error(for_clients(error, hosts_of(self._client)))
        return BatchReply(id=result.id, status=status, body=body)


def _read_item(incoming: Incoming, call: WireCall, item_id: str) -> Incoming:
    route = find_route(call.method, call.path, incoming.call.headers)
    if route.kind != "answer":
        text = f"Request {item_id!r} of the batch is for {call.path}, which no batch can contain."
        raise InvalidRequestError(text, status_code=400)
    item = incoming._replace(call=call, route=route)
    check_served(item)
    return item


def _check_same(first: Addressed, found: Addressed, item_id: str) -> None:
    if (first.provider, first.client) != (found.provider, found.client):
        text = (
            f"Request {item_id!r} of the batch has a model of another provider than the first one. "
            "Send a batch for each provider."
        )
        raise InvalidRequestError(text, status_code=400)


def _writer(job: HeldJob) -> Callable[[Iterable[BatchReply]], bytes] | None:
    """Writes a file of results, where the vendor has such files."""
    serve = getattr(dialects.get(job.dialect), "serve", None)
    return getattr(serve, "write_batch_file", None)


def _has_results_path(job: HeldJob) -> bool:
    """Whether the vendor has a path for results; otherwise they are in the batch itself."""
    serve = getattr(dialects.get(job.dialect), "serve", None)
    return any(each.name == "batch_results" for each in getattr(serve, "SERVED", ()))


def _has_errors(found: Batch) -> bool:
    counts = found.counts
    failed = (counts.failed, counts.cancelled, counts.expired)
    return any(failed) or (counts.total or 0) > (counts.succeeded or 0)


def _is_error(reply: BatchReply) -> bool:
    return reply.error is not None or reply.status >= 300
