"""
The executor of providers' batch APIs: about half the price, answers within a day.

Rows are grouped, submitted, waited for, and joined to their answers by hash. A batch is noted in
the ledger as soon as the provider has it: another process goes on with it. A run that is stopped
leaves its batches at the provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

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
from interlingua.spec.errors import AbortError, ProviderTimeoutError, SDKError, ServerError
from interlingua.spec.modalities.batch import Batch, BatchResult
from interlingua.spec.request import Request

GROUP = 5_000
"""How many requests a batch has at most."""
OPEN = 4
"""How many batches of one run are under way at the same time."""


class BatchExecutor:
    """Answers rows through the batch API of their provider."""

    def __init__(
        self,
        worker: Worker,
        finish: Finish,
        *,
        leftovers: bool = False,
        group: int = GROUP,
        poll_interval: float = batch.INTERVAL,
    ) -> None:
        """`leftovers`: send requests live that a batch did not answer."""
        self._worker = worker
        self._finish = finish
        self._leftovers = leftovers
        self._group = group
        self._interval = poll_interval
        self._slots = asyncio.Semaphore(OPEN)
        self._halt = asyncio.Event()
        self.stopped: str | None = None
        """Why it stopped before the end."""

    def stop(self, reason: str) -> None:
        """Submit nothing more, and wait no longer; the batches go on at the provider."""
        if self.stopped is None:
            self.stopped = reason
            self._halt.set()

    async def run(self, rows: AsyncIterator[list[Row]]) -> None:
        """Read the batches of earlier runs, then submit the rows that are left."""
        ready = await self._worker.ready()
        for reference, hashes in (await ready.ledger.batches()).items():
            await self._collect(ready, reference, {each: [] for each in hashes})
        async with asyncio.TaskGroup() as tasks:
            group = _Group()
            async for chunk in rows:
                for row in chunk:
                    await self._add(ready, group, row)
                    if len(group.asks) >= self._group:
                        await self._slots.acquire()
                        tasks.create_task(self._send(ready, group))
                        group = _Group()
                if self.stopped is not None:
                    break
            if group.asks:
                await self._slots.acquire()
                tasks.create_task(self._send(ready, group))

    async def _add(self, ready: Ready, group: _Group, row: Row) -> None:
        """Add a row to a group, unless its request is there or has an answer by now."""
        config = self._worker.config
        try:
            ask = config.job.ask(row.data, row.key, ready.digest)
        except RowProblem:  # the index has the reason
            return
        if ask.hash in group.asks:
            group.rows[ask.hash].append(row)
            return
        entry = await ready.ledger.claim(ask.hash, config.attempts)
        if entry is None:
            group.asks[ask.hash] = ask
            group.rows[ask.hash] = [row]
        elif entry.is_settled(config.attempts):
            self._finish(row, ask.hash, recorded(entry, row.key))
        # Else another process, or another group of this one, sends it: it is there when the rows
        # are written.

    async def _send(self, ready: Ready, group: _Group) -> None:
        try:
            if self.stopped is None:
                await self._submit(ready, group)
        except Exception as error:
            for each in group.asks:
                await ready.ledger.release(each)
            if not isinstance(error, SDKError):
                raise
            self.stop(str(error))
        finally:
            self._slots.release()

    async def _submit(self, ready: Ready, group: _Group) -> None:
        requests = {each.hex(): self._request(ready, ask) for each, ask in group.asks.items()}
        job = await batch.submit(requests, client=ready.client)
        await ready.ledger.note_batch(job.reference, list(group.asks))
        await self._collect(ready, job.reference, group.rows, group.asks)

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

    # Answers.

    async def _collect(
        self,
        ready: Ready,
        reference: str,
        rows: dict[bytes, list[Row]],
        asks: dict[bytes, Ask] | None = None,
    ) -> None:
        """Wait for a batch, and record its answers; forget it when all are recorded."""
        job = await self._wait(ready, reference)
        if job is None:
            return
        missing = set(rows)
        results: Any = batch.results(job, client=ready.client)
        async with results as found:
            async for result in found:
                request = bytes.fromhex(result.id)
                if request in missing:
                    missing.discard(request)
                    await self._record(ready, result, request, rows[request], asks)
        for request in missing:
            reasons = "; ".join(fault.message for fault in job.faults) or f"it is {job.state}"
            error = ServerError(f"The batch {reference} has no result for this row: {reasons}.")
            lost = BatchResult(id=request.hex(), error=error)
            await self._record(ready, lost, request, rows[request], asks)
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

    async def _record(
        self,
        ready: Ready,
        result: BatchResult,
        request: bytes,
        rows: Sequence[Row],
        asks: dict[bytes, Ask] | None,
    ) -> None:
        key = rows[0].key if rows else ""
        answer = self._read(ready, result, key)
        if answer.status == "pending":
            await ready.ledger.release(request)
            self.stop(answer.error or "unknown")
        else:
            await ready.ledger.put(request, answer)
        if self._leftovers and asks is not None and _is_left(result, answer):
            answer = await self._worker.settle(asks[request], key)
        for row in rows:
            self._finish(row, request, answer)

    def _read(self, ready: Ready, result: BatchResult, key: str) -> Answer:
        try:
            response = result.unwrap()
            goal = self._goal(ready)
            value = None if goal is None else goal.read(response).value
            return answer_of(response, key, value=value)
        except SDKError as error:
            failure = failure_of(error, key)
            is_own = isinstance(error, (AbortError, ProviderTimeoutError))  # of this batch
            return replace(failure, status="pending") if ends_job(error) and not is_own else failure


class _Group:
    """The requests of one batch, with the rows that wait for each."""

    def __init__(self) -> None:
        self.asks: dict[bytes, Ask] = {}
        self.rows: dict[bytes, list[Row]] = {}


def _is_left(result: BatchResult, answer: Answer) -> bool:
    """Whether a request may be answered if it is sent again."""
    is_late = isinstance(result.error, (AbortError, ProviderTimeoutError))
    return answer.status == "failed" and (is_late or answer.retryable)
