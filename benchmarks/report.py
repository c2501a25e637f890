"""Tables of costs, their ratios, and the limits these are held to."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

_SEEN: list[tuple[bool, str]] = []
_TABLES: list[dict[str, Any]] = []
_LIMITS: list[dict[str, Any]] = []
_PACKAGES = ("aiohttp", "msgspec", "openai", "anthropic", "google-genai")


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


Samples = Mapping[tuple[str, str], Sequence[float]]
"""Seconds of CPU by contender and dialect: one for each round, of all contenders in turn."""


def ratio(ours: Sequence[float], base: Sequence[float]) -> float:
    """
    How many times as much ours costs: the median of the rounds' own ratios.

    What slows a machine for a while slows both batches of a round, so that their ratio repeats
    where the costs do not.
    """
    return median(one / other for one, other in zip(ours, base, strict=True))


def compare(measure: Measure, samples: Samples, vendors: Mapping[str, str]) -> None:
    """A line for each dialect."""
    names = list(dict.fromkeys(name for _, name in samples))
    print(f"\n{measure.title} ({measure.unit})")
    print(
        f"  {'dialect':20}{'raw':>9}{'ours':>9}{'x raw':>8} {'limit':<12}"
        f"{'vendor':>22}{'x vendor':>10}{'x fastest':>11} limit"
    )
    fastest = min((samples["vendor", name] for name in names), key=median)
    rows: list[dict[str, Any]] = []
    _TABLES.append({"title": measure.title, "unit": measure.unit, "rows": rows})
    for name in names:
        raw, ours, vendor = (samples[who, name] for who in ("raw", "ours", "vendor"))
        shown = [f"{min(cost) * measure.scale:9.1f}" for cost in (raw, ours)]
        theirs = f"{vendors[name]} {min(vendor) * measure.scale:9.1f}"
        by_raw, by_fastest = ratio(ours, raw), ratio(ours, fastest)
        costs = {"raw": min(raw), "ours": min(ours), "vendor": min(vendor)}
        rows.append(
            {
                "dialect": name,
                "vendor_name": vendors[name],
                **{who: round(cost * measure.scale, 2) for who, cost in costs.items()},
                "x_raw": round(by_raw, 3),
                "x_vendor": round(ratio(ours, vendor), 3),
                "x_fastest": round(by_fastest, 3),
            }
        )
        print(
            f"  {name:20}{''.join(shown)}{by_raw:8.2f} "
            f"{judge(f'{measure.title}, {name}, x raw', by_raw, measure.raw):<12}"
            f"{theirs:>22}{ratio(ours, vendor):10.2f}{by_fastest:11.2f} "
            f"{judge(f'{measure.title}, {name}, x fastest', by_fastest, measure.fastest)}"
        )


def judge_costs(
    title: str, unit: str, scale: float, costs: Mapping[str, float], limit: float
) -> None:
    """A line for each dialect of what ours costs, held to an absolute limit."""
    print(f"\n{title} ({unit})")
    for name, cost in costs.items():
        amount = cost * scale
        print(f"  {name:20}{amount:9.1f} {judge(f'{title}, {name}', amount, limit)}")


def judge(what: str, ratio: float, limit: float | None) -> str:
    """The limit and PASS or FAIL, which is remembered for the end."""
    if limit is None:
        return "-"
    is_within = ratio <= limit
    _SEEN.append((is_within, f"{what}: {ratio:.2f}, limit {limit:g}"))
    _LIMITS.append({"what": what, "figure": round(ratio, 3), "limit": limit, "kept": is_within})
    return f"{limit:<5g}{'PASS' if is_within else 'FAIL'}"


def verdict() -> str:
    """The end of a run: how many limits held, and which did not."""
    failed = [text for is_within, text in _SEEN if not is_within]
    kept = f"{len(_SEEN) - len(failed)} of {len(_SEEN)} limits kept"
    if not failed:
        return f"\nPASS: {kept}"
    return "\n  ".join([f"\nFAIL: {kept}; over their limit are", *failed])


def save(path: Path, *, is_quick: bool) -> None:
    """Write all tables and limits of this run, for scripts/docs_tables.py."""
    about = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "quick": is_quick,
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }
    saved = {"about": about, "tables": _TABLES, "limits": _LIMITS}
    path.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
