"""Connections: what is written on them, and when they are used again."""

import asyncio
import os
import socket
import ssl
import threading

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import ConfigurationError, NetworkError
from interlingua.transport.bodies import accepted_codings
from interlingua.transport.http1 import pool as pools
from support import http_calls
from support.http_calls import call, cancel_when, collect, make_certificate, read, server_tls
from support.patience import PATIENCE
from support.servers import (
    CHUNKED,
    LAST,
    Server,
    answering,
    piece,
    reply,
    streaming,
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate that no system trusts, with its key."""
    made = tmp_path_factory.mktemp("tls") / "both.pem"
    make_certificate(made)
    return made


def test_custom_tls_context(certificate):
    """A context that trusts the certificate works, and a cancelled request closes it.

    Of the default transport: `HttpxTransport` takes a client with a context instead.
    """
    trusting = ssl.create_default_context(cafile=str(certificate))
    with Server(streaming(b"one"), tls=server_tls(certificate)) as server:

        async def work(transport):
            async with transport.send(call(server.url)) as got:
                async for chunk in got.chunks():
                    assert chunk == b"one"
                    break
            assert await asyncio.to_thread(server.all_closed)

        http_calls.run(work, tls=trusting)


def test_cancelled_while_sending(leaves):
    """A server that does not read still sees that the request was cancelled."""
    stuck = threading.Event()
    left = threading.Event()

    async def script(connection):
        await connection.reader.readexactly(1000)
        connection.writer.transport.pause_reading()
        peer = connection.writer.get_extra_info("socket")
        stuck.set()
        for _ in range(int(PATIENCE / 0.01)):
            if peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x07":  # closed
                left.set()
                break
            await asyncio.sleep(0.01)
        connection.writer.transport.resume_reading()

    async def action(transport, request, _server):
        task = asyncio.ensure_future(read(transport, request))
        await asyncio.to_thread(stuck.wait, PATIENCE)
        await cancel_when(task, stuck.is_set)
        assert await asyncio.to_thread(left.wait, PATIENCE)

    leaves(script, action, body=b"x" * 50_000_000)


@pytest.mark.parametrize("size", [1, 300_000, 1 << 20, (1 << 20) + 1, 3_000_000])
def test_request_bodies_of_any_size(run, size):
    """A body of any size arrives complete."""
    body = os.urandom(size)
    with Server(answering(reply())) as server:
        run(lambda transport: read(transport, HttpRequest(url=server.url, body=body)))

    assert server.requests[0].body == body


def test_a_large_body_is_written_as_the_server_reads_it():
    """What a slow server has not read is not copied into the buffers of the connection."""
    stuck = threading.Event()

    async def script(connection):
        await connection.reader.readexactly(1000)
        connection.writer.transport.pause_reading()
        stuck.set()
        await connection.writer.wait_closed()

    async def work(transport):
        body = b"x" * 50_000_000
        task = asyncio.ensure_future(read(transport, HttpRequest(url=server.url, body=body)))
        await asyncio.to_thread(stuck.wait, PATIENCE)
        pool = transport._pools.get(asyncio.get_running_loop())
        (connection,) = pool.connections
        assert connection.transport.get_write_buffer_size() < 1 << 20
        task.cancel()
        await asyncio.wait((task,))

    with Server(script) as server:
        http_calls.run(work)  # of the default transport, whose pool is read here


async def refuse_early(connection):
    """Answer each request after its first bytes, and read no more."""
    await connection.reader.readexactly(100)
    connection.writer.transport.pause_reading()
    await connection.send(reply(b"no", status="413 Too Large"))
    await connection.writer.wait_closed()


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_reply_before_the_request_was_read(run, is_streamed):
    """It is delivered, and the rest of that request is not taken for the next one."""

    async def pieces():
        for _ in range(300):
            yield b"x" * 100_000

    async def work(transport):
        for _ in range(3):
            body = pieces() if is_streamed else b"x" * 30_000_000
            status, _, text = await read(transport, HttpRequest(url=server.url, body=body))
            assert (status, text) == (413, b"no")

    with Server(refuse_early) as server:
        run(work)

    assert len(server.connections) == 3


def test_a_connection_with_unsent_bytes_is_not_reused():
    """Bytes of a request that was answered early would come before the next request."""

    async def script(connection):
        peer = connection.writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.reader._limit = 512  # it pauses at twice as many
        await connection.read_request()
        await connection.send(reply())
        if len(server.connections) == 1:
            await refuse_early(connection)

    async def work(transport):
        await read(transport, call(server.url))
        pool = transport._pools.get(asyncio.get_running_loop())
        (connection,) = pool.connections
        client = connection.transport.get_extra_info("socket")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        status, _, _ = await read(transport, HttpRequest(url=server.url, body=b"x" * 900_000))
        assert status == 413
        await read(transport, call(server.url))

    with Server(script) as server:
        http_calls.run(work)  # of the default transport, whose pool is read here

    assert len(server.connections) == 2


def test_interim_replies_are_skipped(run):
    """100 and 103 come before the reply to which they belong."""
    early = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" + early
    with Server(answering(interim + reply(b"late"))) as server:
        status, headers, body = run(lambda transport: read(transport, call(server.url)))

    assert (status, body) == (200, b"late")
    assert "link" not in headers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-key", "a\r\nx-other: 1"),
        ("x-key", "a\nb"),
        ("x-key", "a\rb"),
        ("x-key", "a\0b"),
        ("x-\r\nkey", "a"),
    ],
)
def test_a_line_break_in_a_header(run, name, value):
    """A value cannot add a header or end the request, and nothing is sent."""

    async def work(transport):
        with pytest.raises(ConfigurationError, match="line breaks"):
            await read(transport, HttpRequest(url=server.url, headers={name: value}))

    with Server(answering(reply())) as server:
        run(work)

    assert server.requests == []


def test_what_is_sent_with_every_request(run):
    """The header names are compared without case, and each is sent once."""
    given = {"User-Agent": "mine", "Content-Length": "9", "x-key": "a"}

    async def work(transport):
        await read(transport, HttpRequest(url=f"{server.url}/a b?c=d#e", headers=given, body=b"{}"))
        await read(transport, HttpRequest(method="GET", url=server.url))
        await read(transport, HttpRequest(url=server.url))

    with Server(answering(reply())) as server:
        run(work)

    posted, got, empty = server.requests
    assert posted.target == "/v1/x/a%20b?c=d"
    posted.headers.pop("connection", None)  # httpx2 writes what is the default: keep-alive
    assert posted.headers == {
        "host": f"127.0.0.1:{server.port}",
        "accept": "*/*",
        "accept-encoding": accepted_codings(),
        "user-agent": "mine",
        "x-key": "a",
        "content-length": "2",
    }
    assert "content-length" not in got.headers
    assert empty.headers["content-length"] == "0"


def test_no_hidden_retry(run):
    """A GET whose new connection is lost is not sent again."""

    async def script(connection):
        await connection.read_request()
        connection.reset()

    async def work(transport):
        with pytest.raises(NetworkError):
            await read(transport, HttpRequest(method="GET", url=server.url))

    with Server(script) as server:
        run(work)

    assert len(server.requests) == 1


def test_cookies_are_not_stored(run):
    """A cookie from one reply is not sent with the next request."""
    told = reply(headers=("set-cookie: session=1; path=/",))

    async def work(transport):
        await read(transport, call(server.url))
        await read(transport, call(server.url))

    with Server(answering(told)) as server:
        run(work)

    assert all("cookie" not in request.headers for request in server.requests)


def test_connections_are_reused(run):
    """Consecutive requests share a connection, whether read whole or as a stream."""

    async def script(connection):
        while await connection.read_request() is not None:
            await connection.send(CHUNKED, piece(b"x"), LAST)

    async def work(transport):
        await read(transport, call(server.url))
        await collect(transport, call(server.url))
        await read(transport, call(server.url))

    with Server(script) as server:
        run(work)

    assert [len(connection.requests) for connection in server.connections] == [3]


def test_idle_connections_are_closed_in_time(monkeypatch):
    """One that no request has used for long is closed by a timer."""
    monkeypatch.setattr(pools, "KEEP_ALIVE", 0.05)

    async def work(transport):
        await asyncio.gather(*(read(transport, call(server.url)) for _ in range(3)))
        await read(transport, call(server.url))
        pool = transport._pools.get(asyncio.get_running_loop())
        assert len(pool.connections) == len(server.connections)
        assert await asyncio.to_thread(server.all_closed)
        assert pool.connections == set()

    with Server(answering(reply())) as server:
        http_calls.run(work)  # of the default transport, whose pool is read here


def test_a_connection_that_waited_too_long_is_not_used(monkeypatch):
    """Its age is checked when it is taken, whether the timer was late or not."""

    async def work(transport):
        await read(transport, call(server.url))
        monkeypatch.setattr(pools, "KEEP_ALIVE", 0.0)
        await read(transport, call(server.url))

    with Server(answering(reply())) as server:
        http_calls.run(work)  # of the default transport, whose pool is read here

    assert len(server.connections) == 2


def test_redirects_are_not_followed(run):
    """A 3xx is returned as a reply, so no key goes to a host that was not named."""
    target = reply(b"caught")
    with Server(answering(target)) as thief:
        told = reply(status="307 Temporary Redirect", headers=(f"location: {thief.url}",))
        with Server(answering(told)) as server:
            status, headers, _ = run(lambda transport: read(transport, call(server.url)))

    assert status == 307
    assert headers["location"] == thief.url
    assert thief.connections == []
