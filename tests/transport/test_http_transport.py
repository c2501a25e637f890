"""The default transport on real sockets."""

import asyncio
import gzip
import zlib

import pytest

from interlingua.spec.contracts import Transport
from interlingua.transport.bodies import accepted_codings
from interlingua.transport.http1.transport import HttpTransport
from support.http_calls import KEY, call, collect, complains, read
from support.servers import (
    CHUNKED,
    LAST,
    Server,
    answering,
    piece,
    reply,
)


def test_it_is_a_transport():
    """It satisfies the Transport protocol."""
    transport: Transport = HttpTransport()

    assert callable(transport.send)


def test_a_whole_reply(run):
    """Status, lower-case headers with repeated names joined, and the body; the request as sent."""
    told = reply(b'{"b":2}', status="201 Created", headers=("X-One: 1", "X-Two: a", "x-two: b"))
    with Server(answering(told)) as server:
        status, headers, body = run(lambda transport: read(transport, call(server.url)))

    assert (status, body) == (201, b'{"b":2}')
    assert headers["x-one"] == "1"
    assert headers["x-two"] == "a, b"
    (sent,) = server.requests
    assert (sent.method, sent.target, sent.body) == ("POST", f"/v1/x?key={KEY}", b'{"a":1}')
    assert sent.headers["authorization"] == f"bearer {KEY}"
    assert sent.headers["accept-encoding"] == accepted_codings()


def test_stream(run):
    """Each chunk is delivered before the server sends the next one."""
    turns = []

    async def script(connection):
        await connection.read_request()
        await connection.send(CHUNKED)
        for number in range(5):
            while len(turns) < number:  # noqa: ASYNC110 -- another thread counts
                await asyncio.sleep(0.001)
            await connection.send(piece(b"data: %d\n\n" % number))
        await connection.send(LAST)

    async def work(transport):
        async with transport.send(call(server.url)) as got:
            async for chunk in got.chunks():
                turns.append(chunk)  # noqa: PERF401 -- the server waits for it

    with Server(script) as server:
        run(work)

    assert turns == [b"data: %d\n\n" % number for number in range(5)]


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_decompression(run, pack):
    """Gzip and deflate are decompressed, read whole and as a stream."""
    coding = "gzip" if pack is gzip.compress else "deflate"
    told = reply(pack(b"hello" * 1000), headers=(f"content-encoding: {coding}",))
    with Server(answering(told)) as server:
        whole = run(lambda transport: read(transport, call(server.url)))[2]
        streamed = run(lambda transport: collect(transport, call(server.url)))

    assert whole == streamed == b"hello" * 1000


def test_lazy_import():
    """The parser is imported by the first request."""
    code = """
import sys
from interlingua.transport import default_transport
default_transport()
print("httptools" in sys.modules)
"""
    assert complains(code).strip() == "False"


def test_use_after_close(run):
    """A closed transport can be closed again, and opens new connections when used."""

    async def work(transport):
        await transport.close()
        await read(transport, call(server.url))
        await transport.close()
        await transport.close()
        return (await read(transport, call(server.url)))[0]

    with Server(answering(reply())) as server:
        assert run(work) == 200
