"""The ledger of the processes of one machine, in a SQLite file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from interlingua.bulk.answers import Answer, decode_answer, encode_answer
from interlingua.bulk.job import HASH_BYTES
from interlingua.bulk.ledger.contract import LEASE, Entry, State, Totals
from interlingua.bulk.ledger.heartbeat import Heartbeat
from interlingua.bulk.ledger.owners import Owner
from interlingua.client.stores.sqlite_thread import Schema, SQLiteThread
from interlingua.spec.errors import StoreError

if TYPE_CHECKING:
    from sqlite3 import Connection

_STATES: tuple[State, ...] = ("claimed", "done", "failed", "released")
_CLAIMED, _DONE, _FAILED = range(3)
_SCHEMA = Schema(
    name="a ledger of a bulk job",
    application_id=0x494C424C,  # "ILBL"
    version=1,
    synchronous="FULL",  # an answer that was paid for survives a power cut
    rescue="restore a copy; without it, all rows are paid for again",
    script="""
CREATE TABLE IF NOT EXISTS answers (hash BLOB PRIMARY KEY, state INTEGER NOT NULL,
    owner TEXT NOT NULL, attempts INTEGER NOT NULL, cost REAL NOT NULL, body BLOB);
CREATE TABLE IF NOT EXISTS owners (id TEXT PRIMARY KEY, ends REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (reference TEXT PRIMARY KEY, hashes BLOB NOT NULL) WITHOUT ROWID
""",
)
_FIND = "SELECT state, owner, attempts, body FROM answers WHERE hash = ?"
_CLAIM = "INSERT INTO answers VALUES (?, 0, ?, 0, 0.0, NULL) ON CONFLICT (hash) DO NOTHING"
_PUT = """
INSERT INTO answers VALUES (?1, ?2, '', 1, ?3, ?4) ON CONFLICT (hash) DO UPDATE SET
    body = CASE WHEN state = 1 THEN body ELSE ?4 END,
    state = CASE WHEN state = 1 THEN 1 ELSE ?2 END,
    owner = '', attempts = attempts + 1, cost = cost + ?3
"""
_Write: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], "asyncio.Future[Any]"]
_RESERVE = 1 << 20
"""Bytes that are kept for the answers that arrive when the disk is full."""
_MANY = 64
"""Reads of more entries than this are done in a thread."""


class SQLiteLedger:
    """
    A ledger in a file, with the files of its owners in a folder beside it.

    Writes that wait at the same time share one commit.
    """

    def __init__(
        self,
        path: Path,
        *,
        lease: float = LEASE,
        timeout: float = 30.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._thread = SQLiteThread(path, _SCHEMA, timeout=timeout)
        self._folder = path.with_name(f"{path.name}-owners")
        self._reserve = path.with_name(f"{path.name}-reserve")
        self._lease = lease
        self._clock = clock
        self._owner: Owner | None = None
        self._heartbeat = Heartbeat(self._live, lease)
        self._writes = _Writes(self._thread)
        self._is_full = False

    async def open(self) -> None:
        """Become an owner."""
        if self._owner is None:
            self._keep_room()
            self._owner = Owner(self._folder)
            try:
                await self._live()
            except BaseException:
                self._owner.close()
                self._owner = None
                raise
            self._heartbeat.start()

    async def _live(self) -> None:
        owner, ends = self._id, self._clock() + self._lease
        await self._thread.write(
            lambda connection: connection.execute(
                "INSERT OR REPLACE INTO owners VALUES (?, ?)", (owner, ends)
            )
        )

    @property
    def _id(self) -> str:
        return "" if self._owner is None else self._owner.id

    async def look(self, hashes: Sequence[bytes]) -> list[Entry | None]:
        """Return the entries of requests, in their order."""

        def work(connection: Connection) -> list[Entry | None]:
            return [_find(connection, each) for each in hashes]

        read = self._thread.read if len(hashes) <= _MANY else self._thread.read_much
        return await read(work)

    def _keep_room(self) -> None:
        try:
            if not self._reserve.exists():
                self._reserve.write_bytes(bytes(_RESERVE))
        except OSError as error:
            self._reserve.unlink(missing_ok=True)
            raise StoreError(f"{self._reserve}: {error.strerror}.", cause=error) from error
        self._is_full = False

    async def claim(self, request: bytes, attempts: int) -> Entry | None:
        """Take a request for this process; else the entry that stands in its way."""
        if self._is_full:
            raise StoreError(f"The disk of {self._reserve.parent} is full. Make room, and go on.")
        entry: Entry | None = await self._writes.add(self._claim, request, attempts)
        return entry

    def _claim(self, connection: Connection, request: bytes, attempts: int) -> Entry | None:
        if connection.execute(_CLAIM, (request, self._id)).rowcount:
            return None
        entry = _find(connection, request)
        if entry is None or entry.is_settled(attempts) or self._is_held(connection, entry):
            return entry
        change = "UPDATE answers SET state = ?, owner = ? WHERE hash = ?"
        connection.execute(change, (_CLAIMED, self._id, request))
        return None

    def _is_held(self, connection: Connection, entry: Entry) -> bool:
        """Whether another process that lives has claimed it."""
        owner = entry.owner
        if entry.state != "claimed" or owner == self._id:
            return False
        if self._owner is not None and self._owner.is_dead(owner):
            connection.execute("DELETE FROM owners WHERE id = ?", (owner,))
            self._owner.bury(owner)
            return False
        row = connection.execute("SELECT ends FROM owners WHERE id = ?", (owner,)).fetchone()
        return row is not None and bool(row[0] > self._clock())

    async def put(self, request: bytes, answer: Answer) -> None:
        """Record what became of a request; it is durable when this returns."""
        state = _DONE if answer.status == "done" else _FAILED
        values = (request, state, answer.cost or 0.0, encode_answer(answer))
        try:
            await self._writes.add(_put, values)
        except StoreError:
            # It was paid for: the room that was kept for this is enough for what is under way,
            # and nothing more is claimed.
            self._is_full = True
            with suppress(OSError):
                self._reserve.unlink(missing_ok=True)
            await self._writes.add(_put, values)

    async def release(self, request: bytes) -> None:
        """End the claim of a request that was not sent."""
        await self._writes.add(_release, request, self._id)

    async def totals(self) -> Totals:
        """Return the sums over all entries."""

        def work(connection: Connection) -> Totals:
            rows = connection.execute(
                "SELECT state, count(*), total(cost) FROM answers GROUP BY state"
            ).fetchall()
            counts = {state: number for state, number, _ in rows}
            return Totals(
                done=counts.get(_DONE, 0),
                failed=counts.get(_FAILED, 0),
                claimed=counts.get(_CLAIMED, 0),
                cost=sum(cost for _, _, cost in rows),
            )

        return await self._thread.read_much(work)

    async def note_batch(self, reference: str, requests: Sequence[bytes] | None) -> None:
        """Remember a batch with its requests; None: forget it."""

        def work(connection: Connection) -> None:
            if requests is None:
                connection.execute("DELETE FROM batches WHERE reference = ?", (reference,))
            else:
                values = (reference, b"".join(requests))
                connection.execute("INSERT OR REPLACE INTO batches VALUES (?, ?)", values)

        await self._thread.write(work)

    async def batches(self) -> dict[str, list[bytes]]:
        """Return the batches that were not read yet."""

        def work(connection: Connection) -> dict[str, list[bytes]]:
            rows = connection.execute("SELECT reference, hashes FROM batches").fetchall()
            return {reference: split_hashes(joined) for reference, joined in rows}

        return await self._thread.read_much(work)

    async def close(self) -> None:
        """End all claims of this process, and close the file."""
        await self._heartbeat.stop()
        owner, self._owner = self._owner, None
        try:
            if owner is not None:
                await self._thread.write(lambda connection: _forget_owner(connection, owner.id))
        finally:
            await self._thread.close()
            if owner is not None:
                owner.close()


def split_hashes(joined: bytes) -> list[bytes]:
    """The hashes that were joined to one value."""
    return [joined[i : i + HASH_BYTES] for i in range(0, len(joined), HASH_BYTES)]


def _find(connection: Connection, request: bytes) -> Entry | None:
    row = connection.execute(_FIND, (request,)).fetchone()
    if row is None:
        return None
    state, owner, attempts, body = row
    return Entry(_STATES[state], owner, attempts, None if body is None else decode_answer(body))


def _put(connection: Connection, values: tuple[object, ...]) -> None:
    connection.execute(_PUT, values)


def _release(connection: Connection, request: bytes, owner: str) -> None:
    change = "UPDATE answers SET state = 3, owner = '' WHERE hash = ? AND owner = ?"
    connection.execute(change, (request, owner))


def _forget_owner(connection: Connection, owner: str) -> None:
    """End all claims of an owner: nobody waits for one that is not known."""
    connection.execute("DELETE FROM owners WHERE id = ?", (owner,))


class _Writes:
    """
    Writes that share transactions: those that come during one are in the next.

    One change of threads for many writes is what makes them cheap.
    """

    def __init__(self, thread: SQLiteThread) -> None:
        self._thread = thread
        self._waiting: list[_Write] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, work: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
        """Do this in a transaction; the future of the result, after the commit."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((work, arguments, future))
        if self._task is None:
            self._task = loop.create_task(self._work())
        return future

    async def _work(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(0)  # what ends in the same round of the loop is in it too
                writes, self._waiting = self._waiting, []
                await self._do(writes)
        finally:
            self._task = None

    async def _do(self, writes: list[_Write]) -> None:
        try:
            results = await self._thread.write(
                lambda connection: [work(connection, *given) for work, given, _ in writes]
            )
        except StoreError as error:
            for _, _, future in writes:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, _, future), result in zip(writes, results, strict=True):
            if not future.done():
                future.set_result(result)
