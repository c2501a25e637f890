"""The default transport on other loops: with eager tasks, and without any."""

import asyncio
import sys

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import ConfigurationError, NetworkError
from interlingua.transport.http1.addresses import resolve
from interlingua.transport.http1.transport import HttpTransport
from support.http_calls import call, cancel_when, collect, read, run
from support.servers import CHUNKED, LAST, Server, answering, free_port, piece, reply, streaming


def test_without_an_event_loop():
    """Where asyncio does not run, as in a program of trio, that is what the error says."""
    transport = HttpTransport()
    request = HttpRequest(url="http://127.0.0.1:9/")

    with pytest.raises(RuntimeError, match="no running event loop"):
        transport.send(request)
    with pytest.raises(RuntimeError, match="no running event loop"):
        read(transport, request).send(None)


def run_eagerly(work, **settings):
    """As `run`, on a loop whose tasks begin when they are made; uvloop has none."""

    async def eagerly(transport):
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        return await work(transport)

    return run(eagerly, **settings)


eager = pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are of Python 3.12")


async def converse(connection):
    while (request := await connection.read_request()) is not None:
        if request.target.endswith("/stream"):
            await connection.send(CHUNKED, piece(b"one"), piece(b"two"), LAST)
        else:
            await connection.send(reply(b"%d" % len(request.body)))


class Sized:
    """A streamed body that is ready at once."""

    size = 3000

    async def __aiter__(self):
        for _ in range(3):
            yield b"x" * 1000


class Failing:
    """A streamed body that fails before it has yielded anything."""

    async def __aiter__(self):
        raise ZeroDivisionError
        yield b""


@eager
def test_exchanges_with_eager_tasks():
    """The task that writes a body may end before its exchange has waited for anything."""

    async def work(transport):
        url = server.url
        for body, size in ((b"{}", 2), (Sized(), 3000), (bytes(3_000_000), 3_000_000)):
            assert (await read(transport, HttpRequest(url=url, body=body)))[2] == b"%d" % size
        assert await collect(transport, HttpRequest(url=f"{url}/stream")) == b"onetwo"
        with pytest.raises(ConfigurationError, match="ZeroDivisionError"):
            await read(transport, HttpRequest(url=url, body=Failing()))
        with pytest.raises(NetworkError, match="Cannot connect"):
            await read(transport, HttpRequest(url=f"http://127.0.0.1:{free_port()}/"))
        calls = (read(transport, call(url)) for _ in range(20))
        assert {each[2] for each in await asyncio.gather(*calls)} == {b"7"}

    with Server(converse) as server:
        run_eagerly(work, max_connections=3)


@eager
def test_several_addresses_with_eager_tasks():
    """The attempts to connect are tasks too; one that fails at once is followed by the next."""

    async def work(transport):
        dead = await resolve("127.0.0.1", free_port())
        alive = await resolve("127.0.0.1", server.port)

        async def find(_host, _port):
            return [*dead, *alive, *dead]

        transport._pools.get(asyncio.get_running_loop())._resolve = find
        return (await read(transport, call("http://two.test/")))[2]

    with Server(answering(reply(b"alive"))) as server:
        assert run_eagerly(work) == b"alive"


@eager
def test_cancelling_with_eager_tasks():
    """A stream in progress, and a call that waits for its turn."""

    async def work(transport):
        got = []
        first = asyncio.ensure_future(collect(transport, call(server.url), got))
        await cancel_when(first, lambda: got)
        second = asyncio.ensure_future(collect(transport, call(server.url), got))
        third = asyncio.ensure_future(read(transport, call(server.url)))
        await cancel_when(second, lambda: len(got) == 2)
        third.cancel()
        await asyncio.wait([third])
        timeouts = Timeouts(stream_read=0.05)
        with pytest.raises(TimeoutError):
            await collect(transport, call(server.url, timeouts=timeouts))

    with Server(streaming(b"one")) as server:
        run_eagerly(work, max_connections=1)
