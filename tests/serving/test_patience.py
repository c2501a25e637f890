"""How long a connection waits for its client, and how much of it is held, in virtual time."""

import asyncio

import pytest

from interlingua.serving.server import Connection
from support import virtual_time

HEAD = b"POST / HTTP/1.1\r\ncontent-length: 5\r\n"
DAY = 86_400.0


class Wire(asyncio.Transport):
    """The side of the client: what was sent to it, when it was closed, whether it may send."""

    def __init__(self):
        super().__init__()
        self.sent = b""
        self.closed_at = None
        self.is_paused = False

    def write(self, data):
        self.sent += data

    def close(self):
        if self.closed_at is None:
            self.closed_at = asyncio.get_running_loop().time()

    abort = close

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def get_extra_info(self, _name, default=None):
        return default

    def pause_reading(self):
        self.is_paused = True

    def resume_reading(self):
        self.is_paused = False


async def echo(_scope, receive, send):
    """Answers with the body of the request."""
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def connected(work, app=echo):
    """What `work(connection, wire, start)` returns, with a new connection."""

    async def main():
        wire, connections = Wire(), set()
        connection = Connection(app, connections)
        connection.connection_made(wire)
        try:
            return await work(connection, wire, asyncio.get_running_loop().time())
        finally:
            connection.connection_lost(None)
            await asyncio.gather(connection.abandon(), return_exceptions=True)

    return virtual_time.run(main())


def test_a_connection_without_a_request_is_closed():
    """Quietly, after about a minute."""

    async def work(_connection, wire, start):
        await asyncio.sleep(DAY)
        return wire.sent, wire.closed_at - start

    sent, seconds = connected(work)
    assert sent == b""
    assert 30 <= seconds <= 120


@pytest.mark.parametrize("pause", [1.0, 20.0])
def test_a_head_that_comes_in_drops_is_refused(pause):
    """However regularly they come: it has about half a minute in all."""

    async def work(connection, wire, start):
        for drop in HEAD * 100:
            if wire.closed_at is not None:
                break
            connection.data_received(bytes([drop]))
            await asyncio.sleep(pause)
        return wire.sent, wire.closed_at - start

    sent, seconds = connected(work)
    assert sent.startswith(b"HTTP/1.1 408 ")
    assert 20 <= seconds <= 60


@pytest.mark.parametrize("rest", [b"hel", b""], ids=["within the body", "before the body"])
def test_a_body_that_stops_is_refused(rest):
    """After about a minute without a byte."""

    async def work(connection, wire, start):
        connection.data_received(HEAD + b"\r\n" + rest)
        await asyncio.sleep(DAY)
        return wire.sent, wire.closed_at - start

    sent, seconds = connected(work)
    assert sent.startswith(b"HTTP/1.1 408 ")
    assert 30 <= seconds <= 120


def test_a_body_that_goes_on_is_waited_for():
    """A large upload over a slow line takes as long as it takes."""

    async def work(connection, wire, _start):
        connection.data_received(b"POST / HTTP/1.1\r\ncontent-length: 100\r\n\r\n")
        for _ in range(100):
            await asyncio.sleep(20)
            connection.data_received(b"x")
        await asyncio.sleep(1)
        return wire.sent

    assert connected(work).startswith(b"HTTP/1.1 200 ")


def test_an_application_may_take_its_time():
    """The clocks are about the client, not about the answer."""

    async def slow(scope, receive, send):
        await asyncio.sleep(DAY)
        await echo(scope, receive, send)

    async def work(connection, wire, _start):
        connection.data_received(HEAD + b"\r\nhello")
        await asyncio.sleep(DAY + 1)
        return wire.sent

    assert connected(work, slow).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_sends_ahead_is_paused():
    """What follows a request is held up to a limit while it is answered, then read on."""
    request = HEAD + b"\r\nhello"

    async def slow(scope, receive, send):
        await asyncio.sleep(1)
        await echo(scope, receive, send)

    async def work(connection, wire, _start):
        count = 0
        while not wire.is_paused and count < 100_000:
            connection.data_received(request)
            count += 1
        await asyncio.sleep(DAY)
        return count, wire.sent.count(b"200 OK"), wire.is_paused

    count, answers, is_paused = connected(work, slow)
    assert count * len(request) <= 256 * 1024
    assert (answers, is_paused) == (count, False)


def test_a_flood_behind_a_request_is_not_held():
    """A megabyte behind a request is not taken from the client before its turn."""

    async def never(_scope, _receive, _send):
        await asyncio.sleep(DAY)

    async def work(connection, wire, _start):
        connection.data_received(HEAD + b"\r\nhello")
        await asyncio.sleep(0)
        size = 0
        while not wire.is_paused and size < 10_000_000:
            connection.data_received(b"x" * 16_384)
            size += 16_384
        return size

    assert connected(work, never) <= 256 * 1024
