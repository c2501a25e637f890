"""Schemas that plainly need no narrowing, which are most: one quick look instead of a walk."""

from __future__ import annotations

from typing import Any

from interlingua.spec.content import Json
from interlingua.wire.schema.rules import Rules

_MOST = 1000  # schemas; a larger one, or one that shares its parts, is walked
_SCALARS = frozenset({"string", "number", "integer", "boolean"})
_HANDLED = frozenset({"type", "properties", "required", "additionalProperties", "items", "enum"})
_FREE = frozenset(
    {
        *("$schema", "title", "description", "default", "propertyOrdering"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "maxItems", "uniqueItems"),
    }
)
"""Accepted with any value, where they are accepted at all."""


def is_settled(schema: Json, rules: Rules) -> bool:
    """
    Whether it is an object of plain parts that the target takes as they are.

    True only if narrowing would change nothing; False says nothing.
    """
    known = _HANDLED | (_FREE & rules.keywords)
    pending: list[Any] = [schema]
    count = 0
    while pending:
        node = pending.pop()
        count += 1
        if count > _MOST or not isinstance(node, dict) or not known.issuperset(node):
            return False
        kind = node.get("type")
        if kind == "object":
            if not _is_settled_object(node, rules):
                return False
            pending.extend(node["properties"].values())
        elif node is schema or not _is_plain_value(node, kind):
            return False
        elif kind == "array":
            pending.append(node["items"])
    return True


def _is_settled_object(node: dict[str, Any], rules: Rules) -> bool:
    properties, required = node.get("properties"), node.get("required", [])
    if "items" in node or "enum" in node or not isinstance(properties, dict):
        return False
    if not isinstance(required, list) or not all(
        isinstance(name, str) and name in properties for name in required
    ):
        return False
    if rules.strict and node.get("additionalProperties") is not False:
        return False
    if rules.all_required:
        return "required" in node and len(required) == len(properties) == len(set(required))
    return isinstance(node.get("additionalProperties", False), bool)


def _is_plain_value(node: dict[str, Any], kind: Json) -> bool:
    if not node.keys().isdisjoint({"properties", "required", "additionalProperties"}):
        return False
    if kind == "array":
        return "items" in node and "enum" not in node
    values = node.get("enum")
    if values is not None:
        listed = isinstance(values, list) and all(isinstance(value, str) for value in values)
        return kind == "string" and listed and "items" not in node
    return isinstance(kind, str) and kind in _SCALARS and "items" not in node
