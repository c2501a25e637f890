"""What one source says about one model, in the words of the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from interlingua.providers.catalog.prices import Price


@dataclass(kw_only=True)
class Entry:
    """Fields of a `ModelInfo`, without those that the source does not know, and its prices."""

    fields: dict[str, Any] = field(default_factory=dict)
    prices: tuple[Price, ...] = ()
    is_retired: bool = False
    """Whether we list it only for the prices of old calls, without a place among the others."""


@dataclass(kw_only=True)
class Source:
    """
    Everything that one source says.

    `lookup` finds an entry by provider and id; a source that describes models by pattern knows more
    ids than it lists.
    """

    name: str
    written: date
    """The day on which its prices were true; prices of two sources are compared on that day."""
    listed: Mapping[str, Mapping[str, Entry]]
    """The entries by provider and id."""
    lookup: Callable[[str, str], Entry | None]


def dollars(amount: Any) -> float:
    """A price without the noise of binary fractions: 4.9999999e-07 * 1e6 is 0.5."""
    return float(f"{float(amount):.9g}")


def known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without those that are None or empty."""
    return {name: value for name, value in fields.items() if value not in (None, (), "")}
