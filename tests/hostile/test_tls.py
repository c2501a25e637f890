"""TLS and HTTP/2: handshakes that stall, and streams that the server breaks."""

import asyncio
import gzip

import pytest

from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import DecodeError, NetworkError, RequestTimeoutError, StreamError
from interlingua.transport import HttpxTransport
from support.http2 import http2, http2_tls, send
from support.http_calls import call, collect, make_certificate, read
from support.servers import Server


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate with its key."""
    made = tmp_path_factory.mktemp("tls") / "both.pem"
    make_certificate(made)
    return made


async def silent(connection):
    """Nothing after the client's greeting."""
    await connection.reader.read(1000)


async def stalled(connection):
    """The beginning of a TLS record, then nothing."""
    await connection.reader.read(1000)
    await connection.send(b"\x16\x03\x03\x00\x7a\x02\x00")


@pytest.mark.parametrize("script", [silent, stalled])
@pytest.mark.parametrize("action", [read, collect])
def test_the_connect_timeout_covers_a_stalled_handshake(transport_type, script, action):
    """The connect timeout covers TLS; the connection is closed."""

    async def main():
        transport = transport_type(timeouts=Timeouts(connect=0.1))
        try:
            with pytest.raises(RequestTimeoutError) as caught:
                await action(transport, call(server.url.replace("http:", "https:")))
            assert await asyncio.to_thread(server.all_closed)
            return caught.value
        finally:
            await transport.close()

    with Server(script) as server:
        error = asyncio.run(main())

    assert (error.phase, error.retryable) == ("connect", True)


def over_http2(certificate, monkeypatch, answer, work, **settings):
    """Run `work(transport, url)` against a server of HTTP/2 with this answer."""
    pytest.importorskip("h2", reason="needs httpx2[http2]")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def main():
        transport = HttpxTransport(http2=True, **settings)
        try:
            return await work(transport, server.url)
        finally:
            await transport.close()

    with Server(http2(answer), tls=http2_tls(certificate)) as server:
        result = asyncio.run(main())
    return result, [len(connection.requests) for connection in server.connections]


@pytest.mark.parametrize("action", [read, collect])
def test_calls_share_one_http2_connection(certificate, monkeypatch, action):
    """Calls share one connection, as a whole and as a stream, packed or not."""

    def answer(state, stream_id, number):
        if number % 2:
            send(state, stream_id, b"body")
        else:
            send(state, stream_id, gzip.compress(b"body"), headers=[("content-encoding", "gzip")])
        return True

    async def work(transport, url):
        got = [await action(transport, call(url)) for _ in range(4)]
        return [body if action is collect else body[2] for body in got]

    bodies, requests = over_http2(certificate, monkeypatch, answer, work)

    assert bodies == [b"body"] * 4
    assert requests == [4]


def test_an_http2_server_that_closes_after_each_reply_costs_no_call(certificate, monkeypatch):
    """A server that closes after each reply costs no call."""

    def answer(state, stream_id, _):
        send(state, stream_id, b"body")
        state.close_connection()
        return False

    async def work(transport, url):
        bodies = []
        for _ in range(5):
            bodies.append((await read(transport, call(url)))[2])
            await asyncio.sleep(0.03)
        return bodies

    bodies, requests = over_http2(certificate, monkeypatch, answer, work)

    assert bodies == [b"body"] * 5
    assert requests == [1] * 5


@pytest.mark.parametrize(("action", "kind"), [(read, NetworkError), (collect, StreamError)])
def test_an_http2_stream_that_is_reset_is_an_error(certificate, monkeypatch, action, kind):
    """A broken body is never a short success."""

    def answer(state, stream_id, _):
        send(state, stream_id, b"half", end=False)
        state.reset_stream(stream_id)
        return True

    async def work(transport, url):
        with pytest.raises(kind) as caught:
            await action(transport, call(url))
        return type(caught.value)

    assert over_http2(certificate, monkeypatch, answer, work)[0] is kind


def test_a_packed_reply_over_http2_is_limited(certificate, monkeypatch):
    """As over HTTP/1.1."""

    def answer(state, stream_id, _):
        body = gzip.compress(bytes(10_000_000))
        send(state, stream_id, body, headers=[("content-encoding", "gzip")])
        return True

    async def work(transport, url):
        with pytest.raises(DecodeError, match="after decompression"):
            await read(transport, call(url))

    over_http2(certificate, monkeypatch, answer, work, limits=Limits(inflated=1_000_000))


def test_the_timeouts_hold_over_http2(certificate, monkeypatch):
    """The timeouts hold."""

    async def work(transport, url):
        with pytest.raises(RequestTimeoutError) as caught:
            await read(transport, call(url))
        return caught.value.phase

    def answer(*_):
        return True

    timeouts = Timeouts(request=0.3)
    assert over_http2(certificate, monkeypatch, answer, work, timeouts=timeouts)[0] == "request"
