"""
The schema of an answer, its validation, and the search for JSON in the text of a model.

The schema that is sent always has an object at its root, because most providers require it. A
list, a number or a union is wrapped as `{"value": ...}` and unwrapped in the answer.
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from types import UnionType
from typing import Any, Union, get_origin

import msgspec

from interlingua.api.tools.binding import copied
from interlingua.api.types.reading import convert, schema_of
from interlingua.api.types.schema import Validator
from interlingua.prepare.schema.narrow import narrow, remembered
from interlingua.prepare.schema.read import MAX_DEPTH, is_deep
from interlingua.prepare.schema.restore import AddedNulls
from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import ConfigurationError, DecodeError, MismatchError
from interlingua.spec.facts import SchemaRules
from interlingua.wire.json_text import loads
from interlingua.wire.lenient_json import LenientValue, decode_lenient

VALUE = "value"
"""The property that holds a wrapped value."""

_DEFINITIONS = ("$defs", "definitions")
_MAPS = (*_DEFINITIONS, "properties", "patternProperties", "dependentSchemas")
_DATA = ("const", "enum", "default", "examples")  # JSON values, where "$ref" is not a reference
_INDIRECT = frozenset(("$ref", "allOf", "anyOf", "oneOf"))

_TREE = 2  # the version of `marshal` in which every value is written where it is
_unsafe = re.compile(r"[^A-Za-z0-9_-]+").sub


class Reading(msgspec.Struct, frozen=True):
    """An answer, decoded and validated."""

    value: UncheckedJson
    """The JSON value, unwrapped and without the nulls that strict schemas add."""
    output: Any = None
    """The value as the caller's type."""
    problems: tuple[str, ...] = ()
    """Why there is no output, each as `path: message`."""
    mistakes: tuple[str, ...] = ()
    """What was not JSON in the text of the answer, which has only one reading."""


class ObjectSchema:
    """The schema of an answer, from a JSON Schema or a Python type."""

    def __init__(self, schema: Any) -> None:
        is_json_schema = isinstance(schema, Mapping)
        self._type = None if is_json_schema else schema
        self.json_schema: dict[str, UncheckedJson] = (
            dict(schema) if is_json_schema else schema_of(schema)
        )
        if is_deep(self.json_schema):
            raise ConfigurationError(f"The schema is nested deeper than {MAX_DEPTH} levels.")
        self._added_nulls = AddedNulls(self.json_schema)
        self._validator = Validator(self.json_schema)
        self.name: str = _name(self.json_schema, schema)
        self.is_wrapped: bool = not _is_object(self.json_schema)
        self._wire_schema: dict[str, UncheckedJson] = (
            _wrap(self.json_schema) if self.is_wrapped else {"type": "object", **self.json_schema}
        )
        self._lossless: dict[SchemaRules, bool] = {}
        self._wire_content: bytes | None = None
        with suppress(ValueError):  # not only JSON
            self._wire_content = marshal.dumps(self._wire_schema, _TREE)

    @property
    def wire_schema(self) -> dict[str, UncheckedJson]:
        """The schema to send; a new copy each time, because middleware and results get it."""
        content = self._wire_content
        copy: dict[str, UncheckedJson] = (
            copied(self._wire_schema) if content is None else marshal.loads(content)  # noqa: S302 -- ours
        )
        return copy

    def is_lossless(self, rules: SchemaRules) -> bool:
        """Whether a target with these rules gets the schema without a loss."""
        known = self._lossless.get(rules)
        if known is None:
            narrowed = remembered(self._wire_schema, rules, narrow)
            known = self._lossless[rules] = narrowed.strict_possible and not narrowed.losses
        return known

    def unwrap(self, value: UncheckedJson, *, has_null: bool = True) -> UncheckedJson:
        """
        The value without its wrapping, if it has any; the value may be incomplete.

        Some models forget the wrapping, so a value without it is accepted. Pass `has_null=False`
        for a value without nulls, to skip the search for nulls that strict schemas add.
        """
        if self.is_wrapped and isinstance(value, dict) and value.keys() == {VALUE}:
            value = value[VALUE]
        return self._added_nulls.drop(value) if has_null else value

    def read(self, answer: UncheckedJson) -> Reading:
        """Validate an answer and convert it to the caller's type."""
        value = self.unwrap(answer)
        problems = self._validator(value)
        if problems or self._type is None:
            return Reading(value, None if problems else value, tuple(problems))
        try:
            return Reading(value, convert(value, self._type))
        except MismatchError as error:  # a type may reject values that its schema allows
            messages = tuple(str(problem) for problem in error.problems)
            return Reading(value, None, messages or (error.message,))


_MAX_CACHED = 256
_MAX_CACHED_BYTES = 64 * 1024


def object_schema(schema: object) -> ObjectSchema:
    """
    `ObjectSchema(schema)`, cached for equal schemas and for the same type.

    Reading the type and compiling the schema take as long as half a call.
    """
    if not isinstance(schema, Mapping):
        try:
            # With the repr, because `int | str` equals `str | int`, but decodes in another order.
            return _schema_of_type(schema, repr(schema))
        except TypeError:  # not hashable
            return ObjectSchema(schema)
    try:
        content = marshal.dumps(dict(schema), 0)  # version 0 depends only on the content
    except ValueError:  # not only JSON
        return ObjectSchema(schema)
    if len(content) > _MAX_CACHED_BYTES:
        return ObjectSchema(schema)
    return _schema_of_content(content)


@lru_cache(_MAX_CACHED)
def _schema_of_type(type_: object, _: str) -> ObjectSchema:
    return ObjectSchema(type_)


@lru_cache(_MAX_CACHED)
def _schema_of_content(content: bytes) -> ObjectSchema:
    return ObjectSchema(marshal.loads(content))  # noqa: S302 -- written by object_schema()


def _name(schema: Mapping[str, UncheckedJson], type_: object) -> str:
    is_union = get_origin(type_) in (Union, UnionType)  # whose name depends on Python's version
    title = schema.get("title") or (None if is_union else getattr(type_, "__name__", None))
    return _unsafe("_", title if isinstance(title, str) else "").strip("_")[:64] or "answer"


def _is_object(schema: Mapping[str, UncheckedJson]) -> bool:
    kind = schema.get("type", "object" if "properties" in schema else None)
    return kind == "object" and _INDIRECT.isdisjoint(schema)


def _wrap(schema: dict[str, UncheckedJson]) -> dict[str, UncheckedJson]:
    moved = _move_references(schema)
    inner = {
        key: value for key, value in moved.items() if key not in (*_DEFINITIONS, "$schema", "$id")
    }
    wrapper = {
        "type": "object",
        "properties": {VALUE: inner},
        "required": [VALUE],
        "additionalProperties": False,
    }
    # Definitions stay at the root, where references point to.
    return wrapper | {key: moved[key] for key in _DEFINITIONS if key in moved}


def _move_references(node: object) -> Any:
    """Rewrite local references for a schema that moves from the root into the wrapper."""
    if isinstance(node, list):
        return [_move_references(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _move_keyword(key, value) for key, value in node.items()}


def _move_keyword(key: str, value: object) -> Any:
    if key == "$ref" and isinstance(value, str):
        is_local = value == "#" or value.startswith("#/")
        is_defined = value.startswith(tuple(f"#/{name}/" for name in _DEFINITIONS))
        return f"#/properties/{VALUE}{value[1:]}" if is_local and not is_defined else value
    if key in _MAPS and isinstance(value, dict):
        return {name: _move_references(inner) for name, inner in value.items()}
    return value if key in _DATA else _move_references(value)


# JSON in the text of a model.

_fences = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL).finditer
_find_start = re.compile(r"[{\[]").search
_find_bracket_or_quote = re.compile(r'["{}\[\]]').search
# The group is not possessive: before CPython 3.11.5 a possessive group keeps the position of its
# last failed attempt. A plain repeat stores each round, so the number of rounds is limited.
_skip_in_string = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+){0,1000}', re.DOTALL).match

_MAX_UNCLOSED = 16  # unclosed brackets that are skipped; each costs a scan of the remaining text


class _Candidate(msgspec.Struct, frozen=True):
    """A piece of text that may be the JSON value."""

    value: UncheckedJson
    length: int
    error: DecodeError | None = None
    """Set if the value is cut off, so that nothing after it can be trusted."""


def read_json(text: str, *, is_object: bool = False) -> tuple[UncheckedJson, tuple[str, ...]]:
    """
    The JSON value in a text, and the mistakes of a value that is not quite JSON.

    What `find_json` finds comes first, unless an object is wanted and it is none.
    """
    value: UncheckedJson = msgspec.UNSET
    problem: DecodeError | None = None
    try:
        value = find_json(text, is_object=is_object)
    except DecodeError as error:
        problem = error
    if problem is None and (not is_object or isinstance(value, dict)):
        return value, ()
    try:
        lenient = _find_lenient(text, is_object=is_object)
    except json.JSONDecodeError as error:
        if problem is not None:
            raise DecodeError(f"The text is not JSON: {error}.") from problem
        return value, ()
    if lenient is not None:
        return lenient.value, lenient.mistakes
    if problem is not None:
        raise problem
    return value, ()


def _find_lenient(text: str, *, is_object: bool) -> LenientValue | None:
    """
    The value of a code fence, or else the first in brackets; None if there is none.

    Raises the error of the first one that has no single reading.
    """
    first: json.JSONDecodeError | None = None
    for position, limit in (*(fence.span(1) for fence in _fences(text)), (0, len(text))):
        end: int | None = position
        while end is not None and (bracket := _find_start(text, end, limit)) is not None:
            try:
                lenient = decode_lenient(text, bracket.start())
            except json.JSONDecodeError as error:
                first = first or error
            else:
                if lenient.end <= limit and (isinstance(lenient.value, dict) or not is_object):
                    return lenient
            end = _end_of(text, bracket.start())  # if cut off, nothing inside is taken for it
    if first is not None:
        raise first
    return None


def find_json(text: str, *, is_object: bool = False) -> UncheckedJson:
    """
    The JSON value in a text: the whole text, a code fence, or a value in brackets.

    With `is_object` it is the first object, or if there is none, the longest value. Raises
    `DecodeError` if there is no value. A value that is cut off is an error, and nothing inside it
    is used. Neither is a value inside an array, or inside brackets that are not JSON: a part is
    never taken for the whole.
    """
    try:
        return loads(text)
    except DecodeError as error:
        cause = error
    best = _Candidate(msgspec.UNSET, -1)
    for candidate in (*_in_fences(text), *_in_brackets(text)):
        if candidate.error is not None and (is_object or candidate.length > best.length):
            raise candidate.error from cause
        if isinstance(candidate.value, dict) and is_object:
            return candidate.value
        if candidate.error is None and candidate.length > best.length:
            best = candidate
    if best.value is msgspec.UNSET:
        raise DecodeError("The text contains no JSON.") from cause
    return best.value


def _in_fences(text: str) -> Iterator[_Candidate]:
    """The first code fence that is JSON."""
    for fence in _fences(text):
        try:
            yield _Candidate(loads(fence[1]), len(text))  # no value outside can be longer
        except DecodeError:
            continue
        return


def _in_brackets(text: str) -> Iterator[_Candidate]:
    """The values in outermost brackets, up to one that is cut off."""
    unclosed = position = 0
    while (bracket := _find_start(text, position)) is not None:
        start = bracket.start()
        end = _end_of(text, start)
        if end is None:
            error = _error_at(text, start)
            if error is not None:
                yield _Candidate(None, len(text) - start, error)
                return
            unclosed += 1
            if unclosed > _MAX_UNCLOSED:
                return
            position = start + 1
            continue
        position = end
        with suppress(DecodeError):
            yield _Candidate(loads(text[start:end]), end - start)


def _end_of(text: str, start: int) -> int | None:
    """The position after the bracket that closes the one at `start`."""
    depth = 0
    position = start
    while (mark := _find_bracket_or_quote(text, position)) is not None:
        position = mark.end()
        if mark[0] == '"':
            position = _end_of_string(text, position)
            continue
        depth += 1 if mark[0] in "{[" else -1
        if depth == 0:
            return position
    return None


def _end_of_string(text: str, position: int) -> int:
    """The position after the closing quote of a string whose text starts at `position`."""
    while (match := _skip_in_string(text, position)) is not None:
        if match.end() == position or text.startswith('"', match.end()):
            return match.end() + 1
        position = match.end()
    return len(text)


def _error_at(text: str, start: int) -> DecodeError | None:
    """The error of an unclosed bracket; None if it is punctuation and not the start of JSON."""
    try:
        _decode(text, start)
    except RecursionError:
        return DecodeError("The JSON is nested too deeply.")
    except json.JSONDecodeError as error:
        is_cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        is_begun = bool(text[start + 1 : error.pos].strip())
        if text[start] == "{" or is_cut or is_begun:
            return DecodeError(f"The text is not JSON: {error}.")
    return None


_decode = json.JSONDecoder().raw_decode
