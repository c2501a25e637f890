"""The executor of live calls: an asyncio loop over the worker, at a pace that adapts."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Protocol, TypeAlias

from interlingua.bulk.answers import Answer
from interlingua.bulk.pace import Pace
from interlingua.bulk.reading import Row
from interlingua.bulk.worker import Turn, Worker, recorded
from interlingua.spec.errors import StoreError

Finish: TypeAlias = Callable[[Row, bytes | None, Answer], None]
"""Called with each row, the hash of its request, and its answer, which is in the ledger."""
_BUDGET = "BudgetExceededError"
_LONGEST_PAUSE = 30.0  # seconds
_ASIDE = 8
"""How many rows are put aside because other processes send them, for each that is under way."""


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

    def __init__(self, worker: Worker, finish: Finish, *, claims_ahead: bool = True) -> None:
        """`claims_ahead`: claim several rows together, and put aside those of other processes."""
        self._worker = worker
        self._finish = finish
        self._attempts = worker.config.attempts
        self._concurrency = worker.config.concurrency
        self._claims_ahead = claims_ahead
        self.pace: Pace = Pace(self._concurrency)
        self.stopped: str | None = None
        """Why it stopped before the end."""
        self._rows: deque[Row] = deque()
        self._turns: deque[Turn] = deque()
        self._aside: deque[Row] = deque()  # which other processes send
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
            with suppress(StoreError):  # they end with the owner, too
                await self._worker.release()
        for task in tasks:
            task.result()

    async def _serve(self, number: int, rows: AsyncIterator[list[Row]]) -> None:
        """Work on one row after another, while there is a place with this number."""
        pace = self.pace
        while True:
            while number >= pace.places and self.stopped is None and self._may_have_rows:
                await pace.changed()
            turn = await self._next(rows)
            if turn is None:
                pace.wake()
                return
            pace.active += 1
            try:
                await self._work(turn)
            finally:
                pace.active -= 1
                pace.wake()

    @property
    def _has_rows(self) -> bool:
        return not self._is_exhausted or bool(self._rows or self._turns or self._aside)

    @property
    def _may_have_rows(self) -> bool:
        return self._has_rows or self._reading.locked()

    async def _next(self, rows: AsyncIterator[list[Row]]) -> Turn | None:
        """The next row; None if there is none, or no more are taken."""
        if not self._turns:
            async with self._reading:
                while not self._turns and self.stopped is None and self._has_rows:
                    await self._read(rows)
        return self._turns.popleft() if self._turns and self.stopped is None else None

    async def _read(self, rows: AsyncIterator[list[Row]]) -> None:
        """Read the next rows, and claim as many as may be under way at once."""
        if not self._rows and not self._is_exhausted:
            chunk = await anext(rows, None)
            self._is_exhausted = chunk is None
            self._rows.extend(chunk or ())
        if not self._claims_ahead:
            self._turns.extend(map(Turn, self._rows))
            self._rows.clear()
            return
        is_full = len(self._aside) > _ASIDE * self._concurrency
        is_late = is_full or (self._is_exhausted and not self._rows)
        source = self._aside if is_late else self._rows
        chosen = [source.popleft() for _ in range(min(self._concurrency, len(source)))]
        for turn in await self._worker.claim(chosen):
            row, ask, entry = turn
            if ask is None or entry is None:
                self._turns.append(turn)
            elif entry.is_settled(self._attempts):
                self._finish(row, ask.hash, recorded(entry, row.key))
            elif is_late:
                self._turns.append(turn)  # it is waited for
            else:  # there may be others that nobody sends
                self._aside.append(row)

    async def _work(self, turn: Turn) -> None:
        row = turn.row
        number = 0
        while True:
            decreases, refusals = self.pace.decreases, self._worker.refusals
            request, answer = await self._worker.answer(row.key, row.data, turn.ask)
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
