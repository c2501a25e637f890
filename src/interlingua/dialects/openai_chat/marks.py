"""
Marks: what `extra` remembers beside the wire's own fields.

One value may be written in several ways; a mark says which one it was, so that encoding
gives back what was decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.dialects.openai_chat.wire import NAME
from interlingua.spec.content import Extra
from interlingua.wire.options import merge
from interlingua.wire.shape import extra_of

SENT_AS = "sent_as"
"""The form, of several, in which it came."""
WITHOUT = "without"
"""Usual fields that were not there; `function.name` is one inside another."""
FIELDS = "fields"
"""The fields a thought's text came in."""
TAGS = "tags"
"""The thought came in tags: what stood before them, and whether they were closed."""
IN_PLACE = "in_place"
"""Media where OpenAI takes none, which the server took."""
POSITION = "position"
"""The `index` of a call in a whole answer; in a stream it is structure, not data."""
RECEIVED = "received"
"""The id field of a call in an answer, where it was missing and one had to be made."""
SENT = "sent"
"""The same of a request: put back when the request is encoded again."""

MARKS = frozenset((SENT_AS, WITHOUT, FIELDS, TAGS, IN_PLACE, POSITION, RECEIVED, SENT))


def keep(left: dict[str, Any]) -> Extra:
    """`extra` for what was not read; empty if there is nothing to keep."""
    return {NAME: left} if left else {}


def mark_of(holder: Any, name: str) -> Any:
    """A mark on a part, message or tool; None if it is not there."""
    return extra_of(holder, NAME).get(name)


def note_absent(left: dict[str, Any], *names: str, inside: str = "") -> list[str]:
    """Those of the names that are not in `left`, and so were never there."""
    prefix = f"{inside}." if inside else ""
    return [prefix + name for name in names if name not in left]


def complete(block: dict[str, Any], holder: Any) -> dict[str, Any]:
    """`block` with what the holder remembers of the wire; the block's own values win."""
    kept = extra_of(holder, NAME)
    if not kept:
        return block
    merged = merge({name: kept[name] for name in kept if name not in MARKS}, block)
    whole = {**{name: merged[name] for name in block}, **merged}
    return drop_absent(whole, kept)


def drop_absent(block: dict[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    """`block` without the usual fields that were not there when it came."""
    names = kept.get(WITHOUT)
    for name in names if isinstance(names, list) else ():
        outer, _, inner = str(name).partition(".")
        if not inner:
            block.pop(outer, None)
        elif isinstance(block.get(outer), dict):
            block[outer] = {key: value for key, value in block[outer].items() if key != inner}
    return block
