"""OpenAPI schemas in the form of protocol buffers, read as JSON Schema."""

from __future__ import annotations

from interlingua.prepare.schema.read import TYPES, Schema, is_deep, map_items, map_values
from interlingua.prepare.schema.rewrite import add_null
from interlingua.spec.content import UncheckedJson
from interlingua.wire.integers import read_integer

# Servers accept proto names as well as JSON names.
_NAMES = {
    "any_of": "anyOf",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "additional_properties": "additionalProperties",
    "property_ordering": "propertyOrdering",
    "defs": "$defs",
    "ref": "$ref",
}
_COUNTS = frozenset(
    {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
)
# The order of `Type` in Google's SDK, in which 0 is `TYPE_UNSPECIFIED`.
_NUMBERED = ("string", "number", "integer", "boolean", "array", "object", "null")


def from_openapi(schema: object) -> UncheckedJson:
    """
    The equivalent JSON Schema; the object itself if it is one already.

    Types in capitals or as numbers, `nullable`, `defs` and `ref`, `example`, counts written as
    text and snake-case names are rewritten; the rest is kept. Never raises.
    """
    return schema if is_deep(schema) else _Converter().convert(schema)


class _Converter:
    """Converts each schema once."""

    def __init__(self) -> None:
        self.done: dict[int, tuple[object, object]] = {}

    def convert(self, node: object) -> object:
        if not isinstance(node, dict):
            return node
        if id(node) not in self.done:
            out = {name: value for key in node for name, value in self._field(key, node[key])}
            _restore_numbers(out)
            if "nullable" in out:
                nullable = out.pop("nullable")
                out = _nullable(out) if nullable is True else out
            same = out.keys() == node.keys() and all(out[key] is node[key] for key in out)
            self.done[id(node)] = (node, node if same else out)
        return self.done[id(node)][1]

    def _field(self, key: str, value: object) -> list[tuple[str, object]]:
        name = _NAMES.get(key, key)
        match name:
            case "type":
                return _type(value)
            case "$ref" if isinstance(value, str):
                return [(name, value.replace("#/defs/", "#/$defs/", 1))]
            case "example":
                return [("examples", [value])]
            case "properties" | "$defs" if isinstance(value, dict):
                return [(name, map_values(value, lambda _, node: self.convert(node)))]
            case "anyOf" | "oneOf" | "allOf" | "prefixItems" if isinstance(value, list):
                return [(name, map_items(value, lambda _, node: self.convert(node)))]
            case "items" | "additionalProperties":
                return [(name, self.convert(value))]
            case _:
                return [(name, _count(value) if name in _COUNTS else value)]


def _type(value: object) -> list[tuple[str, object]]:
    if type(value) is int:  # some clients send enums as integers
        return [("type", _NUMBERED[value - 1] if 1 <= value <= len(_NUMBERED) else value)]
    if value == "TYPE_UNSPECIFIED":
        return []
    lower = value.lower() if isinstance(value, str) else value
    return [("type", lower if lower != value and lower in TYPES else value)]


def _count(value: object) -> object:
    # Protocol buffers write 64-bit integers as text in JSON.
    number = read_integer(value)
    return value if number is None else number


def _restore_numbers(out: Schema) -> None:
    """Enum values are text even if the type is a number: `{type: INTEGER, enum: ["1"]}`."""
    values = out.get("enum")
    if out.get("type") == "integer" and isinstance(values, list):
        numbers = [_count(value) for value in values]
        if numbers != values:
            out["enum"] = numbers


def _nullable(out: Schema) -> Schema:
    says = out.keys() & {"type", "anyOf", "$ref", "enum"}
    if not says or (says == {"type"} and out["type"] == "null"):
        return out  # it accepts null already
    return add_null(out)
