"""The tables of a store of sessions and of its second copy, and what is in their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from interlingua.api.session.session_id import storable
from interlingua.client.stores.sqlite_thread import Schema
from interlingua.spec.check import refuse
from interlingua.wire.json_text import dumps, loads

_SEARCHED = ("text", "content", "title", "arguments", "raw_arguments")
"""The fields of a record whose texts are searched."""
_SEARCHED_CHARACTERS = 100_000
"""How much text of a record is searched."""
_SESSION = """(id TEXT PRIMARY KEY, header BLOB NOT NULL,
    checksum INTEGER NOT NULL, title TEXT, model TEXT, created INTEGER NOT NULL,
    updated INTEGER NOT NULL, count INTEGER NOT NULL)"""
_STATE = "(store TEXT NOT NULL, number INTEGER NOT NULL)"

SESSION_COLUMNS = "id, header, checksum, title, model, created, updated, count"
RECORD_COLUMNS = "id, session, position, data, checksum"
"""Those that the copy has, too."""
STORE = Schema(
    name="a store of sessions",
    rescue="restore a copy, or copy what can be read with SessionStore.recover",
    application_id=0x494C5345,  # "ILSE"
    version=2,
    synchronous="FULL",
    script=f"""
CREATE TABLE IF NOT EXISTS sessions {_SESSION};
CREATE INDEX IF NOT EXISTS sessions_updated ON sessions (updated);
CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL,
    position INTEGER NOT NULL, data BLOB NOT NULL, checksum INTEGER NOT NULL, text TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS records_place ON records (session, position);
CREATE TABLE IF NOT EXISTS indexed (last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS state {_STATE}
""",
)
COPY = Schema(
    name="a copy of a store of sessions",
    application_id=0x494C5343,  # "ILSC"
    version=1,
    script=f"""
CREATE TABLE IF NOT EXISTS copy.copied_sessions {_SESSION};
CREATE TABLE IF NOT EXISTS copy.copied_records (id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL, position INTEGER NOT NULL, data BLOB NOT NULL,
    checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS copy.copied_state {_STATE}
""",
)


def header_columns(header: Mapping[str, Any]) -> tuple[bytes, int, str | None, str | None]:
    """The columns `header`, `checksum`, `title` and `model`."""
    data = _dump("header", header)
    title, model = (
        storable(value) if isinstance(value := header.get(name), str) else None
        for name in ("title", "model")
    )
    return data, crc32(data), title, model


def record_columns(record: Mapping[str, Any]) -> tuple[bytes, int, str]:
    """The columns `data`, `checksum` and `text`."""
    data = _dump("record", record)
    return data, crc32(data), _search_text(record)


def _dump(name: str, value: Any) -> bytes:
    if not isinstance(value, Mapping):
        refuse(name, "a dict", value)
    return dumps(dict(value))


def search_text(data: bytes) -> str:
    """The column `text`, from the column `data`."""
    try:
        return _search_text(loads(data))
    except ValueError:  # `load` reports that it is damaged
        return ""


def _search_text(record: Any) -> str:
    return storable(" ".join(_texts(record, searched=False))[:_SEARCHED_CHARACTERS])


def copy_path(path: Path) -> Path:
    """The path of the second copy of a store."""
    return Path(f"{path}-copy")


def _texts(value: Any, *, searched: bool) -> Iterator[str]:
    """The texts in a record that a person would search for."""
    if isinstance(value, Mapping):
        for name, field in value.items():
            yield from _texts(field, searched=searched or name in _SEARCHED)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, searched=searched)
    elif searched and isinstance(value, str):
        yield value
