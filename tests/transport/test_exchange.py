"""Timeouts, and that the server sees the connection close however an exchange ends."""

import asyncio
import contextlib
import gc
import threading

import pytest

from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import (
    NetworkError,
    RequestTimeoutError,
    StreamError,
)
from support import http_calls
from support.http_calls import SHORT, assert_no_key, call, cancel_when, collect, read
from support.patience import PATIENCE, with_some_timeout
from support.servers import (
    CHUNKED,
    LAST,
    Server,
    piece,
    streaming,
)


async def silent(connection):
    await connection.read_request()


async def drip(connection):
    await connection.read_request()
    await connection.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await connection.send(b"x: y\r\n")
        await asyncio.sleep(0.02)


async def drip_body(connection):
    await connection.read_request()
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        await connection.send(b"x")
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("script", [silent, drip])
@pytest.mark.parametrize("phase", ["first_byte", "request"])
@pytest.mark.parametrize("action", [read, collect])
def test_headers_timeout(fails, script, phase, action):
    """Headers that do not arrive, or arrive slowly, are a timeout that is not retryable."""
    error = fails(script, action, timeouts=Timeouts(**{phase: 0.05}))

    assert type(error) is RequestTimeoutError
    assert (error.phase, error.retryable) == (phase, False)


def test_request_timeout_with_a_slow_body(fails):
    """The request timeout also passes while bytes arrive."""
    error = fails(drip_body, timeouts=Timeouts(request=0.1))

    assert type(error) is RequestTimeoutError
    assert (error.phase, error.retryable) == ("request", False)


def test_a_stream_that_stalls_ends_at_the_silence_timeout(fails):
    """Silence in the middle of a stream has a clock of its own (field bug 78)."""
    error = fails(streaming(b"one"), collect, timeouts=Timeouts(stream_read=SHORT))

    assert type(error) is RequestTimeoutError
    assert (error.phase, error.retryable) == ("stream_read", False)


def test_a_stream_that_goes_on_is_not_silent(run):
    """Neither the clock of the head nor that of the exchange ends a stream that speaks.

    Field bug 78.
    """

    def check(seconds):
        async def script(connection):
            await connection.read_request()
            await connection.send(CHUNKED)
            for _ in range(20):
                await connection.send(piece(b": ping\n\n"))
                await asyncio.sleep(seconds / 5)
            await connection.send(LAST)

        clocks = Timeouts(request=seconds, first_byte=seconds, stream_read=seconds * 3)
        with Server(script) as server:
            body = run(lambda transport: collect(transport, call(server.url)), timeouts=clocks)
        assert body == b": ping\n\n" * 20

    with_some_timeout(check, first=SHORT)


def test_slow_reader(run):
    """The time that the reader takes between two chunks does not count."""

    def check(seconds):
        async def work(transport):
            async with transport.send(call(server.url)) as got:
                chunks = got.chunks()
                first = await anext(chunks)
                await asyncio.sleep(seconds * 3)
                return [first, *[chunk async for chunk in chunks]]

        with Server(streaming(b"one", b"two", end=LAST)) as server:
            got = run(work, timeouts=Timeouts(stream_read=seconds))
        assert b"".join(got) == b"onetwo"

    with_some_timeout(check, first=SHORT)


def test_timeouts_of_one_request(run):
    """A request may have its own timeouts."""
    with Server(silent) as server:

        async def work(transport):
            with pytest.raises(RequestTimeoutError):
                await read(transport, call(server.url, timeouts=Timeouts(first_byte=SHORT)))

        run(work)


def test_connect_timeout(run):
    """A connect timeout is the only timeout that is retryable."""
    with deaf() as url:

        async def work(transport):
            with pytest.raises(RequestTimeoutError) as caught:
                await read(transport, call(url))
            return caught.value

        error = run(work, timeouts=Timeouts(connect=SHORT))

    assert (error.phase, error.retryable) == ("connect", True)
    assert_no_key(error)


@contextlib.contextmanager
def deaf():
    """A server that never answers the TLS handshake."""

    async def script(connection):
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(connection.reader.read(), PATIENCE)  # until the caller leaves

    with Server(script) as server:
        yield server.url.replace("http:", "https:")


def test_no_timeouts(run):
    """None means no timeout."""
    none = Timeouts(connect=None, request=None, first_byte=None, stream_read=None)
    with Server(streaming(b"one", end=LAST)) as server:
        assert run(lambda t: collect(t, call(server.url)), timeouts=none) == b"one"


def test_connection_is_reused_after_the_last_event():
    """The end of the body may arrive shortly after the reader has finished.

    Of the default transport: httpx2 closes a connection whose body was not read to its end.
    """

    async def script(connection):
        while await connection.read_request() is not None:
            await connection.send(CHUNKED, piece(b"last"), LAST)

    def check(seconds):
        async def work(transport):
            for _ in range(3):
                async with transport.send(call(server.url)) as got:
                    async for _chunk in got.chunks():
                        break
                await asyncio.sleep(seconds)

        with Server(script) as server:
            http_calls.run(work)
        assert [len(connection.requests) for connection in server.connections] == [3]

    with_some_timeout(check, first=0.02)


def test_cancelled_before_the_headers(leaves):
    """The task is cancelled while it waits for the headers."""

    async def action(transport, request, server):
        task = asyncio.ensure_future(read(transport, request))
        await cancel_when(task, lambda: server.requests)

    leaves(silent, action)


def test_cancelled_in_the_middle(leaves):
    """The task is cancelled while it waits for the next chunk."""

    async def action(transport, request, _server):
        got = []
        task = asyncio.ensure_future(collect(transport, request, got))
        await cancel_when(task, lambda: got)

    leaves(streaming(b"one"), action)


def test_leaving_the_block_early(leaves):
    """The block ends early, with or without an error."""

    async def use(transport, request):
        async with transport.send(request) as got:
            await anext(got.chunks())
            raise KeyError

    async def fail(transport, request, _server):
        with pytest.raises(KeyError):
            await use(transport, request)

    async def leave(transport, request, _server):
        async with transport.send(request) as got:
            await anext(got.chunks())

    leaves(streaming(b"one"), fail)
    leaves(streaming(b"one"), leave)


def test_closing_a_generator(leaves):
    """A generator around the exchange is closed, or garbage collected."""

    async def events(transport, request):
        async with transport.send(request) as got:
            async for chunk in got.chunks():
                yield chunk

    async def close(transport, request, _server):
        stream = events(transport, request)
        await anext(stream)
        await stream.aclose()

    async def forget(transport, request, _server):
        async for _ in events(transport, request):
            break
        gc.collect()
        await asyncio.sleep(0)

    leaves(streaming(b"one"), close)
    leaves(streaming(b"one"), forget)


def test_collected_reply():
    """A reply that is garbage collected closes its connection, without a warning.

    Of the default transport: the block of httpx2's ends when nobody holds it, before its reply.
    """

    async def action(transport, request, _server):
        got = await transport.send(request).__aenter__()
        await anext(got.chunks())
        del got
        gc.collect()

    http_calls.leaves(streaming(b"one"), action)


def test_abort(leaves):
    """The connection is closed, and a task that is reading gets an error."""

    async def action(transport, request, _server):
        async with transport.send(request) as got:
            chunks = got.chunks()
            await anext(chunks)
            reading = asyncio.ensure_future(anext(chunks))
            await asyncio.sleep(0.01)
            got.abort()
            got.abort()
            with pytest.raises(StreamError):
                await reading
            with pytest.raises((StreamError, NetworkError)):
                await got.read()

    leaves(streaming(b"one"), action)


def test_many_streams_half_of_them_cancelled(run):
    """Of 500 streams every second is cancelled: the others finish, and nothing stays open."""
    count = 500

    async def script(connection):
        await connection.read_request()
        await connection.send(CHUNKED, piece(b"one"))
        while not release.is_set():  # noqa: ASYNC110 -- it is set by another thread
            await asyncio.sleep(0.01)
        await connection.send(piece(b"two"), LAST)

    release = threading.Event()
    with Server(script) as server:

        async def work(transport):
            got = [[] for _ in range(count)]
            tasks = [asyncio.ensure_future(collect(transport, call(server.url), g)) for g in got]
            while not all(got):  # noqa: ASYNC110 -- there is no event to wait for
                await asyncio.sleep(0.01)
            for task in tasks[::2]:
                task.cancel()
            release.set()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ends[::2])
            assert ends[1::2] == [b"onetwo"] * (count // 2)
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            assert left == []
            await transport.close()
            assert await asyncio.to_thread(server.all_closed)

        run(work)
    assert len(server.connections) == count
