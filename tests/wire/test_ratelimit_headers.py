from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.response import RateLimitInfo
from interlingua.wire.ratelimit_headers import parse_rate_limit, should_retry
from interlingua.wire.ratelimit_values import parse_duration, parse_retry_after

NOW = datetime(2026, 1, 30, 8, 0, 0, tzinfo=UTC)
DATE = "Fri, 30 Jan 2026 08:00:00 GMT"
NAMES = [
    "retry-after", "Retry-After-Ms", "date", "x-should-retry", "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests", "x-ratelimit-reset",
    "anthropic-ratelimit-tokens-reset", "anthropic-ratelimit-tokens-remaining", "ratelimit",
]  # fmt: skip
VALUES = [
    "1", "0", "-1", "nan", "inf", "1e999", "9" * 5000, "1769759896", "1769759896000", "9e17",
    "1s", "6m0s", "-1s", "9" * 400 + "h", "2026-01-30T08:00:05Z", "2026-13-30T08:00:05Z",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", DATE, "Fri, 31 Feb 2026 08:00:00 GMT",
    "Fri, 30 Xxx 2026 08:00:00 GMT", "true", "٣", "²",
]  # fmt: skip
headers = st.dictionaries(
    st.sampled_from(NAMES) | st.text(max_size=5), st.sampled_from(VALUES) | st.text(), max_size=6
)
nows = st.none() | st.datetimes() | st.datetimes(timezones=st.just(UTC))


@given(headers, nows)
def test_no_headers_raise(given_headers, now):
    """Any strings at all give a value that makes sense or None."""
    wait = parse_retry_after(given_headers, now=now)
    assert wait is None or 0 <= wait < float("inf")
    limit = parse_rate_limit(given_headers, now=now)
    if limit is not None:
        assert limit.raw
        assert limit.reset_after is None or 0 <= limit.reset_after < float("inf")
        assert limit.reset_at is None or limit.reset_at.tzinfo is not None
    assert should_retry(given_headers) in {True, False, None}


@given(st.text() | st.text("0123456789.hmsdnuµ ", max_size=12))
def test_no_duration_raises(text):
    """Any text is a finite, positive time or None."""
    seconds = parse_duration(text)
    assert seconds is None or 0 <= seconds < float("inf")


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59999))
def test_durations_add_up(hours, minutes, milliseconds):
    """A Go duration is the sum of its parts."""
    total = hours * 3600 + minutes * 60 + milliseconds / 1000
    text = f"{hours}h{minutes}m{milliseconds / 1000:.3f}s"
    assert parse_duration(text) == pytest.approx(total)
    assert parse_duration(f"{milliseconds}ms") == pytest.approx(milliseconds / 1000)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("1h2m3.5s", 3723.5),
        ("250ms", 0.25),
        ("34.4s", 34.4),
        ("2m59.56s", 179.56),
        ("1500µs", 0.0015),
        ("12", 12),
        ("0.5", 0.5),
        ("", None),
        ("s", None),
        ("-1s", None),
        ("1x", None),
        ("1s and more", None),
        ("nan", None),
    ],
)
def test_durations(text, seconds):
    """The forms providers send."""
    assert parse_duration(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("given_headers", "seconds"),
    [
        ({"retry-after": "16"}, 16),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1),
        ({"retry-after": "Fri, 30 Jan 2026 08:00:30 GMT"}, 30),
        ({"retry-after": "Friday, 30-Jan-26 08:00:30 GMT"}, 30),
        ({"retry-after": "Fri Jan 30 08:00:30 2026"}, 30),
        ({"retry-after": "Fri, 30 Jan 2026 07:59:00 GMT"}, 0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "NaN"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_every_form_of_retry_after_is_read(given_headers, seconds):
    """Milliseconds, seconds and dates are read; a date in the past means at once (field bug 73)."""
    assert parse_retry_after(given_headers, now=NOW) == seconds


def test_a_retry_date_is_counted_from_the_responses_own_date():
    """Without a clock the response's date serves; without that there is no telling."""
    late = "Fri, 30 Jan 2026 08:00:30 GMT"
    assert parse_retry_after({"retry-after": late, "date": DATE}) == 30
    assert parse_retry_after({"retry-after": late}) is None


def test_openai_limits():
    """Counts of requests and tokens, and the nearest reset."""
    given_headers = {
        "X-RateLimit-Limit-Requests": "5000",
        "x-ratelimit-limit-tokens": "800000",
        "x-ratelimit-remaining-requests": "4999",
        "x-ratelimit-remaining-tokens": "799973",
        "x-ratelimit-reset-requests": "12ms",
        "x-ratelimit-reset-tokens": "6m0s",
        "content-type": "text/event-stream",
    }
    assert parse_rate_limit(given_headers) == RateLimitInfo(
        requests_limit=5000,
        requests_remaining=4999,
        tokens_limit=800000,
        tokens_remaining=799973,
        reset_after=0.012,
        raw={
            name.lower(): value for name, value in given_headers.items() if name != "content-type"
        },
    )


def test_the_reset_of_a_used_up_limit_counts():
    """What is used up decides, not what resets sooner."""
    limit = parse_rate_limit(
        {
            "x-ratelimit-remaining-requests": "4999",
            "x-ratelimit-reset-requests": "12ms",
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "1m0s",
        }
    )
    assert limit is not None
    assert limit.reset_after == 60


def test_anthropic_limits():
    """Resets are moments; the wait is known if the time is."""
    given_headers = {
        "anthropic-ratelimit-requests-limit": "4000",
        "anthropic-ratelimit-requests-remaining": "3999",
        "anthropic-ratelimit-requests-reset": "2026-01-30T08:00:01Z",
        "anthropic-ratelimit-tokens-limit": "4800000",
        "anthropic-ratelimit-tokens-remaining": "4669000",
        "anthropic-ratelimit-tokens-reset": "2026-01-30T08:00:20Z",
        "anthropic-ratelimit-output-tokens-limit": "800000",
        "anthropic-ratelimit-output-tokens-remaining": "0",
        "anthropic-ratelimit-output-tokens-reset": "2026-01-30T08:00:54Z",
    }
    expected = RateLimitInfo(
        requests_limit=4000,
        requests_remaining=3999,
        tokens_limit=4800000,
        tokens_remaining=4669000,
        reset_at=NOW + timedelta(seconds=54),
        raw=given_headers,
    )
    assert parse_rate_limit(given_headers) == expected
    berlin = NOW.astimezone(timezone(timedelta(hours=1)))
    limit = parse_rate_limit(given_headers, now=berlin)
    assert limit is not None
    assert limit.reset_after == 54


@pytest.mark.parametrize(
    ("given_headers", "counts"),
    [
        (  # Mistral
            {
                "x-ratelimit-limit-req-minute": "60",
                "x-ratelimit-remaining-req-minute": "52",
                "x-ratelimit-limit-tokens-minute": "500000",
                "x-ratelimit-remaining-tokens-minute": "499497",
                "x-ratelimit-limit-tokens-month": "1000000000",
            },
            (60, 52, 500000, 499497),
        ),
        (  # Hugging Face
            {
                "x-ratelimit-remaining-requests-day": "2879998",
                "x-ratelimit-remaining-requests-minute": "1998",
                "x-ratelimit-remaining-tokens-minute": "9223372036854767616",
            },
            (None, 1998, None, 9223372036854767616),
        ),
        (
            {"x-ratelimit-limit-minute": "400", "x-ratelimit-remaining-minute": "399"},
            (400, 399, None, None),
        ),
        (  # Together
            {
                "x-ratelimit-limit": "10",
                "x-ratelimit-remaining": "9",
                "x-ratelimit-limit-tokens": "3000",
            },
            (10, 9, 3000, None),
        ),
        (  # a proxy
            {"x-ratelimit-requests": "4000", "x-ratelimit-remaining-requests": "3999"},
            (4000, 3999, None, None),
        ),
        ({"anthropic-ratelimit-input-tokens-limit": "5"}, (None, None, 5, None)),
        ({"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "7"}, (100, 7, None, None)),
        ({"x-ratelimit-limit-requests": "XXX"}, (None, None, None, None)),
    ],
)
def test_other_hosts(given_headers, counts):
    """The names and windows other hosts use; minutes come before longer windows."""
    limit = parse_rate_limit(given_headers)
    assert limit is not None
    assert counts == (
        limit.requests_limit,
        limit.requests_remaining,
        limit.tokens_limit,
        limit.tokens_remaining,
    )
    assert limit.raw == given_headers


@pytest.mark.parametrize("text", ["1769760010", "1769760010000", "2026-01-30T08:00:10+00:00"])
def test_moments(text):
    """Seconds and milliseconds since 1970 and timestamps are the same moment."""
    limit = parse_rate_limit({"x-ratelimit-reset": text, "date": DATE})
    assert limit is not None
    assert limit.reset_at == NOW + timedelta(seconds=10)
    assert limit.reset_after == 10


@pytest.mark.parametrize("text", ["10", "10s", "0m10s", "10000ms"])
def test_a_duration_is_a_moment_too(text):
    """Counted from the server's clock, or from the given time; without both it is not known."""
    headers = {"x-ratelimit-reset-requests": text}
    for limit in (
        parse_rate_limit(headers | {"date": DATE}),
        parse_rate_limit(headers, now=NOW),
    ):
        assert (limit.reset_after, limit.reset_at) == (10, NOW + timedelta(seconds=10))
    assert parse_rate_limit(headers).reset_at is None


def test_no_limits():
    """Headers without limits are None, not an empty report."""
    assert parse_rate_limit({"retry-after": "1"}) is None


@pytest.mark.parametrize(
    ("text", "answer"), [("true", True), ("False", False), ("maybe", None), ("", None)]
)
def test_should_retry(text, answer):
    """The provider's own word on retrying."""
    assert should_retry({"x-should-retry": text}) is answer
    assert should_retry({}) is None
