"""The files that are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from catalog_build.merge import Merged
from interlingua.providers.catalog.models import ModelInfo


def data_text(models: Iterable[ModelInfo], version: str, pins: Mapping[str, str]) -> str:
    """The catalog as JSON with one model on each line, so that a change is one line."""
    by_provider: dict[str, list[str]] = {}
    for model in models:
        line = msgspec.json.encode(model).decode()
        by_provider.setdefault(model.provider, []).append(line)
    sections = ",\n".join(
        f'"{provider}": [\n' + ",\n".join(lines) + "\n]" for provider, lines in by_provider.items()
    )
    sources = msgspec.json.encode(pins).decode()
    return f'{{"version": "{version}", "sources": {sources}, "models": {{\n{sections}\n}}}}\n'


def report_text(merged: Merged, version: str, pins: Mapping[str, str]) -> str:
    """Who says what about prices, as a table."""
    sources = ", ".join(f"{name} {pin}" for name, pin in pins.items())
    counts = Counter(one.provider for one in merged.disagreements)
    rows = [
        f"| {one.provider} | `{one.model}` | {one.field} | "
        + ", ".join(f"{name}: {value:g}" for name, value in one.said.items())
        + " |"
        for one in merged.disagreements
    ]
    return "\n".join(
        [
            "# Prices about which the sources of the catalog disagree",
            "",
            f"Written by `scripts/update_catalog` on {version} from {sources}.",
            "",
            "Dollars per million tokens. The catalog has the first price of each row; the model is",
            "marked with `price_disputed`. Old prices of a source are not listed.",
            "",
            "By provider: "
            + (", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none")
            + ".",
            "",
            "| provider | model | rate | who says what |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )
