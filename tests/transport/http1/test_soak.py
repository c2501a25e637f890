"""Thousands of calls that end in every way leave nothing behind."""

import asyncio
import gc
import random
import socket
import struct
import threading
import tracemalloc
from contextlib import suppress
from pathlib import Path

import httptools
import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import SDKError
from interlingua.transport import http1
from interlingua.transport.http1.exchange import LINGER
from interlingua.transport.http1.transport import HttpTransport
from support.loops import every_loop, run_on
from support.patience import PATIENCE
from support.run_profile import FULL
from support.simulated import settled

CALLS = 20_000 if FULL else 2_000
AT_ONCE = 40
PIECES = 5
SLACK = 100_000  # bytes; the interpreter keeps some freed objects, more of them each time


def body_of(nonce):
    """The body of the reply to this request."""
    return b"<%s>" % nonce * 40


class Peer(asyncio.Protocol):
    """One connection of a server that does what the path of a request says, and keeps nothing."""

    def connection_made(self, transport):
        self.transport = transport
        self.loop = asyncio.get_running_loop()
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data):
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.abort()

    def connection_lost(self, _):
        self.parser = None

    def on_url(self, url):
        _, self.kind, self.nonce = url.split(b"/")

    def on_headers_complete(self):
        if self.kind == b"early":
            self.send(self.whole(b"413 Too Large"))

    def on_message_complete(self):
        answer = getattr(self, f"answer_{self.kind.decode()}", None)
        if answer is not None:
            answer(body_of(self.nonce))

    def send(self, data):
        if not self.transport.is_closing():
            self.transport.write(data)

    def whole(self, status=b"200 OK", more=0):
        body = body_of(self.nonce)
        size = len(body) + more
        return b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status, size, body)

    def reset(self):
        if not self.transport.is_closing():
            peer = self.transport.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()

    def answer_whole(self, _):
        self.send(b"HTTP/1.1 103 Early\r\n\r\n" + self.whole())

    def answer_late(self, _):
        self.loop.call_later(0.003, self.send, self.whole())

    def answer_stream(self, body):
        size = len(body) // PIECES
        pieces = [
            b"%x\r\n%s\r\n" % (size, body[at : at + size]) for at in range(0, len(body), size)
        ]
        pieces = [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", *pieces, b"0\r\n\r\n"]
        for number, piece in enumerate(pieces):
            self.loop.call_later(number * 0.0005, self.send, piece)

    def answer_close(self, body):
        self.send(b"HTTP/1.1 200 OK\r\n\r\n" + body)
        self.transport.close()

    def answer_then_close(self, _):
        self.send(self.whole())
        self.transport.close()

    def answer_large(self, body):
        size = 400_000 + len(body)
        self.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + bytes(400_000) + body)

    def answer_unasked(self, _):
        self.send(self.whole() + b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nunasked")

    def answer_short(self, _):
        self.send(self.whole(more=10))
        self.transport.close()

    def answer_stalled(self, _):
        self.send(self.whole(more=10))

    def answer_reset(self, _):
        self.send(self.whole(more=10))
        self.loop.call_later(0.001, self.reset)

    def answer_nothing(self, _):
        self.transport.close()

    def answer_garbage(self, _):
        self.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


COMPLETE = ("whole", "late", "stream", "close", "then_close", "large", "unasked", "early")
KINDS = (*COMPLETE, "short", "stalled", "reset", "nothing", "garbage", "silent")
STALLED = Timeouts(first_byte=0.02, request=0.02, stream_read=0.01)


class Serving:
    """The server in a thread of its own."""

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(PATIENCE)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)

    def _run(self, ready):
        async def serve():
            server = await self._loop.create_server(Peer, "127.0.0.1", 0, backlog=1024)
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            ready.set()
            await self._stop.wait()
            server.close()

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(serve())


class Caller:
    """Makes calls that end in every way."""

    def __init__(self, transport, url, seed):
        self.transport, self.url = transport, url
        self.source = random.Random(seed)
        self.number = 0
        self.ends = {}

    async def run(self, count):
        """Make these many calls, some at a time."""
        last = self.number + count

        async def work():
            while self.number < last:
                self.number += 1
                await self.call(self.number)

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def call(self, number):
        """One call, and check that its answer is its own."""
        kind = self.source.choice(KINDS)
        way = self.source.choice(
            (self.read, self.read, self.collect, self.leave, self.fail, self.forget)
        )
        nonce = b"%s-%d" % (kind.encode(), number)
        is_limited = kind in {"silent", "stalled"} or number % 50 == 0
        request = HttpRequest(
            url=f"{self.url}/{kind}/{nonce.decode()}",
            body=self.body(number),
            keep_alive=number % 20 != 0,
            timeouts=STALLED if is_limited else None,
        )
        task = asyncio.ensure_future(way(request))
        if self.source.random() < 0.25:
            asyncio.get_running_loop().call_later(self.source.random() * 0.004, task.cancel)
        try:
            got = await task
        except (SDKError, asyncio.CancelledError, KeyError) as error:
            end = type(error).__name__
        else:
            end = "left" if got is None else "answered"
            assert got is None or kind in COMPLETE
            assert got is None or got.removeprefix(bytes(400_000)) == body_of(nonce)
        self.ends[kind, end] = self.ends.get((kind, end), 0) + 1

    def body(self, number):
        if number % 7 == 0:
            return _pieces()
        return bytes(2_000_000) if number % 97 == 0 else b"{}"

    async def read(self, request):
        async with self.transport.send(request) as reply:
            return await reply.read()

    async def collect(self, request):
        async with self.transport.send(request) as reply:
            return b"".join([chunk async for chunk in reply.chunks()])

    async def leave(self, request):
        async with self.transport.send(request) as reply:
            await anext(reply.chunks(), None)

    async def fail(self, request):
        async with self.transport.send(request) as reply:
            await anext(reply.chunks(), None)
            raise KeyError

    async def forget(self, request):
        reply = await self.transport.send(request).__aenter__()
        await anext(reply.chunks(), None)


async def _pieces():
    for _ in range(3):
        yield b"x" * 1000
        await asyncio.sleep(0)


def descriptors(kind=""):
    """How many are open."""
    links = []
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that lists them
            links.append(path.readlink())
    return sum(str(link).startswith(kind) for link in links)


def is_at_rest(pool):
    """Whether the only connections are the idle ones, and no exchange goes on."""
    idle = {connection for each in pool._idle.values() for connection in each}
    return pool.connections == idle and not (pool.lingering or pool._writers)


def left_over():
    """The classes of the transport of which there are objects."""
    rooms = {f"{http1.__name__}.{name}" for name in ("addresses", "connection", "exchange", "pool")}
    kinds = {type(each) for each in gc.get_objects()}
    return {kind for kind in kinds if kind.__dict__.get("__module__") in rooms}


async def come_to_rest(pool):
    await asyncio.sleep(LINGER)
    gc.collect()
    await settled(lambda: is_at_rest(pool))
    assert pool.watch._references == set()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def soak(url, seed):
    """Run all calls; the bytes that the second half has left."""
    transport = HttpTransport()
    caller = Caller(transport, url, seed)
    sizes, at_first, others = [], descriptors("socket:"), left_over()
    for _ in range(2):
        pool = transport._pools.get(asyncio.get_running_loop())
        await caller.run(CALLS // 2)
        await come_to_rest(pool)
        await transport.close()
        assert pool.connections == set()
        await settled(lambda: descriptors("socket:") == at_first)  # those of the server too
        del pool
        gc.collect()
        assert left_over() <= others  # of other tests
        sizes.append(tracemalloc.get_traced_memory()[0])
    answered = {kind for kind, end in caller.ends if end == "answered"}
    assert answered == set(COMPLETE)
    return sizes[1] - sizes[0]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
@every_loop
def test_thousands_of_calls_leave_nothing(loop):
    """No descriptor, task, connection or memory, whatever happened to the calls."""
    run_on(loop, asyncio.sleep(0))  # uvloop keeps two descriptors for all of its loops
    gc.collect()
    before = descriptors()
    tracemalloc.start()
    try:
        with Serving() as server:
            grown = run_on(loop, soak(server.url, seed=24))
    finally:
        tracemalloc.stop()
    gc.collect()

    assert descriptors() == before
    assert grown < SLACK
