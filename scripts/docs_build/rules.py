"""The tables of docs/explanation/prepare-rules.md: the rules of `prepare`, with their warnings."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from docs_build import pages, render, source
from interlingua import dialects
from interlingua.prepare import settings
from interlingua.prepare.history import rules, scan
from interlingua.spec.warning_table import WARNINGS

PAGE = pages.DOCS / "explanation" / "prepare-rules.md"


def texts() -> dict[Path, str]:
    """The page with its tables."""
    return {PAGE: pages.fill(PAGE, lambda name: TABLES[name]())}


def setting_rules() -> str:
    """The rules for settings, in their order."""
    rows = []
    for rule, about in settings.RULES:
        names = ", ".join(f"`{name}`" for name in sorted(about)[:6])
        more = ", …" if len(about) > 6 else ""
        rows.append(f"| {render.first_paragraph(rule)} | {names}{more} | {_codes(rule)} |")
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
        rows.append(f"| {render.first_paragraph(rule)} | {'; or '.join(when)} | {_codes(rule)} |")
    head = "| the rule is about | looked at if | warnings |\n|---|---|---|"
    return "\n".join((head, *rows))


def _conditions() -> dict[str, str]:
    """What each condition means: the comment beside it."""
    text = Path(scan.__file__).read_text(encoding="utf-8")
    return dict(re.findall(r'^    "(\w+)",  # (.+)$', text, re.MULTILINE))


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
        users = [name for name in dialects.names() if code in _constants(f"dialects/{name}")]
        if users and code not in _constants("prepare"):
            rows.append(f"| `{code}` | {row.kind} | {', '.join(f'`{name}`' for name in users)} |")
    return "\n".join(("| code | kind | dialects |", "|---|---|---|", *rows))


def _constants(folder: str) -> str:
    paths = sorted((pages.ROOT / "src" / "interlingua" / folder).rglob("*.py"))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


TABLES: dict[str, Callable[[], str]] = {
    "setting_rules": setting_rules,
    "history_rules": history_rules,
    "encoder_codes": encoder_codes,
}
