"""What we know ourselves: the order, gated models, notes, and models that no other source has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from catalog_build.entries import Entry
from interlingua.providers.catalog.models import ModelInfo


def entries(table: Mapping[str, Any]) -> dict[str, dict[str, Entry]]:
    """The entries of the hand-made table by provider and id, in its order."""
    found: dict[str, dict[str, Entry]] = {}
    for row in table["models"]:
        info = msgspec.convert(row, ModelInfo)
        names = row.keys() - {"id", "provider", "prices"}
        fields = {name: getattr(info, name) for name in sorted(names)}
        found.setdefault(info.provider, {})[info.id] = Entry(fields=fields, prices=info.prices)
    return found
