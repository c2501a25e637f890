"""What is wrong with a JSON value, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from interlingua.spec.content import Json
from interlingua.spec.errors import MismatchError, Problem

Path: TypeAlias = "tuple[Path, str | int] | None"
"""The way to a value, innermost step last; None is the root. It is spelled out only on need."""

_SHOWN = 10
_LONGEST = 40


class Findings:
    """The problems of one conversion, as they are found."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.tried: dict[tuple[int, int], tuple[Any, list[Problem]]] = {}
        """What unions have made of a value, so that none is read twice by the same one."""

    def add(self, path: Path, message: str, *, is_of_kind: bool = False) -> None:
        """Note a problem."""
        self.problems.append(Problem(spell(step_list(path)), message, is_of_kind))


def mismatch(problems: Sequence[Problem]) -> MismatchError:
    """The error for a value with these problems, of which there is at least one."""
    return MismatchError(list_problems(problems), problems=tuple(problems), path=problems[0].path)


def list_problems(problems: Sequence[Problem | str]) -> str:
    """On one line, the first of them and how many more."""
    more = len(problems) - _SHOWN
    shown = "; ".join(str(problem) for problem in problems[:_SHOWN])
    return f"{shown}; and {more} more" if more > 0 else shown


def step_list(path: Path) -> list[str | int]:
    """The steps from the root."""
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return steps[::-1]


def spell(steps: Iterable[str | int]) -> str:
    """Like `people[2].name`; the root is empty."""
    spelled = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return "".join(spelled).removeprefix(".")


def show(value: Any) -> str:
    """The JSON word for what a value is; of text, the text."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return repr(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…")
        case list() | tuple():
            return "an array"
        case dict():
            return "an object"
        case _:
            return type(value).__name__


# `msgspec.Meta` as keywords of JSON Schema.


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
