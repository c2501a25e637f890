"""Tables of costs, their ratios, and the limits these are held to."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

_SEEN: list[tuple[bool, str]] = []
_TABLES: list[dict[str, Any]] = []
_LIMITS: list[dict[str, Any]] = []
_PACKAGES = ("aiohttp", "msgspec", "openai", "anthropic", "google-genai")


Limit: TypeAlias = float | Mapping[str, float] | None
"""How many times another's cost ours may be: in every dialect, or by dialect."""


class Measure(NamedTuple):
    """What a table is about, and how its costs are shown."""

    title: str
    unit: str
    scale: float
    """What a cost is multiplied by to be of that unit."""
    least: Mapping[str, Limit] = {"raw": None}
    """Those who do the least that is possible, each with its limit."""
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
    head = "".join(f"{who:>9}{f'x {who}':>9} {'limit':<10}" for who in measure.least)
    print(f"  {'dialect':20}{'ours':>9}{head}{'vendor':>22}{'x vendor':>10}{'x fastest':>11} limit")
    fastest = min((samples["vendor", name] for name in names), key=median)
    rows: list[dict[str, Any]] = []
    table = {"title": measure.title, "unit": measure.unit, "least": [*measure.least], "rows": rows}
    _TABLES.append(table)
    for name in names:
        ours, vendor = samples["ours", name], samples["vendor", name]
        row = {"dialect": name, "vendor_name": vendors[name]}
        for who in (*measure.least, "ours", "vendor"):
            row[who] = round(min(samples[who, name]) * measure.scale, 2)
        line = f"  {name:20}{row['ours']:9.1f}"
        for who, limit in measure.least.items():
            times = ratio(ours, samples[who, name])
            row[f"x_{who}"] = round(times, 3)
            most = limit[name] if isinstance(limit, Mapping) else limit
            beside = judge(f"{measure.title}, {name}, x {who}", times, most)
            line += f"{row[who]:9.1f}{times:9.2f} {beside:<10}"
        row |= {"x_vendor": round(ratio(ours, vendor), 3)}
        row |= {"x_fastest": round(ratio(ours, fastest), 3)}
        rows.append(row)
        beside = judge(f"{measure.title}, {name}, x fastest", row["x_fastest"], measure.fastest)
        theirs = f"{vendors[name]} {row['vendor']:9.1f}"
        print(f"{line}{theirs:>22}{row['x_vendor']:10.2f}{row['x_fastest']:11.2f} {beside}")


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
