"""Collections of vectors in a SQLite file: embedded once, found by similarity."""

from __future__ import annotations

import asyncio
import heapq
import math
import os
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from interlingua.api.modalities.embeddings import dot_product, embed, embed_many
from interlingua.client.stores.sqlite_thread import Schema, SQLiteThread
from interlingua.spec.content import Record
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.modalities.embeddings import EmbedResult, Vector

if TYPE_CHECKING:
    from sqlite3 import Connection

    from interlingua.client.client import Client
    from interlingua.spec.response import Warning

_BATCH = 100
"""Entries that are embedded, and then stored in one transaction."""
_HASH_BYTES = 16
_SWAPS = sys.byteorder == "big"  # in the file the lowest byte comes first
_SCHEMA = Schema(
    name="a file of collections of vectors",
    application_id=0x494C5643,  # "ILVC"
    version=1,
    is_private=True,
    rescue="restore a copy, or remove the file and embed the texts again",
    script="""
CREATE TABLE IF NOT EXISTS collections (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL, dimensions INTEGER NOT NULL, asked INTEGER, updated REAL NOT NULL);
CREATE TABLE IF NOT EXISTS entries (collection INTEGER NOT NULL, id TEXT NOT NULL,
    hash BLOB NOT NULL, vector BLOB NOT NULL, length REAL NOT NULL, text TEXT,
    UNIQUE (collection, id))
""",
)
_COLLECTION = "SELECT id, model, dimensions, asked FROM collections WHERE name = ?"
_BEGIN = """
INSERT INTO collections (name, model, dimensions, asked, updated) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET updated = excluded.updated
"""
_PUT = """
INSERT INTO entries (collection, id, hash, vector, length, text) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (collection, id) DO UPDATE SET hash = excluded.hash, vector = excluded.vector,
    length = excluded.length, text = excluded.text
"""
_LIST = """
SELECT name, model, dimensions, updated,
    (SELECT count(*) FROM entries WHERE collection = collections.id) FROM collections ORDER BY name
"""
_ENTRIES = "SELECT id, vector, length FROM entries WHERE collection = ? AND substr(id, 1, ?) = ?"


class Entry(Record, frozen=True):
    """A text of a collection."""

    id: str
    text: str


class Match(Record, frozen=True, kw_only=True):
    """An entry that was found."""

    id: str
    score: float
    """The cosine of the angle between its vector and the query: 1 for the same direction."""
    text: str | None = None
    """Its text, if it was stored."""


class CollectionInfo(Record, frozen=True, kw_only=True):
    """What a list of collections shows of one."""

    name: str
    model: str
    dimensions: int
    entries: int
    updated: float
    """Seconds since the epoch."""


class Addition(Record, frozen=True, kw_only=True):
    """What was added to a collection."""

    embedded: int = 0
    unchanged: int = 0
    """Entries whose text is that of before; they were not embedded again."""
    input_tokens: int = 0
    cost: float | None = 0.0
    """Dollars; None: a price is unknown."""
    warnings: tuple[Warning, ...] = ()


class _Collection(NamedTuple):
    key: int
    model: str
    dimensions: int
    asked: int | None
    """The `dimensions` that the model is asked for; None: the model has its own."""


class Collections:
    """
    Collections of vectors in a SQLite file, which only its owner can read if it is new.

    A collection has the vectors of one model. Its methods work in any event loop.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        timeout: float = 30.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`timeout`: for how many seconds a write waits for other processes."""
        self._thread = SQLiteThread(path, _SCHEMA, timeout=timeout)
        self._clock = clock

    async def add(
        self,
        name: str,
        entries: Iterable[Entry],
        *,
        model: str | None = None,
        dimensions: int | None = None,
        stores_texts: bool = False,
        batch: int = _BATCH,
        client: Client | None = None,
        on_progress: Callable[[int], object] | None = None,
    ) -> Addition:
        """
        Embed entries whose text is new, and store their vectors, a batch after the other.

        An entry with the id of an older one replaces it. `model` and `dimensions` may be left out
        if there is such a collection; it remembers them, and others are refused. `on_progress` is
        called with the number of entries that are done. If a batch fails, those before it stay.
        """
        known = await self._find(name)
        model, asked = _agreed(name, known, model, dimensions)
        total, done, left = Addition(), 0, iter(entries)
        while chunk := await asyncio.to_thread(_take, left, batch):
            changed = await self._changed(
                name, model, asked, [*chunk.values()], stores_texts=stores_texts
            )
            if changed:
                texts = [entry.text for entry in changed]
                result = await embed_many(
                    model, texts, task="document", dimensions=asked, client=client
                )
                await self._put(name, model, asked, changed, result, stores_texts=stores_texts)
                total = _sum(total, result)
            done += len(chunk)
            total = replace(total, unchanged=total.unchanged + len(chunk) - len(changed))
            if on_progress is not None:
                on_progress(done)
        return total

    async def similar(
        self,
        name: str,
        query: str | Sequence[float],
        *,
        top_n: int = 10,
        prefix: str = "",
        client: Client | None = None,
    ) -> Sequence[Match]:
        """
        Find the entries that are most similar to a text or a vector, the most similar first.

        With `prefix`, only those whose ids begin with it.
        """
        known = await self._known(name)
        if isinstance(query, str):
            result = await embed(
                known.model, query, task="query", dimensions=known.asked, client=client
            )
            query = result.embedding
        return await self._nearest(name, known, query, top_n, prefix)

    async def similar_to(
        self, name: str, entry: str, *, top_n: int = 10, prefix: str = ""
    ) -> Sequence[Match]:
        """Find the entries that are most similar to the one with this id, without that one."""
        known = await self._known(name)
        find = "SELECT vector FROM entries WHERE collection = ? AND id = ?"
        row = await self._thread.read_much(
            lambda connection: connection.execute(find, (known.key, entry)).fetchone()
        )
        if row is None:
            raise ConfigurationError(
                f"The collection {name!r} has no entry {entry!r}.", setting="entry"
            )
        found = await self._nearest(name, known, _unpack(row[0]), top_n + 1, prefix)
        return [match for match in found if match.id != entry][:top_n]

    async def list(self) -> Sequence[CollectionInfo]:
        """List the collections by name."""

        def work(connection: Connection) -> Sequence[CollectionInfo]:
            names = ("name", "model", "dimensions", "updated", "entries")
            rows = connection.execute(_LIST)
            return [CollectionInfo(**dict(zip(names, row, strict=True))) for row in rows]

        return await self._thread.read_much(work)

    async def check(self, name: str) -> None:
        """Raise `ConfigurationError` if there is no such collection."""
        await self._known(name)

    async def delete(self, name: str) -> int:
        """Remove a collection; returns how many entries it had."""
        known = await self._known(name)

        def work(connection: Connection) -> int:
            removed = connection.execute("DELETE FROM entries WHERE collection = ?", (known.key,))
            connection.execute("DELETE FROM collections WHERE id = ?", (known.key,))
            return removed.rowcount

        return await self._thread.write(work)

    async def close(self) -> None:
        """End the thread and close the file; the next use opens it again."""
        await self._thread.close()

    async def _find(self, name: str) -> _Collection | None:
        return await self._thread.read_much(lambda connection: _find(connection, name))

    async def _known(self, name: str) -> _Collection:
        known = await self._find(name)
        if known is None:
            raise _unknown(name, [each.name for each in await self.list()])
        return known

    async def _changed(
        self,
        name: str,
        model: str,
        asked: int | None,
        entries: Sequence[Entry],
        *,
        stores_texts: bool,
    ) -> Sequence[Entry]:
        """The entries that have another text than before; the texts of the others are stored."""

        def work(connection: Connection) -> Sequence[Entry]:
            known = _find(connection, name)
            if known is None:
                return entries
            if (known.model, known.asked) != (model, asked):  # begun by another one meanwhile
                _agreed(name, known, model, asked)
            find = "SELECT hash FROM entries WHERE collection = ? AND id = ?"
            add = "UPDATE entries SET text = ? WHERE collection = ? AND id = ? AND text IS NULL"
            changed = []
            for entry in entries:
                row = connection.execute(find, (known.key, entry.id)).fetchone()
                if row is None or row[0] != _hash(entry.text):
                    changed.append(entry)
                elif stores_texts:
                    connection.execute(add, (entry.text, known.key, entry.id))
            return changed

        return await self._thread.write(work)

    async def _put(
        self,
        name: str,
        model: str,
        asked: int | None,
        entries: Sequence[Entry],
        result: EmbedResult,
        *,
        stores_texts: bool,
    ) -> None:
        length = len(result.embeddings[0])
        rows = [
            (entry.id, _hash(entry.text), _pack(vector), math.sqrt(dot_product(vector, vector)),
             entry.text if stores_texts else None)
            for entry, vector in zip(entries, result.embeddings, strict=True)
        ]  # fmt: skip

        def work(connection: Connection) -> None:
            connection.execute(_BEGIN, (name, model, length, asked, self._clock()))
            known = _find(connection, name)
            if known is None or known.model != model:  # another process has made it meanwhile
                raise _other_model(name, known.model if known else "", model)
            for vector in result.embeddings:
                _check_length(name, known, vector)
            connection.executemany(_PUT, [(known.key, *row) for row in rows])

        await self._thread.write(work)

    async def _nearest(
        self, name: str, known: _Collection, query: Sequence[float], top_n: int, prefix: str
    ) -> Sequence[Match]:
        _check_length(name, known, query)
        length = math.sqrt(dot_product(query, query))

        def work(connection: Connection) -> Sequence[Match]:
            rows = connection.execute(_ENTRIES, (known.key, len(prefix), prefix))
            scores = (
                (_cosine(dot_product(query, _unpack(vector)), length * size), entry)
                for entry, vector, size in rows
            )
            best = heapq.nsmallest(top_n, scores, key=lambda pair: (-pair[0], pair[1]))
            find = "SELECT text FROM entries WHERE collection = ? AND id = ?"
            return [
                Match(id=entry, score=score,
                      text=connection.execute(find, (known.key, entry)).fetchone()[0])
                for score, entry in best
            ]  # fmt: skip

        return await self._thread.read_much(work)


def _take(entries: Iterator[Entry], count: int) -> dict[str, Entry]:
    """The next entries by id; the last one with an id counts."""
    return {entry.id: entry for entry in islice(entries, count)}


def _find(connection: Connection, name: str) -> _Collection | None:
    row = connection.execute(_COLLECTION, (name,)).fetchone()
    return None if row is None else _Collection(*row)


def _agreed(
    name: str, known: _Collection | None, model: str | None, dimensions: int | None
) -> tuple[str, int | None]:
    """The model and the dimensions to ask for; raises if the collection has others."""
    if known is None:
        if model is None:
            raise ConfigurationError(
                f"There is no collection {name!r} yet; name the model of a new one.",
                setting="model",
            )
        return model, dimensions
    if model is not None and model != known.model:
        raise _other_model(name, known.model, model)
    if dimensions is not None and dimensions != known.dimensions:
        raise ConfigurationError(
            f"The collection {name!r} has vectors of {known.dimensions} numbers, not {dimensions}. "
            "Use another collection, or delete this one.",
            setting="dimensions",
        )
    return known.model, known.asked


def _other_model(name: str, known: str, model: str) -> ConfigurationError:
    return ConfigurationError(
        f"The collection {name!r} has vectors of {known}, which cannot be compared with those of "
        f"{model}. Use another collection, or delete this one.",
        setting="model",
    )


def _unknown(name: str, names: Sequence[str]) -> ConfigurationError:
    there = f"There are {', '.join(names)}." if names else "There is none yet."
    return ConfigurationError(f"There is no collection {name!r}. {there}", setting="name")


def _check_length(name: str, known: _Collection, vector: Sequence[float]) -> None:
    if len(vector) != known.dimensions:
        raise ConfigurationError(
            f"The vector has {len(vector)} numbers, and those of the collection {name!r} have "
            f"{known.dimensions}. Compare only vectors of the model {known.model}.",
            setting="query",
        )


def _sum(total: Addition, result: EmbedResult) -> Addition:
    cost = None if total.cost is None or result.cost is None else total.cost + result.cost.total
    # The task is our own wish: that a model does not know tasks is no news for the user.
    warnings = [warning for warning in result.warnings if warning.path != "task"]
    return replace(
        total,
        embedded=total.embedded + len(result.embeddings),
        input_tokens=total.input_tokens + result.usage.input_tokens,
        cost=cost,
        warnings=tuple(dict.fromkeys((*total.warnings, *warnings))),
    )


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()


def _pack(vector: Vector) -> bytes:
    numbers = array("f", vector)
    if _SWAPS:
        numbers.byteswap()
    return numbers.tobytes()


def _unpack(data: bytes) -> Vector:
    numbers = array("f", data)
    if _SWAPS:
        numbers.byteswap()
    return numbers


def _cosine(product: float, lengths: float) -> float:
    return max(-1.0, min(1.0, product / lengths)) if lengths else 0.0
