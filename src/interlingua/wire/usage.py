"""Token counts of a host -> `Usage`, where the parts may contradict the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias, TypeGuard, TypeVar, get_args

import msgspec

from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.response import Usage, Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import count

_TICKS = 10_000_000_000
"""Units of `cost_in_usd_ticks` (xAI) in a dollar."""
_MOST = 1e10
"""No call costs as many dollars."""
_TIERS = {
    "batch": "batch",
    "flex": "flex",
    "on_demand_flex": "flex",
    "priority": "priority",
    "on_demand_priority": "priority",
    "fast": "priority",
    "ultrafast": "ultrafast",
}
"""All others (`default`, `standard`, `on_demand`, `scale`, …) have the standard rates."""

_ODD = (msgspec.ValidationError, UnicodeError)
"""The errors of a count that is negative or no whole number, and of half a character in a name."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)] | None
"""A field of `Counts`."""


class Counts(msgspec.Struct, gc=False):
    """The base of a host's usage object; a field is a `Count`, or other counts or None."""


CountsT = TypeVar("CountsT", bound=Counts)


def read_counts(
    wire: UncheckedJson, kind: type[CountsT], notes: list[Warning] | None = None
) -> CountsT:
    """
    The counts of a usage object, as `count` reads each.

    Each negative count adds a warning to `notes`.
    """
    try:
        return msgspec.convert(wire, kind)
    except _ODD:
        if notes is not None:
            _note_negative(wire, notes)
        return _read_odd(wire, kind)


def _read_odd(wire: UncheckedJson, kind: type[CountsT]) -> CountsT:
    """Field by field; what is not a count is None."""
    fields: dict[str, int | Counts | None] = {}
    for field in msgspec.structs.fields(kind) if isinstance(wire, dict) else ():
        value = wire.get(field.encode_name)
        types = [each for each in get_args(field.type) if isinstance(each, type)]
        inner = next((each for each in types if issubclass(each, Counts)), None)
        if inner is None:
            fields[field.name] = count(value)
        elif isinstance(value, dict):
            fields[field.name] = _read_odd(value, inner)
    return kind(**fields)


def make_usage(  # noqa: PLR0913 -- the figures of a host
    *,
    input_tokens: int,
    output_tokens: int,
    reasoning: int | None,
    reasoning_inside: bool = False,
    cache_read: int | None,
    cache_write: int | None = None,
    cache_read_audio: int | None = None,
    input_audio: int | None = None,
    input_image: int | None = None,
    output_audio: int | None = None,
    output_image: int | None = None,
    web_searches: int | None = None,
    service_tier: str | None = None,
    raw: dict[str, Json],
    notes: list[Warning] | None = None,
) -> Usage:
    """
    Counts in which no part is larger than its whole.

    Reasoning above the output is counted beside it, so it is added, unless `reasoning_inside`: then
    it is limited to the output. Cached tokens above the input are limited to it: the input is what
    the host bills. Reads and writes are compared each alone, because some hosts count the same
    tokens in both. `raw` is the usage as it was received. Each figure that is changed adds a
    warning to `notes`.
    """
    if reasoning is not None and reasoning > output_tokens and not reasoning_inside:
        output_tokens += reasoning

    def limit(name: str, part: int, side: str, whole: int) -> int:
        if notes is not None:
            note_limited(name, part, side, whole, notes)
        return min(part, whole)

    def inside(name: str, part: int | None, side: str, whole: int) -> int | None:
        return limit(name, part, side, whole) if part else None

    # The figures that most answers have are called only if they are there.
    read = cache_read and limit("cache_read", cache_read, "input", input_tokens)
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        reasoning_tokens=reasoning and limit("reasoning", reasoning, "output", output_tokens),
        cache_read_tokens=read,
        cache_write_tokens=cache_write and limit("cache_write", cache_write, "input", input_tokens),
        cache_read_audio_tokens=inside("cache_read_audio", cache_read_audio, "cached", read or 0),
        input_audio_tokens=inside("input_audio", input_audio, "input", input_tokens),
        input_image_tokens=inside("input_image", input_image, "input", input_tokens),
        output_audio_tokens=inside("output_audio", output_audio, "output", output_tokens),
        output_image_tokens=inside("output_image", output_image, "output", output_tokens),
        web_searches=web_searches,
        service_tier=service_tier,
        reported_cost=own_cost(raw),
        raw=raw,
    )


def note_limited(name: str, part: int, side: str, whole: int, notes: list[Warning]) -> None:
    """Add a warning if a part is larger than its whole, to which it is limited."""
    if part > whole:
        path, fields = f"usage.{name}_tokens", {"part": part, "whole": whole, "side": side}
        notes.append(make_warning("usage_limited", path, name=name, **fields))


def served_tier(name: Json) -> str | None:
    """The tier of service that a host names, if the tier has other rates; else None."""
    return _TIERS.get(name.lower()) if isinstance(name, str) else None


def _note_negative(usage: UncheckedJson, notes: list[Warning], path: str = "") -> None:
    """Add a warning for each negative count; `count` reads it as 0."""
    for name, value in usage.items() if isinstance(usage, dict) else ():
        if type(value) is int and value < 0:
            place = path + name
            notes.append(make_warning("usage_negative", f"usage.{place}", name=place, value=value))
        elif not path:
            _note_negative(value, notes, f"{name}.")


def own_cost(usage: Mapping[str, Json]) -> float | None:
    """
    The cost in dollars that the host reports; None if it reports none.

    OpenRouter: "cost" is what it charges. With a key of the caller's own (`is_byok`) that is only
    its fee, and `cost_details.upstream_inference_cost` is what the provider charges.
    """
    if "cost" not in usage and "cost_in_usd_ticks" not in usage:  # most hosts
        return None
    ticks = usage.get("cost_in_usd_ticks")
    if _is_amount(ticks, _MOST * _TICKS):
        return ticks / _TICKS
    cost = usage.get("cost")
    if not _is_amount(cost):
        return None
    details = usage.get("cost_details")
    if usage.get("is_byok") and isinstance(details, dict):
        upstream = details.get("upstream_inference_cost")
        if _is_amount(upstream):
            cost += upstream
    return float(cost)


def _is_amount(value: Json, most: float = _MOST) -> TypeGuard[float]:
    """Whether it is a number that can be an amount of money."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < most
