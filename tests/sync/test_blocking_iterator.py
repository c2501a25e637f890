"""Async iterators, read from a thread without a loop."""

import asyncio
import gc
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.errors import AbortError, ConfigurationError
from interlingua.sync.blocking_iterator import _READ_AHEAD, BlockingIterator
from interlingua.sync.loop_thread import Background, background
from support.blocking import interrupted, until
from support.patience import PATIENCE


class Source:
    """Counts from 0, and tells what became of it."""

    def __init__(self, steps, error=None):
        self.steps = steps
        self.error = error
        self.given = 0
        self.thread = None
        self.closed = threading.Event()

    async def read(self):
        self.thread = threading.get_ident()
        try:
            for step in self.steps:
                if step is not None:
                    await asyncio.sleep(step)
                self.given += 1
                yield self.given - 1
            if self.error is not None:
                raise self.error
        finally:
            await asyncio.sleep(0)
            self.closed.set()


def endless():
    while True:
        yield 0


@given(st.lists(st.sampled_from((None, 0, 0.001)), max_size=3 * _READ_AHEAD), st.booleans())
def test_everything_in_order(steps, is_failing):
    """However the items come, each is given once and in order, then the error or the end."""
    source = Source(steps, KeyError("no") if is_failing else None)
    items, errors = BlockingIterator(source.read()), []
    found = []
    try:
        for item in items:
            found.append(item)  # noqa: PERF402 -- what came before an error is kept
    except KeyError as error:
        errors.append(error)

    assert found == list(range(len(steps)))
    assert len(errors) == is_failing
    assert source.closed.is_set()
    assert list(items) == []


def test_items_are_given_as_they_come():
    """Not in heaps: the second is asked for only after the first was had."""
    second = threading.Event()

    async def read():
        yield 1
        await asyncio.to_thread(second.wait)
        yield 2

    items = BlockingIterator(read())

    assert next(items) == 1
    second.set()
    assert list(items) == [2]


def test_nothing_is_read_unasked():
    """Before the first `next` nothing begins, and closing then is nothing."""
    source = Source([None])
    items = BlockingIterator(source.read())
    items.close()

    assert list(items) == []
    assert source.thread is None


def test_a_slow_reader():
    """Is waited for: what is read ahead is bounded, and all of it comes in the end."""
    source = Source([0] * (3 * _READ_AHEAD))
    items = BlockingIterator(source.read())

    assert next(items) == 0
    until(lambda: source.given >= _READ_AHEAD)
    background.run(asyncio.sleep(0.05))
    assert source.given <= _READ_AHEAD + 1
    assert list(items) == list(range(1, 3 * _READ_AHEAD))


def close(items):
    items.close()
    items.close()


def leave(items):
    with items:
        pass


@pytest.mark.parametrize("steps", [[None, 60], endless()], ids=["waits", "is full"])
@pytest.mark.parametrize("end", [close, leave])
def test_closing(end, steps):
    """It waits until the source is closed, drops what was read ahead, and gives no more."""
    source = Source(steps)
    items = BlockingIterator(source.read())
    next(items)
    end(items)

    assert source.closed.is_set()
    assert list(items) == []


@pytest.mark.parametrize("steps", [[None, 60], endless()], ids=["waits", "is full"])
def test_losing_it(steps):
    """Without anyone to read them, items are not waited for."""
    source = Source(steps)
    for item in BlockingIterator(source.read()):
        assert item == 0
        break
    gc.collect()
    until(source.closed.is_set)


@pytest.mark.skipif(os.name == "nt", reason="there are no such signals there")
def test_a_wait_that_is_broken_off():
    """The source is closed; what has not begun never begins, and can be closed."""

    def steps():
        interrupt()
        yield 60

    source = Source(steps())
    with interrupted() as interrupt:
        next(BlockingIterator(source.read()))
    until(source.closed.is_set)

    held, free = threading.Event(), threading.Event()

    async def busy():
        held.set()
        free.wait()

    thread = threading.Thread(target=lambda: background.run(busy()))
    thread.start()
    held.wait()
    source = Source([None])
    items = BlockingIterator(source.read())
    with interrupted() as interrupt:
        interrupt()
        next(items)
    free.set()
    items.close()
    thread.join()

    assert list(items) == []
    assert source.thread is None


def in_threads(*works):
    """Each in a thread of its own; all of them end."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("closers", [1, 3])
@pytest.mark.parametrize("readers", [1, 3])
def test_closing_while_others_read(readers, closers):
    """Whoever waits for an item that does not come finds the end, and whoever closes returns."""
    for _ in range(20):
        source, found = Source([None, 60]), []
        items = BlockingIterator(source.read())
        next(items)
        waiting = threading.Barrier(readers + closers)

        def read(items=items, found=found, waiting=waiting):
            waiting.wait()
            found.append(list(items))

        def leave(items=items, waiting=waiting):
            waiting.wait()
            items.close()

        in_threads(*[read] * readers, *[leave] * closers)

        assert found == [[]] * readers
        assert source.closed.is_set()


def test_closing_what_is_about_to_begin(monkeypatch):
    """Whoever has asked for the first item, and waits for the loop to start, finds the end."""
    slow = Background()
    monkeypatch.setattr("interlingua.sync.blocking_iterator.background", slow)
    source, found = Source([None, 60]), []
    items = BlockingIterator(source.read())
    with slow._lock:  # the loop cannot start
        thread = threading.Thread(target=lambda: found.append(list(items)), daemon=True)
        thread.start()
        threading.Event().wait(0.1)
        items.close()
    thread.join(PATIENCE)
    slow.stop()

    assert found == [[]]
    assert source.thread is None


@pytest.mark.parametrize("steps", [[None] * 999, [0] * 999], ids=["in heaps", "one by one"])
def test_several_readers(steps):
    """Each item goes to one of them, and each of them finds the end."""
    for _ in range(5):
        source, found = Source(steps), []
        items = BlockingIterator(source.read())
        begin = threading.Barrier(3)

        def read(items=items, found=found, begin=begin):
            begin.wait()
            found.extend(items)

        in_threads(read, read, read)

        assert sorted(found) == list(range(len(steps)))


def test_readers_that_take_one_each():
    """An item that is there is given at once, also if the one before woke another thread."""
    found, more = [], threading.Event()

    async def read():
        await asyncio.to_thread(more.wait)
        for number in range(3):
            yield number
        await asyncio.sleep(60)

    items = BlockingIterator(read())
    threading.Timer(0.1, more.set).start()
    in_threads(*[lambda: found.append(next(items))] * 3)
    items.close()

    assert sorted(found) == [0, 1, 2]


def test_losing_it_in_the_loop():
    """The collector runs in any thread, also in the loop's own."""
    source = Source([None, 60])
    held = [BlockingIterator(source.read())]
    next(held[0])

    async def drop():
        held.clear()

    background.run(drop())
    until(source.closed.is_set)


def test_another_loops_thread():
    """A thread with a running loop may read; in the background loop's own it is refused."""
    source = Source([0] * 10)

    async def read(items):
        return list(items)

    assert asyncio.run(read(BlockingIterator(source.read()))) == list(range(10))
    with pytest.raises(ConfigurationError, match="Deadlock: a blocking function"):
        background.run(read(BlockingIterator(Source([0]).read())))

    begun = BlockingIterator(Source([None, 60]).read())
    next(begun)
    with pytest.raises(ConfigurationError, match="Deadlock: a blocking function"):
        background.run(read(begun))


def test_cancelled_from_inside():
    """Whoever reads is told by an error of ours."""

    async def read():
        yield 1
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    items = BlockingIterator(read())

    assert next(items) == 1
    with pytest.raises(AbortError):
        next(items)
    assert list(items) == []


def test_a_source_that_is_no_generator():
    """Any async iterator will do."""

    class Three:
        count = 0

        def __aiter__(self):
            return self

        async def __anext__(self):
            self.count += 1
            if self.count > 3:
                raise StopAsyncIteration
            return self.count

    assert list(BlockingIterator(Three())) == [1, 2, 3]
