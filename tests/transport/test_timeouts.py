"""Errors for timeouts and sizes."""

import asyncio

import pytest

from interlingua.spec.contracts import HttpRequest, Timeouts
from interlingua.spec.errors import DecodeError
from interlingua.transport.timeouts import (
    Bounded,
    host_of,
    is_one_value,
    next_deadline,
    timeout_error,
    too_large,
)

REQUEST = HttpRequest(url="https://user:secret@api.example.com:8443/v1?key=secret")


@pytest.mark.parametrize("phase", ["connect", "first_byte", "request", "stream_read", "total"])
def test_timeouts_name_host_and_seconds(phase):
    """The message has host and seconds; only a connect timeout is retryable."""
    error = timeout_error(phase, REQUEST, Timeouts(**{phase: 1.5}))

    assert "api.example.com" in error.message
    assert "1.5 s" in error.message
    assert "secret" not in error.message
    assert error.retryable is (phase == "connect")
    assert error.phase == phase


@pytest.mark.parametrize(
    ("timeouts", "phase", "expected"),
    [
        (Timeouts(), "first_byte", (700.0, "request")),
        (Timeouts(first_byte=5), "first_byte", (105, "first_byte")),
        (Timeouts(first_byte=5, request=2), "first_byte", (102, "request")),
        (Timeouts(first_byte=5, request=None), "first_byte", (105, "first_byte")),
        (Timeouts(request=None), "first_byte", (None, "first_byte")),
        (Timeouts(first_byte=0), "first_byte", (100, "first_byte")),
        (Timeouts(first_byte=5), "request", (700, "request")),
        (Timeouts(total=5), "request", (105, "total")),
        (Timeouts(total=5, request=5), "request", (105, "request")),
        (Timeouts(first_byte=5), "stream_read", (410, "stream_read")),
        (Timeouts(stream_read=None), "stream_read", (None, "stream_read")),
        (Timeouts(total=50), "stream_read", (150, "total")),
    ],
)
def test_the_next_deadline(timeouts, phase, expected):
    """The first of the timeouts of a phase that began at 100 s, and waits since 110 s."""
    assert next_deadline(timeouts, phase, 100, 110) == expected


def test_too_large():
    """The message says what to do."""
    error = too_large(REQUEST, 10)

    assert "limits=Limits(body=" in error.message
    assert not error.retryable


@pytest.mark.parametrize("url", ["", "http://[", "/v1"])
def test_no_host(url):
    """A URL without a host does not break the message."""
    assert host_of(HttpRequest(url=url)) == "no host"


def test_body_over_the_limit():
    """The chunk over the limit is refused, after the chunks before it were delivered."""
    read = []

    async def endless():
        while True:
            yield b"abcd"

    async def main():
        async for chunk in Bounded(endless(), REQUEST, 10):
            read.append(chunk)  # noqa: PERF401 -- kept though it fails

    with pytest.raises(DecodeError, match=r"api\.example\.com:8443 is larger than 10 bytes"):
        asyncio.run(main())
    assert read == [b"abcd", b"abcd"]


@pytest.mark.parametrize(
    ("content_type", "answer"),
    [
        ("application/json", True),
        ("application/json; charset=UTF-8", True),
        ("text/event-stream", False),
        (None, False),
    ],
)
def test_is_one_value(content_type, answer):
    """JSON is one value; a stream of events is not."""
    assert is_one_value({} if content_type is None else {"content-type": content_type}) is answer
