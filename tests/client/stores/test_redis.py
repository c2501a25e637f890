"""What only the store in a server does: failures, event loops, processes."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from uuid import uuid4

import pytest

from interlingua.client.stores import redis, redis_scripts
from interlingua.errors import ConfigurationError, StoreError
from interlingua.stores import Limit, RedisStore, Refused, Reservation
from support import virtual_time
from support.patience import PATIENCE, with_some_timeout
from support.redis_server import new_server, redis_url
from support.simulated import settled
from support.stores import Clock

PLACE = [Limit(key="k", maximum=1, mode="hold")]


@pytest.fixture
def url():
    return redis_url()


@pytest.fixture
def store(url):
    return RedisStore(url, prefix=uuid4().hex, timeout=PATIENCE)


@pytest.fixture
def server():
    """A server of the test's own."""
    own = new_server().start()
    yield own
    own.stop()


def raw(url, *command):
    """The reply of the server to one command."""
    from redis import Redis

    with Redis.from_url(url) as client:
        return client.execute_command(*command)


def sockets():
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


async def seconds_to_fail(call):
    start = time.monotonic()
    with pytest.raises(StoreError):
        await call
    return time.monotonic() - start


# Failures.


def test_a_server_that_ends(server):
    """Every call fails at once, and works again when the server is back."""
    store = RedisStore(server.url, timeout=PATIENCE)
    wanted = [Limit(key="k", maximum=9, period=60)]

    async def work():
        await store.put("k", b"v")
        server.stop()
        failed = [await seconds_to_fail(store.reserve(wanted)) for _ in range(20)]
        failed.append(await seconds_to_fail(store.add("n", 1)))
        server.start()
        taken = await store.reserve(wanted)
        await store.close()
        return failed, taken

    failed, taken = asyncio.run(work())

    assert sum(failed) < PATIENCE  # none of them waited for its timeout
    assert isinstance(taken, Reservation)


can_stop = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP on this system")


def test_what_is_given_back_does_not_hold_up_the_loop(tmp_path):
    """It is sent again with pauses, also where a connection is refused without any waiting."""
    store = RedisStore(f"unix://{tmp_path}/none", timeout=PATIENCE)

    async def work():
        for _ in range(50):
            store._give_back("an id", PLACE, 60.0)
        tries = []
        link = store._link()
        exchange = link._exchange
        link._exchange = lambda calls: tries.append(calls) or exchange(calls)
        for _ in range(20):
            await asyncio.sleep(0)
        await store.close()
        return len(tries)

    assert asyncio.run(work()) <= 2


@can_stop
def test_a_server_that_hangs(server):
    """A call is given up after its timeout, also when many wait; later the store works again."""
    store = RedisStore(server.url, timeout=PATIENCE)

    async def work():
        await store.put("k", b"v")
        os.kill(server.pid, signal.SIGSTOP)
        store._timeout = 0.05
        start = time.monotonic()
        calls = [seconds_to_fail(store.get("k")) for _ in range(30)]
        one_after_another = [await seconds_to_fail(store.get("k")) for _ in range(3)]
        await asyncio.gather(*calls)
        elapsed = time.monotonic() - start
        os.kill(server.pid, signal.SIGCONT)
        store._timeout = PATIENCE
        value = await store.get("k")
        await store.close()
        return one_after_another, elapsed, value

    one_after_another, elapsed, value = asyncio.run(work())

    assert min(one_after_another) > 0.03
    assert elapsed < PATIENCE  # not as long as the server hangs
    assert value == b"v"


@can_stop
def test_a_late_reservation_is_given_back(server):
    """What a slow server takes after its caller has given up is not held for its lease."""
    store = RedisStore(server.url, timeout=PATIENCE)

    async def work():
        await store.settle(await store.reserve(PLACE), {})
        link = store._link()
        link._patience = PATIENCE  # the connection is not given up meanwhile
        os.kill(server.pid, signal.SIGSTOP)
        store._timeout = 0.05
        for _ in range(3):
            with pytest.raises(StoreError, match="50 ms"):
                await store.reserve(PLACE)
        waiting = len(link._waiting)
        store._timeout = PATIENCE
        os.kill(server.pid, signal.SIGCONT)
        await store.get("k")  # after all that was waiting
        return waiting, await store.used("k")

    # The first was sent, and is given back; the others are not sent at all.
    assert asyncio.run(work()) == (3, 0)


@can_stop
def test_a_late_reservation_of_a_connection_that_was_given_up(server):
    """It is given back on a later connection, however often they hang."""
    store = RedisStore(server.url, timeout=PATIENCE)

    async def work():
        await store.settle(await store.reserve(PLACE), {})
        link, sent = store._link(), []
        exchange = link._exchange

        def give_up_often(calls):
            sent.append(calls)
            link._patience = 0.06 if len(sent) < 6 else PATIENCE
            return exchange(calls)

        link._exchange = give_up_often
        os.kill(server.pid, signal.SIGSTOP)
        store._timeout = 0.05
        with pytest.raises(StoreError, match="50 ms"):
            await store.reserve(PLACE)
        store._timeout = PATIENCE
        await settled(lambda: len(sent) == 6)
        os.kill(server.pid, signal.SIGCONT)
        await store.get("k")  # after all that was waiting
        return await store.used("k")

    assert asyncio.run(work()) == 0


def test_what_was_given_back_is_not_taken_later(store):
    """Two connections have no order: the id of what was given back is marked."""

    async def work():
        limits = [*PLACE, Limit(key="s", maximum=9, period=60)]
        keys, arguments = store._settlement("an id", limits, [0.0, 0.0])
        await store._run(redis_scripts.GIVE_BACK, keys, arguments)
        sent = ["", "an id", 60_000_000, *redis._arguments(limits)]
        is_taken, *_ = await store._run(redis_scripts.RESERVE, keys, sent)
        return is_taken, await store.used("k"), await store.used("s", 60)

    assert asyncio.run(work()) == (0, 0, 0)


def test_a_connection_that_the_server_closed(store, url):
    """A server that closes idle connections, or restarts, fails no call that comes later."""

    async def work():
        for call in (
            lambda: store.add("n", 1),
            lambda: store.append("l", b"1"),
            lambda: store.put("k", b"v", only_new=True),
        ):
            _, port = store._link()._connection._writer.get_extra_info("sockname")
            raw(url, "CLIENT", "KILL", "ADDR", f"127.0.0.1:{port}")
            await settled(store._link()._connection._reader.at_eof)
            yield await call()

    async def outcomes():
        await store.get("k")
        return [outcome async for outcome in work()]

    assert asyncio.run(outcomes()) == [1, 1, True]


def test_a_server_that_became_a_replica(server):
    """Its connection is not used again: the address may lead to the new master."""
    store = RedisStore(server.url, timeout=PATIENCE)

    async def work():
        await store.add("n", 1)
        raw(server.url, "REPLICAOF", "127.0.0.1", "1")
        calls = (store.reserve(PLACE), store.put("k", b"v"), store.add("n", 1))
        failed = await asyncio.gather(*calls, return_exceptions=True)
        was_closed = not store._link()._connection.is_connected
        raw(server.url, "REPLICAOF", "NO", "ONE")
        return failed, was_closed, await store.add("n", 1)

    failed, was_closed, total = asyncio.run(work())

    assert [type(error) for error in failed] == [StoreError] * 3
    assert was_closed
    assert total == 2


def test_a_loop_that_is_held_up(store):
    """A reply that is there when the program lets the loop go on is no timeout."""

    async def work(seconds, moments):
        store._timeout = PATIENCE
        before = await store.add("n", 0)
        store._timeout = seconds
        task = asyncio.ensure_future(store.add("n", 1))
        for _ in range(moments):
            await asyncio.sleep(0)
        time.sleep(1.2 * seconds)  # noqa: ASYNC251 -- this is the fault
        assert await task == before + 1

    for moments in (0, 3):
        # a part of the timeout is left to the server if nothing was sent before
        with_some_timeout(lambda seconds, m=moments: asyncio.run(work(seconds, m)), first=1.0)


def test_a_loop_that_is_held_up_again_and_again(url):
    """Each time for longer than the timeout, from the first connection on: no call fails."""

    async def work(seconds):
        store = RedisStore(url, prefix=uuid4().hex, timeout=seconds)

        async def hold_up():
            while True:
                time.sleep(1.5 * seconds)  # noqa: ASYNC251 -- this is the fault
                await asyncio.sleep(0)

        busy = asyncio.ensure_future(hold_up())
        try:
            outcomes = [await store.reserve(PLACE), await store.reserve(PLACE)]
        finally:
            busy.cancel()
            await store.close()
        return [type(outcome) for outcome in outcomes]

    def check(seconds):
        assert asyncio.run(work(seconds)) == [Reservation, Refused]

    with_some_timeout(check, first=0.03)


def test_a_countdown_counts_the_time_in_which_the_loop_was_free():
    """Whatever the loop is held up for, at once or at its end, the rest of the time is given."""
    ended = []

    async def work(held_up):
        loop, start = asyncio.get_running_loop(), virtual_time.now()
        redis.Countdown(1.0, lambda: ended.append(virtual_time.now() - start))
        loop.hold_up(held_up)
        await asyncio.sleep(10)
        redis.Countdown(1.0, ended.append).stop()
        await asyncio.sleep(10)

    times = (0.0, 0.3, 0.97, 50.0)
    for held_up in times:
        virtual_time.run(work(held_up))

    free = [seconds - held_up for seconds, held_up in zip(ended, times, strict=True)]
    assert free == pytest.approx([1.0] * 4, abs=0.051)


def test_a_countdown_ends_also_in_a_loop_that_is_always_busy():
    """A server that is away is given up."""
    ended = asyncio.Event()

    async def work():
        redis.Countdown(1.0, ended.set)
        loop, times = asyncio.get_running_loop(), 0
        while not ended.is_set():
            loop.hold_up(0.2)
            times += 1
            await asyncio.sleep(0)
        return times

    assert virtual_time.run(work()) <= 100  # turns of the loop


def test_a_value_that_cannot_be_sent(store):
    """It is an error of its own call; the calls that wait with it are answered."""

    async def work():
        calls = (store.put("k", None), store.add("n", 1), store.get("k"))
        return await asyncio.gather(*calls, return_exceptions=True)

    wrong, *others = asyncio.run(work())

    assert isinstance(wrong, ConfigurationError)
    assert others == [1, None]


def test_replies_are_bytes(url):
    """Whatever the address says."""
    store = RedisStore(f"{url}?decode_responses=True", prefix=uuid4().hex, timeout=PATIENCE)

    async def work():
        await store.put("k", b"\xff")
        return await store.get("k")

    assert asyncio.run(work()) == b"\xff"


def test_the_error_says_what_to_do():
    """No server, a wrong address, no library: each has its own words, and no password."""
    absent = RedisStore("redis://:my-password@127.0.0.1:1", timeout=PATIENCE)

    with pytest.raises(StoreError, match=r"127\.0\.0\.1:1") as refused:
        asyncio.run(absent.get("k"))
    assert "my-password" not in f"{refused.value}{refused.value!r}{absent!r}"
    with pytest.raises(ConfigurationError, match="redis://"):
        asyncio.run(RedisStore("http://127.0.0.1").get("k"))


def test_the_library_is_missing(monkeypatch):
    """What to install is said when the store is made."""
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)

    with pytest.raises(ConfigurationError, match=r"pip install 'interlingua\[redis\]'"):
        RedisStore("redis://127.0.0.1")


def test_nothing_is_imported_early():
    """Neither SQLite nor the Redis library is loaded before a store needs it."""
    code = (
        "import sys, interlingua.stores\n"
        "print([name for name in ('redis', 'sqlite3', '_sqlite3') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)  # noqa: PLW1510

    assert printed.stdout.strip() == "[]"


def test_a_server_that_forgot_the_scripts(store, url):
    """They are sent again."""
    limits = [Limit(key="k", maximum=9)]

    async def work():
        await store.reserve(limits)
        raw(url, "SCRIPT", "FLUSH")
        await asyncio.gather(*(store.reserve(limits) for _ in range(5)))
        return await store.used("k")

    assert asyncio.run(work()) == 6


def test_counters_and_long_commands(server):
    """The server survives the mix that ends Redis 6.2 when a script uses INCRBYFLOAT."""
    store = RedisStore(server.url, timeout=PATIENCE)
    clock = Clock()
    store._clock = clock

    async def work():
        for number in range(400):
            clock.advance(0.1)
            await store.reserve([Limit(key="k", maximum=1e9, period=6.0)])
            await store.add(f"{number % 7}", 0.5)
        return await store.used("k", 6.0)

    assert asyncio.run(work()) == 61


def test_a_reply_that_was_lost(store):
    """A reservation that is sent twice is taken once."""
    limits = [Limit(key="k", maximum=9), Limit(key="h", maximum=9, mode="hold")]

    async def work():
        link = store._link()
        send = link.send
        link.send = lambda *values, **options: send(*values, **options) and send(*values, **options)
        taken = await store.reserve(limits)
        del link.send
        return taken, await store.used("k"), await store.used("h"), await store.settle(taken, {})

    taken, *rest = asyncio.run(work())

    assert isinstance(taken, Reservation)
    assert rest == [1, 1, True]


def test_everything_in_the_server_ends(store, url):
    """Only what has no end by its own rules stays in the server."""

    async def work():
        limits = [
            Limit(key="a", maximum=9, period=60, burst=3),
            Limit(key="b", maximum=9, mode="hold"),
            Limit(key="c", maximum=9, mode="reserve", ttl=100),
            Limit(key="d", maximum=9, mode="reserve", period=10),
        ]
        taken = await store.reserve(limits, lease=5)
        await store.renew(taken, 20)
        await store.settle(await store.reserve(limits, lease=5), {})
        await store.add("n", 1, ttl=5)
        await store.append("l", b"", ttl=5)
        await store.put("v", b"", ttl=5)

    asyncio.run(work())
    keys = raw(url, "KEYS", f"{store._prefix}*")
    ends = {key.decode().removeprefix(store._prefix): raw(url, "PTTL", key) / 1000 for key in keys}

    assert len(ends) == 11
    assert min(ends.values()) > 0
    assert 50 < ends["b:60.0:a"] < 63
    assert 10 < ends["o:None:b"] <= 21
    assert 10 < ends["b:None:b"] <= 21
    assert 90 < ends["b:None:c"] <= 101


# Event loops, threads, processes.


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_loop_after_loop(store, kind):
    """One store serves loop after loop, closed or not, and leaves no socket and no task."""
    factory = None
    if kind == "uvloop":
        factory = pytest.importorskip("uvloop").new_event_loop

    async def work(*, is_closed):
        await asyncio.gather(*(store.add("n", 1) for _ in range(20)))
        if is_closed:
            await store.close()
            await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) == 1

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work(is_closed=False))
    gc.collect()
    before = sockets()
    for is_closed in (True, False, False, True):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(work(is_closed=is_closed))
    gc.collect()

    assert sockets() <= before
    assert asyncio.run(store.add("n", 0)) == 100


def test_a_loop_that_ends_without_a_goodbye(store):
    """Connections of a loop that was just closed are closed at the next use."""
    for _ in range(3):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(store.add("n", 1))
        loop.close()
    gc.collect()

    assert asyncio.run(store.add("n", 0)) == 3
    assert len(store._links._entries) == 0


def test_threads_with_a_loop_each(store):
    """They share one store."""

    async def work():
        await asyncio.gather(*(store.add("n", 1) for _ in range(50)))

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert asyncio.run(store.add("n", 0)) == 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork(store):
    """A child of a fork opens its own connection."""

    async def work():
        await store.add("n", 1)
        child = os.fork()
        if not child:
            asyncio.events._set_running_loop(None)
            asyncio.run(store.add("n", 1))
            os._exit(0)
        status = os.waitpid(child, 0)[1]  # noqa: ASYNC222 -- it is short
        return status, await store.add("n", 1)

    assert asyncio.run(work()) == (0, 3)


@pytest.mark.parametrize("moments", [0, 1, 2, 3, 5, 8])
def test_a_cancelled_reservation_is_given_back(store, moments):
    """A task that is cancelled while it asks has taken nothing in the end."""
    wanted = [Limit(key=mode, maximum=1, mode=mode, period=60) for mode in ("spend", "hold")]

    async def work():
        await store.put("k", b"v")
        task = asyncio.ensure_future(store.reserve(wanted))
        for _ in range(moments):
            await asyncio.sleep(0)
        time.sleep(0.05)  # noqa: ASYNC251 -- so that it is done, but this loop does not know
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.put("k", b"w")
        return [await store.used(limit.key, 60) for limit in wanted] if task.cancelled() else [0, 0]

    assert asyncio.run(work()) == [0, 0]


def test_a_clock_of_a_test_may_stand_still(url):
    """The server does not forget by its own clock what still counts by the other one."""
    prefix, clock = uuid4().hex, Clock()
    store = RedisStore(url, prefix=prefix, timeout=PATIENCE, clock=clock)

    async def work():
        await store.reserve([Limit(key="k", maximum=1, mode="hold")], lease=0.001)
        await store.reserve([Limit(key="k", maximum=1, period=0.06)], lease=0.001)
        await store.close()

    asyncio.run(work())
    keys = raw(url, "KEYS", f"{{{prefix}}}:*")

    assert len(keys) == 5
    assert all(raw(url, "PTTL", key) > 60_000 for key in keys)
