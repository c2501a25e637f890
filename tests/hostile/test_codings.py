"""Replies that are compressed with Brotli or zstd: whole, as a stream, and meaning harm."""

import asyncio
import os

import brotli
import pytest

from interlingua.spec.defaults import Limits
from interlingua.spec.errors import DecodeError, NetworkError, StreamError
from interlingua.transport import bodies
from support.http_calls import call, collect, read
from support.packing import PACK, zstd
from support.servers import CHUNKED, LAST, Server, answering, piece, reply

every_coding = pytest.mark.parametrize("coding", PACK)


def run(transport_type, work, **settings):
    """Run `work(transport)` in a loop of its own."""

    async def main():
        transport = transport_type(**settings)
        try:
            return await work(transport)
        finally:
            await transport.close()

    return asyncio.run(main())


def packed(coding, data):
    """A whole reply with this body."""
    return reply(PACK[coding](data), headers=(f"content-encoding: {coding}",))


@every_coding
def test_bodies(transport_type, coding):
    """Small and large ones, read whole and as a stream; the request says what is accepted."""
    for data in (b"", b"{}", bytes(1_000_000), os.urandom(400_000)):
        with Server(answering(packed(coding, data))) as server:
            url = server.url
            whole = run(transport_type, lambda transport, url=url: read(transport, call(url)))
            stream = run(transport_type, lambda transport, url=url: collect(transport, call(url)))

        assert whole[2] == stream == data
        assert coding in server.requests[0].headers["accept-encoding"].split(", ")


@every_coding
def test_events_are_delivered_as_they_come(transport_type, coding):
    """A server that flushes after each event is not held up by decompression."""
    packer = brotli.Compressor() if coding == "br" else zstd.ZstdCompressor()

    def pack(data):
        if coding == "br":
            return packer.process(data) + packer.flush()
        return packer.compress(data, zstd.ZstdCompressor.FLUSH_BLOCK)

    turns = []

    async def script(connection):
        await connection.read_request()
        head = CHUNKED.replace(b"\r\n\r\n", b"\r\ncontent-encoding: %b\r\n\r\n" % coding.encode())
        await connection.send(head)
        for number in range(5):
            while len(turns) < number:  # noqa: ASYNC110 -- another thread counts
                await asyncio.sleep(0.001)
            await connection.send(piece(pack(b"data: %d\n\n" % number)))
        last = packer.finish() if coding == "br" else packer.flush()
        await connection.send(piece(last), LAST)

    async def work(transport):
        async with transport.send(call(server.url)) as got:
            async for chunk in got.chunks():
                turns.append(chunk)  # noqa: PERF401 -- the server waits for it

    with Server(script) as server:
        run(transport_type, work)

    assert turns == [b"data: %d\n\n" % number for number in range(5)]


@pytest.mark.parametrize("action", [read, collect])
@every_coding
def test_a_packed_reply_is_limited(transport_type, coding, action):
    """A few bytes that become 32 MB are refused at the limit."""

    async def work(transport):
        with pytest.raises(DecodeError, match="larger than 4000000 bytes after decompression"):
            await action(transport, call(server.url))

    with Server(answering(packed(coding, bytes(32_000_000)))) as server:
        run(transport_type, work, limits=Limits(inflated=4_000_000))


@pytest.mark.parametrize(("action", "kind"), [(read, NetworkError), (collect, StreamError)])
@every_coding
def test_an_incomplete_reply(transport_type, coding, action, kind):
    """Data that ends too early is an error, although the body has its length."""
    half = PACK[coding](os.urandom(5000))[:2500]

    async def work(transport):
        with pytest.raises(kind, match="incomplete"):
            await action(transport, call(server.url))

    told = reply(half, headers=(f"content-encoding: {coding}",))
    with Server(answering(told)) as server:
        run(transport_type, work)


@every_coding
def test_garbage(transport_type, coding):
    """It is a DecodeError that names the coding."""

    async def work(transport):
        with pytest.raises(DecodeError, match=r"not valid (Brotli|zstd) data"):
            await read(transport, call(server.url))

    told = reply(b"\xff" * 100, headers=(f"content-encoding: {coding}",))
    with Server(answering(told)) as server:
        run(transport_type, work)


def test_several_frames_in_a_stream(transport_type):
    """Each chunk of the body may be a frame of its own."""
    head = CHUNKED.replace(b"\r\n\r\n", b"\r\ncontent-encoding: zstd\r\n\r\n")
    frames = [piece(zstd.compress(word)) for word in (b"one", b"two", b"three")]

    async def script(connection):
        await connection.read_request()
        await connection.send(head, *frames, LAST)

    with Server(script) as server:
        got = run(transport_type, lambda transport: collect(transport, call(server.url)))

    assert got == b"onetwothree"


@every_coding
def test_without_the_library(transport_type, coding, monkeypatch):
    """The coding is not asked for, and a server that uses it all the same is refused."""
    monkeypatch.setattr(bodies, "_library", lambda _: None)
    bodies._inflaters.cache_clear()

    async def work(transport):
        with pytest.raises(DecodeError, match=f"'{coding}'. Only gzip, deflate was accepted"):
            await read(transport, call(server.url))

    try:
        with Server(answering(packed(coding, b"{}"))) as server:
            run(transport_type, work)
    finally:
        monkeypatch.undo()
        bodies._inflaters.cache_clear()

    assert server.requests[0].headers["accept-encoding"] == "gzip, deflate"
