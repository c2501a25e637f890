"""
The store of several machines, in a PostgreSQL database.

A bucket is one row with its open reservations. Who changes buckets first takes their advisory
locks, in one order for all: so decisions that share a bucket follow one another, and none waits for
another in a circle. Times are those of the server: the clocks of machines differ.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from math import inf
from typing import Any, NamedTuple, TypeVar
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
)
from interlingua.lazy import Remade
from interlingua.runtime.cancel import outlast, start_task
from interlingua.spec.errors import ConfigurationError, StoreError
from interlingua.transport.per_loop import PerLoop, collect_unclosed

Result = TypeVar("Result")
_PATIENCE = 30.0  # seconds in which a server that was restarted comes back
_PAUSE = 0.2
_MAKING = 0x494C4D4B  # the advisory lock of processes that make tables: "ILMK"


class Tables(NamedTuple):
    """The tables that a connection needs; they are made if they are not there."""

    schema: str
    """The schema that has them, which no other program uses."""
    script: str
    last: str
    """The name of the table that is made last."""


def load_asyncpg() -> Any:
    """The client library; raises if it is not installed."""
    try:
        import asyncpg  # type: ignore[import-untyped]
    except ImportError as error:
        raise ConfigurationError(
            "PostgreSQL needs the asyncpg package. Run `pip install 'interlingua[postgres]'`.",
            cause=error,
        ) from error
    return asyncpg


class Session:
    """The connection of one event loop; it is opened on use, and again after a failure."""

    def __init__(self, url: str, tables: Tables, timeout: float) -> None:
        """`timeout`: the seconds that one statement may take."""
        self._library = load_asyncpg()
        self._url = url
        self._tables = tables
        self._timeout = timeout
        self._connection: Any = None
        self._lock = asyncio.Lock()  # a connection does one thing at a time
        self._was_connected = False

    async def run(
        self, work: Callable[[Any], Awaitable[Result]], *, may_repeat: bool = True
    ) -> Result:
        """
        Do something with the connection; again on a new one, if that ends meanwhile.

        A server that was there once is given time to come back: what is written was paid for.
        """
        library = self._library
        deadline = time.monotonic() + _PATIENCE
        async with self._lock:
            while True:
                is_sent = False
                try:
                    if self._connection is None:
                        self._connection = await self._connect()
                    is_sent = not may_repeat
                    return await work(self._connection)
                except (library.PostgresError, library.InterfaceError, OSError) as error:
                    is_lost = self._connection is None or self._connection.is_closed()
                    self._drop()
                    may_return = is_lost and self._was_connected and time.monotonic() <= deadline
                    if is_sent or not may_return:
                        raise _store_error(error) from error
                except BaseException:  # cancelled in the middle: what it would read next is unknown
                    self._drop()
                    raise
                await asyncio.sleep(_PAUSE)

    async def _connect(self) -> Any:
        settings = {"search_path": self._tables.schema, "synchronous_commit": "on"}
        seconds = self._timeout
        try:
            connection = await self._library.connect(
                self._url, timeout=seconds, command_timeout=seconds, server_settings=settings
            )
        except ValueError as error:  # it may repeat the URL, which has a password
            raise ConfigurationError(
                "This is not a URL of PostgreSQL. Write "
                "postgresql://user:password@host:5432/database."
            ) from error
        try:
            await _make_tables(connection, self._tables)
        except BaseException:
            connection.terminate()
            raise
        self._was_connected = True
        return connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.close(timeout=self._timeout)
            except (self._library.PostgresError, self._library.InterfaceError, OSError):
                connection.terminate()

    def discard(self) -> None:
        """Close the connection without the event loop, which is no longer running."""
        self._connection = None
        collect_unclosed()


def sessions(url: str, tables: Tables, timeout: float) -> PerLoop[Session]:
    """A connection for each event loop."""
    load_asyncpg()
    return PerLoop(
        lambda: Session(url, tables, timeout),
        lambda session: session.close(),
        lambda session: session.discard(),
    )


async def _make_tables(connection: Any, tables: Tables) -> None:
    """Make the tables if they are not there; one process at a time."""
    if await connection.fetchval("SELECT to_regclass($1)", tables.last) is not None:
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _MAKING)
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {tables.schema}")
        await connection.execute(tables.script)


def _store_error(error: Exception) -> StoreError:
    message = str(error) or type(error).__name__
    return StoreError(
        f"PostgreSQL: {message.rstrip('.')}. Check the server, its address and the rights of its "
        "user.",
        cause=error,
    )


# Keys are bytes: a text of PostgreSQL has no null character.
_TABLES = Tables(
    schema="interlingua_store",
    script="""
CREATE TABLE IF NOT EXISTS buckets (name BYTEA PRIMARY KEY, state BYTEA NOT NULL, ends BIGINT);
CREATE TABLE IF NOT EXISTS leases (id TEXT PRIMARY KEY, taken BIGINT NOT NULL,
    ends BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS entries (key BYTEA PRIMARY KEY, value BYTEA NOT NULL, ends BIGINT);
CREATE TABLE IF NOT EXISTS counters (key BYTEA PRIMARY KEY, total DOUBLE PRECISION NOT NULL,
    ends BIGINT);
CREATE TABLE IF NOT EXISTS items (key BYTEA, position BIGINT, value BYTEA NOT NULL,
    PRIMARY KEY (key, position));
CREATE TABLE IF NOT EXISTS lists (key BYTEA PRIMARY KEY, length BIGINT NOT NULL, ends BIGINT);
CREATE INDEX IF NOT EXISTS buckets_ends ON buckets (ends) WHERE ends IS NOT NULL;
CREATE INDEX IF NOT EXISTS leases_ends ON leases (ends);
CREATE INDEX IF NOT EXISTS entries_ends ON entries (ends) WHERE ends IS NOT NULL;
CREATE INDEX IF NOT EXISTS counters_ends ON counters (ends) WHERE ends IS NOT NULL;
CREATE INDEX IF NOT EXISTS lists_ends ON lists (ends) WHERE ends IS NOT NULL
""",
    last="lists",
)
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_LOCK = "SELECT pg_advisory_xact_lock(each) FROM unnest($1::bigint[]) AS each"
_SAVE = """
INSERT INTO buckets VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET state = excluded.state, ends = excluded.ends
"""
_ADD = """
INSERT INTO counters AS c VALUES ($1, $2, $3) ON CONFLICT (key) DO UPDATE SET
    total = CASE WHEN c.ends <= $4 THEN excluded.total ELSE c.total + excluded.total END,
    ends = CASE WHEN c.ends <= $4 THEN excluded.ends ELSE c.ends END
RETURNING total
"""
_PUT = """
INSERT INTO entries AS e VALUES ($1, $2, $3)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, ends = excluded.ends
WHERE NOT $4 OR e.ends <= $5 RETURNING true
"""
_LENGTHEN = """
INSERT INTO lists AS l VALUES ($1, 1, $2) ON CONFLICT (key) DO UPDATE SET
    length = CASE WHEN l.ends <= $3 THEN 1 ELSE l.length + 1 END,
    ends = CASE WHEN l.ends <= $3 THEN excluded.ends ELSE l.ends END
RETURNING length
"""
_ITEMS = """
SELECT value FROM items JOIN lists USING (key)
WHERE key = $1 AND position >= $2 AND (ends IS NULL OR ends > $3) ORDER BY position
"""
_DELETE = tuple(
    f"DELETE FROM {table} WHERE key = $1 RETURNING coalesce(ends > $2, true)"  # noqa: S608
    for table in ("lists", "entries", "counters")
)
_SWEPT = {"buckets": "name", "leases": "id", "entries": "key", "counters": "key", "lists": "key"}
"""The tables whose rows end, and their keys."""
# A row that somebody else is using is left for the next time.
_SWEEP = (
    "DELETE FROM {table} WHERE {key} IN "
    "(SELECT {key} FROM {table} WHERE ends <= $1 LIMIT 1000 FOR UPDATE SKIP LOCKED) RETURNING {key}"
)
_SWEEP_SECONDS = 10.0
"""How often ended rows are looked for, by each process."""


class PostgresStore(Remade):
    """
    Limits, values, counters and lists in a database, shared by any number of machines.

    They are in the schema `interlingua_store`, which is made at the first use. What was written is
    as durable as the server's commits. Needs the extra `postgres`.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "interlingua",
        timeout: float = 5.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """
        Name the server, to which the first use connects.

        `prefix` keeps programs apart that share a database; `timeout`: the seconds after which a
        statement is given up with `StoreError`. `clock` replaces that of the server, for tests.
        """
        self._sessions = sessions(url, _TABLES, timeout)
        self._prefix = prefix
        self._clock = clock
        self._sweep_at = 0.0

    # Limits.

    async def reserve(
        self, limits: Sequence[Limit], *, lease: float = 60.0
    ) -> Reservation | Refused:
        """Take all amounts, or none."""
        checked = check_limits(limits, lease)
        await self._sweep()
        taking = start_task(self._run(partial(self._reserve, uuid4().hex, checked, lease)))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:  # it may have been taken, or will be
            await outlast(start_task(self._give_back(taking)))
            raise

    async def _reserve(
        self, id_: str, limits: tuple[Limit, ...], lease: float, connection: Any
    ) -> Reservation | Refused:
        async with connection.transaction():
            buckets, now = await self._open(connection, limits)
            taken = await connection.fetchval("SELECT taken FROM leases WHERE id = $1", id_)
            if taken is None:  # else this is repeated, because the connection ended
                taken, ends = now, now + microseconds(lease)
                refused = find_refusal([*zip(limits, buckets, strict=True)], now)
                if refused is not None:
                    await self._save(connection, [each for each in buckets if each.was_set_back])
                    return refused
                for limit, bucket in zip(limits, buckets, strict=True):
                    bucket.take(limit, id_, now, ends)
                await self._save(connection, buckets)
                await connection.execute("INSERT INTO leases VALUES ($1, $2, $3)", id_, now, ends)
            return Reservation(id=id_, limits=limits, taken_at=taken / MICROSECONDS)

    async def _give_back(self, taking: asyncio.Task[Reservation | Refused]) -> None:
        """Give back what nobody waits for; a lease that cannot be given back ends by itself."""
        try:
            taken = await taking
            if isinstance(taken, Reservation):
                await self.settle(taken, {limit.key: 0.0 for limit in taken.limits})
        except StoreError:
            pass

    async def settle(self, reservation: Reservation, amounts: Mapping[str, float]) -> bool:
        """Replace what was taken by the real amounts; False if it was settled before."""
        check_amounts(amounts)
        settling = start_task(self._run(partial(self._settle, reservation, dict(amounts))))
        await outlast(settling)  # what was used is counted, also if nobody waits for it any longer
        return settling.result()

    async def _settle(
        self, reservation: Reservation, amounts: dict[str, float], connection: Any
    ) -> bool:
        async with connection.transaction():
            buckets, now = await self._open(connection, reservation.limits)
            ended = await connection.fetchval(
                "DELETE FROM leases WHERE id = $1 AND ends > $2 RETURNING true",
                reservation.id,
                now - microseconds(RETENTION),
            )
            if not ended:
                return False
            taken_at = microseconds(reservation.taken_at)
            for limit, bucket in zip(reservation.limits, buckets, strict=True):
                real = amounts.get(limit.key, limit.amount)
                bucket.drop_ended(now)
                bucket.settle(limit, reservation.id, real, taken_at, now)
            await self._save(connection, buckets)
            return True

    async def renew(self, reservation: Reservation, lease: float) -> bool:
        """Extend the lease to this long from now; False if it has ended or was settled."""
        check_lease(lease)

        async def work(connection: Any) -> bool:
            async with connection.transaction():
                buckets, now = await self._open(connection, reservation.limits)
                ends = await connection.fetchval(
                    "UPDATE leases SET ends = greatest(ends, $2) WHERE id = $1 AND ends > $3 "
                    "RETURNING ends",
                    reservation.id,
                    now + microseconds(lease),
                    now,
                )
                if ends is None:
                    return False
                for bucket in buckets:
                    bucket.extend(reservation.id, ends)
                await self._save(connection, buckets)
                return True

        return await self._run(work)

    async def used(self, key: str, period: float | None = None) -> float:
        """Return what counts now for a key with this period, reservations included."""

        async def work(connection: Any) -> float:
            bucket = _StoredBucket(self._bucket_name(key, period), period)
            await self._load(connection, [bucket])
            bucket.drop_ended(await self._now(connection))
            return bucket.used()

        return await self._run(work)

    async def _open(
        self, connection: Any, limits: Iterable[Limit]
    ) -> tuple[list[_StoredBucket], int]:
        """The buckets of limits, which nobody else changes in this transaction, and the time."""
        buckets = [
            _StoredBucket(self._bucket_name(limit.key, limit.period), limit.period)
            for limit in limits
        ]
        if buckets:
            await connection.execute(_LOCK, sorted({bucket.lock for bucket in buckets}))
            await self._load(connection, buckets)
        return buckets, await self._now(connection)

    async def _load(self, connection: Any, buckets: Sequence[_StoredBucket]) -> None:
        rows = await connection.fetch(
            "SELECT name, state FROM buckets WHERE name = ANY($1)", [each.name for each in buckets]
        )
        states = dict(map(tuple, rows))
        for bucket in buckets:
            bucket.load(states.get(bucket.name))

    async def _save(self, connection: Any, buckets: Sequence[_StoredBucket]) -> None:
        if buckets:
            await connection.executemany(
                _SAVE, [(each.name, each.dump(), each.ends()) for each in buckets]
            )

    def _bucket_name(self, key: str, period: float | None) -> bytes:
        return self._key(f"{period and float(period)}:{key}")

    # Values, counters, lists.

    async def add(self, key: str, amount: float, *, ttl: float | None = None) -> float:
        """Add to a counter; its new value."""
        check_added(amount)
        check_ttl(ttl)

        async def work(connection: Any) -> float:
            now = await self._now(connection)
            values = (self._key(key), float(amount), _end(now, ttl), now)
            total: float = await connection.fetchval(_ADD, *values)
            return total

        await self._sweep()
        return await self._run(work, may_repeat=False)

    async def get(self, key: str) -> bytes | None:
        """Return the value; None if there is none or its time has ended."""

        async def work(connection: Any) -> bytes | None:
            now = await self._now(connection)
            value: bytes | None = await connection.fetchval(
                "SELECT value FROM entries WHERE key = $1 AND (ends IS NULL OR ends > $2)",
                self._key(key),
                now,
            )
            return value

        return await self._run(work)

    async def put(
        self, key: str, value: bytes, *, ttl: float | None = None, only_new: bool = False
    ) -> bool:
        """Set a value; returns whether it was set."""
        check_ttl(ttl)

        async def work(connection: Any) -> bool:
            now = await self._now(connection)
            values = (self._key(key), value, _end(now, ttl), only_new, now)
            return bool(await connection.fetchval(_PUT, *values))

        await self._sweep()
        return await self._run(work, may_repeat=not only_new)

    async def delete(self, key: str) -> bool:
        """Remove the value, counter and list of a key; whether there was one."""
        name = self._key(key)

        async def work(connection: Any) -> bool:
            async with connection.transaction():
                now = await self._now(connection)
                removed = [await connection.fetchval(each, name, now) for each in _DELETE]
                await connection.execute("DELETE FROM items WHERE key = $1", name)
                return any(removed)

        return await self._run(work)

    async def append(self, key: str, value: bytes, *, ttl: float | None = None) -> int:
        """Add to the end of a list; the new length."""
        check_ttl(ttl)
        name = self._key(key)

        async def work(connection: Any) -> int:
            async with connection.transaction():
                now = await self._now(connection)
                length: int = await connection.fetchval(_LENGTHEN, name, _end(now, ttl), now)
                if length == 1:  # what a list had that has ended
                    await connection.execute("DELETE FROM items WHERE key = $1", name)
                await connection.execute(
                    "INSERT INTO items VALUES ($1, $2, $3)", name, length - 1, value
                )
                return length

        await self._sweep()
        return await self._run(work, may_repeat=False)

    async def items(self, key: str, start: int = 0) -> list[bytes]:
        """Return the values of a list, from an index on."""

        async def work(connection: Any) -> list[bytes]:
            now = await self._now(connection)
            rows = await connection.fetch(_ITEMS, self._key(key), max(0, start), now)
            return [value for (value,) in rows]

        return await self._run(work)

    async def close(self) -> None:
        """Close the connections; the next use opens another."""
        await self._sessions.close()

    # Sending.

    async def _run(
        self, work: Callable[[Any], Awaitable[Result]], *, may_repeat: bool = True
    ) -> Result:
        session = self._sessions.get(asyncio.get_running_loop())
        return await session.run(work, may_repeat=may_repeat)

    async def _now(self, connection: Any) -> int:
        """Microseconds since the epoch."""
        if self._clock is not None:
            return microseconds(self._clock())
        now: int = await connection.fetchval(_NOW)
        return now

    def _key(self, key: str) -> bytes:
        return f"{self._prefix}:{key}".encode("utf-8", "surrogatepass")

    async def _sweep(self) -> None:
        """Remove some rows that have ended, now and then; no decision depends on it."""
        if time.monotonic() < self._sweep_at:
            return
        self._sweep_at = time.monotonic() + _SWEEP_SECONDS

        async def work(connection: Any) -> None:
            now = await self._now(connection)
            for table, key in _SWEPT.items():
                before = now - microseconds(RETENTION) if table == "leases" else now
                async with connection.transaction():
                    ended = await connection.fetch(_SWEEP.format(table=table, key=key), before)
                    if table == "lists" and ended:
                        names = [name for (name,) in ended]
                        await connection.execute("DELETE FROM items WHERE key = ANY($1)", names)

        await self._run(work)


def _end(now: int, ttl: float | None) -> int | None:
    return None if ttl is None else now + microseconds(ttl)


class _State(msgspec.Struct, array_like=True):
    """What a row of `buckets` holds."""

    slots: dict[int, float]
    tat: float
    expires: float
    open: dict[str, tuple[int, float]]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_State).decode


class _StoredBucket(Bucket):
    """A bucket as a row, with its open reservations."""

    __slots__ = ("lock", "name", "open", "was_set_back")

    def __init__(self, name: bytes, period: float | None) -> None:
        super().__init__(period)
        self.name = name
        self.lock = int.from_bytes(blake2b(name, digest_size=8).digest(), signed=True)
        """The number of its advisory lock."""
        self.open: dict[str, tuple[int, float]] = {}
        self.was_set_back = False
        """Whether it must be written although nothing was taken."""

    def load(self, data: bytes | None) -> None:
        """Take what a row holds."""
        if data is not None:
            state = _decode(data)
            self.slots, self.tat, self.expires = state.slots, state.tat, state.expires
            self.open = state.open
            self._sum_up()

    def dump(self) -> bytes:
        """What a row holds."""
        return _encode(_State(self.slots, self.tat, self.expires, self.open))

    def ends(self) -> int | None:
        """When nothing of it counts any longer; None: never."""
        if self.width is None and self.slots and self.expires == inf:
            return None
        releases = (ends for ends, _ in (*self._slot_releases(), *self.leases()))
        return int(max(max(releases, default=0), self.tat))

    def bring_back(self, current: int) -> None:
        super().bring_back(current)
        self.was_set_back = True

    def hold(self, id_: str, amount: float, ends: int) -> None:
        self.open[id_] = (ends, amount)
        self._sum_up()

    def release(self, id_: str) -> bool:
        lease = self.open.pop(id_, None)
        self._sum_up()
        return lease is not None

    def extend(self, id_: str, ends: int) -> None:
        lease = self.open.get(id_)
        if lease is not None:
            self.open[id_] = (ends, lease[1])
            self._sum_up()

    def leases(self) -> Iterable[tuple[int, float]]:
        return self.open.values()

    def drop_leases(self, now: int) -> None:
        self.open = {id_: lease for id_, lease in self.open.items() if lease[0] > now}
        self._sum_up()

    def _sum_up(self) -> None:
        self.held = sum(amount for _, amount in self.open.values())
        self.first_end = min((ends for ends, _ in self.open.values()), default=inf)
