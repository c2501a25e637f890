"""
Finds the headers of a response about limits and retries.

Few callers read the limits, so their values are parsed at their first use, by `ratelimit_values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from interlingua.spec.response import RateLimitInfo


def lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    """
    The headers with names in lower case, which the functions here expect.

    Transports already return them so; other callers of a dialect may not.
    """
    return {name.lower(): value for name, value in headers.items()}


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """
    The value of `x-should-retry`, which overrides the status; None if it is absent.

    Names are in lower case.
    """
    text = headers.get("x-should-retry", "").strip().lower()
    return {"true": True, "false": False}.get(text)


def reports_limits(headers: Mapping[str, str]) -> bool:
    """Whether any header is about a rate limit."""
    names = " ".join(headers).lower()
    return "ratelimit" in names or "rate-limit" in names


def parse_rate_limit(
    headers: Mapping[str, str], *, now: datetime | None = None
) -> RateLimitInfo | None:
    """
    The limits that a response reports; None if it reports none.

    Limits per minute are preferred to longer windows. `reset_after` is that of an exhausted limit,
    or the nearest if none is exhausted. A point in time is relative to `now`, by default `date`.
    """
    # Few callers read the limits, so they are parsed on first use.
    if not reports_limits(headers):
        return None
    # Copy only these headers: a response should not keep the others (cookies) alive.
    relevant = {
        name: value
        for original, value in headers.items()
        if "limit" in (name := original.lower()) or name == "date"
    }
    return RateLimitInfo.deferred(lambda: _parse(relevant, now))


def _parse(headers: Mapping[str, str], now: datetime | None) -> RateLimitInfo:
    from interlingua.wire.ratelimit_values import parse_limits

    return parse_limits(headers, now)
