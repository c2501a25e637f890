"""
The worker as engines use it: it is given rows one by one, and has its own limit of calls at once.

It works as a job on one machine does, with the executor of live calls: the same pace, attempts and
reasons to stop. Whenever it has no row, it ends its claims and closes its connections, because
engines do not say when they need it no longer.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from interlingua.bulk.answers import Answer, failure_of
from interlingua.bulk.ledger.open import limits_store
from interlingua.bulk.live import Finish, LiveExecutor
from interlingua.bulk.reading import Row
from interlingua.bulk.worker import Worker, WorkerConfig
from interlingua.client.client import Client
from interlingua.spec.content import Record
from interlingua.spec.errors import ConfigurationError, SDKError, StoreError

KEY, ROW, RESULT = "row_key", "row", "result"
"""The columns of the tables that an engine carries: keys and rows there, keys and results back."""
_HALTED = "The job was stopped."
_LOOK_SECONDS = 1.0
_HALT_SECONDS = 86_400.0


class Result(Record, frozen=True):
    """What became of a row."""

    answer: Answer
    request: bytes | None = None
    """The hash of its request; None if there is none."""


_encode = msgspec.msgpack.Encoder().encode
decode_result: Callable[[bytes], Result] = msgspec.msgpack.Decoder(Result).decode


def encode_row(row: Mapping[str, Any]) -> bytes:
    """The values of a row, of any types, for a worker in another process."""
    return pickle.dumps(dict(row))


class Work:
    """
    What the workers of one run need, wherever they are.

    It pickles without connections, and without keys that are in the environment.
    """

    def __init__(self, config: WorkerConfig, client: Client | None) -> None:
        self.config: WorkerConfig = config
        self.client: Client | None = client
        """The client of the program; None: each worker makes one from its environment."""
        self.run: str = uuid4().hex
        """The name of the run."""


def check_carried(work: Work) -> None:
    """Raise `ConfigurationError` if it cannot be carried to other processes."""
    try:
        pickle.dumps(work)
    except SDKError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"The client cannot be carried to workers: {error}. Leave `client` out: each worker "
            "then makes one from its environment.",
            setting="client",
        ) from error


class LocalRun:
    """What a run and its workers in the same process share, although engines pickle `Work`."""

    def __init__(self, client: Client | None) -> None:
        self.client = client
        self.halted = threading.Event()
        self.idle = asyncio.Event()
        """Set while no worker has a row; for the event loop of the run."""
        self.idle.set()
        self._loop = asyncio.get_running_loop()
        self._shifts = 0

    def count(self, change: int) -> None:
        """Say that a worker has begun (1) or ended (-1) to work."""
        self._shifts += change
        with suppress(RuntimeError):  # the run was cancelled, and its loop is closed
            self._loop.call_soon_threadsafe(self.idle.clear if self._shifts else self.idle.set)


LOCAL: dict[str, LocalRun] = {}
"""The runs of this process whose workers are in it too, by their names."""


class Halt:
    """Tells the workers of a run to take no more rows, wherever they are."""

    def __init__(self, work: Work) -> None:
        self._local = LOCAL.get(work.run)
        self._store = None if self._local else limits_store(work.config.ledger)
        self._key = f"halt:{work.run}"
        self._is_known = False

    @property
    def is_known(self) -> bool:
        """Whether this process knows that they were told."""
        return self._is_known or (self._local is not None and self._local.halted.is_set())

    async def call(self) -> None:
        """Tell them."""
        if self._local is not None:
            self._local.halted.set()
        if self._store is not None:
            await self._store.put(self._key, b"1", ttl=_HALT_SECONDS)

    async def is_called(self) -> bool:
        """Whether they were told."""
        if self._store is not None and not self._is_known:
            self._is_known = await self._store.get(self._key) is not None
        return self.is_known

    async def close(self) -> None:
        """Close the connection."""
        if self._store is not None:
            await self._store.close()


class EngineWorker:
    """Answers rows that an engine gives it, in one process and one event loop."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._shift: _Shift | None = None
        self._reason: Answer | None = None

    async def one(self, key: str, row: bytes) -> bytes:
        """Return what became of a row; never raises for a row."""
        if self._reason is not None:
            return _encode(Result(replace(self._reason, key=key)))
        shift = self._shift = self._shift or _Shift(self._work)
        shift.waiting += 1
        try:
            return _encode(await shift.answer(key, row))
        finally:
            shift.waiting -= 1
            if shift.reason is not None:
                self._reason = shift.reason
            if not shift.waiting:
                self._shift = None
                await asyncio.shield(shift.close())


class _Executor(LiveExecutor):
    """An executor of live calls that says when it stops: it may wait for a row then."""

    def __init__(self, worker: Worker, finish: Finish, on_stop: Callable[[str], None]) -> None:
        super().__init__(worker, finish, claims_ahead=False)  # the engine may wait for each row
        self._on_stop = on_stop

    def stop(self, reason: str) -> None:
        """Take no more rows; those under way are answered."""
        if self.stopped is None:
            super().stop(reason)
            self._on_stop(reason)


class _Shift:
    """From the first row to the moment when there is none: live calls for rows that come singly."""

    def __init__(self, work: Work) -> None:
        self.waiting: int = 0
        """How many rows wait for their results."""
        self.reason: Answer | None = None
        """What rows get that come after it has stopped."""
        self._local = LOCAL.get(work.run)
        client = work.client if self._local is None else self._local.client
        self._worker = Worker(work.config, client=client)
        self._executor = _Executor(self._worker, self._finish, self._stop)
        self._halt = Halt(work)
        self._rows: asyncio.Queue[Row | None] = asyncio.Queue()
        self._results: dict[int, asyncio.Future[Result]] = {}
        self._count = 0
        if self._local is not None:
            self._local.count(1)
        self._running = asyncio.ensure_future(self._run())
        self._watching = asyncio.ensure_future(self._watch())

    async def answer(self, key: str, row: bytes) -> Result:
        """Return what became of a row, when its turn has come."""
        try:
            data = pickle.loads(row)  # noqa: S301 -- made by the same job
        except Exception as error:  # noqa: BLE001 -- such as a class that is not installed here
            return Result(replace(failure_of(error, key), status="pending"))
        if self.reason is not None:
            return Result(replace(self.reason, key=key))
        self._count += 1
        number = self._count
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._results[number] = result
        self._rows.put_nowait(Row(number, key, data))
        return await result

    async def _run(self) -> None:
        try:
            await self._executor.run(self._next())
        finally:
            self._stop("The worker has ended.")
            for result in self._results.values():
                _resolve(result, Result(self.reason or Answer(status="pending")))

    async def _next(self) -> AsyncIterator[list[Row]]:
        while (row := await self._rows.get()) is not None:
            if self._halt.is_known:
                self._rows.put_nowait(row)
                self._stop(_HALTED)
            elif self._results[row.number].done():  # the engine has given up on the row
                del self._results[row.number]
            else:
                yield [row]

    def _finish(self, row: Row, request: bytes | None, answer: Answer) -> None:
        _resolve(self._results.pop(row.number), Result(answer, request))

    def _stop(self, reason: str) -> None:
        """Take no more rows: those that have not begun stay pending."""
        if self.reason is None:
            self.reason = Answer(status="pending", error=reason)
            self._executor.stop(reason)
        while not self._rows.empty():
            row = self._rows.get_nowait()
            if row is not None:
                result = Result(replace(self.reason, key=row.key))
                _resolve(self._results.pop(row.number), result)
        self._rows.put_nowait(None)

    async def _watch(self) -> None:
        """Stop when the run is told to."""
        while True:
            with suppress(StoreError):
                if await self._halt.is_called():
                    self._stop(_HALTED)
                    return
            await asyncio.sleep(_LOOK_SECONDS)

    async def close(self) -> None:
        """Wait for what is under way, end the claims, and close what was made."""
        self._watching.cancel()
        self._rows.put_nowait(None)
        await asyncio.gather(self._running, self._watching, return_exceptions=True)
        try:
            await self._worker.close()
            await self._halt.close()
        finally:
            if self._local is not None:
                self._local.count(-1)


def _resolve(future: asyncio.Future[Result], result: Result) -> None:
    if not future.done():  # else the engine has given up on the row
        future.set_result(result)
