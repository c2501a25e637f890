"""Clocks, and the end of a call: the server sees the connection close, each time."""

import asyncio
import contextlib
import gc
import threading

import pytest

from interlingua.spec.contracts import Timeouts
from interlingua.spec.errors import (
    RequestTimeoutError,
    StreamError,
)
from support.http_calls import (
    SHORT,
    assert_no_key,
    call,
    cancel_when,
    collect,
    fails,
    leaves,
    read,
    run,
)
from support.servers import (
    CHUNKED,
    LAST,
    PATIENCE,
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
def test_no_head_in_time(script, phase, action):
    """A stall before the head, or a head that drips, ends at the clock and is not retried."""
    error = fails(script, action, timeouts=Timeouts(**{phase: SHORT}))

    assert type(error) is RequestTimeoutError
    assert (error.phase, error.retryable) == (phase, False)


def test_a_body_that_drips():
    """The clock of a whole exchange runs on while bytes come."""
    error = fails(drip_body, timeouts=Timeouts(request=SHORT))

    assert type(error) is RequestTimeoutError
    assert (error.phase, error.retryable) == ("request", False)


def test_field_bug_78_a_stream_that_stalls():
    """Silence in the middle of a stream has a clock of its own."""
    error = fails(streaming(b"one"), collect, timeouts=Timeouts(stream_read=SHORT))

    assert type(error) is RequestTimeoutError
    assert (error.phase, error.retryable) == ("stream_read", False)


def test_field_bug_78_a_stream_that_goes_on_is_not_silent():
    """Neither the clock of the head nor that of the exchange ends a stream that speaks."""

    async def script(connection):
        await connection.read_request()
        await connection.send(CHUNKED)
        for _ in range(20):
            await connection.send(piece(b": ping\n\n"))
            await asyncio.sleep(SHORT / 5)
        await connection.send(LAST)

    clocks = Timeouts(request=SHORT, first_byte=SHORT, stream_read=SHORT * 3)
    with Server(script) as server:
        body = run(lambda transport: collect(transport, call(server.url)), timeouts=clocks)

    assert body == b": ping\n\n" * 20


def test_a_slow_reader_is_not_a_silent_server():
    """The time a reader takes for itself does not count."""

    async def work(transport):
        async with transport.send(call(server.url)) as got:
            chunks = got.chunks()
            first = await anext(chunks)
            await asyncio.sleep(SHORT * 3)
            return [first, *[chunk async for chunk in chunks]]

    with Server(streaming(b"one", b"two", end=LAST)) as server:
        got = run(work, timeouts=Timeouts(stream_read=SHORT))

    assert b"".join(got) == b"onetwo"


def test_clocks_of_one_call():
    """A request may bring its own."""
    with Server(silent) as server:

        async def work(transport):
            with pytest.raises(RequestTimeoutError):
                await read(transport, call(server.url, timeouts=Timeouts(first_byte=SHORT)))

        run(work)


def test_connecting_takes_too_long():
    """A connection that does not come about is the one timeout that may be tried again."""
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


def test_no_clocks():
    """None means none."""
    none = Timeouts(connect=None, request=None, first_byte=None, stream_read=None)
    with Server(streaming(b"one", end=LAST)) as server:
        assert run(lambda t: collect(t, call(server.url)), timeouts=none) == b"one"


def test_a_reader_that_leaves_at_the_last_event_frees_the_connection():
    """The end of the body may come just after the reader has left."""

    async def script(connection):
        while await connection.read_request() is not None:
            await connection.send(CHUNKED, piece(b"last"), LAST)

    async def work(transport):
        for _ in range(3):
            async with transport.send(call(server.url)) as got:
                async for _chunk in got.chunks():
                    break
            await asyncio.sleep(0.02)

    with Server(script) as server:
        run(work)

    assert [len(connection.requests) for connection in server.connections] == [3]


def test_cancelled_before_the_head():
    """The task is cancelled while it waits for the head."""

    async def action(transport, request, server):
        task = asyncio.ensure_future(read(transport, request))
        await cancel_when(task, lambda: server.requests)

    leaves(silent, action)


def test_cancelled_in_the_middle():
    """The task is cancelled while it waits for the next chunk."""

    async def action(transport, request, _server):
        got = []
        task = asyncio.ensure_future(collect(transport, request, got))
        await cancel_when(task, lambda: got)

    leaves(streaming(b"one"), action)


def test_leaving_the_block():
    """The block is left with an error, or early without one."""

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


def test_leaving_a_generator():
    """A generator around the call is closed, or just forgotten."""

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


def test_a_forgotten_reply():
    """A reply entered by hand and dropped does not keep its connection, nor complain."""

    async def action(transport, request, _server):
        got = await transport.send(request).__aenter__()
        await anext(got.chunks())
        del got
        gc.collect()

    leaves(streaming(b"one"), action)


def test_abort():
    """The connection closes under a reader, who gets an error."""

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
            with pytest.raises(StreamError):
                await got.read()

    leaves(streaming(b"one"), action)


def test_many_streams_half_of_them_cancelled():
    """500 at once, every second one cancelled: the others end well, and nothing stays open."""
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
