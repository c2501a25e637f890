"""The root of a tool's schema, which every target wants to be an object in so many words."""

from __future__ import annotations

from typing import Any

from interlingua.spec.content import Json
from interlingua.wire.jsontext import dump_text
from interlingua.wire.schema.check import find_unreadable
from interlingua.wire.schema.narrow import Narrowed
from interlingua.wire.schema.read import Reader, is_deep, types_of
from interlingua.wire.schema.steps import ROOT, Draft, Log

_UNIONS = ("anyOf", "oneOf")
_INDIRECT = frozenset({"$ref", "allOf", *_UNIONS})


def object_root(schema: Json) -> Narrowed:
    """
    `schema` with a root of type object that is no reference, intersection or union.

    The arguments of a call are an object whatever the schema says, so to say so changes
    nothing. Of a union, the properties of all branches stay and the union itself becomes a
    hint, which is a loss. What is no object at all is left for the target to refuse.
    """
    if not isinstance(schema, dict) or _is_plain(schema):
        return Narrowed(schema=schema)
    if is_deep(schema) or find_unreadable(schema, ROOT):
        return Narrowed(schema=schema)
    reader = Reader(schema)
    flat = reader.flatten(schema, inline=True)
    types = () if flat is None else types_of(flat)
    if flat is None or (types and "object" not in types):
        return Narrowed(schema=schema)
    draft = Draft(flat, ROOT, Log())
    if flat is not schema:
        draft.note("allOf merged" if "allOf" in schema else "$ref written out")
    for key in _UNIONS:
        if key in flat:
            _spread(draft, key, reader)
    if draft.out.get("type") != "object":
        others = {key: value for key, value in draft.out.items() if key != "type"}
        draft.out = {"type": "object", **others}
        draft.note("it became an object")
    made = draft.finish(schema)
    return Narrowed(schema=made, changes=tuple(draft.log.changes), losses=tuple(draft.log.losses))


def _is_plain(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "object" and _INDIRECT.isdisjoint(schema)


def _spread(draft: Draft, key: str, reader: Reader) -> None:
    """Describe the properties of all branches, and require what every branch requires."""
    branches = [reader.plain(branch) for branch in draft.out[key]]
    objects = [branch for branch in branches if isinstance(branch, dict) and _is_object(branch)]
    draft.hint(key)
    out = draft.out
    if not objects or True in branches:
        return
    if out.get("additionalProperties", True) is True:
        found = _properties(objects)
        out["properties"] = {**found, **out.get("properties", {})}
        if all(branch.get("additionalProperties") is False for branch in objects):
            out["additionalProperties"] = False
    first, *others = ([*branch.get("required", ())] for branch in objects)
    needed = [name for name in first if all(name in names for names in others)]
    required = list(dict.fromkeys([*out.get("required", ()), *needed]))
    if required:
        out["required"] = required


def _is_object(branch: dict[str, Any]) -> bool:
    types = types_of(branch)
    return not types or "object" in types


def _properties(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Each name once; where branches describe it differently, any of their ways will do."""
    found: dict[str, dict[str, Any]] = {}
    for branch in objects:
        for name, node in branch.get("properties", {}).items():
            found.setdefault(name, {})[dump_text(node)] = node
    return {
        name: next(iter(ways.values())) if len(ways) == 1 else {"anyOf": list(ways.values())}
        for name, ways in found.items()
    }
