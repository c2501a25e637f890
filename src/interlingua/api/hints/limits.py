"""`msgspec.Meta` as keywords of JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlingua.spec.content import Json

_NUMBER = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
}
_KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "integer": _NUMBER,
    "number": _NUMBER,
    "string": {"pattern": "pattern", "min_length": "minLength", "max_length": "maxLength"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}


def add_limits(schema: dict[str, Json], meta: msgspec.Meta) -> None:
    """Write the limits where they apply: in a union, to the members of their type."""
    for member in schema.get("anyOf", [schema]):
        keywords = _KEYWORDS.get(member.get("type"), {})
        for name, keyword in keywords.items():
            limit = getattr(meta, name)
            if limit is not None:
                member[keyword] = limit


def notes_of(meta: msgspec.Meta) -> dict[str, Json]:
    """What it says besides."""
    notes = {"title": meta.title, "description": meta.description, "examples": meta.examples}
    said = {key: value for key, value in notes.items() if value is not None}
    return said | dict(meta.extra_json_schema or {})
