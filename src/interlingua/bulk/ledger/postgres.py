"""The ledger of several machines, in a PostgreSQL database."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, TypeVar

from interlingua.bulk.answers import Answer
from interlingua.bulk.ledger import sql
from interlingua.bulk.ledger.base import Groups, split_hashes
from interlingua.bulk.ledger.contract import LEASE, Entry, Totals
from interlingua.bulk.ledger.owners import machine_folder
from interlingua.client.stores.postgres import Tables, sessions
from interlingua.spec.errors import ConfigurationError

Result = TypeVar("Result")
_TIMEOUT = 10.0  # seconds, for one statement
_TABLES = Tables(
    schema="interlingua_bulk",
    script="""
CREATE TABLE IF NOT EXISTS answers (hash BYTEA PRIMARY KEY, state INTEGER NOT NULL,
    owner TEXT NOT NULL, attempts INTEGER NOT NULL, cost DOUBLE PRECISION NOT NULL, body BYTEA);
CREATE TABLE IF NOT EXISTS owners (id TEXT PRIMARY KEY, ends DOUBLE PRECISION NOT NULL);
CREATE TABLE IF NOT EXISTS batches (reference TEXT PRIMARY KEY, hashes BYTEA NOT NULL)
""",
    last="batches",
)
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
    """A statement with the placeholders of PostgreSQL: `$1`, `$2`, … for `?`."""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", statement)


_CLAIM, _PUT, _RELEASE = (
    f"{_numbered(each)} RETURNING hash" for each in (sql.CLAIM, sql.PUT, sql.RELEASE)
)


class PostgresLedger(sql.SqlLedger):
    """
    A ledger in the schema `interlingua_bulk` of a database, shared by the workers of any machines.

    Writes that wait at the same time share one transaction. A server with `fsync=off` may lose
    them when its machine ends, and is refused unless `volatile` says that the loss is accepted.
    """

    def __init__(self, url: str, *, lease: float = LEASE, volatile: bool = False) -> None:
        super().__init__(machine_folder(), lease)
        self._sessions = sessions(url, _TABLES, _TIMEOUT)
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

    async def claim(self, requests: Sequence[bytes], attempts: int) -> list[Entry | None]:
        """Take requests for this process; else the entries that stand in their way."""
        taken = await self._write_all(_CLAIM, [(each, self._id, attempts) for each in requests])
        return [
            None if is_taken else await self._claim(request, attempts)
            for request, is_taken in zip(requests, taken, strict=True)
        ]

    async def _claim(self, request: bytes, attempts: int) -> Entry | None:
        """What stands in the way of a claim; None if nothing does any longer: it was taken."""
        while True:
            row = await self._run(lambda connection: connection.fetchrow(_LOOK_AT_CLAIM, request))
            if row is not None:
                *columns, lives = row
                entry = sql.read_entry(columns)
                if entry.is_settled(attempts):
                    return entry
                if entry.state == "claimed":
                    if lives and not await self._is_dead(entry.owner):
                        return entry
                    await self._execute(sql.TAKE_OVER, self._id, request, entry.owner)
            # Else it has changed since: nobody has it now.
            if await self._writes.add((_CLAIM, (request, self._id, attempts))):
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

    async def release(self, requests: Sequence[bytes]) -> None:
        """End the claims of requests that were not sent."""
        await self._write_all(_RELEASE, [(each, self._id) for each in requests])

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

    async def _write_all(self, statement: str, values: Sequence[tuple[Any, ...]]) -> list[bool]:
        """Whether each of these has changed its entry."""
        changed: list[bool] = await asyncio.gather(
            *(self._writes.add((statement, each)) for each in values)
        )
        return changed

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
