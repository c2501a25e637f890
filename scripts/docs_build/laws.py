"""The tables of docs/explanation/laws.md: the laws of dialects, the checks of servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from docs_build import pages, render
from interlingua.conformance import adapter, endpoint, laws

PAGE = pages.DOCS / "explanation" / "laws.md"


def texts() -> dict[Path, str]:
    """The page with its tables."""
    return {PAGE: pages.fill(PAGE, lambda name: TABLES[name]())}


def laws_table() -> str:
    """The laws of dialects."""
    rows = [f"| {name} | {render.first_paragraph(law)} |" for name, law in laws.LAWS.items()]
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
        rows.append(f"| {name} | {', '.join(where)} | {render.first_paragraph(check)} |")
    return "\n".join(("| check | of | |", "|---|---|---|", *rows))


TABLES: dict[str, Callable[[], str]] = {"laws": laws_table, "checks": checks_table}
