"""`oneOf`, said as `anyOf`."""

from __future__ import annotations

from typing import Any

from interlingua.prepare.schema.read import Reader, type_of, types_of
from interlingua.prepare.schema.rewrite import Draft
from interlingua.spec.content import Json
from interlingua.spec.facts import SchemaRules
from interlingua.wire.json_text import dump_text


def rewrite_unions(draft: Draft, rules: SchemaRules, reader: Reader) -> None:
    """`anyOf` for `oneOf`, which is the same where the branches exclude each other."""
    if "oneOf" not in draft.out or "oneOf" in rules.keywords:
        return
    branches = draft.out["oneOf"]
    if "anyOf" not in draft.out:
        draft.rename("oneOf", "anyOf", branches)
        draft.note("oneOf became anyOf", loses=not exclude_each_other(branches, reader))
    elif rules.strict:
        draft.refuse("oneOf beside anyOf cannot be said as one union")


def exclude_each_other(branches: list[Any], reader: Reader) -> bool:
    """Whether it can be seen that no value fits two of them: by constants, types or a property."""
    if len(branches) == 1:
        return True
    plain = [reader.plain(branch) for branch in branches]
    if _are_apart([_constants_of(node) for node in plain]):
        return True
    objects = [node for node in plain if _types_of(node) == {"object"}]
    others = [node for node in plain if _types_of(node) != {"object"}]
    if len(objects) > 1 and not _tell_objects_apart(objects, reader):
        return False
    return _are_apart([_types_of(node) for node in [*objects[:1], *others]])


def _tell_objects_apart(objects: list[dict[str, Any]], reader: Reader) -> bool:
    """Whether some property that all require has another constant in each."""
    shared = set(objects[0].get("required", ()))
    for node in objects[1:]:
        shared &= set(node.get("required", ()))
    return any(
        _are_apart(
            [_constants_of(reader.plain(node.get("properties", {}).get(name))) for node in objects]
        )
        for name in shared
    )


def _constants_of(node: Json) -> set[str] | None:
    """The plain values a schema lists, as text; None if it does not list them."""
    if not isinstance(node, dict):
        return None
    listed = node.get("enum", [node["const"]] if "const" in node else None)
    if listed is None or any(isinstance(value, (dict, list)) for value in listed):
        return None
    return {_text(value) for value in listed}


def _types_of(node: Json) -> set[str] | None:
    """The types of what a schema allows; None if it does not say."""
    if not isinstance(node, dict):
        return None
    listed = node.get("enum", [node["const"]] if "const" in node else [])
    named = types_of(node) if "type" in node else None  # properties alone say no type
    types = set(named or map(type_of, listed))
    return ({*types, "integer"} if "number" in types else types) or None


def _text(value: Json) -> str:
    # 1 and 1.0 are one value
    whole = isinstance(value, float) and value.is_integer()
    return dump_text(int(value) if whole else value)


def _are_apart(allowed: list[set[str] | None]) -> bool:
    seen: set[str] = set()
    for values in allowed:
        if values is None or not values.isdisjoint(seen):
            return False
        seen |= values
    return True
