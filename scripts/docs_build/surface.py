"""
The public names with their signatures and fields, one line each.

The file is compared by a test, so that a change of what programs use is seen in a review.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from docs_build import pages, reference, source

FILE = pages.ROOT / "tests" / "fixtures" / "public_surface.txt"
_LONGEST = 200  # characters of a value that is no function and no class
Places: TypeAlias = Mapping[tuple[str, str], str]
"""The first public name of each definition, by its module and name."""


def texts() -> dict[Path, str]:
    """The file with its text."""
    names = [
        (f"{module}.{name}", source.find(module, name))
        for module in sorted(reference.placed())
        for name in sorted(source.names_of(module))
    ]
    places: dict[tuple[str, str], str] = {}
    for place, found in names:
        if found is not None:
            places.setdefault(found[:2], place)
    lines: list[str] = []
    for place, found in names:
        if found is None:  # of another library
            lines.append(place)
        elif places[found[:2]] != place:
            lines.append(f"{place} is {places[found[:2]]}")
        else:
            lines += _describe(place, found, places)
    return {FILE: "\n".join(lines) + "\n"}


def _describe(place: str, found: source.Definition, places: Places) -> Iterator[str]:
    """The lines of a name."""
    match found.node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() as node:
            yield _callable(place, node)
        case ast.ClassDef() as node:
            yield f"class {place}({', '.join(map(ast.unparse, node.bases))})"
            inherited = {
                line
                for base in source.lineage(found)[:-1]
                if base[:2] in places
                for line in _members(base)
            }
            yield from (f"  {line}" for line in _members(found) if line not in inherited)
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            yield f"{place} = {'' if value is None else ast.unparse(value)}"[:_LONGEST]


def _members(found: source.Definition) -> Iterator[str]:
    """How a class is made, its fields and its methods, with inherited ones."""
    constructor = source.constructor_of(found)
    if constructor is not None:
        yield _callable("__init__", constructor[0])
    for entry in source.fields_of(found):
        default = f" = {entry.default}" if entry.default else ""
        yield f"{entry.name}: {entry.type}{default}"
    for method in source.methods_of(found):
        yield _callable(method.name, method)


def _callable(name: str, node: source.Callable_) -> str:
    is_async = isinstance(node, ast.AsyncFunctionDef)
    kind = "property " if source.is_decorated(node, "property") else "async " * is_async
    returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"{kind}{name}({ast.unparse(node.args)}){returns}"
