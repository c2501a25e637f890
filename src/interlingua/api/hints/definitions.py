"""The `$defs` of a schema: each type once, and none that is used in one place only."""

from __future__ import annotations

import re
from collections.abc import Callable

from interlingua.spec.content import Json

_PREFIX = "#/$defs/"


class Definitions:
    """
    Collects the definitions while a schema is written.

    A type that is used once is written where it is used: fewer references, and words beside one
    (`description`) are not lost on readers that look at `$ref` alone.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._kept: list[object] = []  # so that no id is given to another object meanwhile
        self._bodies: dict[str, dict[str, Json]] = {}
        self._references: dict[str, list[dict[str, Json]]] = {}

    def refer(
        self, owner: object, label: str, write: Callable[[Definitions], dict[str, Json]]
    ) -> dict[str, Json]:
        """A reference to the owner's definition, which is written if it was not yet."""
        name = self._names.get(id(owner))
        if name is None:
            name = self._names[id(owner)] = self._free_name(label)
            self._kept.append(owner)
            self._references[name] = []
            self._bodies[name] = {}  # taken, while what it holds is written
            self._bodies[name] = write(self)
        reference: dict[str, Json] = {"$ref": _PREFIX + name}
        self._references[name].append(reference)
        return reference

    def adopt(self, write: Callable[[str], dict[str, Json]]) -> dict[str, Json]:
        """
        A schema made elsewhere, whose own `$defs` are moved here.

        `write` is given the template of its references, with `{model}` for the name.
        """
        schema = write(_PREFIX + "{model}")
        if any(self._bodies.get(name, body) != body for name, body in _inner(schema)):
            suffix = f"_{len(self._bodies) + 1}"
            schema = write(_PREFIX + "{model}" + suffix)
            self._bodies |= {name + suffix: body for name, body in _inner(schema)}
        else:
            self._bodies |= dict(_inner(schema))
        return {key: value for key, value in schema.items() if key != "$defs"}

    def finish(self, root: dict[str, Json]) -> dict[str, Json]:
        """The root with the definitions that are still referred to."""
        for name, references in reversed(self._references.items()):  # the innermost first
            if len(references) == 1:
                _write_in_place(references[0], self._bodies.pop(name))
        if "$ref" in root and root["$ref"].removeprefix(_PREFIX) in self._bodies:
            # a root that is only a reference is refused by most
            body = self._bodies[root["$ref"].removeprefix(_PREFIX)]
            root = {**body, **{key: value for key, value in root.items() if key != "$ref"}}
        return {**root, "$defs": self._bodies} if self._bodies else root

    def _free_name(self, label: str) -> str:
        base = re.sub(r"\W+", "_", label, flags=re.ASCII).strip("_") or "Type"
        name, number = base, 1
        while name in self._bodies:
            number += 1
            name = f"{base}_{number}"
        return name


def _inner(schema: dict[str, Json]) -> list[tuple[str, dict[str, Json]]]:
    return list(schema.get("$defs", {}).items())


def _write_in_place(reference: dict[str, Json], body: dict[str, Json]) -> None:
    notes = {key: value for key, value in reference.items() if key != "$ref"}
    reference.clear()
    reference.update({**body, **notes})
