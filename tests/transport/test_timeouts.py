"""Errors for timeouts and sizes."""

import asyncio

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import DecodeError
from interlingua.transport.timeouts import (
    Bounded,
    Watch,
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


class Exchange:
    """Has a deadline; notes when it was asked for it."""

    def __init__(self, deadline):
        self.deadline = deadline
        self.asked = []

    def check(self, now):
        """None after the deadline."""
        self.asked.append(now)
        return self.deadline if self.deadline > now else None


class Loop:
    """A clock of an event loop, moved by hand."""

    def __init__(self):
        self.now = 100.0
        self.timers = []

    def time(self):
        """The time of the clock."""
        return self.now

    def call_at(self, when, function):
        """Note a timer."""
        self.timers.append(asyncio.TimerHandle(when, function, (), self))
        return self.timers[-1]

    def get_debug(self):
        """As the handles of asyncio need it."""
        return False

    def _timer_handle_cancelled(self, handle):
        self.timers.remove(handle)

    def run(self):
        """Let every timer fire, each at its time; how many fired."""
        fired = 0
        while self.timers:
            timer = min(self.timers, key=asyncio.TimerHandle.when)
            self.timers.remove(timer)
            self.now = max(self.now, timer.when())
            timer._run()
            fired += 1
        return fired


def test_each_deadline_is_noticed_in_time():
    """One timer serves all, also if a later exchange has an earlier deadline."""
    loop = Loop()
    watch = Watch(loop)
    exchanges = [Exchange(loop.now + each) for each in (50, 10, 30)]
    references = [watch.reference(exchange) for exchange in exchanges]
    for reference, exchange in zip(references, exchanges, strict=True):
        watch.add(reference, exchange.deadline)
        assert len(loop.timers) == 1

    assert loop.run() == 3
    assert [exchange.asked for exchange in exchanges] == [[110, 130, 150], [110], [110, 130]]


def test_many_deadlines_are_checked_together():
    """A thousand, one after another, are not a thousand checks of all."""
    loop = Loop()
    watch = Watch(loop)
    exchanges = [Exchange(loop.now + i * 1e-5) for i in range(1_000)]
    references = [watch.reference(exchange) for exchange in exchanges]
    for reference, exchange in zip(references, exchanges, strict=True):
        watch.add(reference, exchange.deadline)

    assert loop.run() < 20
    assert loop.now - exchanges[-1].deadline < 0.01


def test_an_exchange_that_is_removed_or_abandoned_is_not_watched():
    """The watch keeps no exchange alive, and does not ask one that has ended."""
    loop = Loop()
    watch, exchange, abandoned = Watch(loop), Exchange(0.0), Exchange(0.0)
    reference, lost = watch.reference(exchange), watch.reference(abandoned)
    watch.add(reference, loop.now)
    watch.add(lost, loop.now)
    del abandoned
    assert lost() is None
    watch.remove(reference)

    assert loop.run() == 1
    assert exchange.asked == []


def test_a_closed_watch_has_no_timer():
    """So that nothing refers to it in the event loop."""
    loop, exchange = Loop(), Exchange(0.0)
    watch = Watch(loop)
    reference = watch.reference(exchange)
    watch.add(reference, loop.now)
    watch.close()

    assert loop.timers == []
