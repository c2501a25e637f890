"""The ledger of the processes of one machine, in a SQLite file."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from interlingua.bulk.answers import Answer
from interlingua.bulk.ledger import sql
from interlingua.bulk.ledger.base import Groups, split_hashes
from interlingua.bulk.ledger.contract import LEASE, Account, Entry, Totals
from interlingua.bulk.ledger.owners import try_lock
from interlingua.client.stores.contract import Store
from interlingua.client.stores.sqlite_thread import Schema, SQLiteThread
from interlingua.spec.errors import ConfigurationError, StoreError

if TYPE_CHECKING:
    from sqlite3 import Connection

_SCHEMA = Schema(
    name="a ledger of a bulk job",
    application_id=0x494C424C,  # "ILBL"
    version=1,
    synchronous="FULL",  # an answer that was paid for survives a power cut
    keeps_log=True,
    rescue="restore a copy; without it, all rows are paid for again",
    script="""
CREATE TABLE IF NOT EXISTS answers (hash BLOB PRIMARY KEY, state INTEGER NOT NULL,
    owner TEXT NOT NULL, attempts INTEGER NOT NULL, cost REAL NOT NULL, body BLOB);
CREATE TABLE IF NOT EXISTS owners (id TEXT PRIMARY KEY, ends REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (reference TEXT PRIMARY KEY, hashes BLOB NOT NULL) WITHOUT ROWID
""",
)
_ACCOUNT = "account"
_PAUSE = 0.01  # seconds
_FIND = "SELECT state, owner, attempts, body FROM answers WHERE hash = ?"
_MOUNTS = Path("/proc/self/mountinfo")  # of Linux; elsewhere a network folder is not known
_NETWORK = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "ceph", "lustre"),
        *("beegfs", "gpfs", "davfs", "glusterfs", "sshfs", "s3fs", "gcsfuse", "goofys", "rclone"),
        *("mount-s3", "juicefs", "blobfuse2"),
    )
)
"""Types of file systems on which SQLite cannot keep processes of two machines apart."""
_ESCAPE = re.compile(r"\\([0-7]{3})")  # of blanks in the paths of mounts
_FIND_MANY = "SELECT hash, state, owner, attempts, body FROM answers WHERE hash IN (%s)"
_TOGETHER = 500
"""How many entries one statement reads: SQLite has a limit of 999 values in old versions."""
_RESERVE = 1 << 20
"""Bytes that are kept for the answers that arrive when the disk is full."""
_MANY = 64
"""Reads of more entries than this are done in a thread."""


class SQLiteLedger(sql.SqlLedger):
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
        super().__init__(path.with_name(f"{path.name}-owners"), lease)
        self._thread = SQLiteThread(path, _SCHEMA, timeout=timeout)
        self._reserve = path.with_name(f"{path.name}-reserve")
        self._clock = clock
        self._writes = Groups(self._write)
        self._is_full = False

    async def _prepare(self) -> None:
        self._check_place()
        try:
            if not self._reserve.exists():
                self._reserve.write_bytes(bytes(_RESERVE))
        except OSError as error:
            self._reserve.unlink(missing_ok=True)
            raise StoreError(f"{self._reserve}: {error.strerror}.", cause=error) from error
        self._is_full = False

    def _check_place(self) -> None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return
        kind = network_type(self._reserve.parent.resolve(), mounts)
        if kind is not None:
            raise ConfigurationError(
                f"The ledger cannot be in {self._reserve.parent}: that is a network folder "
                f"({kind}), where SQLite may lose what was paid for. Name a ledger on a local "
                "disk, redis://… or postgresql://….",
                setting="ledger",
            )

    async def _live(self) -> None:
        await self._execute(
            "INSERT OR REPLACE INTO owners VALUES (?, ?)", self._id, self._clock() + self._lease
        )

    async def _disconnect(self) -> None:
        await self._thread.close()

    async def look(self, hashes: Sequence[bytes]) -> list[Entry | None]:
        """Return the entries of requests, in their order."""

        def work(connection: Connection) -> list[Entry | None]:
            found: dict[bytes, Entry] = {}
            for start in range(0, len(hashes), _TOGETHER):
                some = hashes[start : start + _TOGETHER]
                places = ",".join("?" * len(some))
                for request, *columns in connection.execute(_FIND_MANY % places, some):
                    found[request] = sql.read_entry(columns)
            return [found.get(each) for each in hashes]

        read = self._thread.read if len(hashes) <= _MANY else self._thread.read_much
        return await read(work)

    async def claim(self, requests: Sequence[bytes], attempts: int) -> list[Entry | None]:
        """Take requests for this process; else the entries that stand in their way."""
        if self._is_full:
            raise StoreError(f"The disk of {self._reserve.parent} is full. Make room, and go on.")
        # A claim that a power cut removes was that of a process which the power cut has ended.
        return await self._thread.write(
            lambda connection: self._claim(connection, requests, attempts), is_forced=False
        )

    def _claim(
        self, connection: Connection, requests: Sequence[bytes], attempts: int
    ) -> list[Entry | None]:
        values = [(request, self._id, attempts) for request in requests]
        if connection.executemany(sql.CLAIM, values).rowcount == len(requests):
            return [None] * len(requests)
        return [self._find_claim(connection, request) for request in requests]

    def _find_claim(self, connection: Connection, request: bytes) -> Entry | None:
        """None if a request is this owner's, or was taken from one that is gone."""
        entry = _find(connection, request)
        if entry is None or entry.state != "claimed":
            return entry
        if entry.owner == self._id:
            return None
        if self._is_held(connection, entry.owner):
            return entry
        connection.execute(sql.TAKE_OVER, (self._id, request, entry.owner))
        return None

    def _is_held(self, connection: Connection, owner: str) -> bool:
        """Whether a process that has claimed something lives."""
        if self._owner is not None and self._owner.is_dead(owner):
            connection.execute(sql.FORGET_OWNER, (owner,))
            self._owner.bury(owner)
            return False
        row = connection.execute("SELECT ends FROM owners WHERE id = ?", (owner,)).fetchone()
        return row is not None and bool(row[0] > self._clock())

    async def put(self, request: bytes, answer: Answer) -> None:
        """Record what became of a request; it is durable when this returns."""
        write = (_change, sql.PUT, sql.values_of(request, answer))
        try:
            await self._writes.add(write)
        except StoreError:
            # It was paid for: the room that was kept for this is enough for what is under way,
            # and nothing more is claimed.
            self._is_full = True
            with suppress(OSError):
                self._reserve.unlink(missing_ok=True)
            await self._writes.add(write)

    async def release(self, requests: Sequence[bytes]) -> None:
        """End the claims of requests that were not sent."""
        values = [(request, self._id) for request in requests]
        await self._writes.add((_change_many, sql.RELEASE, values))

    async def totals(self) -> Totals:
        """Return the sums over all entries."""

        def work(connection: Connection) -> Totals:
            return sql.read_totals(connection.execute(sql.TOTALS))

        return await self._thread.read_much(work)

    async def open_account(self, store: Store) -> Account:
        """
        Return the account of the processes that share this ledger now.

        Who is alone opens a new one, from what the ledger has recorded: what a dead process had
        reserved is free at once, and what was spent without a budget counts.
        """
        with FileIO(self._folder / "account", "a") as file:
            while not try_lock(file):  # noqa: ASYNC110 -- another process holds it
                await asyncio.sleep(_PAUSE)
            note = await store.get(_ACCOUNT)
            if note is not None and self._owner is not None and not self._owner.is_alone():
                return msgspec.json.decode(note, type=Account)
            account = Account(f"bulk-{uuid4().hex}", (await self.totals()).cost)
            await store.put(_ACCOUNT, msgspec.json.encode(account))
        return account

    async def batches(self) -> dict[str, list[bytes]]:
        """Return the batches that were not read yet."""

        def work(connection: Connection) -> dict[str, list[bytes]]:
            rows = connection.execute(sql.BATCHES).fetchall()
            return {reference: split_hashes(joined) for reference, joined in rows}

        return await self._thread.read_much(work)

    # Writing.

    async def _execute(self, statement: str, *values: object) -> None:
        await self._thread.write(lambda connection: _change(connection, statement, values))

    async def _write(self, writes: list[tuple[Any, ...]]) -> list[Any]:
        return await self._thread.write(
            lambda connection: [work(connection, *given) for work, *given in writes]
        )


def network_type(path: Path, mounts: str) -> str | None:
    """
    The type of the network file system that a folder is on; None if it is on none.

    `mounts` is a text in the form of `/proc/self/mountinfo`.
    """
    found, depth = None, -1
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        place = Path(_ESCAPE.sub(lambda octal: chr(int(octal[1], 8)), fields.split(" ")[4]))
        # The last one of a place is that which is seen.
        if path.is_relative_to(place) and len(place.parts) >= depth:
            found, depth = rest.split(" ")[0].removeprefix("fuse."), len(place.parts)
    return found if found in _NETWORK else None


def _find(connection: Connection, request: bytes) -> Entry | None:
    row = connection.execute(_FIND, (request,)).fetchone()
    return None if row is None else sql.read_entry(row)


def _change(connection: Connection, statement: str, values: tuple[object, ...]) -> None:
    connection.execute(statement, values)


def _change_many(
    connection: Connection, statement: str, values: Sequence[tuple[object, ...]]
) -> None:
    connection.executemany(statement, values)
