"""
The reference in docs/: every public name from its docstring, every warning from its table.

A mark names a module and some of its names, or a module alone: then it has the names that no other
mark lists. So a new public name of a module appears by itself; one of `interlingua` must be added.
"""

from __future__ import annotations

import re
import textwrap
from functools import cache
from pathlib import Path

from docs_build import pages, render, source
from interlingua.spec.warning_table import WARNINGS

INDEX = pages.DOCS / "reference.md"
FOLDER = pages.DOCS / "reference"
OPTION_DOCS = pages.ROOT / "src" / "interlingua" / "api" / "run" / "option_docs.py"
OPTIONS = re.compile(r"are those of `(\w+)`")


def texts() -> dict[Path, str]:
    """What each generated file should contain."""
    paths = [*sorted(FOLDER.glob("*.md")), INDEX]
    return {path: pages.fill(path, _region) for path in paths} | {OPTION_DOCS: option_docs_text()}


def _region(mark: str) -> str:
    """What belongs at a mark: all about a module or some of its names, or one of three tables."""
    if mark == "warnings":
        return warnings_text()
    if mark == "index":
        return index_text()
    is_short, module, names = _read(mark)
    if is_short:
        return render.names_table(module)
    sections = [
        render.section(module, name)
        for name in names or _rest(module)
        if module == "interlingua" or not _is_shared(module, name)
    ]
    return OPTIONS.sub(_linked, "\n\n".join(sections))


def _read(mark: str) -> tuple[bool, str, list[str]]:
    """Whether a mark asks only for a table of names, its module, and the names that it lists."""
    subject, _, names = mark.partition(": ")
    is_short = subject.startswith("names of ")
    return is_short, subject.removeprefix("names of "), names.split(", ") if names else []


@cache
def _rest(module: str) -> list[str]:
    """The names of a module that no mark lists."""
    marks = [_read(mark) for path in FOLDER.glob("*.md") for mark in pages.marks(path)]
    listed = {name for _, owner, names in marks if owner == module for name in names}
    return [name for name in source.names_of(module) if name not in listed]


def _linked(options: re.Match[str]) -> str:
    """A link to the table of the options, if it is on a page."""
    for module in ("interlingua", "interlingua.media", "interlingua.batch", "interlingua.bulk"):
        place = placed().get(module, {}).get(options[1])
        if place is not None:
            return f"are those of [`{options[1]}`]({place.removeprefix('reference/')})"
    return options[0]


def _is_shared(module: str, name: str) -> bool:
    """Whether it is described as a name of `interlingua`."""
    is_public = name in source.names_of("interlingua")
    return is_public and source.find(module, name) == source.find("interlingua", name)


def warnings_text() -> str:
    """The tables of all warnings, by kind."""
    parts = []
    for kind in ("content", "setting", "history", "note"):
        rows = [
            f"| `{code}` | {_sentence(row.sentence)} | {row.cause} | {row.cure} |"
            for code, row in sorted(WARNINGS.items())
            if row.kind == kind
        ]
        head = "| code | message | cause | cure |\n|---|---|---|---|"
        parts.append(f"## Kind `{kind}`\n\n{head}\n" + "\n".join(rows))
    return "\n\n".join(parts)


def _sentence(template: str) -> str:
    """A message with the names of what is filled in."""
    return re.sub(r"\{(\w+)[^}]*\}", r"{\1}", template).replace("|", "\\|")


# The index.


@cache
def placed() -> dict[str, dict[str, str]]:
    """Where each name is described, by module."""
    places: dict[str, dict[str, str]] = {}
    for path in sorted(FOLDER.glob("*.md")):
        for mark in pages.marks(path):
            if mark == "warnings":
                continue
            is_short, module, names = _read(mark)
            for name in names or (source.names_of(module) if is_short else _rest(module)):
                owner = "interlingua" if _is_shared(module, name) and not is_short else module
                anchor = "" if is_short else f"#{slug(render.heading(owner, name))}"
                places.setdefault(module, {})[name] = f"reference/{path.name}{anchor}"
    return places


def index_text() -> str:
    """A table for each module: every public name with one sentence and a link."""
    parts = []
    for module, places in sorted(placed().items()):
        rows = []
        for name in sorted(places, key=str.lower):
            found = source.find(module, name)
            sentence = render.cell(source.summary(found.doc)) if found else ""
            rows.append(f"| [`{name}`]({places[name]}) | {sentence} |")
        table = "\n".join(("| name | |", "|---|---|", *rows))
        parts.append(f"## `{module}`\n\n{table}")
    return "\n\n".join(parts)


def slug(heading: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


# The docstrings.


def option_docs_text() -> str:
    """The module that has the options of `generate`, for `help`."""
    found = source.find("interlingua", "GenerateOptions")
    assert found is not None  # noqa: S101
    lines = []
    for entry in render.options_of(found):
        meaning = render.cell(entry.meaning).replace("\\|", "|")
        text = f"- `{entry.name}` ({entry.type}): {meaning}"
        lines += textwrap.wrap(text, 92, subsequent_indent="  ", break_on_hyphens=False)
    return _OPTION_DOCS.format(options="\n".join(lines))


_OPTION_DOCS = '''"""
The options of `generate` with their meanings, for `help`.

Written by scripts/docs_tables.py from the docstrings in `options.py`.
"""

OPTIONS = """
Options:

{options}
"""
'''
