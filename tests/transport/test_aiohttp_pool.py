"""Connection pools of the default transport."""

import asyncio
import io
import os
import socket
import ssl
import threading

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import (
    NetworkError,
)
from interlingua.transport.aiohttp_pool import _payload
from support.http_calls import (
    call,
    cancel_when,
    collect,
    leaves,
    make_certificate,
    read,
    run,
    server_tls,
)
from support.servers import (
    CHUNKED,
    LAST,
    PATIENCE,
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
    """A context that trusts the certificate works, and a cancelled request closes it."""
    trusting = ssl.create_default_context(cafile=str(certificate))
    with Server(streaming(b"one"), tls=server_tls(certificate)) as server:

        async def work(transport):
            async with transport.send(call(server.url)) as got:
                async for chunk in got.chunks():
                    assert chunk == b"one"
                    break
            assert await asyncio.to_thread(server.all_closed)

        run(work, tls=trusting)


def test_cancelled_while_sending():
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
def test_request_bodies_of_any_size(size):
    """A body of any size arrives complete, without aiohttp's warning about large ones."""
    body = os.urandom(size)
    with Server(answering(reply())) as server:
        run(lambda transport: read(transport, HttpRequest(url=server.url, body=body)))

    assert server.requests[0].body == body


@pytest.mark.parametrize(
    ("size", "kind"),
    [(0, type(None)), (1, bytes), (1 << 20, bytes), ((1 << 20) + 1, io.BytesIO)],
)
def test_only_large_bodies_are_sent_as_files(size, kind):
    """A file is read in a thread: slower, but many megabytes do not hold up the event loop."""
    assert type(_payload(b"x" * size)) is kind


def test_no_hidden_retry():
    """A GET whose new connection is lost is not sent again by aiohttp."""

    async def script(connection):
        await connection.read_request()
        connection.reset()

    async def work(transport):
        with pytest.raises(NetworkError):
            await read(transport, HttpRequest(method="GET", url=server.url))

    with Server(script) as server:
        run(work)

    assert len(server.requests) == 1


def test_cookies_are_not_stored():
    """A cookie from one reply is not sent with the next request."""
    told = reply(headers=("set-cookie: session=1; path=/",))

    async def work(transport):
        await read(transport, call(server.url))
        await read(transport, call(server.url))

    with Server(answering(told)) as server:
        run(work)

    assert all("cookie" not in request.headers for request in server.requests)


def test_connections_are_reused():
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


def test_redirects_are_not_followed():
    """A 3xx is returned as a reply, so no key goes to a host that was not named."""
    target = reply(b"caught")
    with Server(answering(target)) as thief:
        told = reply(status="307 Temporary Redirect", headers=(f"location: {thief.url}",))
        with Server(answering(told)) as server:
            status, headers, _ = run(lambda transport: read(transport, call(server.url)))

    assert status == 307
    assert headers["location"] == thief.url
    assert thief.connections == []
