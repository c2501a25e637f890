"""What only the store in memory does."""

import asyncio
import threading

from hypothesis import given
from hypothesis import strategies as st

from interlingua.client.stores.memory import LimitGroup
from interlingua.stores import Limit, MemoryStore, Refused, Reservation
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


def test_it_does_not_grow_without_leases():
    """The same for what is taken and settled without leases."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    for number in range(20_000):
        clock.advance(1)
        limits = [Limit(key=f"{number}", maximum=1, period=60)]
        limits.append(Limit(key=f"{number} held", maximum=1, mode="hold"))
        store.settle_now(store.reserve_now(LimitGroup(limits), [1, 1]), [None, None])

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


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "settle", "wait"]),
        st.lists(st.integers(0, 6), min_size=3, max_size=3),
        st.integers(0, 90),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_without_leases_the_decisions_are_the_same(steps):
    """`reserve_now` and `settle_now` admit, count and refuse as `reserve` and `settle` do."""
    clock = Clock()
    stores = MemoryStore(clock=clock), MemoryStore(clock=clock)
    keys = (("spent", 60.0, "spend"), ("money", None, "reserve"), ("places", None, "hold"))
    open_: list = []
    group = LimitGroup(
        Limit(key=key, maximum=10.0, period=period, mode=mode) for key, period, mode in keys
    )

    async def main():
        for action, amounts, number in steps:
            if action == "wait":
                clock.advance(number)
            elif action == "settle" and open_:
                reservation, taken = open_.pop(number % len(open_))
                real = {key: float(amount) for (key, *_), amount in zip(keys, amounts, strict=True)}
                await stores[0].settle(reservation, real)
                if isinstance(taken, Reservation):
                    await stores[1].settle(taken, real)
                else:
                    stores[1].settle_now(taken, list(real.values()))
            elif action == "reserve":
                limits = [
                    Limit(key=key, maximum=10.0, amount=amount, period=period, mode=mode)
                    for (key, period, mode), amount in zip(keys, amounts, strict=True)
                ]
                outcome = await stores[0].reserve(limits, lease=1e9)
                if number % 5:
                    other = stores[1].reserve_now(group, amounts)
                else:  # both ways count for one another
                    other = await stores[1].reserve(limits, lease=1e9)
                assert isinstance(outcome, Refused) == isinstance(other, Refused)
                if not isinstance(outcome, Refused):
                    open_.append((outcome, other))
            for key, period, _ in keys:
                assert await stores[0].used(key, period) == await stores[1].used(key, period)

    asyncio.run(main())
