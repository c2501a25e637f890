"""What only the store in a file does: processes, crashes, damage, threads."""

import asyncio
import gc
import os
import sqlite3
import threading
import time

import pytest

from interlingua.client.stores import sqlite_thread
from interlingua.errors import ConfigurationError, StoreError
from interlingua.stores import Limit, SQLiteStore
from support.patience import PATIENCE
from support.stores import Clock


def thread_of(store):
    return store._thread._running.thread


class Sleeper:
    """In the place of the module `time`: a sleep takes no time, and is counted."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_a_lock_is_waited_for(tmp_path, monkeypatch):
    """For so long as was said; then it is an error, for every task at once, and later it works."""
    path = tmp_path / "s"
    store = SQLiteStore(path, timeout=0.5)
    asyncio.run(store.put("k", b"v"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    clock = Sleeper()
    monkeypatch.setattr(sqlite_thread, "time", clock)

    async def work():
        puts = [store.put(f"{number}", b"") for number in range(20)]
        results = await asyncio.gather(*puts, return_exceptions=True)
        return results, clock.now, await store.get("k")

    results, seconds, value = asyncio.run(work())
    other.execute("ROLLBACK")
    other.close()

    assert {type(result) for result in results} == {StoreError}
    assert "Another process holds its lock" in str(results[0])
    assert 0.5 <= seconds < 20 * 0.5  # not each put after another
    assert value == b"v"
    assert asyncio.run(store.put("k", b"w"))


def test_many_writes_are_one_commit(tmp_path):
    """Writes that wait together are committed together, so the log has few versions of a page."""
    store = SQLiteStore(tmp_path / "s")

    async def work():
        await store.add("n", 0)
        await asyncio.gather(*(store.add("n", 1) for _ in range(500)))
        return (tmp_path / "s-wal").stat().st_size

    assert asyncio.run(work()) < 100 * 4096
    assert asyncio.run(store.add("n", 0)) == 500


def test_a_failed_write_fails_alone(tmp_path):
    """What waits with it is done, and nothing of it is left."""
    store = SQLiteStore(tmp_path / "s")

    def fail(connection):
        connection.execute("DELETE FROM entries")
        raise ValueError("mine")

    async def work():
        await store.put("k", b"v")
        writes = [store.add("n", 1), store._thread.write(fail), store.add("n", 1)]
        return await asyncio.gather(*writes, return_exceptions=True), await store.get("k")

    (first, error, last), value = asyncio.run(work())

    assert (first, last, value) == (1, 2, b"v")
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("others", [0, 2])
def test_a_connection_that_cannot_go_on(tmp_path, others):
    """A write that cannot even be undone is an error; the file is opened again for the next."""
    store = SQLiteStore(tmp_path / "s")

    async def work():
        await store.add("n", 1)
        wrong = store._thread.write(lambda connection: connection.close())
        calls = [store.add("n", 1) for _ in range(others)]
        error, *_ = await asyncio.gather(wrong, *calls, return_exceptions=True)
        return error, await store.add("n", 1)

    error, total = asyncio.run(asyncio.wait_for(work(), PATIENCE))

    assert isinstance(error, StoreError)
    assert total == others + 2


def test_a_file_that_was_removed(tmp_path):
    """Stores that have it open begin anew together, and do not count each for itself."""
    stores = [SQLiteStore(tmp_path / "s") for _ in range(2)]

    async def work():
        before = [await store.add("n", 1) for store in stores]
        for path in tmp_path.iterdir():
            path.unlink()
        return before, [await store.add("n", 1) for store in (*stores, *stores)]

    assert asyncio.run(work()) == ([1, 2], [1, 2, 3, 4])


def test_a_long_list_does_not_hold_up_the_loop(tmp_path):
    """It is read in a thread, and a value that is read meanwhile does not wait in the loop."""
    store = SQLiteStore(tmp_path / "s")

    async def work():
        await store.put("k", b"v")
        lock = store._thread._running.read_lock
        with lock:  # as while a list is read
            reading = [asyncio.ensure_future(read) for read in (store.get("k"), store.items("l"))]
            for _ in range(10):
                await asyncio.sleep(0)
            is_waiting = not any(read.done() for read in reading)
        return is_waiting, await asyncio.gather(*reading)

    assert asyncio.run(asyncio.wait_for(work(), PATIENCE)) == (True, [b"v", []])


def test_event_loops_and_threads(tmp_path):
    """One store serves loop after loop, and threads with a loop each; closing ends its thread."""
    store = SQLiteStore(tmp_path / "s")

    async def work():
        await asyncio.gather(*(store.add("n", 1) for _ in range(50)))
        return await store.get("k")

    for _ in range(3):
        asyncio.run(work())
    others = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(4)]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()

    assert asyncio.run(store.add("n", 0)) == 350
    thread = thread_of(store)
    asyncio.run(store.close())
    assert not thread.is_alive()
    assert not (tmp_path / "s-wal").exists()
    assert asyncio.run(store.add("n", 0)) == 350  # it opens again
    asyncio.run(store.close())


def test_uvloop(tmp_path):
    """It works in the other event loop."""
    uvloop = pytest.importorskip("uvloop")
    store = SQLiteStore(tmp_path / "s")

    async def work():
        await asyncio.gather(*(store.add("n", 1) for _ in range(50)))
        await store.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())

    assert asyncio.run(store.add("n", 0)) == 50


def test_a_forgotten_store_ends_its_thread(tmp_path):
    """Nobody has to close it."""
    store = SQLiteStore(tmp_path / "s")
    asyncio.run(store.put("k", b"v"))
    thread = thread_of(store)
    del store
    gc.collect()
    thread.join(5)

    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork(tmp_path):
    """A child of a fork opens the file for itself."""
    store = SQLiteStore(tmp_path / "s")
    asyncio.run(store.add("n", 1))
    child = os.fork()
    if not child:
        asyncio.run(store.add("n", 1))
        os._exit(0 if asyncio.run(store.used("k")) == 0 else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert asyncio.run(store.add("n", 1)) == 3


@pytest.mark.parametrize("moments", [0, 1, 3])
def test_a_cancelled_reservation_is_given_back(tmp_path, moments):
    """A task that is cancelled while it asks has taken nothing in the end."""
    store = SQLiteStore(tmp_path / "s")
    wanted = [Limit(key=mode, maximum=1, mode=mode, period=60) for mode in ("spend", "hold")]

    async def is_cancelled():
        task = asyncio.ensure_future(store.reserve(wanted))
        for _ in range(moments):
            await asyncio.sleep(0)
        time.sleep(0.05)  # noqa: ASYNC251 -- so that it is done, but this loop does not know
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():  # the machine was slow: it had been done before
            await store.settle(task.result(), {limit.key: 0 for limit in wanted})
        return task.cancelled()

    async def work():
        await store.put("k", b"v")
        while not await is_cancelled():
            pass
        await store.put("k", b"w")  # after all that was waiting
        return [await store.used(limit.key, 60) for limit in wanted]

    assert asyncio.run(work()) == [0, 0]


def test_a_newer_file(tmp_path):
    """It is refused, and not a byte of it changes."""
    path = tmp_path / "s"
    store = SQLiteStore(path)
    asyncio.run(store.put("k", b"v"))
    asyncio.run(store.close())
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match="format 99, and this version reads 1"):
        asyncio.run(store.put("k", b"w"))
    asyncio.run(store.close())
    assert path.read_bytes() == before


def test_a_file_of_others(tmp_path):
    """Neither another program's database nor any other file is touched."""
    text, database, folder = tmp_path / "text", tmp_path / "database", tmp_path / "none" / "s"
    text.write_bytes(b"my diary" * 1000)
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = database.read_bytes()

    with pytest.raises(StoreError, match="no SQLite file"):
        asyncio.run(SQLiteStore(text).put("k", b""))
    with pytest.raises(StoreError, match="not a store of limits"):
        asyncio.run(SQLiteStore(database).get("k"))
    with pytest.raises(StoreError, match="folder exists"):
        asyncio.run(SQLiteStore(folder).used("k"))
    with pytest.raises(ConfigurationError, match="MemoryStore"):
        SQLiteStore(":memory:")
    assert text.read_bytes() == b"my diary" * 1000
    assert database.read_bytes() == before


def test_it_does_not_grow(tmp_path):
    """Rows that have ended are removed, also under keys that nobody asks for again."""
    clock = Clock()
    store = SQLiteStore(tmp_path / "s", clock=clock)
    tables = ("buckets", "held", "leases", "entries", "counters", "lists", "items")

    async def work():
        for number in range(300):
            limits = [
                Limit(key=f"{number}", maximum=1, period=60, burst=1),
                Limit(key=f"{number}", maximum=1, mode="hold"),
            ]
            await store.reserve(limits, lease=5)
            await store.put(f"{number}", b"", ttl=60)
            await store.add(f"{number}", 1, ttl=60)
            await store.append(f"{number}", b"", ttl=60)
            clock.advance(1)
        clock.advance(86_500)
        await store.put("k", b"")
        clock.advance(11)
        await store.put("k", b"")
        connection = store._thread._running.connections.reader
        return [connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables]  # noqa: S608

    assert asyncio.run(work()) == [0, 0, 0, 1, 0, 0, 0]
