"""`bulk.embed`: the vectors of a column. Texts are sent in groups; each is recorded on its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any, Unpack

from msgspec.structs import replace

from interlingua.api.modalities.embeddings import embed_many
from interlingua.bulk.answers import Answer, failure_of
from interlingua.bulk.job import Ask
from interlingua.bulk.live import Finish
from interlingua.bulk.loop import BulkRun
from interlingua.bulk.options import BulkOptions
from interlingua.bulk.reading import Input, Row
from interlingua.bulk.report import Report
from interlingua.bulk.template import RowProblem
from interlingua.bulk.worker import Ready, Worker, ends_job, recorded
from interlingua.spec.modalities.embeddings import EmbedResult, TaskType

_OPEN = 4
"""How many groups are under way at the same time."""


async def embed(
    rows: Input,
    output: str | os.PathLike[str],
    *,
    model: str,
    column: str,
    task: TaskType | None = None,
    dimensions: int | None = None,
    **options: Unpack[BulkOptions],
) -> Report:
    """
    Find the vector of a column for each row of a table; each text is paid for once.

        await embed(
            "books.csv", "vectors.jsonl", model="openai:text-embedding-3-small", column="title"
        )

    `rows` is the input, as in `run`. `output` is the file to write; its column `embedding` has the
    vectors. `column` is the column with the texts. `task` says what the vectors are for, and
    `dimensions` is their length. Options of `run` that are about answers have no effect.
    """
    prompt = "{" + column.replace("{", "{{").replace("}", "}}") + "}"
    job = BulkRun(rows, output, model=model, prompt=prompt, **options)
    given = {"task": task, "dimensions": dimensions}
    job.ask_for_vectors({name: value for name, value in given.items() if value is not None})
    return await job.run()


class VectorExecutor:
    """Finds the vectors of rows, a chunk of rows in one call or in few."""

    def __init__(self, worker: Worker, finish: Finish) -> None:
        self._worker = worker
        self._finish = finish
        self._slots = asyncio.Semaphore(_OPEN)
        options = worker.config.job.options
        self._options: dict[str, Any] = {
            name: options[name] for name in ("task", "dimensions") if name in options
        }
        self.stopped: str | None = None
        """Why it stopped before the end."""

    def stop(self, reason: str) -> None:
        """Take no more rows; those under way get their vectors."""
        if self.stopped is None:
            self.stopped = reason

    async def run(self, rows: AsyncIterator[list[Row]]) -> None:
        """Work on chunks of rows until they end, or `stop` was called; then drain."""
        ready = await self._worker.ready()
        async with asyncio.TaskGroup() as tasks:
            async for chunk in rows:
                await self._slots.acquire()
                if self.stopped is not None:
                    return
                tasks.create_task(self._work(ready, chunk))

    async def _work(self, ready: Ready, chunk: list[Row]) -> None:
        try:
            asks, waiting = await self._claim(ready, chunk)
            if asks and not await self._send(ready, list(asks.values()), waiting):
                for ask in asks.values():  # one of them may be the reason: each alone
                    if self.stopped is not None or not await self._send(ready, [ask], waiting):
                        await ready.ledger.release([ask.hash])
        finally:
            self._slots.release()

    async def _claim(
        self, ready: Ready, chunk: list[Row]
    ) -> tuple[dict[bytes, Ask], dict[bytes, list[Row]]]:
        """The requests that are sent here, and the rows that wait for each."""
        job, attempts = self._worker.config.job, self._worker.config.attempts
        asks: dict[bytes, Ask] = {}
        waiting: dict[bytes, list[Row]] = {}
        for row in chunk:
            try:
                ask = job.ask(row.data, row.key, ready.digest)
            except RowProblem:  # the index has the reason
                continue
            asks[ask.hash] = ask
            waiting.setdefault(ask.hash, []).append(row)
        entries = await ready.ledger.claim(list(asks), attempts)
        for request, entry in zip(list(asks), entries, strict=True):
            if entry is None:
                continue
            del asks[request]
            rows = waiting.pop(request)
            if entry.is_settled(attempts):
                for row in rows:
                    self._finish(row, request, recorded(entry, row.key))
        return asks, waiting

    async def _send(self, ready: Ready, asks: list[Ask], waiting: dict[bytes, list[Row]]) -> bool:
        """Whether the texts have their vectors, or the only one has failed for good."""
        job = self._worker.config.job
        try:
            texts = [ask.prompt for ask in asks]
            result = await embed_many(job.model, texts, client=ready.client, **self._options)
        except Exception as error:  # noqa: BLE001 -- it is a row's, or ends the job
            if ends_job(error):
                self.stop(str(error))
                return False
            if len(asks) > 1:
                return False
            await self._record(ready, asks[0], failure_of(error, ""), waiting)
            return True
        share = _share(result, len(asks))
        pairs = zip(asks, result.embeddings, strict=True)
        await asyncio.gather(  # in one transaction
            *(
                self._record(ready, ask, replace(share, object=list(vector)), waiting)
                for ask, vector in pairs
            )
        )
        return True

    async def _record(
        self, ready: Ready, ask: Ask, answer: Answer, waiting: dict[bytes, list[Row]]
    ) -> None:
        rows = waiting[ask.hash]
        answer = replace(answer, key=rows[0].key)
        await ready.ledger.put(ask.hash, answer)
        for row in rows:
            self._finish(row, ask.hash, answer)


def _share(result: EmbedResult, count: int) -> Answer:
    """What one of so many texts has used."""
    return Answer(
        status="done",
        input_tokens=result.usage.input_tokens // count,
        cost=None if result.cost is None else result.cost.total / count,
        model=f"{result.provider}:{result.model}",
    )
