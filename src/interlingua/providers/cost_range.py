"""What a call may cost, before it is made."""

from __future__ import annotations

from math import ceil, floor
from typing import NamedTuple

from msgspec.structs import replace

from interlingua.providers.cost import STANDARD, Tariff, price_usage
from interlingua.spec.response import Usage
from interlingua.tokens.estimate import ESTIMATE_ERROR


class CostRange(NamedTuple):
    """What a call may cost, in dollars."""

    low: float
    """Everything is read from a cache, and the answer is empty."""
    high: float
    """Nothing is read from a cache, and the answer is as long as it may be."""


def price_range(
    tariff: Tariff, at: float, input_tokens: int, output_tokens: int, *, every_tier: bool = False
) -> CostRange | None:
    """
    The least and the most that a call may cost; None if a price is unknown.

    `input_tokens` is an estimate, `output_tokens` is the limit of the answer. With `every_tier`
    the call may be served in any tier of service and be cached for an hour.
    """
    least, most = (
        floor(input_tokens * (1 - ESTIMATE_ERROR)),
        ceil(input_tokens * (1 + ESTIMATE_ERROR)),
    )
    low = Usage(input_tokens=least, cache_read_tokens=least)
    high = Usage(input_tokens=most, output_tokens=output_tokens)
    written = replace(high, cache_write_tokens=most)
    usages = [low, high, written]
    tiers: tuple[str | None, ...] = (None,)
    if every_tier:
        usages.append(replace(written, cache_write_1h_tokens=most))
        tiers = tuple(None if tier == STANDARD else tier for tier in tariff.tiers)
    costs = [
        price_usage(replace(usage, service_tier=tier), tariff, at)
        for usage in usages
        for tier in tiers
    ]
    totals = [cost.total for cost in costs if cost is not None]
    return CostRange(min(totals), max(totals)) if len(totals) == len(costs) else None
