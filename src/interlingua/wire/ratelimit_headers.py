"""Reads rate limits and retry delays from response headers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from interlingua.spec.response import RateLimitInfo

_number = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+").fullmatch
# Also accepts `100.0`, and `100, 100;w=60` of the IETF drafts; 19 digits fit 64 bits.
_count = re.compile(r"\s*([0-9]{1,19})(?:\.[0-9]*)?\s*(?:[,;]|\Z)").match
_duration = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?(?:d|h|ms|m|s|us|µs|ns))+").fullmatch
_duration_parts = re.compile(r"(?<![0-9.])([0-9]+(?:\.[0-9]*)?)(d|h|ms|m|s|us|µs|ns)").findall
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_http_dates = (  # the three forms of RFC 9110
    re.compile(
        r"[A-Za-z]+, (?P<day>[0-9]{1,2})[ -](?P<month>[A-Za-z]{3})[ -]"
        rf"(?P<year>[0-9]{{4}}|[0-9]{{2}}) {_TIME} (?:GMT|UTC)"
    ).fullmatch,
    re.compile(
        r"[A-Za-z]{3} (?P<month>[A-Za-z]{3}) +(?P<day>[0-9]{1,2}) "
        rf"{_TIME} (?P<year>[0-9]{{4}})"
    ).fullmatch,
)
_timestamp = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9].*").fullmatch

_EPOCH = 1e9  # a number from here on (31 years) is a point in time, not a duration
_EPOCH_MS = 1e12

_is_limit_header = re.compile(r"rate-?limit").search
_bucket_first = re.compile(r"anthropic-ratelimit-(.+)-(limit|remaining|reset)").fullmatch
_measure_first = re.compile(r"(?:x-)?rate-?limit-(limit|remaining|reset)(?:-(.+))?").fullmatch
# The names of buckets, in order of preference; "" is a header without a name after the measure.
_REQUESTS = (
    "requests",
    "requests-minute",
    "req-minute",
    "minute",
    "",
    "requests-hour",
    "requests-day",
    "requests-month",
)
_COUNTS = ("limit", "remaining")
_TOKENS = ("tokens", "tokens-minute", "tokens-hour", "tokens-day", "tokens-month", "input-tokens")


class _Reset(msgspec.Struct, frozen=True):
    after: float | None
    at: datetime | None


def lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    """
    The headers with names in lower case, which the functions here expect.

    Transports already return them so; other callers of a dialect may not.
    """
    return {name.lower(): value for name, value in headers.items()}


def parse_retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """
    The delay in seconds that the provider asks for; None if it is absent or invalid.

    Names are in lower case. A date is relative to `now`, by default the `date` header.
    """
    milliseconds = _parse_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _parse_number(text)
    return (
        _seconds_until(_parse_http_date(text), _now(headers, now)) if seconds is None else seconds
    )


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """
    The value of `x-should-retry`, which overrides the status; None if it is absent.

    Names are in lower case.
    """
    text = headers.get("x-should-retry", "").strip().lower()
    return {"true": True, "false": False}.get(text)


def parse_duration(text: str) -> float | None:
    """The seconds of a Go duration such as `1h2m3.5s` or `250ms`, or of a plain number."""
    text = text.strip()
    if not _duration(text):
        return _parse_number(text)
    seconds = math.fsum(float(count) * _UNITS[unit] for count, unit in _duration_parts(text))
    return seconds if math.isfinite(seconds) else None


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
    return RateLimitInfo.deferred(lambda: _parse_limits(relevant, now))


def _parse_limits(headers: Mapping[str, str], now: datetime | None) -> RateLimitInfo:
    raw = {name: value for name, value in headers.items() if _is_limit_header(name)}
    buckets = _buckets(raw)
    requests = _first(buckets, _REQUESTS)
    tokens = _first(buckets, _TOKENS)
    reset = _choose_reset(buckets, _now(headers, now))
    return RateLimitInfo(
        requests_limit=_parse_count(requests.get("limit", "")),
        requests_remaining=_parse_count(requests.get("remaining", "")),
        tokens_limit=_parse_count(tokens.get("limit", "")),
        tokens_remaining=_parse_count(tokens.get("remaining", "")),
        reset_after=reset.after,
        reset_at=reset.at,
        raw=raw,
    )


def _now(headers: Mapping[str, str], now: datetime | None) -> datetime | None:
    return _parse_http_date(headers.get("date", "")) if now is None else _aware(now)


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.utcoffset() is None else moment


def _seconds_until(moment: datetime | None, now: datetime | None) -> float | None:
    if moment is None or now is None:
        return None
    return max((moment - now).total_seconds(), 0.0)


def _parse_number(text: str) -> float | None:
    text = text.strip()
    if not _number(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _parse_count(text: str) -> int | None:
    match = _count(text)
    return int(match[1]) if match else None


def _parse_http_date(text: str) -> datetime | None:
    matches = (match_date(text.strip()) for match_date in _http_dates)
    match = next(filter(None, matches), None)
    if match is None or match["month"].lower() not in _MONTHS:
        return None
    year = int(match["year"])
    if len(match["year"]) == 2:
        year += 2000 if year < 70 else 1900
    month = _MONTHS.index(match["month"].lower()) + 1
    day, hour, minute, second = map(int, match.group("day", "hour", "minute", "second"))
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


def _parse_reset(text: str, now: datetime | None) -> _Reset | None:
    after = parse_duration(text)
    if after is not None and after < _EPOCH:
        return _Reset(after, None if now is None else now + timedelta(seconds=after))
    at = _parse_timestamp(text.strip()) if after is None else _parse_epoch(after)
    return None if at is None else _Reset(_seconds_until(at, now), at)


def _parse_timestamp(text: str) -> datetime | None:
    if not _timestamp(text):
        return _parse_http_date(text)
    try:
        return _aware(datetime.fromisoformat(text))
    except ValueError:
        return None


def _parse_epoch(value: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(value / 1000 if value >= _EPOCH_MS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _buckets(raw: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The headers grouped by bucket: `{"tokens": {"limit": "9", "reset": "1s"}}`."""
    buckets: dict[str, dict[str, str]] = {}
    for name, value in raw.items():
        if match := _bucket_first(name):
            buckets.setdefault(match[1], {}).setdefault(match[2], value)
        elif match := _measure_first(name):
            buckets.setdefault(match[2] or "", {}).setdefault(match[1], value)
        elif name in {"x-ratelimit-requests", "x-ratelimit-tokens"}:  # seen behind a proxy
            buckets.setdefault(name[12:], {}).setdefault("limit", value)
    return buckets


def _first(buckets: Mapping[str, Mapping[str, str]], names: tuple[str, ...]) -> Mapping[str, str]:
    for name in names:
        bucket = buckets.get(name, {})
        if any(_parse_count(bucket.get(measure, "")) is not None for measure in _COUNTS):
            return bucket
    return {}


def _choose_reset(buckets: Mapping[str, Mapping[str, str]], now: datetime | None) -> _Reset:
    resets: list[_Reset] = []
    exhausted: list[_Reset] = []
    for bucket in buckets.values():
        reset = _parse_reset(bucket.get("reset", ""), now)
        if reset is not None:
            resets.append(reset)
            if _parse_count(bucket.get("remaining", "")) == 0:
                exhausted.append(reset)
    return min(exhausted or resets, key=_nearness, default=_Reset(None, None))


def _nearness(reset: _Reset) -> tuple[float, float]:
    # Without `now`, a point in time cannot be compared with a duration; it comes last.
    after = math.inf if reset.after is None else reset.after
    return after, 0.0 if reset.at is None else reset.at.timestamp()
