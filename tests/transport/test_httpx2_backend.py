"""The backend that reads while it writes."""

import asyncio
import gc
import weakref

import httpcore2
import pytest

from interlingua.transport.httpx2_backend import Backend, ReplyEnd
from support.http2 import http2_tls
from support.http_calls import make_certificate, server_tls
from support.servers import CHUNKED, LAST, Server, answering, free_port, piece, reply
from support.simulated import settled


def run(server, work):
    async def main():
        stream = await Backend().connect_tcp("127.0.0.1", server.port, timeout=10)
        try:
            return await work(stream)
        finally:
            await stream.aclose()

    return asyncio.run(main())


async def read_all(stream, size=1000):
    data = b""
    while piece := await stream.read(size):
        data += piece
    return data


async def echo(connection):
    while data := await connection.reader.read(65536):
        connection.writer.write(data)
        await connection.writer.drain()


def test_echo():
    """More data than any buffer holds, read in pieces of the requested size."""
    data = bytes(range(256)) * 8_000

    async def work(stream):
        async def read():
            got = b""
            while len(got) < len(data):
                piece = await stream.read(10_000)
                assert 0 < len(piece) <= 10_000
                got += piece
            return got

        reading = asyncio.ensure_future(read())
        for start in range(0, len(data), 50_000):
            await stream.write(data[start : start + 50_000])
            await asyncio.sleep(0)
        return await reading

    with Server(echo) as server:
        assert run(server, work) == data


def test_early_response_stops_the_writer():
    """The writer does not wait for a peer that has stopped reading; its response can be read."""

    async def answer(connection):
        await connection.reader.readexactly(1)
        await connection.send(b"enough")

    async def work(stream):
        with pytest.raises(httpcore2.WriteError):
            await stream.write(b"x" * 30_000_000)
        return await stream.read(100)

    with Server(answer) as server:
        assert run(server, work) == b"enough"


def test_data_before_a_reset():
    """First the received data is read, then the error is raised."""

    async def answer(connection):
        await connection.send(b"last words")
        await connection.reader.readexactly(1)
        connection.reset()

    async def work(stream):
        await stream.write(b"x")
        await settled(lambda: stream.get_extra_info("is_readable"))
        said = await stream.read(100)
        with pytest.raises(httpcore2.ReadError):
            await stream.read(100)
        with pytest.raises(httpcore2.WriteError):
            await stream.write(b"more")
        return said

    with Server(answer) as server:
        assert run(server, work) == b"last words"


def test_closed_by_the_peer():
    """A closed idle connection is readable, so httpcore2 does not reuse it."""

    async def close(connection):
        await connection.reader.readexactly(1)
        connection.writer.close()

    async def work(stream):
        assert not stream.get_extra_info("is_readable")
        assert stream.get_extra_info("server_addr")[1] == server.port
        await stream.write(b"x")
        await settled(lambda: stream.get_extra_info("is_readable"))
        return await read_all(stream)

    with Server(close) as server:
        assert run(server, work) == b""


def test_timeouts():
    """A silent peer is a read timeout; a peer that does not read is a write timeout."""

    async def silent(connection):
        connection.writer.transport.pause_reading()

    async def work(stream):
        with pytest.raises(httpcore2.ReadTimeout):
            await stream.read(10, timeout=0.01)
        with pytest.raises(httpcore2.WriteTimeout):
            await stream.write(b"x" * 30_000_000, timeout=0.01)

    with Server(silent) as server:
        run(server, work)


def test_connection_refused():
    """The error has the reason."""

    async def main(host, port):
        await Backend().connect_tcp(host, port)

    with pytest.raises(httpcore2.ConnectError, match="refused"):
        asyncio.run(main("127.0.0.1", free_port()))
    with pytest.raises(httpcore2.ConnectError):
        asyncio.run(main("no-such-host.invalid", 1))


def test_tls(tmp_path):
    """TLS starts on an open connection; an untrusted certificate ends it."""
    path = tmp_path / "both.pem"
    make_certificate(path)
    trusting = httpcore2.default_ssl_context()
    trusting.load_verify_locations(path)

    async def work(stream):
        secured = await stream.start_tls(trusting, "127.0.0.1")
        await secured.write(b"hello")
        assert secured.get_extra_info("ssl_object") is not None
        return await secured.read(100)

    async def distrusts(stream):
        with pytest.raises(httpcore2.ConnectError, match="SSL"):
            await stream.start_tls(httpcore2.default_ssl_context(), "127.0.0.1")

    with Server(echo, tls=server_tls(path)) as server:
        assert run(server, work) == b"hello"
        run(server, distrusts)


def test_a_connection_of_http2_writes_on_while_it_is_answered(tmp_path):
    """What the peer says meanwhile belongs to another request, and is read later."""
    path = tmp_path / "both.pem"
    make_certificate(path)
    trusting = httpcore2.default_ssl_context()
    trusting.load_verify_locations(path)
    trusting.set_alpn_protocols(["h2"])
    frames = [bytes(100_000)] * 300

    async def answer(connection):
        await connection.send(b"early")
        await connection.reader.readexactly(len(b"".join(frames)))
        await connection.send(b"late")

    async def work(stream):
        secured = await stream.start_tls(trusting, "127.0.0.1")
        await settled(lambda: secured._connection.is_readable)
        for frame in frames:
            await secured.write(frame)
        return await secured.read(5), await secured.read(100)

    with Server(answer, tls=http2_tls(path)) as server:
        assert run(server, work) == (b"early", b"late")


POST = b"POST / HTTP/1.1\r\n\r\n"
HEAD = b"HEAD / HTTP/1.1\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
TRAILED = b"0;last\r\nx-sum: 1\r\n\r\n"
OPEN = b"HTTP/1.1 200 OK\r\n\r\n"  # its body ends with the connection
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"


def pieces_of(data):
    """The data whole, cut in two at every place, and byte by byte."""
    yield [data]
    for cut in range(1, len(data)):
        yield [data[:cut], data[cut:]]
    yield [data[at : at + 1] for at in range(len(data))]


def fed(request, pieces):
    end = ReplyEnd(request)
    for each in pieces:
        end.feed(each)
    return end


@pytest.mark.parametrize(
    ("request_", "data"),
    [
        (POST, reply(b"body")),
        (POST, reply(b"")),
        (POST, CHUNKED + piece(b"body") + LAST),
        (POST, CHUNKED + piece(b"body") + TRAILED),
        (POST, b"HTTP/1.1 204 No Content\r\n\r\n"),
        (POST, b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n"),
        (POST, CONTINUE + HINTS + reply(b"body")),
        (HEAD, reply(b"")),
        (HEAD, b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"),
        (HEAD, HINTS + CHUNKED),
        (HEAD, OPEN),
    ],
)
def test_a_reply_is_whole_with_its_last_byte(request_, data):
    """However it is cut, it is whole at its end; not before, and not with one byte more."""
    assert not ReplyEnd(request_).has_begun
    for pieces in pieces_of(data):
        end = fed(request_, pieces)
        assert end.is_whole
        assert not fed(request_, pieces[:-1]).is_whole
        for more in (b"\n", b"\r\n", b"H", reply(b"unasked"), reply(b"unasked")[:-1]):
            assert not fed(request_, [*pieces[:-1], pieces[-1] + more]).is_whole
            assert not fed(request_, [*pieces, more]).is_whole


@pytest.mark.parametrize(
    "data",
    [
        OPEN + b"body",
        SWITCH,
        SWITCH + reply(b"body"),
        CONTINUE,
        b"\x05\x00",
        b"garbage\r\n\r\n" + reply(b"body"),
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nbody",
    ],
)
def test_what_is_not_one_reply_is_never_whole(data):
    """A body that ends with the connection, another protocol, and what is not HTTP."""
    for pieces in pieces_of(data):
        assert fed(POST, pieces).has_begun
        assert not fed(POST, pieces).is_whole


def test_the_end_of_a_reply_leaves_no_garbage():
    """The parser and its reader do not keep each other alive."""

    class Watched(ReplyEnd):
        pass

    gc.disable()
    try:
        for data in (reply(b"body"), b"garbage"):
            end = Watched(POST)
            seen = weakref.ref(end)
            end.feed(data)
            del end
            assert seen() is None
    finally:
        gc.enable()


async def exchange(stream, request, size):
    await stream.write(request)
    got = b""
    while len(got) < size:
        got += await stream.read(65536)
    return got


@pytest.mark.parametrize("more", [b"", b"\r\n", b"H"])
def test_a_connection_with_bytes_after_a_reply_is_not_reused(more):
    """The bytes that came with the reply count too, though they are read already."""
    answer = reply(b"body") + more

    async def work(stream):
        assert not stream.get_extra_info("is_readable")
        for _ in range(2):
            assert await exchange(stream, POST, len(answer)) == answer
            assert stream.get_extra_info("is_readable") is bool(more)

    with Server(answering(answer)) as server:
        run(server, work)


def test_bytes_that_come_after_the_check_end_the_connection():
    """The next request is not written; httpcore2 takes another connection."""
    answer = reply(b"body")
    asked = asyncio.Event()

    async def script(connection):
        await connection.read_request()
        await connection.send(answer)
        await asked.wait()
        await connection.send(reply(b"unasked"))

    async def work(stream):
        assert await exchange(stream, POST, len(answer)) == answer
        assert not stream.get_extra_info("is_readable")
        server._loop.call_soon_threadsafe(asked.set)
        await settled(lambda: stream._connection.is_readable)
        with pytest.raises(httpcore2.ConnectionNotAvailable):
            await stream.write(POST)

    with Server(script) as server:
        run(server, work)

    assert len(server.requests) == 1
