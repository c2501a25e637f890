"""Clients that send or read too slowly, or nothing: their connections are closed."""

import asyncio
import contextlib
import socket

import pytest
import uvicorn

from interlingua.gateway.config import ServerTimeouts
from interlingua.gateway.protocol import timed_protocol
from support.patience import PATIENCE

BRIEF = 0.05
LONG = PATIENCE * 2


async def echo(_scope, receive, send):
    """Answers with the length of the body."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    body = b"x" * (32 * 1024 * 1024) if size == 7 else str(size).encode()
    length = str(len(body)).encode()
    start = {"type": "http.response.start", "status": 200}
    await send({**start, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def connected(**limits):
    """A connection to a server with these timeouts; the others are long."""
    names = ("headers", "stalled", "idle")
    timeouts = ServerTimeouts(**{**dict.fromkeys(names, LONG), **limits})
    config = uvicorn.Config(
        echo, http=timed_protocol(timeouts), lifespan="off", log_config=None, timeout_keep_alive=600
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        await server.startup([bound])
        reader, writer = await asyncio.open_connection(*bound.getsockname(), limit=1024)
        try:
            yield reader, writer, server
        finally:
            writer.close()
            server.force_exit = True
            await server.shutdown([bound])


@pytest.mark.parametrize(
    ("limits", "pieces"),
    [
        ({"idle": BRIEF}, []),
        ({"headers": BRIEF}, [b"P"]),
        ({"headers": BRIEF}, [b"POST / HTTP/1.1\r\n", b"host: x\r\n"]),
        ({"stalled": BRIEF}, [b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n", b"1234"]),
        (
            {"headers": BRIEF},
            [b"POST / HTTP/1.1\r\ncontent-length: 1\r\n\r\n1", b"POST / HTTP/1.1\r\n"],
        ),
    ],
    ids=["nothing", "a letter", "headers", "body", "a second request"],
)
def test_a_connection_is_closed(limits, pieces):
    """Without a request, and in the middle of one."""

    async def run():
        async with connected(**limits) as (reader, writer, _), asyncio.timeout(PATIENCE):
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0.01)
            return await reader.read(-1)

    received = asyncio.run(run())
    assert received.count(b"200 OK") == (
        1 if len(pieces) == 2 and b"\r\n1" in pieces[0][-3:] else 0
    )


def test_headers_that_come_one_by_one_do_not_extend_the_time():
    """It is counted from the first byte."""

    async def run():
        async with connected(headers=BRIEF) as (reader, writer, _), asyncio.timeout(PATIENCE):
            writer.write(b"POST / HTTP/1.1\r\n")
            number = 0
            while not reader.at_eof():
                number += 1
                with contextlib.suppress(ConnectionError):
                    writer.write(b"x-%d: y\r\n" % number)
                    await writer.drain()
                with contextlib.suppress(TimeoutError, ConnectionError):
                    await asyncio.wait_for(reader.read(1), BRIEF / 5)

    asyncio.run(run())


def test_a_client_that_does_not_read_is_cut_off():
    """It would hold the stream of its model for ever."""

    async def run():
        async with connected(stalled=BRIEF) as (reader, writer, server):
            writer.write(b"POST / HTTP/1.1\r\ncontent-length: 7\r\n\r\n1234567")
            state = server.server_state
            async with asyncio.timeout(PATIENCE):
                while state.connections or not state.total_requests:  # noqa: ASYNC110 -- uvicorn's
                    await asyncio.sleep(0.01)
                with contextlib.suppress(ConnectionError):
                    while await reader.read(65536):
                        pass

    asyncio.run(run())


def test_a_request_in_time_is_answered():
    """Also in pieces, and several on one connection; no timer is left."""

    async def run():
        async with connected() as (reader, writer, server), asyncio.timeout(PATIENCE):
            for _ in range(3):
                for piece in (b"POST / HTTP/1.1\r\ncontent-", b"length: 5\r\n\r\n12", b"345"):
                    writer.write(piece)
                    await asyncio.sleep(0.01)
                await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(1) == b"5"
            (connection,) = server.server_state.connections
            assert not [
                name
                for name in vars(connection)
                if "Timed" in name and "timer" in name and getattr(connection, name) is not None
            ]

    asyncio.run(run())
