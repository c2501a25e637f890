"""One transport in many event loops."""

import asyncio
import os
import socket

import pytest

from interlingua.transport.per_loop import PerLoop, SocketProbe
from support.http_calls import (
    complains,
)
from support.loops import every_loop
from support.servers import (
    Server,
    answering,
    reply,
)

PROGRAM = """
import asyncio, gc, sys, threading
from interlingua.spec.contracts import HttpRequest
from interlingua.transport.http1.transport import HttpTransport

if sys.argv[2] == "uvloop":
    import uvloop
    def run(work):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work)
    asyncio.run, asyncio.new_event_loop = run, uvloop.new_event_loop
transport = HttpTransport()

async def main(leave=False):
    async with transport.send(HttpRequest(url=sys.argv[1], body=b"{}")) as reply:
        if leave:
            await anext(reply.chunks())
        else:
            assert await reply.read() == b"{}"
"""


@every_loop
@pytest.mark.parametrize(
    "code",
    [
        "for _ in range(3): asyncio.run(main())",
        "for _ in range(3): asyncio.run(main(leave=True))",
        "for _ in range(3): asyncio.run(main()); gc.collect()",
        "asyncio.run(main()); del transport; gc.collect()",
        # a loop closed by hand, its generators never told
        """
for _ in range(3):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.close()
    del loop
    gc.collect()
asyncio.run(main())
gc.collect()
""",
        # a loop that is never closed is the caller's own to complain about, the pool not
        """
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.run_until_complete(transport.close())
loop.close()
""",
        """
def work():
    for _ in range(3): asyncio.run(main())
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
asyncio.run(main())
gc.collect()
""",
        # closed from another loop while its own runs
        """
ready, done = threading.Event(), threading.Event()
async def other():
    await main()
    ready.set()
    while not done.is_set(): await asyncio.sleep(0.01)
    await main()
thread = threading.Thread(target=lambda: asyncio.run(other()))
thread.start()
ready.wait()
async def here():
    await main()
    await transport.close()
asyncio.run(here())
done.set()
thread.join()
gc.collect()
""",
        # forgotten inside a loop that runs on
        """
async def here():
    global transport
    await main()
    del transport
    gc.collect()
    await asyncio.sleep(0.05)
asyncio.run(here())
gc.collect()
""",
    ],
)
def test_no_loop_is_left_with_something_open(code, loop):
    """Loops one after another, at once, closed by hand: one transport serves all, in silence.

    Field bug 83.
    """
    if loop == "uvloop" and "loop.close()" in code and "transport.close()" not in code:
        pytest.skip("uvloop itself warns of what is open when it is closed")
    with Server(answering(reply())) as server:
        assert complains(PROGRAM + code, server.url, loop) == ""
        assert server.requests
        assert server.all_closed()


@every_loop
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_child_opens_its_own(loop):
    """Parent and child go on with one transport, each over its own connections (field bug 83)."""
    code = """
import os
async def parent():
    await main()
    child = os.fork()
    if child == 0:
        asyncio.run(main())
        sys.stdout.flush(); sys.stderr.flush()
        os._exit(0)
    await main()
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert status == 0
    await main()
asyncio.run(parent())
"""
    with Server(answering(reply())) as server:
        assert complains(PROGRAM + code, server.url, loop) == ""
        counts = sorted(len(connection.requests) for connection in server.connections)
    assert counts == [1, 3]


@every_loop
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_child_does_not_touch_the_connections_of_its_parent(loop):
    """What a child closes are its own connections; the parent's go on (field bug 83)."""
    code = """
import os
async def child():
    await main()
    await transport.close()
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
forked = os.fork()
if forked == 0:
    asyncio.run(child())
    gc.collect()
    sys.stdout.flush(); sys.stderr.flush()
    os._exit(0)
assert os.waitpid(forked, 0)[1] == 0
loop.run_until_complete(asyncio.wait_for(main(), 10))
loop.run_until_complete(transport.close())
loop.close()
"""
    with Server(answering(reply())) as server:
        assert complains(PROGRAM + code, server.url, loop) == ""
        counts = sorted(len(connection.requests) for connection in server.connections)
    assert counts == [1, 2]


class Values:
    """Counts what is opened, closed and discarded."""

    def __init__(self):
        self.opened, self.closed, self.discarded = [], [], []
        self.per_loop = PerLoop(self._open, self._close, self.discarded.append)

    def _open(self):
        self.opened.append(object())
        return self.opened[-1]

    async def _close(self, value):
        self.closed.append(value)

    async def get(self):
        return self.per_loop.get(asyncio.get_running_loop())


def test_one_value_per_loop():
    """Each loop has its own value, which is closed with the loop."""
    values = Values()

    async def main():
        assert await values.get() is await values.get()

    for _ in range(3):
        asyncio.run(main())

    assert len(values.opened) == 3
    assert values.closed == values.opened
    assert values.discarded == []


def test_loops_that_ended_without_shutdown():
    """The next use discards values of closed loops, so that they do not accumulate."""
    values = Values()
    for _ in range(3):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(values.get())
        loop.close()

    assert values.discarded == values.opened[:2]
    assert values.closed == []


def test_close():
    """It closes the value of this loop; a later use opens another."""
    values = Values()

    async def main():
        await values.get()
        await values.per_loop.close()
        assert values.closed == values.opened
        await values.get()

    asyncio.run(main())
    assert values.closed == values.opened
    assert len(values.opened) == 2


def test_a_late_close_leaves_the_next_value_alone():
    """Closed from another loop, a value may end after the next one of its loop was opened."""
    values = Values()

    async def main():
        first = await values.get()
        entry = values.per_loop._entries.pop(asyncio.get_running_loop())
        second = await values.get()
        await entry.keeper.aclose()
        assert values.closed == [first]
        assert await values.get() is second

    asyncio.run(main())
    assert values.closed == values.opened


class Connection(asyncio.Transport):
    """A transport that only has a socket."""


def test_what_waits_in_the_socket_is_seen():
    """Bytes that the event loop has not read yet, and the end of the connection."""
    near, far = socket.socketpair()
    with near, far:
        probe = SocketProbe(Connection({"socket": near}))
        assert not probe.has_input()
        far.send(b"HTTP/1.1 200 OK")
        assert probe.has_input()
        near.recv(100)
        assert not probe.has_input()
        far.close()
        assert probe.has_input()


def test_a_connection_without_a_socket_has_no_input():
    """Such as one in memory; there is nothing to look at."""
    assert not SocketProbe(Connection()).has_input()
