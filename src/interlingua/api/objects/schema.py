"""
The schema of an object: as the caller gives it, as it is sent, and what is read by it.

What is sent always has an object at its root, as most targets want. A list, a number or a union
travels as `{"value": ...}` and is taken out again.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from interlingua.api.tools.binding import copied
from interlingua.api.tools.validator import Validator
from interlingua.api.types import convert, schema_of
from interlingua.prepare.schema.read import MAX_DEPTH, is_deep
from interlingua.prepare.schema.restore import AddedNulls
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, MismatchError

VALUE = "value"
"""The property that holds what is no object."""

_DEFINITIONS = ("$defs", "definitions")
_MAPS = (*_DEFINITIONS, "properties", "patternProperties", "dependentSchemas")
_DATA = ("const", "enum", "default", "examples")  # JSON values, in which a `$ref` is none
_INDIRECT = frozenset(("$ref", "allOf", "anyOf", "oneOf"))

_unsafe = re.compile(r"[^A-Za-z0-9_-]+").sub


class Reading(msgspec.Struct, frozen=True):
    """A JSON value read by a schema."""

    value: Json
    """Unwrapped, and without the nulls that a strict target adds."""
    output: Any = None
    """The same as a value of the caller's type."""
    problems: tuple[str, ...] = ()
    """Why there is no output, each as `path: what`."""


class ObjectSchema:
    """What an answer has to be: a JSON Schema, or a Python type."""

    def __init__(self, given: Any) -> None:
        is_schema = isinstance(given, Mapping)
        self._type = None if is_schema else given
        self.json_schema: dict[str, Json] = dict(given) if is_schema else schema_of(given)
        if is_deep(self.json_schema):
            raise ConfigurationError(f"the schema is nested deeper than {MAX_DEPTH} levels")
        self._added_nulls = AddedNulls(self.json_schema)
        self._validator = Validator(self.json_schema)
        self.name = _name(self.json_schema, given)
        self.is_wrapped = not _is_object(self.json_schema)
        self._wire_schema: dict[str, Json] = (
            _wrap(self.json_schema) if self.is_wrapped else {"type": "object", **self.json_schema}
        )

    @property
    def wire_schema(self) -> dict[str, Json]:
        """What is sent. Each time a copy, as it goes to middleware and into results."""
        copy: dict[str, Json] = copied(self._wire_schema)
        return copy

    def unwrap(self, value: Json, *, has_null: bool = True) -> Json:
        """
        What the caller asked for, of what the model said; it need not be whole.

        A model that forgot the wrapping is understood, too. A value that `has_null` says holds
        none is not searched for added ones.
        """
        if self.is_wrapped and isinstance(value, dict) and value.keys() == {VALUE}:
            value = value[VALUE]
        return self._added_nulls.drop(value) if has_null else value

    def read(self, said: Json) -> Reading:
        """The object, or what is wrong with it."""
        value = self.unwrap(said)
        problems = self._validator(value)
        if problems or self._type is None:
            return Reading(value, None if problems else value, tuple(problems))
        try:
            return Reading(value, convert(value, self._type))
        except MismatchError as error:  # a type can say more than a schema
            found = tuple(str(problem) for problem in error.problems)
            return Reading(value, None, found or (error.message,))


_MOST_REMEMBERED = 256
_LARGEST_REMEMBERED = 64 * 1024  # bytes


def object_schema(given: Any) -> ObjectSchema:
    """
    `ObjectSchema(given)`: for an equal schema or the same type, the one that was made before.

    Reading the type and compiling the schema cost as much as half a call.
    """
    if not isinstance(given, Mapping):
        try:
            # repr, as types with their members in another order are equal: `int | str`
            return _schema_of_type(given, repr(given))
        except TypeError:  # not hashable
            return ObjectSchema(given)
    try:
        content = marshal.dumps(dict(given), 0)  # this format says exactly what the schema holds
    except ValueError:  # not only JSON
        return ObjectSchema(given)
    if len(content) > _LARGEST_REMEMBERED:
        return ObjectSchema(given)
    return _schema_of_content(content)


@lru_cache(_MOST_REMEMBERED)
def _schema_of_type(given: Any, _: str) -> ObjectSchema:
    return ObjectSchema(given)


@lru_cache(_MOST_REMEMBERED)
def _schema_of_content(content: bytes) -> ObjectSchema:
    return ObjectSchema(marshal.loads(content))  # noqa: S302 -- of our own making


def _name(schema: Mapping[str, Json], given: Any) -> str:
    title = schema.get("title") or getattr(given, "__name__", None)
    return _unsafe("_", title if isinstance(title, str) else "").strip("_")[:64] or "answer"


def _is_object(schema: Mapping[str, Json]) -> bool:
    kind = schema.get("type", "object" if "properties" in schema else None)
    return kind == "object" and _INDIRECT.isdisjoint(schema)


def _wrap(schema: dict[str, Json]) -> dict[str, Json]:
    moved = _repoint(schema)
    inner = {
        key: value for key, value in moved.items() if key not in (*_DEFINITIONS, "$schema", "$id")
    }
    wrapper = {
        "type": "object",
        "properties": {VALUE: inner},
        "required": [VALUE],
        "additionalProperties": False,
    }
    # definitions stay at the root, where references look for them
    return wrapper | {key: moved[key] for key in _DEFINITIONS if key in moved}


def _repoint(node: Any) -> Any:
    """The schema with references that will find what they mean, one level deeper."""
    if isinstance(node, list):
        return [_repoint(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _repoint_keyword(key, value) for key, value in node.items()}


def _repoint_keyword(key: str, value: Any) -> Any:
    if key == "$ref" and isinstance(value, str):
        is_local = value == "#" or value.startswith("#/")
        is_defined = value.startswith(tuple(f"#/{name}/" for name in _DEFINITIONS))
        return f"#/properties/{VALUE}{value[1:]}" if is_local and not is_defined else value
    if key in _MAPS and isinstance(value, dict):
        return {name: _repoint(inner) for name, inner in value.items()}
    return value if key in _DATA else _repoint(value)
