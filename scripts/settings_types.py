#!/usr/bin/env python
"""
Write the keywords of a request, src/interlingua/spec/settings.py, from the fields of `Request`.

    scripts/settings_types.py           writes the file
    scripts/settings_types.py --check   writes nothing; the exit status is 1 if the file is stale

A type checker must see every option of `generate(...)`, and cannot read a TypedDict that is made
at run time: hence a file.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "src" / "interlingua" / "spec"
SOURCE = SPEC / "request.py"
TARGET = SPEC / "settings.py"
WIDER = {
    "tuple[str, ...]": "Iterable[str]",
    "ToolChoice": "ToolChoice | str | Mapping[str, Any]",
    "ResponseFormat": "ResponseFormat | Mapping[str, Any]",
}
"""The types that a keyword accepts, where the constructor converts the value."""
WIDTH = 100

HEAD = '''"""
The settings of a request as keywords: of `generate`, of `OtherModel` and of `Request` itself.

Written by scripts/settings_types.py from the fields of `Request`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

{imports}


class ModelSettings(TypedDict, total=False):
    """The settings that another model may need in another way."""

{of_a_model}


class RequestSettings(ModelSettings, total=False):
    """All settings of a request. None means not set; 0, 0.0 and "" are values."""

{of_a_call}
'''


class Field(NamedTuple):
    """A field of `Request`: its name, its annotation and what it means."""

    name: str
    annotation: str
    meaning: str


def settings_text() -> str:
    """The text of spec/settings.py."""
    module = ast.parse(SOURCE.read_text(encoding="utf-8"))
    left_out, shared = (_names(module, name) for name in ("NOT_SETTINGS", "SAME_FOR_EVERY_MODEL"))
    settings = [field for field in _fields(module) if field.name not in left_out]
    used = {name for field in settings for name in re.findall(r"\w+", field.annotation)}
    return HEAD.format(
        imports="\n".join(_imports(module, used)),
        of_a_model="\n".join(_entry(field) for field in settings if field.name not in shared),
        of_a_call="\n".join(_entry(field) for field in settings if field.name in shared),
    )


def _imports(module: ast.Module, used: set[str]) -> Iterator[str]:
    """The lines that import the names of annotations: those of `request.py`, and its own."""
    homes: dict[str, set[str]] = {}
    for node in module.body:
        match node:
            case ast.ImportFrom(module=home, names=names) if home and "interlingua" in home:
                homes.setdefault(home, set()).update(alias.name for alias in names)
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                homes.setdefault("interlingua.spec.request", set()).add(name)
    for home in sorted(homes):
        if names := sorted(homes[home] & used):
            yield f"from {home} import {', '.join(names)}"


def _fields(module: ast.Module) -> Iterator[Field]:
    body = next(
        node.body
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name == "Request"
    )
    for node, following in pairwise(body):
        match node, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name), annotation=annotation),
                ast.Expr(value=ast.Constant(value=str(doc))),
            ):
                text = ast.unparse(annotation)
                if not text.startswith("ClassVar"):
                    yield Field(name, text, inspect.cleandoc(doc))


def _names(module: ast.Module, constant: str) -> set[str]:
    """The strings in the value of a constant."""
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == constant:
                return {
                    each.value
                    for each in ast.walk(value)
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                }
    raise LookupError(f"{SOURCE} has no {constant}")


def _entry(field: Field) -> str:
    """A setting with the first paragraph of its meaning, and where to read the others."""
    summary, *others = field.meaning.split("\n\n")
    doc = " ".join(summary.split()) + (f" See `Request.{field.name}`." if others else "")
    annotation = field.annotation
    for narrow, wide in WIDER.items():
        annotation = annotation.replace(narrow, wide)
    line = f'    """{doc}"""'
    if len(line) > WIDTH:
        first, _, second = doc.partition(". ")
        line = f'    """\n    {first}.\n\n    {second}\n    """'
    return f"    {field.name}: {annotation}\n{line}"


def main() -> int:
    """Write the file, or compare it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; name a stale file")
    options = parser.parse_args()
    text = settings_text()
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET.relative_to(ROOT)} is stale")
    if options.check:
        return 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
