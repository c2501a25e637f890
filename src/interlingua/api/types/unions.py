"""One of several forms."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from interlingua.api.types.problems import Findings, Path, show
from interlingua.api.types.shapes import Definitions, Scalar, Shape
from interlingua.spec.content import Json
from interlingua.spec.errors import Problem


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
        misfits: list[list[Problem]] = []
        inner = Findings()
        inner.tried = findings.tried
        for member in self._ordered(value):
            inner.problems = []
            found = member.decode(value, path, inner)
            if not inner.problems:
                return found, []
            misfits.append(inner.problems)
        return None, self._closest(value, path, misfits)

    def _closest(self, value: Json, path: Path, misfits: list[list[Problem]]) -> list[Problem]:
        """What is wrong with the member that was meant: by its tag, or else the least wrong."""
        findings = Findings()
        if isinstance(value, dict):
            pairs = list(zip(self._tags, misfits, strict=True))
            tagged = [(tags, problems) for tags, problems in pairs if tags.keys() & value.keys()]
            meant = [problems for tags, problems in tagged if {**value, **tags} == value]
            if tagged and not meant:
                key = next(name for name in tagged[0][0] if name in value)
                known = dict.fromkeys(repr(tags[key]) for tags, _ in tagged if key in tags)
                findings.add((path, key), f"expected {' | '.join(known)}, got {show(value[key])}")
                return findings.problems
            misfits = meant or misfits
        findings.add(path, f"expected {self.label}, got {show(value)}")
        # what is wrong with a member of the same kind says more than that no member fits
        here = findings.problems[0].path
        further = [
            each
            for each in misfits
            if all(problem.path != here or problem.is_of_kind for problem in each)
        ]
        return min(further, key=len, default=findings.problems)

    @cached_property
    def _tags(self) -> list[dict[str, Json]]:
        """Of each member, the fields that have only one value."""
        return [_tags_of(member) for member in self._members]

    def _ordered(self, value: Json) -> list[Shape]:
        """For a number, the member of exactly its type first: 3 of `float | int` is an int."""
        if type(value) not in {int, float}:
            return list(self._members)
        return sorted(
            self._members,
            key=lambda shape: not (isinstance(shape, Scalar) and shape.type is type(value)),
        )


def _tags_of(shape: Shape) -> dict[str, Json]:
    definitions = Definitions()
    schema = definitions.finish(shape.schema(definitions))
    tags: dict[str, Json] = {}
    for name, field in schema.get("properties", {}).items():
        options = [field["const"]] if "const" in field else field.get("enum", ())
        if len(options) == 1:
            tags[name] = options[0]
    return tags
