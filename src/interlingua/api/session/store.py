"""
Sessions in a SQLite file.

A session is a header and a list of records, both JSON objects whose form belongs to `Session`.
Records are only appended, and removed from the end.

What survives, because every record is in two files (`copies.py`):

- The end of a process at any moment, and a power cut: every record whose `append` has returned.
- Any one of the files (`<path>`, `<path>-copy` and their logs) cut at any byte or overwritten:
  every record whose `append` has returned. The damaged file is kept under another name. A file
  that was removed is restored from its copy, and the log says so.
- Both files damaged: of each session the records before the first one that is lost in both.

New files can be read and written only by their owner.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

from msgspec.structs import replace

from interlingua.api.session.copies import SessionCopies
from interlingua.api.session.recover import recover_file
from interlingua.api.session.session_id import check_id, storable
from interlingua.api.session.tables import (
    STORE,
    header_columns,
    record_columns,
)
from interlingua.client.stores.sqlite_thread import SQLiteThread
from interlingua.spec.check import refuse
from interlingua.spec.content import Record
from interlingua.spec.errors import ConfigurationError, StoreError
from interlingua.wire.json_text import loads

if TYPE_CHECKING:
    from sqlite3 import Connection

Records: TypeAlias = list[dict[str, Any]]
_MICROSECONDS = 1_000_000
_SCHEMA = replace(STORE, copies=SessionCopies(), is_private=True)
_UNSPACED = "[\u0e00-\u0eff\u2e80-\U0003ffff]"
"""Scripts that do not separate words, so that an index of words does not help."""
_WITH_TEXT = "SELECT id FROM records WHERE text LIKE ? ESCAPE '\\'"
_INDEX_SECONDS = 0.2
"""For how long the records of a search are indexed at a time: others wait to write."""
_INDEX_PAUSE = 0.002
"""Seconds between two times, in which another process gets the lock."""
_MOST_WORDS = 100
"""More words than these are looked for as one text: SQLite limits the depth of an expression."""
_FULL_TEXT = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='records', content_rowid='id')
"""


class SessionInfo(Record, frozen=True, kw_only=True):
    """What a list of sessions shows of one."""

    session_id: str
    """The id of the session."""
    title: str | None = None
    """The title, from the header."""
    model: str | None = None
    """The model, from the header."""
    created: float = 0.0
    """Seconds since the epoch."""
    updated: float = 0.0
    """When a record was last appended, or the header set."""
    count: int = 0
    """The number of records."""


class SessionStore:
    """
    Conversations in a SQLite file: crash-safe, searchable, shared by the processes of one machine.

    Give it to `Session(store=…)`. Its methods work in any event loop, and from several at once.
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
        if not callable(clock):
            refuse("clock", "a function", clock)
        self._clock = clock

    async def create(
        self, session_id: str, header: Mapping[str, Any], records: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """
        Begin a session, with its first records, if there are any; durable when this returns.

        Raises `ConfigurationError` if the id is taken.
        """
        check_id(session_id)
        now, rows = self._now(), _rows(records)
        row = (session_id, *header_columns(header), now, now, len(rows))

        def work(connection: Connection) -> None:
            made = connection.execute(
                "INSERT INTO sessions (id, header, checksum, title, model, created, updated, count)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                row,
            )
            if not made.rowcount:
                raise ConfigurationError(
                    f"There is a session {session_id!r} in {self._thread.path}. "
                    "Load it, or choose another id."
                )
            _add_records(connection, session_id, rows, 0)

        await self._thread.write(work)

    async def append(
        self,
        session_id: str,
        records: Sequence[Mapping[str, Any]],
        *,
        header: Mapping[str, Any] | None = None,
        expected: int | None = None,
    ) -> int:
        """
        Add records to the end, all or none, durably when this returns; the new number of records.

        `header` replaces the header in the same step. `expected` is the number of records that the
        session must have before; if another process has added some, `StoreError` is raised.
        """
        check_id(session_id)
        rows = _rows(records)

        def work(connection: Connection) -> int:
            count = self._count(connection, session_id)
            if expected is not None and count != expected:
                raise StoreError(
                    f"Session {session_id!r} has {count} records and not {expected}: another "
                    "program has changed it. Load it again."
                )
            _add_records(connection, session_id, rows, count)
            self._touch(connection, session_id, count + len(rows), header)
            return count + len(rows)

        return await self._thread.write(work)

    async def truncate(self, session_id: str, count: int) -> None:
        """Remove the records from this number on."""
        check_id(session_id)
        _check_count("count", count)

        def work(connection: Connection) -> None:
            left = min(max(0, count), self._count(connection, session_id))
            _remove_records(connection, session_id, left)
            self._touch(connection, session_id, left, None)

        await self._thread.write(work)

    async def update(self, session_id: str, header: Mapping[str, Any]) -> None:
        """Replace the header."""
        check_id(session_id)

        def work(connection: Connection) -> None:
            self._touch(connection, session_id, self._count(connection, session_id), header)

        await self._thread.write(work)

    async def load(self, session_id: str) -> tuple[dict[str, Any], Records]:
        """Read the header and all records, in order."""
        check_id(session_id)

        def work(connection: Connection) -> list[tuple[bytes, int]]:
            rows = connection.execute(
                "SELECT * FROM (SELECT header, checksum FROM sessions WHERE id = ?) UNION ALL "
                "SELECT * FROM (SELECT data, checksum FROM records WHERE session = ? "
                "ORDER BY position)",
                (session_id, session_id),
            )
            return rows.fetchall()

        rows = await self._thread.read_much(work)
        if not rows:
            raise self._missing(session_id)
        header, *records = [self._read(session_id, *row) for row in rows]
        return header, records

    async def list(self, limit: int = 50, *, offset: int = 0) -> Sequence[SessionInfo]:
        """List the sessions, last changed first."""
        _check_count("limit", limit)
        _check_count("offset", offset)
        return await self._thread.read_much(
            lambda connection: _infos(connection, "", (), limit, offset)
        )

    async def search(self, text: str, limit: int = 50) -> Sequence[SessionInfo]:
        """
        Find the sessions with all of these words in a record or the title, last changed first.

        A word also finds longer words that begin with it.
        """
        if not isinstance(text, str):
            refuse("text", "a string", text)
        _check_count("limit", limit)
        text = storable(text)
        words = re.findall(r"\w+", text)
        patterns = [_like(part) for part in (words if 0 < len(words) <= _MOST_WORDS else [text])]
        titled = " AND ".join(["title LIKE ? ESCAPE '\\'"] * len(patterns))
        is_indexed = words and not re.search(_UNSPACED, text) and await self._index()
        if is_indexed:
            found = "SELECT rowid FROM words WHERE words MATCH ?"
            values = [" ".join(f'"{word}"*' for word in words)]
        else:
            values = patterns
            found = " INTERSECT ".join([_WITH_TEXT] * len(values))
        condition = (
            f"WHERE {titled} OR id IN "  # noqa: S608 -- only our own texts
            f"(SELECT session FROM records WHERE id IN ({found}))"
        )
        return await self._thread.read_much(
            lambda connection: _infos(connection, condition, (*patterns, *values), limit, 0)
        )

    async def _index(self) -> bool:
        """Index all records that are there now; whether this SQLite has an index."""
        last = await self._thread.read_much(_last_record)
        is_indexed = None
        while is_indexed is None:
            await asyncio.sleep(_INDEX_PAUSE)
            is_indexed = await self._thread.write(partial(_index_words, last))
        return is_indexed

    async def delete(self, session_id: str) -> bool:
        """Remove a session and its records; whether there was one."""
        check_id(session_id)

        def work(connection: Connection) -> bool:
            _remove_records(connection, session_id, 0)
            removed = connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
            return bool(removed.rowcount)

        return await self._thread.write(work)

    @classmethod
    async def recover(
        cls, path: str | os.PathLike[str], into: str | os.PathLike[str]
    ) -> Sequence[SessionInfo]:
        """
        Copy what can be read of a file and its second copy into a new file; the sessions in it.

        Of each session these are the records before the first that is lost. The files are not
        changed. Opening a damaged file does the same, and keeps the damaged one under a new name.
        """
        sessions = await asyncio.to_thread(recover_file, path, into)
        store = cls(into)
        try:
            return await store.list(len(sessions))
        finally:
            await store.close()

    async def close(self) -> None:
        """End the thread and close the file; the next use opens it again."""
        await self._thread.close()

    def _now(self) -> int:
        return round(self._clock() * _MICROSECONDS)

    def _count(self, connection: Connection, session_id: str) -> int:
        row: tuple[int] | None = connection.execute(
            "SELECT count FROM sessions WHERE id = ?", (session_id,)
        ).fetchone()
        if row is None:
            raise self._missing(session_id)
        return row[0]

    def _touch(
        self,
        connection: Connection,
        session_id: str,
        count: int,
        header: Mapping[str, Any] | None,
    ) -> None:
        """Note a change of a session."""
        connection.execute(
            "UPDATE sessions SET count = ?, updated = max(updated, ?) WHERE id = ?",
            (count, self._now(), session_id),
        )
        if header is not None:
            connection.execute(
                "UPDATE sessions SET header = ?, checksum = ?, title = ?, model = ? WHERE id = ?",
                (*header_columns(header), session_id),
            )

    def _missing(self, session_id: str) -> ConfigurationError:
        return ConfigurationError(
            f"There is no session {session_id!r} in {self._thread.path}. Its `list` has the ids.",
            setting="session_id",
        )

    def _read(self, session_id: str, data: bytes, checksum: int) -> dict[str, Any]:
        if crc32(data) != checksum:
            raise StoreError(
                f"{self._thread.path} is damaged: a record of session {session_id!r} is not as it "
                "was written. Nothing was changed. Restore a copy, or see SessionStore.recover."
            )
        value: dict[str, Any] = loads(data)
        return value


def _rows(records: Any) -> list[tuple[bytes, int, str]]:
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        refuse("records", "a list of dicts", records)
    return [record_columns(record) for record in records]


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(name, "an integer", value)


def _add_records(
    connection: Connection, session_id: str, rows: Sequence[tuple[bytes, int, str]], start: int
) -> None:
    """Add records from this position on, as `record_columns` makes them."""
    connection.executemany(
        "INSERT INTO records (session, position, data, checksum, text) VALUES (?, ?, ?, ?, ?)",
        [(session_id, position, *row) for position, row in enumerate(rows, start)],
    )


def _infos(
    connection: Connection, condition: str, values: tuple[str, ...], limit: int, offset: int
) -> Sequence[SessionInfo]:
    rows = connection.execute(
        "SELECT id, title, model, created, updated, count FROM sessions "  # noqa: S608 -- ours
        f"{condition} ORDER BY updated DESC, rowid DESC LIMIT ? OFFSET ?",
        (*values, limit, offset),
    )
    return [
        SessionInfo(
            session_id=session_id,
            title=title,
            model=model,
            created=created / _MICROSECONDS,
            updated=updated / _MICROSECONDS,
            count=count,
        )
        for session_id, title, model, created, updated, count in rows
    ]


# Search. Words are indexed when somebody searches, so that appending costs nothing more.


def _last_record(connection: Connection) -> int:
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM records").fetchone()
    return int(last)


def _index_words(last: int, connection: Connection) -> bool | None:
    """Index some records, up to the last; whether this SQLite can, None if there are more."""
    import sqlite3

    try:
        connection.execute(_FULL_TEXT)
    except sqlite3.OperationalError as error:
        if "no such module" in str(error):
            return False
        raise
    indexed, end = 0, time.monotonic() + _INDEX_SECONDS
    rows = connection.execute(
        "SELECT id, text FROM records WHERE id > ? AND id <= ? ORDER BY id",
        (_last_indexed(connection), last),
    )
    for indexed, text in rows:
        connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (indexed, text))
        if time.monotonic() > end:
            break
    if indexed:
        connection.execute("DELETE FROM indexed")
        connection.execute("INSERT INTO indexed VALUES (?)", (indexed,))
    return None if 0 < indexed < last else True


def _last_indexed(connection: Connection) -> int:
    row: tuple[int] | None = connection.execute("SELECT last FROM indexed").fetchone()
    return 0 if row is None else row[0]


def _remove_records(connection: Connection, session_id: str, start: int) -> None:
    import sqlite3

    place = (session_id, start)
    try:
        connection.execute(
            "INSERT INTO words (words, rowid, text) SELECT 'delete', id, text FROM records "
            "WHERE session = ? AND position >= ? AND id <= ?",
            (*place, _last_indexed(connection)),
        )
    except sqlite3.OperationalError as error:
        if "no such" not in str(error):  # table: nobody has searched; module: no full-text search
            raise
    connection.execute("DELETE FROM records WHERE session = ? AND position >= ?", place)


def _like(text: str) -> str:
    escaped = re.sub(r"([%_\\])", r"\\\1", text)
    return f"%{escaped}%"
