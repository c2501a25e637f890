"""What only the store in memory does."""

import asyncio
import threading

from interlingua.stores import Limit, MemoryStore, Reservation
from support.stores import Clock


def test_it_does_not_grow():
    """What has ended is forgotten, also under keys that nobody asks for again."""
    clock = Clock()
    store = MemoryStore(clock=clock)

    async def work():
        for number in range(20_000):
            clock.advance(1)
            limits = [
                Limit(key=f"{number}", maximum=1, period=60),
                Limit(key=f"{number}", maximum=1, mode="hold", ttl=60),
                Limit(key=f"{number}", maximum=1, mode="reserve", period=90),
            ]
            await store.settle(await store.reserve(limits), {})
            await store.put(f"{number}", b"", ttl=60)
            await store.add(f"{number}", 1, ttl=60)
            await store.append(f"{number}", b"", ttl=60)

    asyncio.run(work())

    assert store._size() < 3_000


def test_several_threads():
    """Threads with an event loop each never take more than the maximum together."""
    store = MemoryStore()
    admitted = []

    async def work():
        for _ in range(500):
            taken = await store.reserve([Limit(key="k", maximum=700, period=3600)])
            admitted.append(isinstance(taken, Reservation))

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(admitted) == 700


def test_a_clock_that_goes_back():
    """Time stands still until the clock is where it was."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    wanted = [Limit(key="k", maximum=2, period=60)]

    async def work():
        await store.reserve(wanted)
        clock.advance(-600)
        await store.reserve(wanted)
        clock.advance(600)
        refused = await store.reserve(wanted)
        clock.advance(refused.retry_after)
        return await store.reserve(wanted)

    assert isinstance(asyncio.run(work()), Reservation)
