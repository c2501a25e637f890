"""
The executor of providers' batch APIs: about half the price, answers within a day.

Rows are grouped, submitted, waited for, and joined to their answers by hash. The name of a batch
is noted in the ledger before it is submitted, and its reference when the provider has it. After a
death, another process goes on: it finds the batch by its name in the provider's list. A run that
is stopped leaves its batches at the provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeAlias
from uuid import uuid4

from msgspec.structs import replace

from interlingua.api.modalities import batch
from interlingua.api.objects.schema import object_schema
from interlingua.api.objects.strategy import ObjectGoal, plan
from interlingua.api.tools.tool import read_tools
from interlingua.bulk.answers import Answer, answer_of, failure_of
from interlingua.bulk.job import Ask
from interlingua.bulk.live import Finish
from interlingua.bulk.reading import Row
from interlingua.bulk.template import RowProblem
from interlingua.bulk.worker import Ready, Worker, ends_job, recorded
from interlingua.spec.errors import (
    AbortError,
    BudgetExceededError,
    ConfigurationError,
    ProviderTimeoutError,
    SDKError,
    ServerError,
)
from interlingua.spec.modalities.batch import Batch, BatchResult
from interlingua.spec.request import Request
from interlingua.wire.classify import was_refused

GROUP = 5_000
"""How many requests a batch has at most."""
GROUP_BYTES = 32_000_000
"""How long the texts and media of a batch are at most; no provider's limit is below 48 MB."""
OPEN = 4
"""How many batches of one run are under way at the same time."""
_INTENT = "submitting "
"""What stands before the provider and the name of a batch that is about to be submitted."""
_AT_ONCE = 64
"""How many results are recorded together."""
_OF_FAILURES = ("status", "error_type", "error_class", "error", "retryable")
_NOT_SENT = (BudgetExceededError, ConfigurationError)
_Group: TypeAlias = dict[bytes, Ask]
"""The requests of one batch."""
_Sent: TypeAlias = Mapping[bytes, Ask | None]
"""The same of a batch that was sent; None if an earlier run has sent it."""


class BatchExecutor:
    """Answers rows through the batch API of their provider."""

    def __init__(
        self,
        worker: Worker,
        finish: Finish,
        *,
        leftovers: bool = False,
        group: int = GROUP,
        group_bytes: int = GROUP_BYTES,
        poll_interval: float = batch.INTERVAL,
    ) -> None:
        """`leftovers`: send requests live that a batch did not answer."""
        self._worker = worker
        self._attempts = worker.config.attempts
        self._finish = finish
        self._leftovers = leftovers
        self._limits = (group, group_bytes)
        self._interval = poll_interval
        self._slots = asyncio.Semaphore(OPEN)
        self._calls = asyncio.Semaphore(worker.config.concurrency)
        self._halt = asyncio.Event()
        self._waiting: dict[bytes, list[Row]] = {}  # by request, in all batches of this run
        self.stopped: str | None = None
        """Why it stopped before the end."""

    def stop(self, reason: str) -> None:
        """Submit nothing more, and wait no longer; the batches go on at the provider."""
        self._submit_no_more(reason)
        self._halt.set()

    def _submit_no_more(self, reason: str) -> None:
        """Stop for a reason that is found here; batches under way are waited for."""
        if self.stopped is None:
            self.stopped = reason

    @property
    def active(self) -> int:
        """How many rows are in batches."""
        return sum(map(len, self._waiting.values()))

    async def run(self, rows: AsyncIterator[list[Row]]) -> None:
        """Read the batches of earlier runs, then submit the rows that are left."""
        ready = await self._worker.ready()
        try:
            earlier = await self._earlier(ready)
        except SDKError as error:
            self._submit_no_more(str(error))
            return
        async with asyncio.TaskGroup() as tasks:
            for reference, hashes in earlier.items():
                work = partial(self._collect, ready, reference, dict.fromkeys(hashes))
                tasks.create_task(self._guard(ready, hashes, work))
        if earlier:  # what they have cost is spent
            await ready.renew_limits()
        async with asyncio.TaskGroup() as tasks:
            group: _Group = {}
            size = 0
            async for chunk in rows:
                for ask in await self._claim(ready, chunk):
                    group[ask.hash] = ask
                    size += ask.size
                    if len(group) >= self._limits[0] or size >= self._limits[1]:
                        await self._start(tasks, ready, group)
                        group, size = {}, 0
                if self.stopped is not None:
                    break
            if group:
                await self._start(tasks, ready, group)

    async def _start(self, tasks: asyncio.TaskGroup, ready: Ready, group: _Group) -> None:
        """Submit a group as soon as few enough batches are under way."""
        await self._slots.acquire()

        async def send() -> None:
            try:
                await self._guard(ready, group, partial(self._submit, ready, group))
            finally:
                self._slots.release()

        tasks.create_task(send())

    async def _guard(
        self, ready: Ready, hashes: Collection[bytes], work: Callable[[], Awaitable[None]]
    ) -> None:
        """Do work on a batch; if that fails, its rows stay pending, and the run stops."""
        try:
            await work()
        except Exception as error:
            await self._release(ready, hashes)
            if not isinstance(error, SDKError):
                raise
            self._submit_no_more(str(error))

    async def _claim(self, ready: Ready, chunk: list[Row]) -> list[Ask]:
        """The requests of rows that are sent here: those that nobody sends or has sent."""
        asks: list[Ask] = []
        for row in chunk:
            try:
                ask = self._worker.config.job.ask(row.data, row.key, ready.digest)
            except RowProblem:  # the index has the reason
                continue
            rows = self._waiting.get(ask.hash)
            if rows is None:
                self._waiting[ask.hash] = [row]
                asks.append(ask)
            else:  # an equal row is in a batch of this run
                rows.append(row)
        entries = await ready.ledger.claim([ask.hash for ask in asks], self._attempts)
        claimed: list[Ask] = []
        for ask, entry in zip(asks, entries, strict=True):
            if entry is None:
                claimed.append(ask)
                continue
            rows = self._waiting.pop(ask.hash)
            if entry.is_settled(self._attempts):
                for row in rows:
                    self._finish(row, ask.hash, recorded(entry, row.key))
            # Else another process sends it: it is there when the rows are written.
        return claimed

    async def _release(self, ready: Ready, hashes: Collection[bytes]) -> None:
        for each in hashes:
            self._waiting.pop(each, None)
        await ready.ledger.release(list(hashes))

    # Submitting.

    async def _submit(self, ready: Ready, group: _Group) -> None:
        if self.stopped is not None:
            await self._release(ready, group)
            return
        requests = {each.hex(): self._request(ready, ask) for each, ask in group.items()}
        name = f"interlingua-bulk-{uuid4().hex}"
        intent = f"{_INTENT}{_provider(ready)}:{name}"
        await ready.ledger.note_batch(intent, list(group))
        try:
            job = await batch.submit(requests, client=ready.client, name=name)
        except SDKError as error:
            is_of_a_row = error.request_id in requests  # it cannot be encoded
            is_too_much = isinstance(error, BudgetExceededError) and len(group) > 1
            if is_of_a_row or isinstance(error, _NOT_SENT) or was_refused(error):
                await ready.ledger.note_batch(intent, None)
            # Else the provider may have the batch: the next run looks for it.
            if not is_of_a_row and not is_too_much:
                raise
            await self._split(ready, group, error)
            return
        await ready.ledger.note_batch(job.reference, list(group))
        await ready.ledger.note_batch(intent, None)
        await self._collect(ready, job.reference, group)

    async def _split(self, ready: Ready, group: _Group, error: SDKError) -> None:
        """
        Submit the halves of a group that was refused before it was sent.

        A request that cannot be encoded fails alone, and what a budget allows is sent.
        """
        if len(group) == 1:
            (request,) = group
            await self._record(ready, BatchResult(id=request.hex(), error=error), group)
            return
        pairs = list(group.items())
        middle = len(pairs) // 2
        async with asyncio.TaskGroup() as tasks:  # each waits until its batch has ended
            for half in (dict(pairs[:middle]), dict(pairs[middle:])):
                work = partial(self._submit, ready, half)
                tasks.create_task(self._guard(ready, half, work))

    def _request(self, ready: Ready, ask: Ask) -> Request:
        request = ask.request(ready.base)
        goal = self._goal(ready)
        if goal is None:
            return request
        if goal.tool is not None:
            request = replace(request, tools=read_tools((goal.tool,)))
        return goal.ask(request, is_last=True)

    def _goal(self, ready: Ready) -> ObjectGoal | None:
        schema = self._worker.config.job.schema
        return None if schema is None else plan(ready.client, ready.base, object_schema(schema))

    # Batches of earlier runs.

    async def _earlier(self, ready: Ready) -> dict[str, list[bytes]]:
        """
        The batches at the provider that no living process reads, with their open requests.

        Those whose submission was begun and not noted are looked for in the provider's list. Only
        when their owner is known to be dead is the list complete.
        """
        provider = _provider(ready)
        notes = await ready.ledger.batches()
        intent = f"{_INTENT}{provider}:"
        begun = {
            note: hashes
            for note, hashes in notes.items()
            if note.startswith(intent) and await self._take_over(ready, hashes) is not None
        }
        if begun:
            listed = await batch.list_batches(provider, client=ready.client)
            references = {each.name: each.reference for each in listed if each.name}
            for note, hashes in begun.items():
                reference = references.get(note.removeprefix(intent))
                if reference is None:
                    await self._release(ready, hashes)
                elif reference not in notes:
                    notes[reference] = hashes
                    await ready.ledger.note_batch(reference, hashes)
                await ready.ledger.note_batch(note, None)
        found: dict[str, list[bytes]] = {}
        for note, hashes in notes.items():
            if note.startswith(f"{provider}:"):
                taken = await self._take_over(ready, hashes)
                if taken is not None:
                    found[note] = taken
        return found

    async def _take_over(self, ready: Ready, hashes: list[bytes]) -> list[bytes] | None:
        """Claim requests of a batch that are not settled; None if a living process has them."""
        entries = await ready.ledger.claim(hashes, self._attempts)
        claimed = [each for each, entry in zip(hashes, entries, strict=True) if entry is None]
        if any(entry is not None and not entry.is_settled(self._attempts) for entry in entries):
            await self._release(ready, claimed)
            return None
        return claimed

    # Answers.

    async def _collect(self, ready: Ready, reference: str, group: _Sent) -> None:
        """Wait for a batch, and record its answers; forget it when all are recorded."""
        job = await self._wait(ready, reference) if group else None
        if job is not None:
            reasons = "; ".join(fault.message for fault in job.faults) or f"it is {job.state}"
            if job.state == "failed" and not job.outputs:  # nothing was paid for
                await self._release(ready, group)
                self._submit_no_more(f"The provider refused the batch {reference}: {reasons}")
            else:
                await self._record_all(ready, job, group, reasons)
        if job is not None or not group:
            await ready.ledger.note_batch(reference, None)

    async def _wait(self, ready: Ready, reference: str) -> Batch | None:
        """The batch when it has ended; None if this run was stopped before."""
        waiting = asyncio.ensure_future(
            batch.wait(reference, client=ready.client, poll_interval=self._interval)
        )
        halt = asyncio.ensure_future(self._halt.wait())
        try:
            await asyncio.wait({waiting, halt}, return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else None
        finally:
            for task in (waiting, halt):
                task.cancel()
            await asyncio.gather(waiting, halt, return_exceptions=True)

    async def _record_all(self, ready: Ready, job: Batch, group: _Sent, reasons: str) -> None:
        """Record a result for each request of a batch; for one that has none, that it has none."""
        missing = dict(group)
        results: list[BatchResult] = []

        async def record() -> None:
            await asyncio.gather(*(self._record(ready, each, group) for each in results))
            results.clear()

        reader: Any = batch.results(job, client=ready.client)
        async with reader as items:
            async for result in items:
                request = _hash_of(result.id)
                if request not in missing:  # settled before, repeated, or not ours
                    continue
                del missing[request]
                results.append(result)
                if len(results) >= _AT_ONCE:
                    await record()
        text = f"The batch {job.reference} has no result for this row: {reasons}."
        results += [BatchResult(id=each.hex(), error=ServerError(text)) for each in missing]
        await record()

    async def _record(self, ready: Ready, result: BatchResult, group: _Sent) -> None:
        """Record a result; a row that the batch did not answer is sent live if that was asked."""
        request = bytes.fromhex(result.id)
        key = next((row.key for row in self._waiting.get(request, ())), "")
        answer, ask = self._read(ready, result, key), group[request]
        if self._leftovers and ask is not None and _is_left(result, answer):
            async with self._calls:
                answer = await self._worker.settle(ask, key)
        elif answer.status == "pending":
            await ready.ledger.release([request])
        else:
            await ready.ledger.put(request, answer)
        if answer.status == "pending":
            self._submit_no_more(answer.error or "unknown")
        for row in self._waiting.pop(request, ()):
            self._finish(row, request, answer)

    def _read(self, ready: Ready, result: BatchResult, key: str) -> Answer:
        try:
            answer = answer_of(result.unwrap(), key)
        except SDKError as error:
            failure = failure_of(error, key)
            is_own = isinstance(error, (AbortError, ProviderTimeoutError))  # of this batch
            return replace(failure, status="pending") if ends_job(error) and not is_own else failure
        goal = self._goal(ready)
        if goal is None:
            return answer
        try:
            return replace(answer, object=goal.read(result.unwrap()).value)
        except SDKError as error:  # it was paid for all the same
            failure = failure_of(error, key)
            facts = {name: getattr(failure, name) for name in _OF_FAILURES}
            return replace(answer, **facts)


def _provider(ready: Ready) -> str:
    """The provider that has the batches of the job."""
    return ready.client.address(ready.base).provider or ""


def _hash_of(item_id: str) -> bytes:
    """The request that an id names; empty if it is no id of ours."""
    try:
        return bytes.fromhex(item_id)
    except ValueError:
        return b""


def _is_left(result: BatchResult, answer: Answer) -> bool:
    """Whether a request may be answered if it is sent again."""
    is_late = isinstance(result.error, (AbortError, ProviderTimeoutError))
    return answer.status == "failed" and (is_late or answer.retryable)
