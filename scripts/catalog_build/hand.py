"""What we know ourselves: the order, gated models, notes, and models that no other source has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from catalog_build.entries import Entry
from interlingua.providers.catalog.models import ModelInfo


def entries(table: Mapping[str, Any]) -> dict[str, dict[str, Entry]]:
    """
    The entries of the hand-made table by provider and id, in its order.

    Those of `retired` are models that the sources know only by their price.
    """
    found: dict[str, dict[str, Entry]] = {}
    retired = [{**row, "deprecated": True} for row in table.get("retired", ())]
    for row in [*table["models"], *retired]:
        info = msgspec.convert({"display_name": "", **row}, ModelInfo)
        names = row.keys() - {"id", "provider", "prices"}
        fields = {name: getattr(info, name) for name in sorted(names)}
        entry = Entry(fields=fields, prices=info.prices, is_retired=row in retired)
        found.setdefault(info.provider, {})[info.id] = entry
    return found


def families(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Fields of models by prefix of their id."""
    found = {}
    for prefix, row in table["families"].items():
        info = msgspec.convert({"id": "", "provider": "", "display_name": "", **row}, ModelInfo)
        found[prefix] = {name: getattr(info, name) for name in row}
    return found
