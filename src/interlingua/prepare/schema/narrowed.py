"""
A narrowed schema, and the memory of those that were narrowed before.

A program sends the same tools with every request, and narrowing costs far more than encoding. The
key is the exact content, so a caller may change a schema between two requests, or build it anew.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from interlingua.spec.content import Json
from interlingua.spec.facts import SchemaRules

_MAX_BYTES = 8 << 20  # of one generation: 100 tools of 27 kB are 6 MB with their results
_ENTRY_BYTES = 500  # what an entry takes besides its texts
# Without back references and marks of interned strings, equal contents give equal bytes. Unlike
# JSON text, these tell a tuple from a list and NaN from null, which narrowing does, too.
_PLAIN_FORMAT = 0


class Narrowed(msgspec.Struct, frozen=True, kw_only=True):
    """A schema as one target accepts it."""

    schema: Json
    """The given object itself if nothing had to change, or if `strict_possible` is false."""
    changes: tuple[str, ...] = ()
    """Each change, as `path: what`."""
    losses: tuple[str, ...] = ()
    """Those changes by which the target accepts more than the schema does."""
    strict_possible: bool = True
    """False if the target cannot say it without changing its meaning: send it non-strict."""
    reason: str | None = None
    """
    Why it was left as it is, as `path: what`: because it cannot be strict, or because it is no
    JSON Schema (`strict_possible` is true then), which is for the target to tell the caller.
    """


class _Entry(NamedTuple):
    schema: bytes | None
    """None if the given schema was returned."""
    rest: Narrowed
    """Everything but the schema."""

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        texts = (*self.rest.changes, *self.rest.losses)
        return _ENTRY_BYTES + len(self.schema or b"") + sum(map(len, texts))


_Key = tuple[Callable[[Json, SchemaRules], Narrowed], SchemaRules, bytes]


class _Cache:
    """
    Bounded by bytes, in two generations: when the younger is full, the older is dropped.

    It needs no lock: each step is one operation on a dict, and a lost entry is only made again.
    """

    def __init__(self) -> None:
        self._younger: dict[_Key, _Entry] = {}
        self._older: dict[_Key, _Entry] = {}
        self._bytes = 0

    def get(self, key: _Key) -> _Entry | None:
        entry = self._younger.get(key)
        if entry is None:
            entry = self._older.get(key)
            if entry is not None:
                self.put(key, entry)
        return entry

    def put(self, key: _Key, entry: _Entry) -> None:
        size = len(key[-1]) + entry.size
        if size > _MAX_BYTES:
            return
        if self._bytes + size > _MAX_BYTES:
            self._older, self._younger, self._bytes = self._younger, {}, 0
        self._younger[key] = entry
        self._bytes += size


_cache = _Cache()


def remembered(
    schema: Json, rules: SchemaRules, make: Callable[[Json, SchemaRules], Narrowed]
) -> Narrowed:
    """What `make` returns; it is called only for a content that it was not called for before."""
    try:
        content = marshal.dumps(schema, _PLAIN_FORMAT)
    except ValueError:  # nested too deeply, or no plain JSON value
        return make(schema, rules)
    key = (make, rules, content)
    entry = _cache.get(key)
    if entry is None:
        made = make(schema, rules)
        _cache.put(key, _entry(schema, made))
        return made
    # Each caller has a copy of its own, so that changing it changes no later answer.
    again = schema if entry.schema is None else marshal.loads(entry.schema)  # noqa: S302 -- ours
    return replace(entry.rest, schema=again)


def _entry(given: Json, made: Narrowed) -> _Entry:
    schema = None if made.schema is given else marshal.dumps(made.schema)
    return _Entry(schema, replace(made, schema=None))
