"""The files that are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from catalog_build.merge import Merged
from interlingua.providers.catalog.models import ModelInfo, ids_of

SHARED = {"bedrock": "bedrock_converse"}
"""Providers whose models another row serves too, through another API."""


def data_texts(
    models: Iterable[ModelInfo], routed: Iterable[str], version: str, pins: Mapping[str, str]
) -> dict[str, str]:
    """
    The files of the catalog by name.

    Each provider has one, with a model on each line, so that a change is one line; `index` has the
    ids of all of them, and to which providers they lead.
    """
    by_provider: dict[str, list[ModelInfo]] = {}
    for model in models:
        by_provider.setdefault(model.provider, []).append(model)
    texts = {
        provider: "[\n" + ",\n".join(msgspec.json.encode(one).decode() for one in listed) + "\n]\n"
        for provider, listed in by_provider.items()
    }
    lines: list[str] = []
    for provider, listed in by_provider.items():
        ids_text = msgspec.json.encode([name for one in listed for name in ids_of(one)]).decode()
        lines.append(f'"{provider}": {ids_text}')
        if provider in SHARED:
            lines.append(f'"{SHARED[provider]}": "{provider}"')
    ids = ",\n".join(lines)
    sources, names = (msgspec.json.encode(value).decode() for value in (pins, list(routed)))
    head = f'{{"version": "{version}", "sources": {sources}, "routed": {names}, "ids": '
    texts["index"] = f"{head}{{\n{ids}\n}}}}\n"
    return texts


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
