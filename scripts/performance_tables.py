#!/usr/bin/env python
"""
Write the tables of docs/explanation/performance.md from the saved output of a benchmark.

    benchmarks/client.py --save benchmarks/figures.json    measures
    scripts/performance_tables.py [FILE]                   writes the page from the file
    scripts/performance_tables.py --check                  writes nothing; the exit status is 1 if
                                                           the page is stale
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import generated_pages
from generated_pages import ROOT

PAGE = ROOT / "docs" / "explanation" / "performance.md"
FIGURES = ROOT / "benchmarks" / "figures.json"
_START = "<!-- Written by scripts/performance_tables.py from here on. -->\n"


def page_text(figures: dict[str, Any]) -> str:
    """The page with the tables of these figures."""
    before, _, _ = PAGE.read_text(encoding="utf-8").partition(_START)
    parts = [_about(figures["about"]), *map(_table, figures["tables"]), _limits(figures["limits"])]
    return f"{before}{_START}\n" + "\n\n".join(parts) + "\n"


def _about(about: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    rounds = " This was a quick run, with few rounds: expect deviations." if about["quick"] else ""
    return (
        f"Measured with Python {about['python']} on {about['system']}, {about['cores']} cores; "
        f"{packages}.{rounds}"
    )


def _table(table: dict[str, Any]) -> str:
    rows = [
        f"| `{row['dialect']}` | {row['ours']:,.1f} | {row['raw']:,.1f} | {row['x_raw']:.2f} "
        f"| {row['vendor_name']} {row['vendor']:,.1f} | {row['x_vendor']:.2f} "
        f"| {row['x_fastest']:.2f} |"
        for row in table["rows"]
    ]
    title = f"### {table['title']} ({_unit(table['unit'])})\n"
    head = "| dialect | this library | raw | times raw | vendor | times vendor | times fastest |"
    return "\n".join((title, head, "|---|---|---|---|---|---|---|", *rows))


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


def main() -> int:
    """Write the page, or compare it."""
    given = [name for name in sys.argv[1:] if not name.startswith("--")]
    path = Path(given[0]) if given else FIGURES
    text = page_text(json.loads(path.read_text(encoding="utf-8")))
    return generated_pages.write({PAGE: text})


if __name__ == "__main__":
    sys.exit(main())
