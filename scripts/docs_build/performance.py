"""The tables of docs/explanation/performance.md, from the saved output of benchmarks/client.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docs_build import pages

PAGE = pages.DOCS / "explanation" / "performance.md"
FIGURES = pages.ROOT / "benchmarks" / "figures.json"


def texts() -> dict[Path, str]:
    """The page with the tables of the saved figures."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    return {PAGE: pages.fill(PAGE, lambda _: tables(figures))}


def tables(figures: dict[str, Any]) -> str:
    """What was measured, and what the figures are held to."""
    parts = [_about(figures["about"]), *map(_table, figures["tables"]), _limits(figures["limits"])]
    return "\n\n".join(parts)


def _about(about: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    rounds = " This was a quick run, with few rounds: expect deviations." if about["quick"] else ""
    return (
        f"Measured with Python {about['python']} on {about['system']}, {about['cores']} cores; "
        f"{packages}.{rounds}"
    )


def _table(table: dict[str, Any]) -> str:
    rows = [
        f"| `{row['dialect']}` | {row['ours']:,.1f} |"
        + "".join(f" {row[who]:,.1f} | {row[f'x_{who}']:.2f} |" for who in table["least"])
        + f" {row['vendor_name']} {row['vendor']:,.1f} | {row['x_vendor']:.2f} "
        f"| {row['x_fastest']:.2f} |"
        for row in table["rows"]
    ]
    title = f"### {table['title']} ({_unit(table['unit'])})\n"
    columns = [column for who in table["least"] for column in (who, f"times {who}")]
    columns = ["dialect", "this library", *columns, "vendor", "times vendor", "times fastest"]
    head = f"| {' | '.join(columns)} |"
    return "\n".join((title, head, f"|{'---|' * len(columns)}", *rows))


def _unit(unit: str) -> str:
    return {"us": "µs of CPU", "ms": "ms of CPU"}.get(unit, unit)


def _limits(limits: list[dict[str, Any]]) -> str:
    """What the figures are held to, also those that no table has."""
    rows = [
        f"| {each['what']} | {each['figure']:.2f} | {each['limit']:g} "
        f"| {'yes' if each['kept'] else 'no'} |"
        for each in limits
    ]
    head = "### Limits\n\n| figure | measured | limit | kept |\n|---|---|---|---|"
    return "\n".join((head, *rows))
