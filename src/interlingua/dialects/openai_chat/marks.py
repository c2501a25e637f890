"""
Marks: in which of several ways a value was written.

One value may be written in several ways. A mark, kept in `extra` beside the wire's own fields,
says which one it was, so that encoding gives back what was decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.dialects.openai_chat.facts import NAME
from interlingua.spec.content import Extra, Json
from interlingua.wire.fields import extra_of, merge

# Marks; the sign tells them from fields of the wire.
SENT_AS = "~sent_as"  # the form, of several, in which it came
WITHOUT = "~without"  # usual fields that were not there; `function.name` is one inside another
FIELDS = "~fields"  # those a thought's text came in
TAGS = "~tags"  # those around a thought: what stood before them, and whether they were closed
IN_PLACE = "~in_place"  # media where OpenAI takes none, which the server took
POSITION = "~position"  # the `index` of a call in a whole answer; in a stream that is structure
RECEIVED = "~received"  # the id field of a call in an answer, where one had to be made
SENT = "~sent"  # the same of a request: put back when the request is encoded again
_MARKS = frozenset((SENT_AS, WITHOUT, FIELDS, TAGS, IN_PLACE, POSITION, RECEIVED, SENT))
_KEYS = {mark.removeprefix("~"): mark for mark in _MARKS}


def extra_for(left: dict[str, Any], missing: list[str] | None = None, **more: Any) -> Extra:
    """What is left of an object, and more if it is not empty, as the `extra` of what it became."""
    told = {_KEYS.get(name, name): value for name, value in more.items() if value} if more else {}
    if missing:
        told[WITHOUT] = missing
    return {NAME: {**left, **told}} if left or told else {}


def mark_of(holder: Any, name: str) -> Any:
    """A mark on a part, message or tool; None if it is not there."""
    return extra_of(holder, NAME).get(name)


_ABSENT = object()


def note_absent(left: dict[str, Any], *names: str, inside: str = "") -> list[str]:
    """Those of the names that are not in `left`, and so were never there."""
    prefix = f"{inside}." if inside else ""
    return [prefix + name for name in names if name not in left]


def take_usual(left: dict[str, Any], **usual: Any) -> list[str]:
    """Take out what has its usual value; the names that were never there."""
    if not left.keys() >= usual.keys():
        missing = [name for name in usual if name not in left]
    else:
        missing = []  # as mostly
    for name, value in usual.items():
        found = left.get(name, _ABSENT)
        if found == value and type(found) is type(value):
            del left[name]
    return missing


def complete(block: dict[str, Any], holder: Any) -> dict[str, Any]:
    """`block` with what the holder remembers of the wire; the block's own values win."""
    kept = extra_of(holder, NAME)
    if not kept:
        return block
    fields = {name: kept[name] for name in kept if name not in _MARKS}
    return drop_absent({**block, **merge(fields, block)}, kept)


def drop_absent(block: dict[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    """`block` without the usual fields that were not there when it came."""
    block.pop(WITHOUT, None)
    names = kept.get(WITHOUT)
    for name in names if isinstance(names, list) else ():
        outer, _, inner = str(name).partition(".")
        if not inner:
            block.pop(outer, None)
        elif isinstance(block.get(outer), dict):
            block[outer] = {key: value for key, value in block[outer].items() if key != inner}
    return block


def given(**fields: Any) -> dict[str, Any]:
    """Those of the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def text_of(value: Any) -> str:
    """A text; anything else is none."""
    return value if isinstance(value, str) else ""


def grow(known: dict[str, Any], name: str, value: Json) -> None:
    """One more word on a field: lists grow, objects merge, else the last counts, unless null."""
    before = known.get(name)
    if isinstance(before, list) and isinstance(value, list):
        before.extend(value)
    elif isinstance(before, dict) and isinstance(value, dict):
        known[name] = merge(before, value)
        for field in ("data", "transcript") if name == "audio" else ():  # they come in fragments
            if field in before and field in value:
                known[name][field] = text_of(before[field]) + text_of(value[field])
    elif value is not None or name not in known:
        known[name] = list(value) if isinstance(value, list) else value
