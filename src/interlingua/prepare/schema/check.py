"""Whether a value is a JSON Schema at all, as far as narrowing reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlingua.prepare.schema.read import MISSING, Reader, is_names, pointer, types_of
from interlingua.spec.content import Json

_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONES = (
    "additionalProperties",
    "additionalItems",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "not",
    "if",
    "then",
    "else",
)


def find_unreadable(schema: Json, root: str) -> str | None:
    """The first place, as `path: what`, where something is no schema; None if all is well."""
    reader = Reader(schema)
    pending: list[tuple[Any, str]] = [(schema, root)]
    seen: set[int] = set()
    leading: set[int] = set()
    while pending:
        node, path = pending.pop()
        if isinstance(node, bool) or id(node) in seen:
            continue
        if not isinstance(node, dict):
            return f"{path}: it is no schema"
        seen.add(id(node))
        wrong = next((key for key in node if not _is_shaped(key, node)), None)
        if wrong is not None:
            return f"{path}: its {wrong} cannot be read"
        pending.extend(_inner(node, path))
        if not _leads_somewhere(node, reader, leading):
            return f"{path}: its $ref leads nowhere"
        target = reader.resolve(node.get("$ref"))
        if target is not MISSING:
            pending.append((target, f"{path}.$ref"))
    return None


def _leads_somewhere(node: Json, reader: Reader, leading: set[int]) -> bool:
    """Whether a local reference is found, and is not only a way round to itself."""
    way: dict[int, Json] = {}
    while isinstance(node, dict) and isinstance(node.get("$ref"), str):
        if id(node) in way:
            return False
        if id(node) in leading:
            break
        way[id(node)] = node
        reference = node["$ref"]
        node = reader.resolve(reference)
        if node is MISSING and pointer(reference) is not None:
            return False
    leading.update(way)
    return True


def _is_shaped(key: str, node: dict[str, Any]) -> bool:
    value = node[key]
    match key:
        case "type":
            return types_of(node) is not None
        case "enum":
            return isinstance(value, list)
        case "required":
            return is_names(value)
        case "$ref":
            return isinstance(value, str)
        case _ if key in _LISTS:
            return isinstance(value, list) and bool(value)
        case _:
            return key not in _MAPS or isinstance(value, dict)


def _inner(node: dict[str, Any], path: str) -> Iterator[tuple[Any, str]]:
    for key in node.keys() & {*_MAPS, *_LISTS, *_ONES, "items"}:
        value, where = node[key], f"{path}.{key}"
        if key in _MAPS:
            yield from ((value[name], f"{where}.{name}") for name in value)
        elif isinstance(value, list):
            yield from ((item, f"{where}[{at}]") for at, item in enumerate(value))
        else:
            yield value, where
