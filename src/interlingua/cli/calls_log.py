"""The log of calls: a SQLite file that only its owner can read."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from interlingua.cli.configuration import read_settings
from interlingua.cli.output import Output
from interlingua.runtime.files import data_folder, private_file

OFF = "INTERLINGUA_NO_LOG"
"""The variable that switches the log off."""
_TABLE = """
CREATE TABLE IF NOT EXISTS calls (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, command TEXT NOT NULL, session TEXT, model TEXT,
  system TEXT, prompt TEXT, answer TEXT, reasoning TEXT, input_tokens INTEGER,
  output_tokens INTEGER, cost REAL, seconds REAL, error TEXT)
"""
_FRAGMENTS = (
    "CREATE TABLE IF NOT EXISTS fragments (hash TEXT PRIMARY KEY, at REAL NOT NULL, content TEXT)",
    """
    CREATE TABLE IF NOT EXISTS call_fragments (call INTEGER NOT NULL, position INTEGER NOT NULL,
      hash TEXT NOT NULL, source TEXT, PRIMARY KEY (call, position))
    """,
)
"""The texts before prompts: each content is here once, whatever number of calls had it."""
_SCHEMAS = (
    "CREATE TABLE IF NOT EXISTS schemas (hash TEXT PRIMARY KEY, at REAL NOT NULL, content TEXT)",
    "CREATE TABLE IF NOT EXISTS call_schemas (call INTEGER PRIMARY KEY, hash TEXT NOT NULL)",
)
"""The schemas of answers, in the same way."""
_FIRST = (
    "Calls are kept in {path}, which only you can read: `interlingua log` shows them. "
    "--no-log or {off}=1 switches this off."
)


def log_path() -> Path:
    """Where the log is."""
    return data_folder() / "log.db"


def start_log(out: Output, *, wanted: bool) -> bool:
    """
    Whether calls are logged. At the first use a note says so, and how to switch the log off.

    A folder that cannot be written is no reason to fail: there is a warning, and no log.
    """
    if not wanted or os.environ.get(OFF) or not read_settings().log:
        return False
    path = log_path()
    try:
        is_new = not path.exists()
        private_file(path)
    except OSError as error:
        out.warn(f"calls are not logged: {path}: {error.strerror} ({OFF}=1 hides this)")
        return False
    if is_new:
        out.note(_FIRST.format(path=path, off=OFF))
    return os.access(path, os.W_OK)


def add_call(
    out: Output,
    values: Mapping[str, object],
    fragments: Sequence[tuple[str, str]] = (),
    schema: Mapping[str, Any] | None = None,
) -> None:
    """
    Keep a call, with the sources and contents of its fragments, and the schema of its answer.

    A failure is noted, because the answer is more important than the log.
    """
    row = {name: _storable(value) for name, value in {"at": time.time(), **values}.items()}
    names = ", ".join(row)
    places = ", ".join(f":{name}" for name in row)
    try:
        with _open() as database, database:
            call = database.execute(f"INSERT INTO calls ({names}) VALUES ({places})", row)  # noqa: S608
            for position, (source, text) in enumerate(fragments):
                key = _add_text(database, "fragments", row["at"], text)
                part = (call.lastrowid, position, key, _storable(source))
                database.execute("INSERT INTO call_fragments VALUES (?, ?, ?, ?)", part)
            if schema is not None:
                key = _add_text(database, "schemas", row["at"], json.dumps(schema))
                database.execute("INSERT INTO call_schemas VALUES (?, ?)", (call.lastrowid, key))
    except (sqlite3.Error, OSError) as error:
        out.note(f"The call was not logged: {error}")


def _add_text(database: sqlite3.Connection, table: str, at: object, text: str) -> str:
    """Keep a text once; returns the hash that names it."""
    content = _storable(text)
    key = hashlib.sha256(str(content).encode()).hexdigest()
    database.execute(f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?)", (key, at, content))  # noqa: S608 -- ours
    return key


def find_calls(
    where: str = "1", values: Sequence[object] = (), limit: int = -1
) -> list[dict[str, Any]]:
    """The calls that fulfil a condition, the newest first."""
    query = f"SELECT * FROM calls WHERE {where} ORDER BY id DESC LIMIT ?"  # noqa: S608 -- ours
    return read(query, (*values, limit))


def find_fragments(
    where: str = "1", values: Sequence[object] = (), limit: int = -1
) -> list[dict[str, Any]]:
    """The fragments that fulfil a condition, with their last source and the calls that had them."""
    query = (
        "SELECT hash, at, content, max(call) AS last, source, count(DISTINCT call) AS calls "  # noqa: S608 -- ours
        f"FROM fragments JOIN call_fragments USING (hash) WHERE {where} "
        "GROUP BY hash ORDER BY last DESC LIMIT ?"
    )
    return read(query, (*values, limit))


def find_schemas(where: str = "1", values: Sequence[object] = ()) -> list[dict[str, Any]]:
    """The schemas that fulfil a condition, the last used first."""
    query = (
        "SELECT hash, content, max(call) AS last, count(call) AS calls "  # noqa: S608 -- ours
        f"FROM schemas JOIN call_schemas USING (hash) WHERE {where} "
        "GROUP BY hash ORDER BY last DESC"
    )
    rows = read(query, values)
    return [{**row, "schema": json.loads(row.pop("content"))} for row in rows]


def back_up(target: Path) -> None:
    """Copy the log to a new file that only its owner can read, while others may write to it."""
    with _open() as database, closing(sqlite3.connect(private_file(target))) as copy:
        database.backup(copy)


def read(query: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
    """The rows of a query; none if there is no log yet."""
    if not log_path().exists():
        return []
    try:
        with _open() as database:
            return [dict(row) for row in database.execute(query, [*map(_storable, values)])]
    except sqlite3.DatabaseError as error:
        raise OSError(None, f"the log cannot be read: {error}", str(log_path())) from error


def _storable(value: object) -> object:
    """A value as SQLite takes it: an argument that is not UTF-8 has lone surrogates."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


@contextmanager
def _open() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(private_file(log_path()), timeout=5)) as database:
        database.row_factory = sqlite3.Row
        for table in (_TABLE, *_FRAGMENTS, *_SCHEMAS):
            database.execute(table)
        yield database
