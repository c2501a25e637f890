"""One of several forms."""

from __future__ import annotations

from typing import Any

from interlingua.api.hints.definitions import Definitions
from interlingua.api.hints.problems import Findings, Path, Problem, show
from interlingua.api.hints.shapes import Scalar, Shape
from interlingua.spec.content import Json


class OneOf:
    """The first of its members that fits."""

    def __init__(self, members: tuple[Shape, ...]) -> None:
        self._members = members
        self.label = " or ".join(dict.fromkeys(member.label for member in members))

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """`anyOf`."""
        members: list[dict[str, Json]] = []
        for member in self._members:
            schema = member.schema(definitions)
            if schema not in members:
                members.append(schema)
        return {"anyOf": members}

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """Each value is read once by each union: members that lead back cost no power of two."""
        if not isinstance(value, (list, dict)):
            found, problems = self._try(value, path, findings)
        else:
            key = (id(self), id(value))
            if key not in findings.tried:
                findings.tried[key] = self._try(value, path, findings)
            found, problems = findings.tried[key]
        findings.problems.extend(problems)
        return found

    def _try(self, value: Json, path: Path, findings: Findings) -> tuple[Any, list[Problem]]:
        closest: list[Problem] = []
        inner = Findings()
        inner.tried = findings.tried
        for member in self._ordered(value):
            inner.problems = []
            found = member.decode(value, path, inner)
            if not inner.problems:
                return found, []
            if _depth(inner.problems) > _depth(closest):
                closest = inner.problems
        inner.problems = []
        inner.add(path, f"expected {self.label}, got {show(value)}")
        # problems further in say more than that no member fits
        here = _depth(inner.problems)
        return None, closest if _depth(closest) > here else inner.problems

    def _ordered(self, value: Json) -> list[Shape]:
        """For a number, the member of exactly its type first: 3 of `float | int` is an int."""
        if type(value) not in {int, float}:
            return list(self._members)
        return sorted(
            self._members,
            key=lambda shape: not (isinstance(shape, Scalar) and shape.type is type(value)),
        )


def _depth(problems: list[Problem]) -> int:
    return len(problems[0].path) if problems else -1
