"""Request ids and rate-limit headers of the simulated replies."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import RateLimitInfo, dialects
from interlingua.serving.application import limit_headers, serve_of
from interlingua.simulator.answer import request_id
from interlingua.wire.ratelimit_headers import parse_rate_limit

NOW = datetime(2026, 11, 1, 12, 0, 0, tzinfo=UTC)
BUCKETS = ("requests_limit", "requests_remaining", "tokens_limit", "tokens_remaining")
counts = st.none() | st.integers(0, 10**9)
limits = st.builds(
    RateLimitInfo,
    requests_limit=counts,
    requests_remaining=counts,
    tokens_limit=counts,
    tokens_remaining=counts,
    reset_after=st.none() | st.integers(0, 3600).map(float),
)


@pytest.mark.parametrize(
    "dialect", [name for name in dialects.names() if serve_of(name).SERVER.limit_headers]
)
@given(limit=limits)
def test_limits_are_read_as_they_were_given(dialect, limit):
    """The vendor's headers say the limits, and when they reset if there are any."""
    read = (
        parse_rate_limit(limit_headers(serve_of(dialect).SERVER, limit, NOW), now=NOW)
        or RateLimitInfo()
    )

    for name in BUCKETS:
        assert getattr(read, name) == getattr(limit, name)
    has_bucket = any(getattr(limit, name) is not None for name in BUCKETS)
    assert read.reset_after == (limit.reset_after if has_bucket else None)


def test_gemini_reports_no_limits():
    """It has no such headers."""
    assert limit_headers(serve_of("gemini_generate").SERVER, RateLimitInfo(requests_limit=1)) == {}


def test_request_ids_say_what_they_are():
    """They are different, and simulated."""
    assert request_id(1) != request_id(2)
    assert "simulated" in request_id(1)
