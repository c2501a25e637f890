#!/usr/bin/env python
"""
Write what is generated in the pages of docs/explanation/: the walk of a call, rules, laws.

    scripts/explanation_tables.py           writes docs/explanation/walk.svg, and the pages between
                                            `<!-- generated: … -->` and `<!-- end of generated -->`
    scripts/explanation_tables.py --check   writes nothing; the exit status is 1 if a file is stale
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "scripts")]

import generated_pages  # noqa: E402
from reference_build import render, source  # noqa: E402
from walk_picture import Visit, picture  # noqa: E402

from interlingua import dialects  # noqa: E402
from interlingua.conformance import adapter, endpoint, laws  # noqa: E402
from interlingua.prepare import settings  # noqa: E402
from interlingua.prepare.history import rules, scan  # noqa: E402
from interlingua.spec.warning_table import WARNINGS  # noqa: E402

FOLDER = ROOT / "docs" / "explanation"
PICTURE = FOLDER / "walk.svg"
MARK = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end of generated -->\n", re.DOTALL)


# The walk.


def visits() -> list[Visit]:
    """The rooms that a `generate` enters, in order, each with the files of that visit."""
    command = [sys.executable, str(ROOT / "scripts" / "walk")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 -- ours
    whole, _, _ = done.stdout.partition("\na text delta")
    found: list[Visit] = []
    for path in re.findall(r"^ +([\w/]+\.py):", whole, re.MULTILINE):
        room, _, file = path.partition("/")
        if not found or found[-1].room != room:
            found.append(Visit(room, []))
        if file not in found[-1].files:
            found[-1].files.append(file)
    return found


def walk_table() -> str:
    """The rooms in the order in which a call first enters them, with all files it enters there."""
    files: dict[str, dict[str, None]] = {}
    for visit in visits():
        files.setdefault(visit.room, {}).update(dict.fromkeys(visit.files))
    rows = [
        f"| `{room}/` | {', '.join(f'`{name}`' for name in names)} |"
        for room, names in files.items()
    ]
    return "\n".join(("| room | files that a `generate` enters |", "|---|---|", *rows))


# The rules.


def setting_rules() -> str:
    """The rules for settings, in their order."""
    rows = []
    for rule, about in settings.RULES:
        names = ", ".join(f"`{name}`" for name in sorted(about)[:6])
        more = ", …" if len(about) > 6 else ""
        rows.append(f"| {_doc(rule)} | {names}{more} | {_codes(rule)} |")
    head = "| the rule is about | looked at if the request has | warnings |\n|---|---|---|"
    return "\n".join((head, *rows))


def history_rules() -> str:
    """The rules for histories, in their order."""
    words = _conditions()
    rows = []
    for rule, triggers in rules.RULES:
        when = sorted(words[each] for each in triggers if isinstance(each, str))
        kinds = sorted(f"`{each.__name__}`" for each in triggers if not isinstance(each, str))
        if kinds:
            when.append(f"there are parts {' or '.join(kinds)}")
        rows.append(f"| {_doc(rule)} | {'; or '.join(when)} | {_codes(rule)} |")
    head = "| the rule is about | looked at if | warnings |\n|---|---|---|"
    return "\n".join((head, *rows))


def _conditions() -> dict[str, str]:
    """What each condition means: the comment beside it."""
    text = Path(scan.__file__).read_text(encoding="utf-8")
    return dict(re.findall(r'^    "(\w+)",  # (.+)$', text, re.MULTILINE))


def _doc(function: Callable[..., Any]) -> str:
    """Its first paragraph."""
    return render.cell((inspect.getdoc(function) or "").partition("\n\n")[0])


def _codes(function: Callable[..., Any]) -> str:
    """The warnings that a function, or what it uses, may add."""
    codes = sorted({*_codes_in(function.__module__, function.__name__, set())})
    return ", ".join(f"`{code}`" for code in codes) or "none: nothing is lost"


def _codes_in(module: str, name: str, seen: set[tuple[str, str]]) -> Iterator[str]:
    found = source.find(module, name)
    if found is None or ".prepare" not in found.module or (found.module, found.name) in seen:
        return
    seen.add((found.module, found.name))
    for node in ast.walk(found.node):
        match node:
            case ast.Constant(value=str(text)) if text in WARNINGS:
                yield text
            case ast.Attribute(attr="setting_dropped" | "setting_implied" as attr):
                yield f"<setting>{attr.removeprefix('setting')}"
            case ast.Attribute(attr="media_dropped"):
                yield "<media>_dropped"
            case ast.Name(id=used, ctx=ast.Load()):
                yield from _codes_in(found.module, used, seen)


def encoder_codes() -> str:
    """Warnings that only the encoders add, and which of them."""
    rows = []
    for code, row in sorted(WARNINGS.items()):
        users = [name for name in dialects.names()[:4] if code in _constants(f"dialects/{name}")]
        if users and code not in _constants("prepare"):
            rows.append(f"| `{code}` | {row.kind} | {', '.join(f'`{name}`' for name in users)} |")
    return "\n".join(("| code | kind | dialects |", "|---|---|---|", *rows))


def _constants(folder: str) -> str:
    paths = sorted((ROOT / "src" / "interlingua" / folder).rglob("*.py"))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


# The laws.


def laws_table() -> str:
    """The laws of dialects."""
    rows = [f"| {name} | {_doc(law)} |" for name, law in laws.LAWS.items()]
    return "\n".join(("| law | |", "|---|---|", *rows))


def checks_table() -> str:
    """The checks of endpoints and of adapters."""
    names = [*dict.fromkeys((*endpoint.CHECKS, *adapter.CHECKS))]
    rows = []
    for name in names:
        check: Any = endpoint.CHECKS.get(name) or adapter.CHECKS[name]
        where = [
            word
            for word, checks in (("endpoint", endpoint.CHECKS), ("adapter", adapter.CHECKS))
            if name in checks
        ]
        rows.append(f"| {name} | {', '.join(where)} | {_doc(check)} |")
    return "\n".join(("| check | of | |", "|---|---|---|", *rows))


TABLES: dict[str, Callable[[], str]] = {
    "walk": walk_table,
    "setting_rules": setting_rules,
    "history_rules": history_rules,
    "encoder_codes": encoder_codes,
    "laws": laws_table,
    "checks": checks_table,
}


def page_text(path: Path) -> str:
    """A page with its tables as they should be now."""

    def fill(mark: re.Match[str]) -> str:
        head = mark[0].partition("\n")[0]
        return f"{head}\n\n{TABLES[mark[1]]()}\n\n<!-- end of generated -->\n"

    return MARK.sub(fill, path.read_text(encoding="utf-8"))


def texts() -> dict[Path, str]:
    """What each generated file should contain."""
    pages = [path for path in sorted(FOLDER.glob("*.md")) if MARK.search(path.read_text("utf-8"))]
    return {PICTURE: picture(visits()), **{path: page_text(path) for path in pages}}


def main() -> int:
    """Write the files, or compare them."""
    return generated_pages.write(texts())


if __name__ == "__main__":
    sys.exit(main())
