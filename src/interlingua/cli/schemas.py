"""What `--schema` takes: JSON Schema as text or in a file, or the short form `name, age int`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from interlingua.cli.output import read_text

_TYPES = {
    "str": "string",
    "string": "string",
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
}
_FIELD = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\s+(?P<type>\w+))?\s*(?::\s*(?P<about>.*))?")


def read_schema(value: str) -> dict[str, Any]:
    """The JSON Schema that the value of `--schema` means."""
    text = value.strip()
    if text.startswith("{"):
        return _parse(text, "--schema")
    if text.endswith(".json") or "/" in text:
        return _parse(read_text(Path(text), "--schema"), text)
    return short_schema(text)


def short_schema(text: str) -> dict[str, Any]:
    """
    An object with these fields, separated by commas or line ends.

        short_schema("name, age int, bio: one sentence")
    """
    fields = [field.strip() for field in re.split(r"\n" if "\n" in text else ",", text)]
    properties: dict[str, Any] = {}
    for field in filter(None, fields):
        match = _FIELD.fullmatch(field)
        kind = _TYPES.get(match["type"] or "str") if match is not None else None
        if match is None or kind is None:
            raise click.BadParameter(
                f"{field!r} is not a field; write `name`, `age int` or `bio: what it is`, with the "
                "types str, int, float or bool",
                param_hint="--schema",
            )
        about = {"description": match["about"].strip()} if match["about"] else {}
        properties[match["name"]] = {"type": kind, **about}
    if not properties:
        raise click.BadParameter("it names no field", param_hint="--schema")
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def several(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema for a list of such objects, in the field `items`: providers want an object."""
    return {
        "type": "object",
        "properties": {"items": {"type": "array", "items": schema}},
        "required": ["items"],
        "additionalProperties": False,
    }


def _parse(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{place} is not JSON: {error}", param_hint="--schema") from None
    if not isinstance(value, dict):
        raise click.BadParameter(f"{place} is not a JSON object", param_hint="--schema")
    return value
