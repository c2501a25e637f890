"""The ledger of several machines, in a PostgreSQL database."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from interlingua.bulk.answers import Answer
from interlingua.bulk.ledger import sql
from interlingua.bulk.ledger.base import Groups, split_hashes
from interlingua.bulk.ledger.contract import LEASE, Entry, Totals
from interlingua.bulk.ledger.owners import machine_folder
from interlingua.spec.errors import ConfigurationError, StoreError
from interlingua.transport.per_loop import PerLoop, collect_unclosed

Result = TypeVar("Result")
SCHEMA = "interlingua_bulk"
"""The schema of the database that has the tables."""
_TIMEOUT = 10.0  # seconds, for one statement
_PATIENCE = 30.0  # seconds in which a server that was restarted comes back
_PAUSE = 0.2
_TABLES = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS answers (hash BYTEA PRIMARY KEY, state INTEGER NOT NULL,
    owner TEXT NOT NULL, attempts INTEGER NOT NULL, cost DOUBLE PRECISION NOT NULL, body BYTEA);
CREATE TABLE IF NOT EXISTS owners (id TEXT PRIMARY KEY, ends DOUBLE PRECISION NOT NULL);
CREATE TABLE IF NOT EXISTS batches (reference TEXT PRIMARY KEY, hashes BYTEA NOT NULL)
"""
_MAKING = 0x494C424C  # the advisory lock of processes that make the tables: "ILBL"
# The clock is the server's: those of machines differ.
_LIVE = """
INSERT INTO owners VALUES ($1, extract(epoch FROM clock_timestamp())::float8 + $2)
ON CONFLICT (id) DO UPDATE SET ends = excluded.ends
"""
_LOOK = "SELECT hash, state, owner, attempts, body FROM answers WHERE hash = ANY($1)"
_LOOK_AT_CLAIM = """
SELECT state, owner, attempts, body, EXISTS (
    SELECT 1 FROM owners WHERE id = owner AND ends > extract(epoch FROM clock_timestamp())::float8
) FROM answers WHERE hash = $1
"""


def _fetching(statement: str, values: object) -> Callable[[Any], Awaitable[Any]]:
    """The execution of a statement for each of several lists of values, in one transaction."""
    return lambda connection: connection.fetchmany(statement, values)


def _numbered(statement: str) -> str:
    """A statement with the placeholders of PostgreSQL: `$1` for `?1`."""
    return re.sub(r"\?(\d)", r"$\1", statement)


_CLAIM, _PUT, _RELEASE = (
    f"{_numbered(each)} RETURNING hash" for each in (sql.CLAIM, sql.PUT, sql.RELEASE)
)


def load_asyncpg() -> Any:
    """The client library; raises if it is not installed."""
    try:
        import asyncpg  # type: ignore[import-untyped]
    except ImportError as error:
        raise ConfigurationError(
            "A ledger in PostgreSQL needs the asyncpg package. "
            "Run `pip install 'interlingua[postgres]'`.",
            cause=error,
        ) from error
    return asyncpg


class PostgresLedger(sql.SqlLedger):
    """
    A ledger in the schema `interlingua_bulk` of a database, shared by the workers of any machines.

    Writes that wait at the same time share one transaction. A server with `fsync=off` may lose
    them when its machine ends, and is refused unless `volatile` says that the loss is accepted.
    """

    def __init__(self, url: str, *, lease: float = LEASE, volatile: bool = False) -> None:
        super().__init__(machine_folder(), lease)
        library = load_asyncpg()
        self._sessions: PerLoop[_Session] = PerLoop(
            lambda: _Session(library, url),
            lambda session: session.close(),
            lambda session: session.discard(),
        )
        self._volatile = volatile
        self._writes = Groups(self._write)

    async def _prepare(self) -> None:
        fsync: str = await self._run(lambda connection: connection.fetchval("SHOW fsync"))
        if fsync != "on" and not self._volatile:
            raise ConfigurationError(
                "This PostgreSQL server has `fsync=off`: it may lose the ledger when its machine "
                "ends, and all rows would be paid for again. Set `fsync=on`, or accept the loss "
                "with volatile=True."
            )

    async def _live(self) -> None:
        await self._execute(_LIVE, self._id, self._lease)

    async def _disconnect(self) -> None:
        await self._sessions.close()

    async def look(self, hashes: Sequence[bytes]) -> list[Entry | None]:
        """Return the entries of requests, in their order."""
        rows = await self._run(lambda connection: connection.fetch(_LOOK, hashes))
        found = {row[0]: sql.read_entry(row[1:]) for row in map(tuple, rows)}
        return [found.get(each) for each in hashes]

    async def claim(self, request: bytes, attempts: int) -> Entry | None:
        """Take a request for this process; else the entry that stands in its way."""
        while not await self._writes.add((_CLAIM, (request, self._id, attempts))):
            row = await self._run(lambda connection: connection.fetchrow(_LOOK_AT_CLAIM, request))
            if row is None:
                continue
            *columns, lives = row
            entry = sql.read_entry(columns)
            if entry.is_settled(attempts):
                return entry
            if entry.state == "claimed":
                if lives and not await self._is_dead(entry.owner):
                    return entry
                await self._execute(sql.TAKE_OVER, request, self._id, entry.owner)
            # Else it has changed since: nobody has it now.
        return None

    async def _is_dead(self, owner: str) -> bool:
        """Whether a process of this machine has ended; its claims end with that."""
        if self._owner is None or not self._owner.is_dead(owner):
            return False
        await self._forget(owner)
        self._owner.bury(owner)
        return True

    async def put(self, request: bytes, answer: Answer) -> None:
        """Record what became of a request; it is durable when this returns."""
        await self._writes.add((_PUT, sql.values_of(request, answer)))

    async def release(self, request: bytes) -> None:
        """End the claim of a request that was not sent."""
        await self._writes.add((_RELEASE, (request, self._id)))

    async def totals(self) -> Totals:
        """Return the sums over all entries."""
        return sql.read_totals(await self._run(lambda connection: connection.fetch(sql.TOTALS)))

    async def batches(self) -> dict[str, list[bytes]]:
        """Return the batches that were not read yet."""
        rows = await self._run(lambda connection: connection.fetch(sql.BATCHES))
        return {reference: split_hashes(joined) for reference, joined in rows}

    # Sending.

    async def _run(self, work: Callable[[Any], Awaitable[Result]]) -> Result:
        session = self._sessions.get(asyncio.get_running_loop())
        return await session.run(work)

    async def _execute(self, statement: str, *values: object) -> None:
        await self._run(lambda connection: connection.execute(_numbered(statement), *values))

    async def _write(self, writes: list[tuple[str, tuple[Any, ...]]]) -> list[bool]:
        """Whether each write has changed its entry. Those with the same statement go together."""
        by_statement: dict[str, list[tuple[Any, ...]]] = {}
        for statement, values in writes:
            by_statement.setdefault(statement, []).append(values)
        changed: set[tuple[str, bytes]] = set()
        for statement, group in by_statement.items():
            # In the order of their hashes: two processes never wait for each other's rows.
            group.sort(key=lambda values: values[0])
            rows = await self._run(_fetching(statement, group))
            changed.update((statement, row[0]) for row in rows)
        return [(statement, values[0]) in changed for statement, values in writes]


class _Session:
    """The connection of one event loop; it is opened on use, and again after a failure."""

    def __init__(self, library: Any, url: str) -> None:
        self._library = library
        self._url = url
        self._connection: Any = None
        self._lock = asyncio.Lock()  # a connection does one thing at a time
        self._was_connected = False

    async def run(self, work: Callable[[Any], Awaitable[Result]]) -> Result:
        """
        Do something with the connection; again on a new one, if that ends meanwhile.

        A server that was there once is given time to come back: what is written was paid for.
        """
        library = self._library
        deadline = time.monotonic() + _PATIENCE
        async with self._lock:
            while True:
                try:
                    if self._connection is None:
                        self._connection = await self._connect()
                    return await work(self._connection)
                except (library.PostgresError, library.InterfaceError, OSError) as error:
                    is_lost = self._connection is None or self._connection.is_closed()
                    self._drop()
                    if not (is_lost and self._was_connected) or time.monotonic() > deadline:
                        raise _store_error(error) from error
                except BaseException:  # cancelled in the middle: what it would read next is unknown
                    self._drop()
                    raise
                await asyncio.sleep(_PAUSE)

    async def _connect(self) -> Any:
        settings = {"search_path": SCHEMA, "synchronous_commit": "on"}
        try:
            connection = await self._library.connect(
                self._url, timeout=_TIMEOUT, command_timeout=_TIMEOUT, server_settings=settings
            )
        except ValueError as error:  # it may repeat the URL, which has a password
            raise ConfigurationError(
                "The URL of the ledger is not one of PostgreSQL. Write "
                "postgresql://user:password@host:5432/database.",
                setting="ledger",
            ) from error
        try:
            await _make_tables(connection)
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
                await connection.close(timeout=_TIMEOUT)
            except (self._library.PostgresError, self._library.InterfaceError, OSError):
                connection.terminate()

    def discard(self) -> None:
        """Close the connection without the event loop, which is no longer running."""
        self._connection = None
        collect_unclosed()


async def _make_tables(connection: Any) -> None:
    """Make the tables if they are not there; one process at a time."""
    if await connection.fetchval("SELECT to_regclass('batches')") is not None:
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _MAKING)
        await connection.execute(_TABLES)


def _store_error(error: Exception) -> StoreError:
    message = str(error) or type(error).__name__
    return StoreError(
        f"The ledger in PostgreSQL: {message.rstrip('.')}. Check the server, its address and the "
        "rights of its user.",
        cause=error,
    )
