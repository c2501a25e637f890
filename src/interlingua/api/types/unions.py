"""The shape of a union."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from interlingua.api.types.problems import Findings, Path, describe
from interlingua.api.types.shapes import Definitions, Scalar, Shape
from interlingua.spec.content import Json
from interlingua.spec.errors import Problem


class UnionShape:
    """A union; a value is decoded by the first member that accepts it."""

    def __init__(self, members: tuple[Shape, ...]) -> None:
        self._members = members
        self.label: str = " or ".join(dict.fromkeys(member.label for member in members))

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """`anyOf`, without duplicates."""
        members: list[dict[str, Json]] = []
        for member in self._members:
            schema = member.schema(definitions)
            if schema not in members:
                members.append(schema)
        return {"anyOf": members}

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The value of the first member that accepts it."""
        if not isinstance(value, (list, dict)):
            decoded, problems = self._try_members(value, path, findings)
        else:
            # Results are cached: nested recursive unions would otherwise take exponential time.
            key = (id(self), id(value))
            if key not in findings.union_results:
                findings.union_results[key] = self._try_members(value, path, findings)
            decoded, problems = findings.union_results[key]
        findings.problems.extend(problems)
        return decoded

    def _try_members(
        self, value: Json, path: Path, findings: Findings
    ) -> tuple[Any, list[Problem]]:
        failures: list[list[Problem]] = []
        inner = Findings()
        inner.union_results = findings.union_results
        for member in self._ordered(value):
            inner.problems = []
            decoded = member.decode(value, path, inner)
            if not inner.problems:
                return decoded, []
            failures.append(inner.problems)
        return None, self._closest(value, path, failures)

    def _closest(self, value: Json, path: Path, failures: list[list[Problem]]) -> list[Problem]:
        """The problems of the member with the value's tag, or else of the closest member."""
        findings = Findings()
        if isinstance(value, dict):
            pairs = list(zip(self._tags, failures, strict=True))
            tagged = [(tags, problems) for tags, problems in pairs if tags.keys() & value.keys()]
            matching = [problems for tags, problems in tagged if {**value, **tags} == value]
            if tagged and not matching:
                key = next(name for name in tagged[0][0] if name in value)
                options = " | ".join(
                    dict.fromkeys(repr(tags[key]) for tags, _ in tagged if key in tags)
                )
                findings.add((path, key), f"expected {options}, got {describe(value[key])}")
                return findings.problems
            failures = matching or failures
        findings.add(path, f"expected {self.label}, got {describe(value)}")
        # Problems inside a member of the right type say more than "no member accepts it".
        union_path = findings.problems[0].path
        same_type = [
            problems
            for problems in failures
            if all(problem.path != union_path or problem.is_right_type for problem in problems)
        ]
        return min(same_type, key=len, default=findings.problems)

    @cached_property
    def _tags(self) -> list[dict[str, Json]]:
        """The fields of each member that allow only one value."""
        return [_tags_of(member) for member in self._members]

    def _ordered(self, value: Json) -> list[Shape]:
        """For a number, the member of its exact type first: 3 in `float | int` is an int."""
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
