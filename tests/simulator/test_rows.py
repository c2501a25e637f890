"""What differs between the vendors: ids, headers, keys."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import RateLimit, dialects
from interlingua.simulator.rows import ROWS, limit_headers, read_key, request_id
from interlingua.wire.ratelimit_headers import parse_rate_limit

NOW = datetime(2026, 11, 1, 12, 0, 0, tzinfo=UTC)
counts = st.none() | st.integers(0, 10**9)
limits = st.builds(
    RateLimit,
    requests_limit=counts,
    requests_remaining=counts,
    tokens_limit=counts,
    tokens_remaining=counts,
    reset_after=st.none() | st.integers(0, 3600).map(float),
)


def test_every_dialect_has_its_row():
    """A new dialect needs one."""
    assert set(ROWS) == set(dialects.names())


@pytest.mark.parametrize("dialect", [name for name, row in ROWS.items() if row.limit_headers])
@given(limit=limits)
def test_limits_are_read_as_they_were_given(dialect, limit):
    """The vendor's headers say the limits, and when they reset if there are any."""
    read = parse_rate_limit(limit_headers(ROWS[dialect], limit, NOW), now=NOW) or RateLimit()

    for name in ("requests_limit", "requests_remaining", "tokens_limit", "tokens_remaining"):
        assert getattr(read, name) == getattr(limit, name)
    has_bucket = any(getattr(limit, name) is not None for name in limit.__struct_fields__[:4])
    assert read.reset_after == (limit.reset_after if has_bucket else None)


def test_gemini_reports_no_limits():
    """It has no such headers."""
    assert limit_headers(ROWS["gemini_generate"], RateLimit(requests_limit=1)) == {}


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"authorization": "Bearer k1"}, ""),
        ({"authorization": "bearer k1"}, ""),
        ({"x-api-key": "k1"}, ""),
        ({"x-goog-api-key": "k1"}, ""),
        ({"api-key": "k1"}, ""),
        ({}, "alt=sse&key=k1"),
    ],
)
def test_a_key_is_found_wherever_a_client_puts_it(headers, query):
    """In any of the vendors' headers, or in the query."""
    assert read_key(headers, query) == "k1"


def test_no_key():
    """None is not an empty key."""
    assert read_key({"accept": "x"}, "alt=sse") is None


def test_request_ids_say_what_they_are():
    """They are different, and simulated."""
    assert request_id(1) != request_id(2)
    assert "simulated" in request_id(1)
