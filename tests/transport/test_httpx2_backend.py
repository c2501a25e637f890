"""The backend that reads while it writes."""

import asyncio

import httpcore2
import pytest

from interlingua.transport.httpx2_backend import Backend
from support.http_calls import make_certificate, server_tls
from support.servers import Server, free_port
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
