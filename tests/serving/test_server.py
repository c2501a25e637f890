"""The server: where it listens, and what is left when it stops."""

import asyncio
import http.client
import json
import socket
import ssl
import threading
from contextlib import suppress

import pytest

from interlingua.simulator import Simulator, serve, serve_in_thread, stall, text
from interlingua.spec.errors import ConfigurationError
from support.patience import PATIENCE

BODY = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
    % (len(BODY), BODY)
)


async def until(condition):
    """Wait for what another task will do."""
    for _ in range(5000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise TimeoutError


async def ask(server):
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(REQUEST)
    got = await reader.read()
    writer.close()
    await writer.wait_closed()
    return got


def test_many_at_once():
    """Two hundred streams in one event loop, and none is left open."""

    async def main():
        async with serve(Simulator(text("hi"))) as server:
            got = await asyncio.gather(*(ask(server) for _ in range(200)))
            await until(lambda: not server.open_connections)
            return got, server.accepted, len(asyncio.all_tasks())

    got, accepted, tasks = asyncio.run(main())
    assert all(each.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") for each in got)
    assert (accepted, tasks) == (200, 1)


def test_stopping_ends_what_is_open():
    """Also a reply that would have waited for ever."""
    simulator = Simulator(text("hi") + stall(0))

    async def main():
        async with serve(simulator) as server:
            asking = asyncio.ensure_future(ask(server))
            await until(lambda: any(each.status for each in simulator.script.received))
        got = await asyncio.gather(asking, return_exceptions=True)
        return got[0], len(asyncio.all_tasks())

    got, tasks = asyncio.run(main())
    assert tasks == 1
    assert isinstance(got, ConnectionError) or not got.endswith(b"0\r\n\r\n")
    assert simulator.script.received[0].over.is_set()


def test_the_thread_ends_with_the_block():
    """Nothing runs on, and the port is free again."""
    before = threading.active_count()
    with serve_in_thread(Simulator()) as server:
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert threading.active_count() == before + 1

    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((server.host, server.port), timeout=PATIENCE)


def test_a_port_that_is_taken():
    """The error is the caller's to see."""
    with (
        serve_in_thread(Simulator()) as server,
        pytest.raises(OSError, match=r"(?i)address"),
        serve_in_thread(Simulator(), port=server.port),
    ):
        raise AssertionError


def test_tls_failure():
    """TLS fails at once with a server that has none, or no certificate."""
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for tls in (None, bare):
        with serve_in_thread(Simulator(), tls=tls) as server:
            connection = http.client.HTTPSConnection(
                server.host, server.port, context=ssl.create_default_context(), timeout=10
            )
            with pytest.raises(ssl.SSLError):
                connection.request("GET", "/")
            connection.close()


def test_the_scheme_is_said():
    """By the address, whether there is TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with serve_in_thread(Simulator(), tls=context) as server:
        assert server.url.startswith("https://")


@pytest.mark.parametrize("port", [-1, 65536, 99999])
def test_a_port_that_cannot_be(port):
    """It is said where the block would begin, with and without a loop."""

    async def main():
        async with serve(Simulator(), port=port):
            raise AssertionError("it serves")

    with pytest.raises(ConfigurationError, match=f"Invalid port {port}"):
        asyncio.run(main())
    with (
        pytest.raises(ConfigurationError, match=f"Invalid port {port}"),
        serve_in_thread(Simulator(), port=port),
    ):
        raise AssertionError("it serves")


def test_who_comes_at_the_last_moment_is_sent_away():
    """A socket that was accepted as the server stopped is closed with it, not forgotten."""
    for _ in range(20):
        with serve_in_thread(Simulator(text("hi"))) as server:
            late = [socket.create_connection((server.host, server.port)) for _ in range(3)]
        for peer in late:
            with peer, suppress(ConnectionResetError):
                peer.settimeout(PATIENCE)
                assert peer.recv(1) == b""
