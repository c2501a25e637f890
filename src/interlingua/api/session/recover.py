"""What can still be read of damaged files of sessions."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from interlingua.api.session.tables import COPY, STORE, copy_path, header_columns, search_text
from interlingua.client.stores.sqlite_thread import make_tables
from interlingua.spec.errors import ConfigurationError, StoreError
from interlingua.transport.downloads import as_path

if TYPE_CHECKING:
    from sqlite3 import Connection

_HEADER = 100
_APPLICATIONS = (STORE.application_id, COPY.application_id)
_SMALLEST_ROW = 64
"""Bytes. As many rows as the file has room for are looked for, if their numbers are lost."""
_MOST_ROWS = 5_000_000
"""How many are looked for at most: the last number may be damaged, too."""


class Recovered(NamedTuple):
    """A session that was recovered."""

    session_id: str
    records: int
    """The number of its records."""
    lost: int
    """How many more it had, as far as that is known."""


class _Found:
    """What several damaged files have of the same sessions."""

    def __init__(self) -> None:
        self.sessions: dict[str, tuple[Any, ...]] = {}
        self.records: dict[str, dict[int, tuple[int, bytes]]] = {}

    def add(self, connection: Connection, prefix: str, rows: int) -> None:
        """Add what can be read of one file."""
        for name, header, checksum, *rest in _each(connection, f"{prefix}sessions", rows):
            known = self.sessions.get(name)
            if _is_whole(header, checksum) and (known is None or known[-2:] < tuple(rest[-2:])):
                self.sessions[name] = (name, header, checksum, *rest)
        for number, name, position, data, checksum, *_ in _each(
            connection, f"{prefix}records", rows
        ):
            if _is_whole(data, checksum):
                places = self.records.setdefault(name, {})
                places[position] = max(places.get(position, (0, b"")), (number, data))

    def names(self) -> list[str]:
        return [*self.sessions, *(name for name in self.records if name not in self.sessions)]

    def prefix(self, name: str) -> Iterator[tuple[int, bytes]]:
        """
        The records before the first one that is lost.

        Numbers grow. A smaller one is left over from before records were removed from the end.
        """
        places, position, last = self.records.get(name, {}), 0, 0
        while position in places and places[position][0] > last:
            yield places[position]
            last = places[position][0]
            position += 1


def recover_file(path: str | os.PathLike[str], into: str | os.PathLike[str]) -> Sequence[Recovered]:
    """
    Write what can be read of a file and its copy into a new file; the sessions.

    Of each session the records are those before the first one that is lost or is not as it was
    written. A session whose header is lost has an empty one. The damaged files are not changed.
    """
    import sqlite3

    path, into = as_path(path), as_path(into)
    found = _Found()
    with tempfile.TemporaryDirectory() as folder:
        is_readable = False
        for name, prefix in ((path, ""), (copy_path(path), "copied_")):
            copy = Path(folder) / f"{prefix}copy"
            size = _copy_whole(name, copy)
            is_readable = is_readable or size is not None
            if size is not None:
                with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                    found.add(connection, prefix, size // _SMALLEST_ROW)
    if not is_readable:
        raise StoreError(f"{path}: the beginning of the file is lost. Nothing can be recovered.")
    try:
        into.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        raise ConfigurationError(f"{into} exists already. Name a new file.") from None
    except OSError as error:
        raise ConfigurationError(f"Cannot write {into}: {error.strerror}.") from error
    with closing(sqlite3.connect(into, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        make_tables(connection, STORE)
        recovered = [_write(connection, found, name) for name in found.names()]
        connection.execute("COMMIT")
    return recovered


def _write(connection: Connection, found: _Found, name: str) -> Recovered:
    records = [*found.prefix(name)]
    session = found.sessions.get(name, (name, *header_columns({}), 0, 0, 0))
    connection.execute(
        "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*session[:-1], len(records))
    )
    connection.executemany(
        "INSERT INTO records (session, position, data, checksum, text) VALUES (?, ?, ?, ?, ?)",
        (
            (name, position, data, crc32(data), search_text(data))
            for position, (_, data) in enumerate(records)
        ),
    )
    most = max(session[-1], len(found.records.get(name, {})))
    return Recovered(name, len(records), most - len(records))


def _is_whole(data: Any, checksum: Any) -> bool:
    return isinstance(data, bytes) and crc32(data) == checksum


def _copy_whole(path: Path, copy: Path) -> int | None:
    """Copy a file and its log, filled up with zeros to the size in its header; that size."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}.", cause=error) from error
    if not _is_ours(content):
        return None
    page_size = int.from_bytes(content[16:18], "big")
    pages = int.from_bytes(content[28:32], "big")
    size = max(len(content), pages * (65_536 if page_size == 1 else page_size))
    copy.write_bytes(content.ljust(size, b"\x00"))
    with suppress(OSError):
        shutil.copyfile(f"{path}-wal", f"{copy}-wal")
    return size


def is_store(path: Path) -> bool:
    """Whether the beginning of a file says that it is a store of sessions, or a copy of one."""
    try:
        with path.open("rb") as file:
            return _is_ours(file.read(_HEADER))
    except OSError:
        return False


def _is_ours(content: bytes) -> bool:
    is_whole = len(content) >= _HEADER and content.startswith(b"SQLite format 3\x00")
    return is_whole and int.from_bytes(content[68:72], "big") in _APPLICATIONS


def _each(connection: Connection, table: str, rows: int) -> Iterator[tuple[Any, ...]]:
    """
    The rows that can be read, some of them twice.

    From both ends up to the first damaged page, and then one by one: it hides only its own rows.
    """
    import sqlite3

    for order in ("ASC", "DESC"):
        with suppress(sqlite3.DatabaseError):
            yield from connection.execute(
                f"SELECT * FROM {table} ORDER BY rowid {order}"  # noqa: S608 -- our names
            )
    with suppress(sqlite3.DatabaseError, TypeError):
        sequence = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        (last,) = connection.execute(sequence, (table,)).fetchone()
        rows = max(rows, min(last, _MOST_ROWS))
    for number in range(1, rows + 1):
        with suppress(sqlite3.DatabaseError, TypeError, OverflowError):
            row = connection.execute(
                f"SELECT * FROM {table} WHERE rowid = ?",  # noqa: S608
                (number,),
            ).fetchone()
            if row is not None:
                yield row
