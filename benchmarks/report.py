"""Tables of costs, their ratios, and the limits these are held to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_SEEN: list[tuple[bool, str]] = []


class Measure(NamedTuple):
    """What a table is about, and how its costs are shown."""

    title: str
    unit: str
    scale: float
    """What a cost is multiplied by to be of that unit."""
    raw: float | None = None
    """How many times raw's cost ours may be."""
    fastest: float | None = None
    """How many times the cost of the fastest vendor's client ours may be."""


Costs = Mapping[tuple[str, str], float]
"""By contender and dialect."""


def compare(measure: Measure, costs: Costs, vendors: Mapping[str, str]) -> None:
    """A line for each dialect."""
    names = list(dict.fromkeys(name for _, name in costs))
    print(f"\n{measure.title} ({measure.unit})")
    print(
        f"  {'dialect':20}{'raw':>9}{'ours':>9}{'x raw':>8} {'limit':<12}"
        f"{'vendor':>22}{'x vendor':>10}{'x fastest':>11} limit"
    )
    fastest = min(costs["vendor", name] for name in names)
    for name in names:
        raw, ours, vendor = (costs[who, name] for who in ("raw", "ours", "vendor"))
        shown = [f"{cost * measure.scale:9.1f}" for cost in (raw, ours)]
        theirs = f"{vendors[name]} {vendor * measure.scale:9.1f}"
        print(
            f"  {name:20}{''.join(shown)}{ours / raw:8.2f} "
            f"{judge(f'{measure.title}, {name}, x raw', ours / raw, measure.raw):<12}"
            f"{theirs:>22}{ours / vendor:10.2f}{ours / fastest:11.2f} "
            f"{judge(f'{measure.title}, {name}, x fastest', ours / fastest, measure.fastest)}"
        )


def judge(what: str, ratio: float, limit: float | None) -> str:
    """The limit and PASS or FAIL, which is remembered for the end."""
    if limit is None:
        return "-"
    is_within = ratio <= limit
    _SEEN.append((is_within, f"{what}: {ratio:.2f}, limit {limit:g}"))
    return f"{limit:<5g}{'PASS' if is_within else 'FAIL'}"


def verdict() -> str:
    """The end of a run: how many limits held, and which did not."""
    failed = [text for is_within, text in _SEEN if not is_within]
    kept = f"{len(_SEEN) - len(failed)} of {len(_SEEN)} limits kept"
    if not failed:
        return f"\nPASS: {kept}"
    return "\n  ".join([f"\nFAIL: {kept}; over their limit are", *failed])
