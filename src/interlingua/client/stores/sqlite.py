"""The store of several processes on one machine, in a SQLite file."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from interlingua.client.stores.buckets import MICROSECONDS, Bucket, find_refusal, microseconds
from interlingua.client.stores.contract import (
    RETENTION,
    Limit,
    Refused,
    Reservation,
    check_added,
    check_amounts,
    check_lease,
    check_limits,
    check_ttl,
    storable,
)
from interlingua.client.stores.sqlite_thread import Schema, SQLiteThread
from interlingua.lazy import Remade

if TYPE_CHECKING:
    from sqlite3 import Connection

_SCHEMA = Schema(
    name="a store of limits",
    application_id=0x494C5354,  # "ILST"
    version=1,
    script="""
CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, state BLOB NOT NULL, ends INTEGER)
    WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS buckets_ends ON buckets (ends) WHERE ends IS NOT NULL;
CREATE TABLE IF NOT EXISTS held (bucket TEXT, id TEXT, amount REAL NOT NULL, ends INTEGER NOT NULL,
    PRIMARY KEY (bucket, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (id TEXT PRIMARY KEY, ends INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS leases_ends ON leases (ends);
CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value BLOB NOT NULL, ends INTEGER);
CREATE INDEX IF NOT EXISTS entries_ends ON entries (ends) WHERE ends IS NOT NULL;
CREATE TABLE IF NOT EXISTS counters (key TEXT PRIMARY KEY, total REAL NOT NULL, ends INTEGER)
    WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS counters_ends ON counters (ends) WHERE ends IS NOT NULL;
CREATE TABLE IF NOT EXISTS lists (key TEXT PRIMARY KEY, length INTEGER NOT NULL, ends INTEGER)
    WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS lists_ends ON lists (ends) WHERE ends IS NOT NULL;
CREATE TABLE IF NOT EXISTS items (key TEXT, position INTEGER, value BLOB NOT NULL,
    PRIMARY KEY (key, position))
""",
)
_DELETE = (
    "DELETE FROM entries WHERE key = ?",
    "DELETE FROM counters WHERE key = ?",
    "DELETE FROM lists WHERE key = ?",
)
_DELETE_ENDED = tuple(f"{statement} AND ends <= ?" for statement in _DELETE)
_SWEEP_LEASES = "DELETE FROM leases WHERE id IN (SELECT id FROM leases WHERE ends <= ? LIMIT ?)"
_SWEEP = (
    "DELETE FROM held WHERE (bucket, id) IN (SELECT bucket, id FROM held WHERE ends <= ? LIMIT ?)",
    """DELETE FROM buckets WHERE name IN (SELECT name FROM buckets WHERE ends <= ?
    AND NOT EXISTS (SELECT 1 FROM held WHERE bucket = name) LIMIT ?)""",
    "DELETE FROM entries WHERE key IN (SELECT key FROM entries WHERE ends <= ? LIMIT ?)",
    "DELETE FROM counters WHERE key IN (SELECT key FROM counters WHERE ends <= ? LIMIT ?)",
)
_SWEEP_SECONDS = 10.0
"""How often ended rows are looked for, by each process."""
_SWEEP_ROWS = 1_000
"""How many of each kind are removed then."""


class SQLiteStore(Remade):
    """
    Limits, values, counters and lists in a file, shared by the processes of one machine.

    Every write is committed when its method returns, so it survives the end of the process, also
    by `kill -9`. After a power cut the last writes may be missing. The file must be on a local
    disk, because SQLite cannot lock files on most network drives.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        timeout: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        Name the file, which is made at the first use.

        `timeout`: for how many seconds a write waits for other processes before `StoreError`.
        """
        self._thread = SQLiteThread(path, _SCHEMA, timeout=timeout)
        self._clock = clock
        self._sweep_at = 0

    def _now(self) -> int:
        return microseconds(self._clock())

    async def reserve(
        self, limits: Sequence[Limit], *, lease: float = 60.0
    ) -> Reservation | Refused:
        """Take all amounts, or none."""
        checked = check_limits(limits, lease)
        id_ = uuid4().hex
        length = microseconds(lease)
        taken: list[Reservation] = []

        def work(connection: Connection) -> Reservation | Refused:
            now = self._now()
            self._sweep(connection, now)
            pairs = [(limit, _Row(connection, limit.key, limit.period)) for limit in checked]
            refused = find_refusal(pairs, now)
            if refused is not None:
                return refused
            for limit, row in pairs:
                row.take(limit, id_, now, now + length)
                row.save(now)
            connection.execute("INSERT INTO leases VALUES (?, ?)", (id_, now + length))
            taken[:] = [Reservation(id=id_, limits=checked, taken_at=now / MICROSECONDS)]
            return taken[0]

        def give_back(connection: Connection) -> None:
            for reservation in taken:
                self._settle(connection, reservation, None)

        try:
            return await self._thread.write(work)
        except asyncio.CancelledError:  # it may have been taken, or will be: this comes after it
            self._thread.post(give_back).add_done_callback(_retrieve)
            raise

    async def settle(self, reservation: Reservation, amounts: Mapping[str, float]) -> bool:
        """Replace what was taken by the real amounts; False if it was settled before."""
        check_amounts(amounts)
        real = dict(amounts)
        settled = self._thread.post(lambda connection: self._settle(connection, reservation, real))
        settled.add_done_callback(_retrieve)
        # What was used is counted, also if the event loop ends now: the thread goes on.
        return await asyncio.shield(settled)

    def _settle(
        self, connection: Connection, reservation: Reservation, amounts: dict[str, float] | None
    ) -> bool:
        """With None for the amounts: nothing was used."""
        now = self._now()
        forgotten = now - microseconds(RETENTION)
        ended = connection.execute(
            "DELETE FROM leases WHERE id = ? AND ends > ?", (reservation.id, forgotten)
        )
        if not ended.rowcount:
            return False
        taken_at = microseconds(reservation.taken_at)
        for limit in reservation.limits:
            real = 0.0 if amounts is None else amounts.get(limit.key, limit.amount)
            row = _Row(connection, limit.key, limit.period)
            row.drop_ended(now)
            row.settle(limit, reservation.id, real, taken_at, now)
            row.save(now)
        return True

    async def renew(self, reservation: Reservation, lease: float) -> bool:
        """Extend the lease to this long from now; False if it has ended or was settled."""
        check_lease(lease)

        def work(connection: Connection) -> bool:
            now = self._now()
            ends = _find(connection, "SELECT ends FROM leases WHERE id = ?", reservation.id)
            if ends is None or ends <= now:
                return False
            ends = max(ends, now + microseconds(lease))
            connection.execute("UPDATE leases SET ends = ? WHERE id = ?", (ends, reservation.id))
            for limit in reservation.limits:
                _Row(connection, limit.key, limit.period).extend(reservation.id, ends)
            return True

        return await self._thread.write(work)

    async def used(self, key: str, period: float | None = None) -> float:
        """Return what counts now for a key with this period, reservations included."""
        now = self._now()

        def work(connection: Connection) -> float:
            row = _Row(connection, key, period, writable=False)
            row.drop_ended(now)
            return row.used()

        return await self._thread.read(work)

    async def add(self, key: str, amount: float, *, ttl: float | None = None) -> float:
        """Add to a counter; its new value."""
        check_added(amount)
        check_ttl(ttl)
        key = storable(key)

        def work(connection: Connection) -> float:
            now = self._now()
            self._sweep(connection, now)
            connection.execute("DELETE FROM counters WHERE key = ? AND ends <= ?", (key, now))
            connection.execute(
                "INSERT INTO counters VALUES (?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET total = total + excluded.total",
                (key, amount, _end(now, ttl)),
            )
            total: float = _find(connection, "SELECT total FROM counters WHERE key = ?", key)
            return total

        return await self._thread.write(work)

    async def get(self, key: str) -> bytes | None:
        """Return the value; None if there is none or its time has ended."""
        now, key = self._now(), storable(key)

        def work(connection: Connection) -> bytes | None:
            row: tuple[bytes] | None = connection.execute(
                "SELECT value FROM entries WHERE key = ? AND (ends IS NULL OR ends > ?)", (key, now)
            ).fetchone()
            return row and row[0]

        return await self._thread.read(work)

    async def put(
        self, key: str, value: bytes, *, ttl: float | None = None, only_new: bool = False
    ) -> bool:
        """Set a value; returns whether it was set."""
        check_ttl(ttl)
        key = storable(key)

        def work(connection: Connection) -> bool:
            now = self._now()
            self._sweep(connection, now)
            if only_new:
                connection.execute("DELETE FROM entries WHERE key = ? AND ends <= ?", (key, now))
            verb = "INSERT OR IGNORE" if only_new else "INSERT OR REPLACE"
            written = connection.execute(
                f"{verb} INTO entries VALUES (?, ?, ?)", (key, value, _end(now, ttl))
            )
            return bool(written.rowcount)

        return await self._thread.write(work)

    async def delete(self, key: str) -> bool:
        """Remove the value, counter and list of a key; whether there was one."""
        key = storable(key)

        def work(connection: Connection) -> bool:
            now = self._now()
            for statement in _DELETE_ENDED:
                connection.execute(statement, (key, now))
            removed = [connection.execute(statement, (key,)).rowcount for statement in _DELETE]
            connection.execute("DELETE FROM items WHERE key = ?", (key,))
            return any(removed)

        return await self._thread.write(work)

    async def append(self, key: str, value: bytes, *, ttl: float | None = None) -> int:
        """Add to the end of a list; the new length."""
        check_ttl(ttl)
        key = storable(key)

        def work(connection: Connection) -> int:
            now = self._now()
            self._sweep(connection, now)
            _drop_list(connection, key, now)
            length = _find(connection, "SELECT length FROM lists WHERE key = ?", key) or 0
            connection.execute("INSERT INTO items VALUES (?, ?, ?)", (key, length, value))
            connection.execute(
                "INSERT INTO lists VALUES (?, 1, ?) "
                "ON CONFLICT (key) DO UPDATE SET length = length + 1",
                (key, _end(now, ttl)),
            )
            return int(length) + 1

        return await self._thread.write(work)

    async def items(self, key: str, start: int = 0) -> list[bytes]:
        """Return the values of a list, from an index on."""
        now, key = self._now(), storable(key)

        def work(connection: Connection) -> list[bytes]:
            rows = connection.execute(
                "SELECT value FROM items JOIN lists USING (key) WHERE key = ? AND position >= ? "
                "AND (ends IS NULL OR ends > ?) ORDER BY position",
                (key, start, now),
            )
            return [value for (value,) in rows]

        return await self._thread.read_much(work)

    async def close(self) -> None:
        """End the thread and close the file; the next use opens it again."""
        await self._thread.close()

    def _sweep(self, connection: Connection, now: int) -> None:
        """Remove some rows that have ended, now and then; no decision depends on it."""
        if now < self._sweep_at:
            return
        self._sweep_at = now + microseconds(_SWEEP_SECONDS)
        connection.execute(_SWEEP_LEASES, (now - microseconds(RETENTION), _SWEEP_ROWS))
        for statement in _SWEEP:
            connection.execute(statement, (now, _SWEEP_ROWS))
        ended = connection.execute(
            "SELECT key FROM lists WHERE ends <= ? LIMIT ?", (now, _SWEEP_ROWS)
        )
        for (key,) in ended.fetchall():
            _drop_list(connection, key, now)


def _retrieve(future: asyncio.Future[Any]) -> None:
    """Mark the error of a future that nobody may wait for as seen."""
    if not future.cancelled():
        future.exception()


def _find(connection: Connection, statement: str, key: str) -> Any:
    """The one value that a statement finds; None if there is none."""
    row = connection.execute(statement, (key,)).fetchone()
    return None if row is None else row[0]


def _end(now: int, ttl: float | None) -> int | None:
    return None if ttl is None else now + microseconds(ttl)


def _drop_list(connection: Connection, key: str, now: int) -> None:
    """Remove a list that has ended."""
    ended = connection.execute("DELETE FROM lists WHERE key = ? AND ends <= ?", (key, now))
    if ended.rowcount:
        connection.execute("DELETE FROM items WHERE key = ?", (key,))


class _State(msgspec.Struct, array_like=True):
    """What a row of `buckets` holds."""

    slots: dict[int, float]
    held: float
    first_end: float
    tat: float
    expires: float


_NEARLY_NOTHING = 1e-6
"""A sum below this is computed anew: subtracting fractions leaves a rest."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_State).decode


class _Row(Bucket):
    """A bucket as a row, with its open reservations in rows of `held`."""

    __slots__ = ("_connection", "_name", "_writable")

    def __init__(
        self, connection: Connection, key: str, period: float | None, *, writable: bool = True
    ) -> None:
        super().__init__(period)
        self._connection = connection
        self._name = f"{period and float(period)}:{storable(key)}"
        self._writable = writable
        stored = _find(connection, "SELECT state FROM buckets WHERE name = ?", self._name)
        if stored is not None:
            state = _decode(stored)
            self.slots = state.slots
            self.held = state.held
            self.first_end = state.first_end
            self.tat = state.tat
            self.expires = state.expires

    def save(self, now: int) -> None:
        """Write the row, with the time at which nothing of it counts any longer."""
        state = _State(self.slots, self.held, self.first_end, self.tat, self.expires)
        self._connection.execute(
            "INSERT OR REPLACE INTO buckets VALUES (?, ?, ?)",
            (self._name, _encode(state), self._ends(now)),
        )

    def _ends(self, now: int) -> int | None:
        """When nothing counts but open reservations; None: never."""
        if self.width is None and self.slots and self.expires == inf:
            return None
        last = max((ends for ends, _ in self._slot_releases()), default=now)
        return int(max(last, self.tat, 0 if self.expires == inf else self.expires))

    def bring_back(self, current: int) -> None:
        super().bring_back(current)
        if self._writable:  # also if nothing is taken now: it counts from now on
            self.save(current * (self.width or 0))

    def hold(self, id_: str, amount: float, ends: int) -> None:
        self._connection.execute(
            "INSERT INTO held VALUES (?, ?, ?, ?)", (self._name, id_, amount, ends)
        )
        self.held += amount
        self.first_end = min(self.first_end, ends)

    def release(self, id_: str) -> bool:
        place = (self._name, id_)
        row = self._connection.execute(
            "SELECT amount FROM held WHERE bucket = ? AND id = ?", place
        ).fetchone()
        if row is None:
            return False
        self._connection.execute("DELETE FROM held WHERE bucket = ? AND id = ?", place)
        self.held -= row[0]
        if self.held < _NEARLY_NOTHING:
            self._sum_up(0)
        return True

    def extend(self, id_: str, ends: int) -> None:
        self._connection.execute(
            "UPDATE held SET ends = ? WHERE bucket = ? AND id = ?", (ends, self._name, id_)
        )

    def leases(self) -> Iterable[tuple[int, float]]:
        return self._connection.execute(
            "SELECT ends, amount FROM held WHERE bucket = ?", (self._name,)
        )

    def drop_leases(self, now: int) -> None:
        if self._writable:
            self._connection.execute(
                "DELETE FROM held WHERE bucket = ? AND ends <= ?", (self._name, now)
            )
        self._sum_up(now)

    def _sum_up(self, now: int) -> None:
        held, first_end = self._connection.execute(
            "SELECT total(amount), min(ends) FROM held WHERE bucket = ? AND ends > ?",
            (self._name, now),
        ).fetchone()
        self.held = held
        self.first_end = inf if first_end is None else first_end
