"""
The second copy of a store of sessions, so that damage to one file loses nothing.

`<path>-copy` is a SQLite file with the same sessions and records. A write changes both: triggers of
the connection repeat in the copy what is done in the file. A number that grows with each write
tells which of them is ahead, if a process ended between the two or the log of one was cut; when
the store is opened, the other gets what it lacks.

A damaged file is kept as `<path>.damaged-1`, or the next free number, and replaced.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, TypeAlias

from interlingua.api.session.recover import Recovered, is_store, recover_file
from interlingua.api.session.tables import (
    COPY,
    RECORD_COLUMNS,
    SESSION_COLUMNS,
    STORE,
    copy_path,
    search_text,
)
from interlingua.client.stores.sqlite_thread import (
    Schema,
    check_file,
    is_damage,
    locked,
    make_private,
    make_tables,
)
from interlingua.runtime.log import logger
from interlingua.transport.downloads import copy_mode

if TYPE_CHECKING:
    from sqlite3 import Connection

_State: TypeAlias = tuple[str, int]
"""The id of the store, and the number of its writes."""
_WAITING = 600.0
"""For how many seconds a process waits while another one repairs the files."""
_TRIGGERS = {
    "INSERT ON main.records": (
        "INSERT INTO copied_records VALUES "
        "(new.id, new.session, new.position, new.data, new.checksum)"
    ),
    "DELETE ON main.records": "DELETE FROM copied_records WHERE id = old.id",
    "INSERT ON main.sessions": (
        "INSERT INTO copied_sessions SELECT * FROM sessions WHERE id = new.id"
    ),
    "UPDATE ON main.sessions": (
        "UPDATE copied_sessions SET header = new.header, checksum = new.checksum, title = "
        "new.title, model = new.model, updated = new.updated, count = new.count WHERE id = new.id"
    ),
    "DELETE ON main.sessions": "DELETE FROM copied_sessions WHERE id = old.id",
}
_COUNT = "UPDATE state SET number = number + 1; UPDATE copied_state SET number = number + 1;"
"""Done with every change of a session, because each write has one."""


class SessionCopies:
    """Keeps the second copy of each store of sessions."""

    def path(self, path: Path) -> Path:
        """The path of the second copy."""
        return copy_path(path)

    def check(self, path: Path, timeout: float) -> None:
        """Raise `sqlite3.DatabaseError` if the copy is damaged or is that of another store."""
        import sqlite3

        check_file(self.path(path), COPY, timeout)
        # In this order: a process that makes a new store makes the file before the copy.
        if self.path(path).exists() and not path.exists():
            raise sqlite3.DatabaseError("the file is missing, but its copy is there")

    def attach(self, connection: Connection, path: Path) -> None:
        """Open the copy. It needs no sync of its own: that of the file is enough."""
        make_private(self.path(path), like=path)
        connection.execute("ATTACH ? AS copy", (os.fspath(self.path(path)),))
        connection.execute("PRAGMA copy.journal_mode=WAL").fetchall()
        connection.execute("PRAGMA copy.synchronous=NORMAL")

    def begin(self, connection: Connection) -> None:
        """Bring the one that is behind up to date, and make the triggers."""
        import sqlite3

        make_tables(connection, COPY, "copy")
        ours = _read_state(connection, "state")
        theirs = _read_state(connection, "copied_state")
        if ours is not None and theirs is not None and ours[0] != theirs[0]:
            raise sqlite3.DatabaseError("the copy is that of another store")
        if theirs is not None and (ours is None or ours[1] < theirs[1]):
            connection.create_function("search_text", 1, search_text, deterministic=True)
            _fill(connection, "records", "copied_records", f"{RECORD_COLUMNS}, search_text(data)")
            _fill(connection, "sessions", "copied_sessions", SESSION_COLUMNS)
            connection.execute("DROP TABLE IF EXISTS words")  # the next search indexes them again
            connection.execute("DELETE FROM indexed")
            _write_state(connection, "state", theirs)
        elif ours is None or theirs is None or ours[1] > theirs[1]:
            ours = ours or (token_hex(8), 0)
            _fill(connection, "copied_records", "records", RECORD_COLUMNS)
            _fill(connection, "copied_sessions", "sessions", SESSION_COLUMNS)
            _write_state(connection, "state", ours)
            _write_state(connection, "copied_state", ours)
        for number, (event, change) in enumerate(_TRIGGERS.items()):
            count = _COUNT if "sessions" in event else ""
            connection.execute(
                f"CREATE TEMP TRIGGER copy_{number} AFTER {event} BEGIN {change}; {count} END"
            )

    def repair(self, path: Path, error: Exception) -> None:
        """Keep what is damaged under another name, and restore it; one process at a time."""
        copy = self.path(path)
        if not copy.exists() and not path.exists():
            return  # another process has just set the copy aside: a new store begins
        if not is_store(path) and not is_store(copy):
            raise error
        lock = Path(f"{path}-lock")
        make_private(lock, like=path)
        with locked(lock, _WAITING):
            self._repair(path, error)

    def _repair(self, path: Path, error: Exception) -> None:
        copy = self.path(path)
        is_copy_damaged = _is_damaged(copy, COPY)
        if not is_copy_damaged and not path.exists() and _find_state(copy, "copied_state"):
            _restore_missing(path, copy)
            return
        if not _is_damaged(path, STORE):  # perhaps another process has just repaired it
            if is_copy_damaged or not _belong_together(path, copy):
                _replace_copy(copy, error)
            return
        restored = Path(f"{path}-new")
        restored.unlink(missing_ok=True)
        if not is_copy_damaged and _find_state(copy, "copied_state") is not None:
            make_private(restored, like=path)  # an empty file gets what is in the copy
            result = f"What it had was restored from {copy}"
        else:
            result = _describe(recover_file(path, restored))
            copy_mode(path, restored)
            if copy.exists():
                _set_aside(copy)
        aside = _set_aside(path, restored)
        logger.warning("%s: %s. %s. The damaged file is kept as %s.", path, error, result, aside)


def _read_state(connection: Connection, table: str) -> _State | None:
    state: _State | None = connection.execute(
        f"SELECT store, number FROM {table}"  # noqa: S608 -- one of our names, here and below
    ).fetchone()
    return state


def _write_state(connection: Connection, table: str, state: _State) -> None:
    connection.execute(f"DELETE FROM {table}")  # noqa: S608
    connection.execute(f"INSERT INTO {table} VALUES (?, ?)", state)  # noqa: S608


def _fill(connection: Connection, table: str, source: str, columns: str) -> None:
    """Make a table equal to its twin. Rows of `records` never change, those of sessions do."""
    is_fixed = "records" in table
    other = f"WHERE id NOT IN (SELECT id FROM {source})" if is_fixed else ""  # noqa: S608
    new = f"WHERE id NOT IN (SELECT id FROM {table})" if is_fixed else ""  # noqa: S608
    connection.execute(f"DELETE FROM {table} {other}")  # noqa: S608
    connection.execute(f"INSERT OR IGNORE INTO {table} SELECT {columns} FROM {source} {new}")  # noqa: S608


# Repair.


def _is_damaged(path: Path, schema: Schema) -> bool:
    """Whether a file exists that cannot be read as a whole."""
    try:
        check_file(path, schema, _WAITING, whole=True)
    except Exception as error:
        if is_damage(error):
            return True
        raise
    return False


def _describe(recovered: Sequence[Recovered]) -> str:
    """What is left of a store, and what is lost."""
    cut = [f"{each.session_id!r} ({each.lost})" for each in recovered if each.lost]
    lost = f"these lost records: {', '.join(cut[:20])}" if cut else "none is known to lack records"
    return (
        f"It has no copy that can be read. {len(recovered)} sessions with "
        f"{sum(each.records for each in recovered)} records were restored; {lost}"
    )


def _replace_copy(copy: Path, error: Exception) -> None:
    """Keep a copy under another name, unless another process has just done that."""
    if copy.exists():
        aside = _set_aside(copy)
        logger.warning("%s: %s. It is kept as %s; a new one is made.", copy, error, aside)


def _belong_together(path: Path, copy: Path) -> bool:
    """Whether the copy, if there is one, is that of the file, and not of another store."""
    if not copy.exists():
        return True
    if not path.exists():  # asked after the copy, which another process would make after the file
        return False
    ours, theirs = _find_state(path, "state"), _find_state(copy, "copied_state")
    return ours is None or theirs is None or ours[0] == theirs[0]


def _find_state(path: Path, table: str) -> _State | None:
    """The state in a file that is not damaged; None if it has none, or is not there."""
    import sqlite3

    if not path.exists():
        return None
    with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.OperationalError):
        return _read_state(connection, table)
    return None


def _restore_missing(path: Path, copy: Path) -> None:
    """Make the file, empty: opening it fills it with what is in the copy."""
    log = Path(f"{path}-wal")
    if log.exists():  # SQLite would apply it to the new file
        _copy_file(log, Path(f"{_free_name(path)}-wal"))
    for name in (log, Path(f"{path}-shm")):
        name.unlink(missing_ok=True)
    make_private(path, like=copy)
    logger.warning("%s was missing. What it had was restored from %s.", path, copy)


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := Path(f"{path}.damaged-{number}")).exists():
        number += 1
    return aside


def _set_aside(path: Path, successor: Path | None = None) -> Path:
    """Keep a file and its log under another name; put another file in its place."""
    aside = _free_name(path)
    log = Path(f"{path}-wal")
    _copy_file(path, aside)
    with suppress(FileNotFoundError):  # the last process that closes the file removes its log
        _copy_file(log, Path(f"{aside}-wal"))
    _sync(aside)
    for name in (log, Path(f"{path}-shm")):  # before the successor: SQLite would apply the log
        name.unlink(missing_ok=True)
    if successor is None:
        path.unlink()
    else:
        successor.replace(path)
    return aside


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file with its permissions, which hold from the first byte on."""
    with source.open("rb") as content:  # before the target is made: the source may be missing
        make_private(target, like=source)
        with target.open("wb") as file:
            shutil.copyfileobj(content, file)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
