"""
The index of a job: which rows the input has, in their order, and the hash of each one's request.

It belongs to one output, and is made anew from the input at the beginning of each run; the parts
of the output that rows are in stay.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.spec.errors import ConfigurationError, StoreError

_SCRIPT = """
CREATE TABLE IF NOT EXISTS rows (number INTEGER PRIMARY KEY, key TEXT NOT NULL, hash BLOB,
    problem TEXT, part INTEGER);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value BLOB);
"""
_CHUNK = 1_000
_SHOWN = 3


class IndexedRow(NamedTuple):
    """A row of the index."""

    number: int
    key: str
    hash: bytes | None
    """None if no request can be made of the row."""
    problem: str | None
    part: int | None
    """The part of the output that has the row, if the output has parts."""


class Changes(NamedTuple):
    """What a new index has in common with the last one."""

    rows: int
    changed: int
    """Rows that were there, with another request."""
    changed_in_parts: int
    """Of these, rows that are in the output already."""
    removed_from_parts: int
    """Rows that are in the output, and not in the input any more."""


class RowIndex:
    """The index in a SQLite file. It is used by one process at a time, and in any thread."""

    def __init__(self, path: Path) -> None:
        try:
            self._connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=30
            )
            self._connection.execute("PRAGMA journal_mode=WAL").fetchall()
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(_SCRIPT)
        except sqlite3.Error as error:
            raise StoreError(f"{path}: {error}.", cause=error) from error

    def fill(self, rows: Iterable[tuple[int, str, bytes | None, str | None]]) -> Changes:
        """Replace the index; raises `ConfigurationError` if a key is there twice."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute("DROP TABLE IF EXISTS fresh")
            connection.execute(
                "CREATE TABLE fresh (number INTEGER PRIMARY KEY, key TEXT NOT NULL, hash BLOB,"
                " problem TEXT, part INTEGER)"
            )
            connection.executemany("INSERT INTO fresh VALUES (?, ?, ?, ?, NULL)", rows)
            self._check_unique()
            changes = self._take_over()
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise StoreError(f"The index of rows: {error}.", cause=error) from error
        except BaseException:
            self._roll_back()
            raise
        return changes

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _check_unique(self) -> None:
        try:
            self._connection.execute("DROP INDEX IF EXISTS fresh_key")
            self._connection.execute("CREATE UNIQUE INDEX fresh_key ON fresh (key)")
        except sqlite3.IntegrityError:
            twice = self._connection.execute(
                "SELECT key, count(*) FROM fresh GROUP BY key HAVING count(*) > 1 LIMIT ?",
                (_SHOWN,),
            ).fetchall()
            names = ", ".join(f"{key!r} ({count} times)" for key, count in twice)
            raise ConfigurationError(
                f"The ids of rows must be unique, and these are not: {names}. Use another column, "
                "or none: rows are then called by their file and line."
            ) from None

    def _take_over(self) -> Changes:
        """Compare with the last index, keep its parts, and take its place."""
        connection = self._connection
        both = "FROM fresh JOIN rows USING (key) WHERE"
        changed = f"{both} fresh.hash IS NOT rows.hash"
        count = _number(connection, "SELECT count(*) FROM fresh")
        touched = _number(connection, f"SELECT count(*) {changed}")
        written = _number(connection, f"SELECT count(*) {changed} AND rows.part IS NOT NULL")
        removed = _number(
            connection,
            "SELECT count(*) FROM rows LEFT JOIN fresh USING (key)"
            " WHERE rows.part IS NOT NULL AND fresh.key IS NULL",
        )
        if _number(connection, "SELECT EXISTS (SELECT 1 FROM rows WHERE part IS NOT NULL)"):
            connection.execute(
                "UPDATE fresh SET part = (SELECT part FROM rows WHERE rows.key = fresh.key)"
            )
        connection.execute("DROP TABLE rows")
        connection.execute("ALTER TABLE fresh RENAME TO rows")
        return Changes(count, touched, written, removed)

    def __len__(self) -> int:
        return _number(self._connection, "SELECT count(*) FROM rows")

    def chunks(self, size: int = _CHUNK) -> Iterator[list[IndexedRow]]:
        """Yield all rows in their order."""
        start = 0
        while chunk := self.slice(start, size):
            yield chunk
            start = chunk[-1].number + 1

    def slice(self, start: int, size: int) -> list[IndexedRow]:
        """Return some rows, from a number on."""
        found = self._connection.execute(
            "SELECT number, key, hash, problem, part FROM rows WHERE number >= ? ORDER BY number"
            " LIMIT ?",
            (start, size),
        )
        return [IndexedRow(*row) for row in found]

    def has_any(self, hashes: Iterable[bytes]) -> bool:
        """Whether one of these requests is that of a row."""
        self._connection.execute("CREATE TEMP TABLE IF NOT EXISTS asked (hash BLOB PRIMARY KEY)")
        self._connection.execute("DELETE FROM asked")
        pairs = [(each,) for each in hashes]
        self._connection.executemany("INSERT OR IGNORE INTO asked VALUES (?)", pairs)
        query = "SELECT EXISTS (SELECT 1 FROM rows JOIN asked USING (hash))"
        return bool(_number(self._connection, query))

    # Parts.

    def parts(self) -> list[int]:
        """Return the numbers of the parts that were begun."""
        found = self._connection.execute("SELECT DISTINCT part FROM rows WHERE part IS NOT NULL")
        return sorted(part for (part,) in found)

    def assign(self, part: int, numbers: Sequence[int]) -> None:
        """Say which rows a part has, before it is written."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            pairs = [(part, number) for number in numbers]
            self._connection.executemany("UPDATE rows SET part = ? WHERE number = ?", pairs)
            self._connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def forget(self, part: int) -> None:
        """Say that a part was never written."""
        self._connection.execute("UPDATE rows SET part = NULL WHERE part = ?", (part,))

    # Settings.

    def save(self, name: str, value: bytes) -> None:
        """Keep a value."""
        self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def load(self, name: str) -> bytes | None:
        """Return a value that was kept."""
        row = self._connection.execute(
            "SELECT value FROM settings WHERE name = ?", (name,)
        ).fetchone()
        return None if row is None else bytes(row[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _number(connection: sqlite3.Connection, query: str) -> int:
    value: Any = connection.execute(query).fetchone()[0]
    return int(value)
