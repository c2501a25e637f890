"""What can still be read of a damaged file of sessions."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from interlingua.spec.errors import ConfigurationError, StoreError

if TYPE_CHECKING:
    from sqlite3 import Connection

_HEADER = 100
_LAST = {
    "sessions": "SELECT max(rowid) FROM sessions",
    "records": "SELECT max(rowid) FROM records",
}
_SMALLEST_ROW = 64
"""The bytes of a row, at least: there are no more rows than the file has room for."""

Salvaged = list[tuple[str, bytes, list[bytes]]]
"""Id, header and records of sessions, as JSON texts."""


def salvage(path: str | os.PathLike[str], into: str | os.PathLike[str]) -> Salvaged:
    """
    The sessions in a copy of the file; the file is not changed.

    Of each session the records are those before the first one that is lost or is not as it was
    written. A session whose header is lost has an empty one.
    """
    if Path(into).exists():
        raise ConfigurationError(f"{into} exists already. Name a new file.")
    import sqlite3

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        rows = _copy_whole(Path(path), copy) // _SMALLEST_ROW
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            headers = dict(_headers(connection, rows))
            records = _records(connection, rows)
    names = [*headers, *(name for name in records if name not in headers)]
    return [
        (name, headers.get(name, b"{}"), list(_prefix(records.get(name, {})))) for name in names
    ]


def _copy_whole(path: Path, copy: Path) -> int:
    """Copy the file and its log, filled up with zeros to the size in its header; that size."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}.", cause=error) from error
    if len(content) < _HEADER or not content.startswith(b"SQLite format 3\x00"):
        raise StoreError(f"{path}: the beginning of the file is lost. Nothing can be recovered.")
    page_size = int.from_bytes(content[16:18], "big")
    pages = int.from_bytes(content[28:32], "big")
    size = max(len(content), pages * (65_536 if page_size == 1 else page_size))
    copy.write_bytes(content.ljust(size, b"\x00"))
    with suppress(OSError):
        shutil.copyfile(f"{path}-wal", f"{copy}-wal")
    return size


def _headers(connection: Connection, rows: int) -> Iterator[tuple[str, bytes]]:
    statement = "SELECT id, header, checksum FROM sessions WHERE rowid = ?"
    for name, header, checksum in _each(connection, "sessions", statement, rows):
        yield name, header if crc32(header) == checksum else b"{}"


def _records(connection: Connection, rows: int) -> dict[str, dict[int, bytes]]:
    found: dict[str, dict[int, bytes]] = {}
    statement = "SELECT session, position, data, checksum FROM records WHERE id = ?"
    for name, position, data, checksum in _each(connection, "records", statement, rows):
        if crc32(data) == checksum:
            found.setdefault(name, {})[position] = data
    return found


def _each(
    connection: Connection, table: str, statement: str, rows: int
) -> Iterator[tuple[Any, ...]]:
    """The rows that can be read, one by one: a damaged page hides only its own."""
    import sqlite3

    for last in ("SELECT seq FROM sqlite_sequence WHERE name = ?", _LAST[table]):
        with suppress(sqlite3.DatabaseError, TypeError):
            rows = min(rows, connection.execute(last, (table,)[: last.count("?")]).fetchone()[0])
    for number in range(1, rows + 1):
        with suppress(sqlite3.DatabaseError, TypeError, OverflowError):
            row = connection.execute(statement, (number,)).fetchone()
            if row is not None:
                yield row


def _prefix(records: dict[int, bytes]) -> Iterator[bytes]:
    position = 0
    while position in records:
        yield records[position]
        position += 1
