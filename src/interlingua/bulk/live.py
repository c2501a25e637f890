"""The executor of live calls: an asyncio loop over the worker, at a pace that adapts."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Protocol, TypeAlias

from interlingua.bulk.answers import Answer
from interlingua.bulk.pace import Pace
from interlingua.bulk.reading import Row
from interlingua.bulk.worker import Worker

Finish: TypeAlias = Callable[[Row, bytes | None, Answer], None]
"""Called with each row, the hash of its request, and its answer, which is in the ledger."""
_BUDGET = "BudgetExceededError"
_LONGEST_PAUSE = 30.0  # seconds


class Executor(Protocol):
    """Finds the answers of rows."""

    async def run(self, rows: AsyncIterator[list[Row]]) -> None:
        """Work on rows, which come in chunks, until they end or `stop` was called; then drain."""

    def stop(self, reason: str) -> None:
        """Take no more rows; those under way are answered. The first reason counts."""

    @property
    def stopped(self) -> str | None:
        """Why it stopped before the end."""


class LiveExecutor:
    """Answers rows by calls, at most `concurrency` at the same time."""

    def __init__(self, worker: Worker, finish: Finish) -> None:
        self._worker = worker
        self._finish = finish
        self._attempts = worker.config.attempts
        self._concurrency = worker.config.concurrency
        self.pace: Pace = Pace(self._concurrency)
        self.stopped: str | None = None
        """Why it stopped before the end."""
        self._rows: deque[Row] = deque()
        self._reading = asyncio.Lock()
        self._is_exhausted = False

    def stop(self, reason: str) -> None:
        """Take no more rows; those under way are answered."""
        if self.stopped is None:
            self.stopped = reason
            self.pace.wake()

    async def run(self, rows: AsyncIterator[list[Row]]) -> None:
        """Work on rows, which come in chunks, until they end or `stop` was called; then drain."""
        tasks = [asyncio.create_task(self._serve(n, rows)) for n in range(self._concurrency)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:  # a defect of ours, or a ledger that does not take answers
                if task.done() and (error := task.exception()) is not None:
                    self.stop(f"{type(error).__name__}: {error}")
            await asyncio.wait(tasks)
        finally:
            for task in tasks:  # only if this was cancelled
                task.cancel()
            await asyncio.wait(tasks)
        for task in tasks:
            task.result()

    async def _serve(self, number: int, rows: AsyncIterator[list[Row]]) -> None:
        """Work on one row after another, while there is a place with this number."""
        pace = self.pace
        while True:
            while number >= pace.places and self.stopped is None and not self._is_exhausted:
                await pace.changed()
            row = await self._next(rows)
            if row is None:
                pace.wake()
                return
            pace.active += 1
            try:
                await self._work(row)
            finally:
                pace.active -= 1
                pace.wake()

    async def _next(self, rows: AsyncIterator[list[Row]]) -> Row | None:
        """The next row; None if there is none, or no more are taken."""
        if not self._rows and self.stopped is None:
            async with self._reading:
                while not self._rows and self.stopped is None:
                    chunk = await anext(rows, None)
                    if chunk is None:
                        self._is_exhausted = True
                        return None
                    self._rows.extend(chunk)
        return self._rows.popleft() if self.stopped is None else None

    async def _work(self, row: Row) -> None:
        number = 0
        while True:
            decreases, refusals = self.pace.decreases, self._worker.refusals
            request, answer = await self._worker.answer(row.key, row.data)
            if self._worker.refusals > refusals:
                self.pace.slow_down(decreases)
            elif answer.status == "done":
                self.pace.succeed()
            if answer.status == "done" or not await self._goes_on(answer, number):
                break
            number += 1
        self._finish(row, request, answer)

    async def _goes_on(self, answer: Answer, number: int) -> bool:
        """Whether a row that has no answer is tried again now."""
        if self.stopped is not None:
            return False
        if answer.status == "pending":
            # What others have reserved and do not use may be enough for this one.
            if answer.error_type == _BUDGET and self.pace.active > 1:
                self.pace.active -= 1
                await self.pace.changed()
                self.pace.active += 1
                return self.stopped is None
            self.stop(answer.error or "unknown")
            return False
        if not answer.retryable or number + 1 >= self._attempts:
            return False
        pause = min(2.0**number, _LONGEST_PAUSE)
        await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 -- no secret
        return True
