"""
The executor of engines: gives rows to an engine in groups, and takes back what became of them.

Rows have their keys before an engine sees them. What an engine gives back is only news: answers are
in the ledger, and the output is written from there, so that a row that an engine has lost or
doubled is there once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any, Protocol

from msgspec.structs import replace

from interlingua.bulk.engines.worker import (
    KEY,
    LOCAL,
    RESULT,
    ROW,
    Halt,
    LocalRun,
    Result,
    Work,
    check_carried,
    decode_result,
    encode_row,
)
from interlingua.bulk.ledger.open import is_file
from interlingua.bulk.live import Finish
from interlingua.bulk.reading import Row, load_pyarrow
from interlingua.bulk.template import RowProblem
from interlingua.bulk.worker import Ready, Worker, recorded
from interlingua.client.client import Client
from interlingua.runtime.log import logger
from interlingua.spec.errors import ConfigurationError, SDKError

GROUP_ROWS, GROUP_BYTES = 20_000, 1 << 28
"""How much an engine is given at once: that is what the memory of this process holds."""


class Engine(Protocol):
    """Cuts a table of rows, places the pieces on machines, and calls a worker for each row."""

    name: str
    is_one_process: bool
    """Whether all rows are answered in this process."""

    def open(self) -> None:
        """Connect to the machines."""

    def answers(self, work: Work, table: Any) -> Iterator[Any]:
        """Yield Arrow tables of keys and results, as they come. Blocks."""

    def close(self) -> None:
        """End the connection, if `open` has made it."""


def find_engine(name: str, ledger: str | None) -> Engine:
    """The engine with this name; `ConfigurationError` if it cannot be used with this ledger."""
    engine: Engine
    if name == "daft":
        from interlingua.bulk.engines.daft import DaftEngine

        engine = DaftEngine()
    else:
        from interlingua.bulk.engines.ray import RayEngine

        engine = RayEngine(None if name == "ray" else name)
    if not engine.is_one_process and (ledger is None or is_file(ledger)):
        raise ConfigurationError(
            f"{engine.name} answers rows in several processes, maybe on several machines. They "
            "need a ledger that all of them reach, and this is a file. Set ledger to redis://… or "
            "postgresql://….",
            setting="ledger",
        )
    return engine


class EngineExecutor:
    """Answers rows by the workers of an engine."""

    def __init__(
        self, engine: Engine, worker: Worker, finish: Finish, *, client: Client | None
    ) -> None:
        """`client`: that of the program, which the workers are to use."""
        self._engine = engine
        self._worker = worker
        self._finish = finish
        self._client = client
        self._halt: Halt | None = None
        self._calling: asyncio.Future[None] | None = None
        self.stopped: str | None = None
        """Why it stopped before the end."""

    def stop(self, reason: str) -> None:
        """Tell the workers to take no more rows; those under way are answered."""
        if self.stopped is None:
            self.stopped = reason
            if self._halt is not None:
                self._calling = asyncio.ensure_future(self._halt.call())

    async def run(self, rows: AsyncIterator[list[Row]]) -> None:
        """Give rows to the engine until they end, or `stop` was called; then drain."""
        if self.stopped is not None:
            return
        ready = await self._worker.ready()
        work = self._begin(ready)
        try:
            await asyncio.to_thread(self._engine.open)
            await self._give(ready, work, rows)
        except BaseException:
            self.stop("It was cancelled.")
            raise
        finally:
            await self._end(work)

    def _begin(self, ready: Ready) -> Work:
        """What the workers get. Those of this process take the client as it is."""
        config = replace(self._worker.config, digest=ready.digest)
        if self._engine.is_one_process:
            work = Work(config, None)
            LOCAL[work.run] = LocalRun(self._client)
        else:
            work = Work(config, self._client)
            check_carried(work)
        self._halt = Halt(work)
        return work

    async def _end(self, work: Work) -> None:
        if self._calling is not None:
            await asyncio.gather(self._calling, return_exceptions=True)
        await asyncio.to_thread(self._engine.close)
        LOCAL.pop(work.run, None)
        if self._halt is not None:
            await self._halt.close()

    # What is given.

    async def _give(self, ready: Ready, work: Work, rows: AsyncIterator[list[Row]]) -> None:
        async for group in self._groups(ready, rows):
            await self._work(ready, work, group)
            if self.stopped is not None:
                return

    async def _groups(self, ready: Ready, rows: AsyncIterator[list[Row]]) -> AsyncIterator[_Group]:
        group = _Group()
        async for chunk in rows:
            await asyncio.to_thread(self._add, ready, group, chunk)
            if len(group.data) >= GROUP_ROWS or group.size >= GROUP_BYTES:
                yield group
                group = _Group()
        if group.data:
            yield group

    def _add(self, ready: Ready, group: _Group, rows: list[Row]) -> None:
        """Add rows to a group; one whose request is there gets the same answer."""
        job = self._worker.config.job
        for row in rows:
            try:
                request = job.ask(row.data, row.key, ready.digest).hash
            except RowProblem:  # the index has the reason
                continue
            if request in group.rows:
                group.rows[request].append(row)
                continue
            group.rows[request] = [row]
            data = encode_row({name: row.data[name] for name in job.columns if name in row.data})
            group.data[row.key] = (request, data)
            group.size += len(data)

    # What comes back.

    async def _work(self, ready: Ready, work: Work, group: _Group) -> None:
        """Let the engine answer a group, and look for what it has not given back."""
        try:
            async for table in _answers(self._engine, work, group.table()):
                for key, result in zip(
                    table.column(KEY).to_pylist(), table.column(RESULT).to_pylist(), strict=True
                ):
                    self._take(group, key, decode_result(result))
        except SDKError:
            raise
        except Exception as error:  # noqa: BLE001 -- the engine's; what was answered is recorded
            logger.warning("%s has ended with an error.", self._engine.name, exc_info=True)
            self.stop(f"{self._engine.name} has ended with {type(error).__name__}: {error}")
        if work.run in LOCAL:  # Daft ends at Ctrl-C, before the calls that are under way
            await LOCAL[work.run].idle.wait()
        await self._find_lost(ready, group)

    def _take(self, group: _Group, key: str, result: Result) -> None:
        """Hand on what became of a request; what an engine gives back again is not counted."""
        request, _ = group.data.pop(key, (None, b""))
        if request is None:
            logger.info("%s gave back the row %s twice.", self._engine.name, key)
            return
        answer = result.answer
        if result.request is not None and result.request != request:
            reason = (
                f"A worker has made another request of the row {key} than this process. The files "
                "that columns name must be the same on all machines."
            )
            answer = replace(answer, status="pending", error=reason)
        if answer.status == "pending":
            self.stop(answer.error or "unknown")
        for row in group.rows.pop(request):
            self._finish(row, request, answer)

    async def _find_lost(self, ready: Ready, group: _Group) -> None:
        """Take from the ledger what an engine has not given back; the rest stays pending."""
        attempts = self._worker.config.attempts
        requests = [request for request, _ in group.data.values()]
        entries = await ready.ledger.look(requests) if requests else []
        lost = 0
        for key, entry in zip(list(group.data), entries, strict=True):
            if entry is None or not entry.is_settled(attempts):
                lost += 1
            else:
                request, _ = group.data[key]
                self._take(group, key, Result(recorded(entry, key), request))
        if lost:
            self.stop(
                f"{self._engine.name} has not given back {lost} rows. The same command goes on."
            )


class _Group:
    """Rows that an engine is given together."""

    def __init__(self) -> None:
        self.rows: dict[bytes, list[Row]] = {}
        """The rows of each request that has no result yet."""
        self.data: dict[str, tuple[bytes, bytes]] = {}
        """For the key of the first of them: the request, and the row as a worker gets it."""
        self.size = 0

    def table(self) -> Any:
        """The table that the engine cuts."""
        pa = load_pyarrow()
        columns = {KEY: list(self.data), ROW: [data for _, data in self.data.values()]}
        return pa.table(columns, schema=pa.schema([(KEY, pa.string()), (ROW, pa.binary())]))


async def _answers(engine: Engine, work: Work, table: Any) -> AsyncIterator[Any]:
    """
    What an engine gives back, without blocking the event loop.

    The thread does not keep the program from ending: a second Ctrl-C waits for no engine.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Queue[Any] = asyncio.Queue()

    def put(item: Any) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(found.put_nowait, item)

    def pump() -> None:
        try:
            for each in engine.answers(work, table):
                put(each)
        except Exception as error:  # noqa: BLE001 -- raised in the loop
            put(error)
        except BaseException as error:  # noqa: BLE001 -- it must not end the loop
            put(RuntimeError(repr(error)))
        else:
            put(None)

    threading.Thread(target=pump, name="interlingua-bulk-engine", daemon=True).start()
    while (item := await found.get()) is not None:
        if isinstance(item, Exception):
            raise item
        yield item
