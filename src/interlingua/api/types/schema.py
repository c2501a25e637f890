"""JSON Schema: the problems of a value, the validator, and the parts of a schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, NoReturn, TypeAlias

import msgspec

from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import ConfigurationError, MismatchError, Problem
from interlingua.wire.json_text import dump_text

Path: TypeAlias = "tuple[Path, str | int] | None"
"""
The path to a value as nested pairs, innermost step last; None is the root.

Extending it costs nothing; it is formatted only when a problem is reported.
"""

UnionResults: TypeAlias = dict[tuple[int, int], tuple[Any, list[Problem]]]
"""Results by the ids of union and value, so that no union decodes the same value twice."""

_MAX_LISTED = 10
_MAX_QUOTED = 40
_KINDS: Mapping[type, str] = {
    NoneType: "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "an array",
    tuple: "an array",
    dict: "an object",
}


class Findings:
    """Collects the problems of one conversion."""

    def __init__(self, union_results: UnionResults | None = None) -> None:
        self.problems: list[Problem] = []
        self.union_results: UnionResults = {} if union_results is None else union_results

    def add(self, path: Path, message: str, *, is_right_type: bool = False) -> None:
        """Record a problem."""
        self.problems.append(Problem(format_path(path_steps(path)), message, is_right_type))

    def reject(self, path: Path, expected: str, value: object) -> None:
        """Record that a value has the wrong type."""
        self.add(path, f"expected {expected}, got {describe(value)}")

    def raise_if_any(self) -> None:
        """Raise a `MismatchError` that lists the problems, if there are any."""
        if self.problems:
            problems = tuple(self.problems)
            raise MismatchError(list_problems(problems), problems=problems, path=problems[0].path)


def list_problems(problems: Sequence[Problem | str]) -> str:
    """The first problems on one line, and the number of the others."""
    more = len(problems) - _MAX_LISTED
    listed = "; ".join(str(problem) for problem in problems[:_MAX_LISTED])
    return f"{listed}; and {more} more" if more > 0 else listed


def path_steps(path: Path) -> list[str | int]:
    """The steps of a path, from the root."""
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return steps[::-1]


def format_path(steps: Iterable[str | int]) -> str:
    """A path such as `people[2].name`; the root is empty."""
    formatted = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return "".join(formatted).removeprefix(".")


def describe(value: object) -> str:
    """The JSON type of a value, or the beginning of a string, for error messages."""
    if isinstance(value, str):
        return repr(value if len(value) <= _MAX_QUOTED else f"{value[:_MAX_QUOTED]}…")
    return _KINDS.get(type(value), type(value).__name__)


# Validation.

_MAX_MESSAGE = 300
_UNIONS = ("anyOf", "oneOf")


class Validator:
    """A compiled schema. It never fetches a remote schema: an external `$ref` is an error."""

    def __init__(self, schema: UncheckedJson) -> None:
        import jsonschema_rs

        try:
            self._validator: Any = jsonschema_rs.validator_for(schema, retriever=_reject_reference)
        except ValueError as error:  # an invalid schema, or a value that is not JSON
            reason = getattr(error, "message", None) or str(error)
            raise ConfigurationError(f"The JSON Schema is invalid: {reason}") from error

    def __call__(self, value: UncheckedJson) -> list[str]:
        """The problems of the value, each as `path: message`; empty if it is valid."""
        try:
            errors = self._validator.iter_errors(value)
            return [_line(format_path(path), message) for path, message in _explain(errors)]
        except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot encode
            return self(replace_surrogates(value))
        except ValueError as error:
            return [f"the value cannot be validated: {error}"]


def _explain(errors: Iterable[Any]) -> Iterator[tuple[list[str | int], str]]:
    """Path and message of each error; for a union, the errors of the closest member."""
    for error in errors:
        members = error.kind.context if error.kind.name in _UNIONS else []
        # A member without errors means that a `oneOf` has more than one match.
        if not members or not all(members):
            yield error.instance_path, error.message
        else:
            yield from _explain_union(error, members)


def _explain_union(union: Any, members: list[list[Any]]) -> Iterator[tuple[list[str | int], str]]:
    """The types or the tags that the value should have, or the errors of the closest member."""
    type_errors = [[e for e in member if _is_type_error(union, e)] for member in members]
    tag_errors = [[e for e in member if _expected_tag(union, e)] for member in members]
    tagged = [errors[0] for errors in tag_errors if errors]
    untagged = [e for i, member in enumerate(members) if not tag_errors[i] for e in member]
    if all(type_errors):
        types = dict.fromkeys(name for errors in type_errors for name in errors[0].kind.types)
        listed = ", ".join(map(dump_text, types))
        yield union.instance_path, f"{dump_text(union.instance)} is not of types {listed}"
    elif (  # the value has a tag, and no member without a tag accepts its type
        tagged
        and all(_is_type_error(union, error) for error in untagged)
        and all(error.instance_path == tagged[0].instance_path for error in tagged)
    ):
        tags = ", ".join(dump_text(tag) for error in tagged for tag in _expected_tag(union, error))
        value = dump_text(tagged[0].instance)
        yield tagged[0].instance_path, f"{value} is not one of {tags}"
    else:  # the closest has the right type, then the right tag, then the fewest errors
        ranks = zip(map(bool, type_errors), map(bool, tag_errors), map(len, members), strict=True)
        yield from _explain(members[min(enumerate(ranks), key=lambda pair: pair[1])[0]])


def _is_type_error(union: Any, error: Any) -> bool:
    """Whether the error is that the union's whole value has the wrong type."""
    return bool(error.kind.name == "type" and error.instance_path == union.instance_path)


def _expected_tag(union: Any, error: Any) -> list[UncheckedJson]:
    """The only allowed value of a field, if the error is that the field has another value."""
    if len(error.instance_path) != len(union.instance_path) + 1:
        return []
    if error.kind.name == "const":
        return [error.kind.expected_value]
    options: list[UncheckedJson] = error.kind.options if error.kind.name == "enum" else []
    return options if len(options) == 1 else []


def _line(path: str, message: str) -> str:
    if len(message) > _MAX_MESSAGE:  # it quotes the value, which may be long
        half = _MAX_MESSAGE // 2
        message = f"{message[:half]} … {message[-half:]}"
    return f"{path}: {message}" if path else message


def replace_surrogates(value: UncheckedJson) -> UncheckedJson:
    """A value that UTF-8 can encode: surrogate pairs are joined, a lone surrogate is U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {replace_surrogates(name): replace_surrogates(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [replace_surrogates(item) for item in value]
    return value


def _reject_reference(uri: str) -> NoReturn:
    raise ValueError(f"{uri[:100]} is not part of the schema.")


# The `$defs` of a schema: each type that is used more than once.

_PREFIX = "#/$defs/"


class Definitions:
    """
    Collects definitions while a schema is written.

    A type that is used once is written inline. That keeps references few, and some providers
    ignore a `description` beside a `$ref`.
    """

    def __init__(self) -> None:
        self._names: dict[object, str] = {}
        self._bodies: dict[str, dict[str, UncheckedJson]] = {}
        self._references: dict[str, list[dict[str, UncheckedJson]]] = {}

    def refer(
        self, owner: object, label: str, write: Callable[[Definitions], dict[str, UncheckedJson]]
    ) -> dict[str, UncheckedJson]:
        """A reference to the owner's definition, which `write` makes at the first reference."""
        name = self._names.get(owner)
        if name is None:
            name = self._names[owner] = self._free_name(label)
            self._references[name] = []
            self._bodies[name] = {}  # reserves the name while `write` runs, which may recurse
            self._bodies[name] = write(self)
        reference: dict[str, UncheckedJson] = {"$ref": _PREFIX + name}
        self._references[name].append(reference)
        return reference

    def adopt(self, write: Callable[[str], dict[str, UncheckedJson]]) -> dict[str, UncheckedJson]:
        """
        A schema from another library, with its `$defs` moved here.

        `write` takes the template for references, in which `{model}` stands for the name.
        """
        schema = write(_PREFIX + "{model}")
        bodies = schema.get("$defs", {})
        if any(self._bodies.get(name, body) != body for name, body in bodies.items()):
            suffix = f"_{len(self._bodies) + 1}"
            schema = write(_PREFIX + "{model}" + suffix)
            bodies = {name + suffix: body for name, body in schema["$defs"].items()}
        self._bodies |= bodies
        return {key: value for key, value in schema.items() if key != "$defs"}

    def finish(self, root: dict[str, UncheckedJson]) -> dict[str, UncheckedJson]:
        """The root schema with the definitions that are used more than once."""
        for name, references in reversed(self._references.items()):  # innermost first
            if len(references) == 1:
                reference = references[0]
                del reference["$ref"]
                inlined = {**self._bodies.pop(name), **reference}  # keywords beside it win
                reference.clear()
                reference.update(inlined)
        name = root.get("$ref", "").removeprefix(_PREFIX)
        if name in self._bodies:  # most providers reject a root that is only a reference
            root = self._bodies[name] | {key: root[key] for key in root if key != "$ref"}
        return {**root, "$defs": self._bodies} if self._bodies else root

    def _free_name(self, label: str) -> str:
        base = re.sub(r"\W+", "_", label, flags=re.ASCII).strip("_") or "Type"
        name, number = base, 1
        while name in self._bodies:
            number += 1
            name = f"{base}_{number}"
        return name


# `msgspec.Meta` as JSON Schema keywords.

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


def add_limits(schema: dict[str, UncheckedJson], meta: msgspec.Meta) -> None:
    """Add the limits to the schema; in a union, to each member whose type has such a limit."""
    for member in schema.get("anyOf", [schema]):
        for name, keyword in _KEYWORDS.get(member.get("type"), {}).items():
            limit = getattr(meta, name)
            if limit is not None:
                member[keyword] = limit


def schema_annotations(meta: msgspec.Meta) -> dict[str, UncheckedJson]:
    """The keywords that describe a value without limiting it, and `extra_json_schema`."""
    keywords = {"title": meta.title, "description": meta.description, "examples": meta.examples}
    present = {key: value for key, value in keywords.items() if value is not None}
    return present | dict(meta.extra_json_schema or {})
