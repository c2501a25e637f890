"""Problems found while converting a JSON value to a Python type, and their paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from interlingua.spec.content import Json
from interlingua.spec.errors import MismatchError, Problem

Path: TypeAlias = "tuple[Path, str | int] | None"
"""
The path to a value as nested pairs, innermost step last; None is the root.

Extending it costs nothing; it is formatted only when a problem is reported.
"""

_MAX_LISTED = 10
_MAX_QUOTED = 40


class Findings:
    """Collects the problems of one conversion."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.union_results: dict[tuple[int, int], tuple[Any, list[Problem]]] = {}
        """Results by union and value, so that no union decodes the same value twice."""

    def add(self, path: Path, message: str, *, is_right_type: bool = False) -> None:
        """Record a problem."""
        self.problems.append(Problem(format_path(path_steps(path)), message, is_right_type))

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


def describe(value: Any) -> str:
    """The JSON type of a value, or the beginning of a string, for error messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return repr(value if len(value) <= _MAX_QUOTED else f"{value[:_MAX_QUOTED]}…")
        case list() | tuple():
            return "an array"
        case dict():
            return "an object"
        case _:
            return type(value).__name__


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


def add_limits(schema: dict[str, Json], meta: msgspec.Meta) -> None:
    """Add the limits to the schema; in a union, to each member whose type has such a limit."""
    for member in schema.get("anyOf", [schema]):
        keywords = _KEYWORDS.get(member.get("type"), {})
        for name, keyword in keywords.items():
            limit = getattr(meta, name)
            if limit is not None:
                member[keyword] = limit


def schema_annotations(meta: msgspec.Meta) -> dict[str, Json]:
    """The keywords that describe a value without limiting it, and `extra_json_schema`."""
    keywords = {"title": meta.title, "description": meta.description, "examples": meta.examples}
    present = {key: value for key, value in keywords.items() if value is not None}
    return present | dict(meta.extra_json_schema or {})
