"""`max_connections`: the limit of connections to one host, and the queue before it."""

import asyncio
import threading

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import ConfigurationError, NetworkError, RequestTimeoutError
from interlingua.transport.http1 import transport as http1_transport
from interlingua.transport.http1.addresses import resolve
from interlingua.transport.http1.exchange import Exchange
from interlingua.transport.http1.pool import Pool
from interlingua.transport.http1.transport import HttpTransport
from support.http_calls import call, collect, read, run
from support.loops import every_loop, run_on
from support.patience import PATIENCE
from support.servers import CHUNKED, LAST, Server, answering, piece, reply, streaming
from support.simulated import settled
from support.steps import cancelled_at


@pytest.mark.parametrize("limit", [0, -1, 1.0, True, "3"])
def test_the_limit_is_a_whole_number(limit):
    """Anything else is refused at once."""
    with pytest.raises(ConfigurationError, match="max_connections"):
        HttpTransport(max_connections=limit)


class Counted(Pool):
    """Counts its connections whenever it opens another one."""

    def __init__(self, limit):
        super().__init__(trust_env=False, max_connections=limit, resolve=self._count)
        self.most = self.opened = self._opening = 0

    async def _count(self, host, port):
        self.opened += 1
        self._opening += 1
        # The event loop closes the socket of one that was cut in its next iteration.
        is_open = [not each.transport.is_closing() for each in self.connections]
        self.most = max(self.most, sum(is_open) + self._opening)
        return await resolve(host, port)

    async def open(self, target):
        try:
            return await super().open(target)
        finally:
            self._opening -= 1

    async def read(self, request):
        """The body of the reply."""
        loop = asyncio.get_running_loop()
        async with Exchange(request, self, loop, Timeouts(), Limits()) as got:
            return await got.read()


@every_loop
@pytest.mark.parametrize("keep_alive", [True, False])
@pytest.mark.parametrize("limit", [1, 3])
def test_there_are_never_more_connections(loop, limit, keep_alive):
    """Of 100 calls at once; also if each has a connection of its own."""

    async def work():
        counted = Counted(limit)
        body = [b"%d" % number for number in range(100)]
        requests = [HttpRequest(url=server.url, body=each, keep_alive=keep_alive) for each in body]
        assert await asyncio.gather(*map(counted.read, requests)) == [b"ok"] * 100
        await counted.close()
        return counted.most, counted.opened

    with Server(answering(reply(b"ok"))) as server:
        most, opened = run_on(loop, work())

    assert most == limit
    assert opened == (limit if keep_alive else 100)
    assert sorted(int(request.body) for request in server.requests) == [*range(100)]


@every_loop
def test_calls_with_and_without_keep_alive_share_the_limit(loop):
    """A call that wants a connection of its own takes the place of an idle one."""

    async def work():
        counted = Counted(2)
        for number in range(40):
            keep_alive = number % 3 != 0
            requests = [HttpRequest(url=server.url, keep_alive=keep_alive)] * 3
            await asyncio.gather(*map(counted.read, requests))
        await counted.close()
        return counted.most

    with Server(answering(reply(b"ok"))) as server:
        assert run_on(loop, work()) == 2


def test_stale_connections_count_until_they_are_closed():
    """Those that the server closed meanwhile are replaced, one for one."""

    async def script(connection):
        await connection.read_request()
        await connection.send(reply(b"ok"))
        connection.writer.close()

    async def work():
        counted = Counted(2)
        for _ in range(20):
            await asyncio.gather(*(counted.read(HttpRequest(url=server.url)) for _ in range(4)))
        await counted.close()
        return counted.most

    with Server(script) as server:
        assert asyncio.run(work()) == 2


def test_each_host_has_its_own_limit():
    """A host whose connections are all in use does not hold up another."""
    hold = threading.Event()

    async def slow(connection):
        await connection.read_request()
        await asyncio.to_thread(hold.wait, PATIENCE)
        await connection.send(reply(b"slow"))

    async def work(transport):
        first = asyncio.ensure_future(read(transport, call(held.url)))
        await settled(lambda: held.requests)
        assert (await read(transport, call(free.url)))[2] == b"free"
        hold.set()
        assert (await first)[2] == b"slow"

    with Server(slow) as held, Server(answering(reply(b"free"))) as free:
        run(work, max_connections=1)


def test_first_come_first_served():
    """The calls that wait are sent in the order in which they came."""

    async def work(transport):
        requests = [HttpRequest(url=server.url, body=b"%d" % number) for number in range(30)]
        await asyncio.gather(*(read(transport, request) for request in requests))

    with Server(answering(reply())) as server:
        run(work, max_connections=1)

    assert [int(request.body) for request in server.requests] == [*range(30)]


@pytest.mark.parametrize("cancelled", [0, 1])
def test_the_first_calls_wait_for_one_import(monkeypatch, cancelled):
    """They go on in their order when it has ended; if its call is cancelled, the next imports."""
    go, imports = threading.Event(), []

    def slow_import(name):
        imports.append(name)
        assert go.wait(PATIENCE)

    monkeypatch.setattr(http1_transport, "import_module", slow_import)

    async def work(transport):
        requests = [HttpRequest(url=server.url, body=b"%d" % number) for number in range(10)]
        tasks = [asyncio.ensure_future(read(transport, request)) for request in requests]
        await settled(lambda: imports)
        for task in tasks[:cancelled]:
            task.cancel()
        await settled(lambda: len(imports) > cancelled)
        go.set()
        await asyncio.gather(*tasks[cancelled:])

    with Server(answering(reply())) as server:
        run(work, max_connections=1)

    assert len(imports) == 1 + cancelled
    assert [int(request.body) for request in server.requests] == [*range(cancelled, 10)]


def held_back():
    """A script that answers when it is told to, and the event that tells it."""
    go = threading.Event()

    async def script(connection):
        while await connection.read_request() is not None:
            await asyncio.to_thread(go.wait, PATIENCE)
            await connection.send(reply(b"ok"))

    return script, go


def test_a_cancelled_call_passes_its_turn_on():
    """Those behind it in the queue are not held up."""
    script, go = held_back()

    async def work(transport):
        tasks = [asyncio.ensure_future(read(transport, call(server.url))) for _ in range(6)]
        await settled(lambda: server.requests)
        for number in (1, 2, 4):
            tasks[number].cancel()
        go.set()
        got = await asyncio.gather(*tasks, return_exceptions=True)
        return [isinstance(each, asyncio.CancelledError) for each in got]

    with Server(script) as server:
        ends = run(work, max_connections=1)

    assert ends == [False, True, True, False, True, False]
    assert len(server.requests) == 3


@pytest.mark.parametrize("late", [False, True])
def test_wherever_a_call_is_cancelled_its_place_is_free_again(late):
    """At every place where it waits, also when what it waits for has just come."""

    async def work(transport):
        at = 0
        pool = transport._pools.get(asyncio.get_running_loop())

        async def one():
            await read(transport, call(server.url))

        while True:
            rival = asyncio.ensure_future(one())  # the call may have to wait for its turn
            await asyncio.sleep(0)
            is_reached = await cancelled_at(one, at, late=late)
            await asyncio.wait_for(rival, PATIENCE)
            await asyncio.wait_for(one(), PATIENCE)
            (queue,) = pool._queues.values()
            await settled(lambda queue=queue: queue._value == 1)
            if not is_reached:
                return at
            at += 1

    with Server(answering(reply())) as server:
        assert run(work, max_connections=1) >= 2


def test_a_timeout_in_the_queue_says_that_nothing_was_sent():
    """It is retryable, and names the limit."""
    script, go = held_back()

    async def work(transport):
        first = asyncio.ensure_future(read(transport, call(server.url)))
        await settled(lambda: server.requests)
        for limit in ("request", "first_byte", "total"):
            with pytest.raises(RequestTimeoutError, match="Nothing was sent") as caught:
                await read(transport, call(server.url, timeouts=Timeouts(**{limit: 0.05})))
            error = caught.value
            assert (error.phase, error.retryable) == (limit, True)
            assert "max_connections" in error.message
        go.set()
        assert (await first)[2] == b"ok"

    with Server(script) as server:
        run(work, max_connections=1)

    assert len(server.requests) == 1


@pytest.mark.parametrize("is_error", [False, True])
def test_a_stream_that_is_left_gives_its_place_back(is_error):
    """At once after an error, and otherwise when its end has come or not."""

    async def leave(transport):
        async with transport.send(call(server.url)) as got:
            await anext(got.chunks())
            if is_error:
                raise KeyError

    async def work(transport):
        for _ in range(4):
            try:
                await asyncio.wait_for(leave(transport), PATIENCE)
            except KeyError:
                assert is_error

    with Server(streaming(b"one")) as server:
        run(work, max_connections=1)

    assert len(server.connections) == 4


def test_a_stream_whose_end_comes_soon_keeps_its_connection():
    """The next call waits for it, and uses it."""

    async def script(connection):
        while await connection.read_request() is not None:
            await connection.send(CHUNKED, piece(b"one"), LAST)

    async def work(transport):
        for _ in range(5):
            async with transport.send(call(server.url)) as got:
                await anext(got.chunks())

    with Server(script) as server:
        run(work, max_connections=1)

    assert len(server.requests) == 5


@pytest.mark.parametrize("fault", ["close", "reset", "garbage", "refused"])
def test_calls_that_fail_give_their_place_back(fault):
    """Whatever ends a connection, or keeps it from being opened."""

    async def script(connection):
        await connection.read_request()
        if fault == "garbage":
            await connection.send(b"garbage\r\n\r\n")
        elif fault == "reset":
            connection.reset()
        else:
            connection.writer.close()

    async def work(transport):
        url = "http://127.0.0.1:9/" if fault == "refused" else server.url
        calls = (read(transport, call(url)) for _ in range(20))
        got = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), PATIENCE)
        assert [type(each) for each in got] == [NetworkError] * 20

    with Server(script) as server:
        run(work, max_connections=2)


def test_closing_fails_what_waits():
    """The call in progress, and those in the queue: nothing of theirs was sent."""
    script, go = held_back()

    async def work(transport):
        calls = [asyncio.ensure_future(read(transport, call(server.url))) for _ in range(3)]
        await settled(lambda: server.requests)
        await transport.close()
        got = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), PATIENCE)
        assert [type(each) for each in got] == [NetworkError] * 3
        assert not any(each.retryable for each in got)
        assert [each.phase for each in got] == [None, "connect", "connect"]
        assert all("closed" in each.message for each in got)
        go.set()
        assert (await read(transport, call(server.url)))[2] == b"ok"

    with Server(script) as server:
        run(work, max_connections=1)

    assert len(server.requests) == 2


def test_closing_fails_a_stream_in_progress():
    """A task that waits for the next chunk gets an error, not silence."""

    async def work(transport):
        got = []
        task = asyncio.ensure_future(collect(transport, call(server.url), got))
        await settled(lambda: got)
        await transport.close()
        with pytest.raises(Exception, match="was closed before it was complete") as caught:
            await asyncio.wait_for(task, PATIENCE)
        assert not caught.value.retryable

    with Server(streaming(b"one")) as server:
        run(work)
