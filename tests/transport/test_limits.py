"""Errors for clocks and sizes."""

import pytest

from interlingua.spec.contracts import HttpRequest, Timeouts
from interlingua.transport.limits import head_clock, host_of, timeout_error, too_large

REQUEST = HttpRequest(url="https://user:secret@api.example.com:8443/v1?key=secret")


@pytest.mark.parametrize("phase", ["connect", "first_byte", "request", "stream_read"])
def test_timeouts_name_host_and_seconds(phase):
    """Only a connection that did not come about may be tried again unasked."""
    error = timeout_error(phase, REQUEST, Timeouts(**{phase: 1.5}))

    assert "api.example.com" in error.message
    assert "1.5 s" in error.message
    assert "secret" not in error.message
    assert error.retryable is (phase == "connect")
    assert error.phase == phase


@pytest.mark.parametrize(
    ("timeouts", "expected"),
    [
        (Timeouts(), (600.0, "request")),
        (Timeouts(first_byte=5), (5, "first_byte")),
        (Timeouts(first_byte=5, request=2), (2, "request")),
        (Timeouts(first_byte=5, request=None), (5, "first_byte")),
        (Timeouts(request=None), (None, "request")),
        (Timeouts(first_byte=0), (0, "first_byte")),
    ],
)
def test_the_clock_of_the_head(timeouts, expected):
    """The shorter of the two; zero is a time."""
    assert head_clock(timeouts) == expected


def test_too_large():
    """It says what to do."""
    error = too_large(REQUEST, 10)

    assert "max_body" in error.message
    assert not error.retryable


@pytest.mark.parametrize("url", ["", "http://[", "/v1"])
def test_no_host(url):
    """A URL without a host does not break the message."""
    assert host_of(HttpRequest(url=url)) == "no host"
