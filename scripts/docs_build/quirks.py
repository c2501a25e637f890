"""The table of docs/provider-quirks.md, from recorded exchanges."""

from __future__ import annotations

from pathlib import Path

from docs_build import pages
from support import corpus, hosts

PAGE = pages.DOCS / "provider-quirks.md"


def texts() -> dict[Path, str]:
    """The page with its table; nothing where there are no recordings."""
    return {PAGE: pages.fill(PAGE, lambda _: quirks())} if corpus.is_here() else {}


def quirks() -> str:
    """How often the recordings of each host show each quirk."""
    counts, totals = hosts.quirk_table()
    lines = [
        f"| {quirk} | {', '.join(f'{row} {count}' for row, count in _sorted(counts[quirk]))} |"
        for quirk in sorted(counts, key=lambda quirk: quirk.replace("`", "").lower())
    ]
    recorded = ", ".join(f"{row} {count}" for row, count in _sorted(totals))
    table = "\n".join(("| quirk | host and number of recordings |", "|---|---|", *lines))
    return f"{table}\n\nRecordings of each host: {recorded}."


def _sorted(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
