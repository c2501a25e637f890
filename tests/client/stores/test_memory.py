"""What only the store in memory does."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.client.stores.memory import LimitGroup
from interlingua.spec.errors import ConfigurationError
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
        store.settle_now(store.reserve_now(LimitGroup(limits), [1, 1]), [1, 0])

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


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "settle", "wait"]),
        st.lists(st.integers(0, 6), min_size=5, max_size=5),
        st.integers(0, 90),
    ),
    max_size=40,
)


KINDS = (
    Limit(key="spent", maximum=10, period=60),
    Limit(key="money", maximum=10, mode="reserve"),
    Limit(key="places", maximum=10, mode="hold"),
    Limit(key="money of an hour", maximum=10, period=60, mode="reserve"),
    Limit(key="money of a day", maximum=10, ttl=90, mode="reserve"),
)


@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize("limits", [KINDS, *([limit] for limit in KINDS)])
@given(steps=STEPS)
def test_without_leases_the_decisions_are_the_same(limits, is_mixed, steps):  # noqa: C901
    """
    `reserve_now` and `settle_now` admit, count and refuse as `reserve` and `settle` do.

    Also where both ways are mixed, and between two groups with the same limits.
    """
    clock = Clock()
    stores = MemoryStore(clock=clock), MemoryStore(clock=clock)
    groups = LimitGroup(limits), LimitGroup(limits)
    open_: list = []

    async def settle(reservation, taken, real):
        await stores[0].settle(reservation, real)
        if isinstance(taken, Reservation):
            await stores[1].settle(taken, real)
        else:
            held = {limit.key: 0.0 for limit in limits if limit.mode == "hold"}
            stores[1].settle_now(taken, list({**real, **held}.values()))

    async def reserve(amounts, number):
        wanted = groups[0].with_amounts(amounts)
        outcome = await stores[0].reserve(wanted, lease=1e9)
        if is_mixed and number % 3 == 0:
            other = await stores[1].reserve(wanted, lease=1e9)
        else:
            other = stores[1].reserve_now(groups[number % 2], amounts)
        assert isinstance(outcome, Refused) == isinstance(other, Refused)
        if not isinstance(outcome, Refused):
            open_.append((outcome, other))

    async def main():
        for action, amounts, number in steps:
            amounts = amounts[: len(limits)]  # noqa: PLW2901
            if action == "wait":
                clock.advance(number)
            elif action == "settle" and open_:
                real = {limit.key: float(n) for limit, n in zip(limits, amounts, strict=True)}
                await settle(*open_.pop(number % len(open_)), real)
            elif action == "reserve":
                await reserve(amounts, number)
        for limit in limits:
            used = [await store.used(limit.key, limit.period) for store in stores]
            assert used[0] == used[1]

    asyncio.run(main())


@pytest.mark.parametrize("period", [None, 60.0])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["reserve", "settle", "wait"]), st.integers(0, 6), st.integers(0, 90)
        ),
        max_size=40,
    )
)
def test_limits_of_several_modes_share_what_counts(period, steps):
    """Groups with one key and period, but other modes and maximums, decide as with leases."""
    clock = Clock()
    leased, local = MemoryStore(clock=clock), MemoryStore(clock=clock)
    groups = [
        LimitGroup([Limit(key="k", maximum=maximum, period=period, mode=mode)])
        for maximum, mode in ((10, "spend"), (8, "hold"), (10, "reserve"))
    ]
    open_: list = []

    async def main():
        for action, amount, number in steps:
            if action == "wait":
                clock.advance(number)
            elif action == "settle" and open_:
                reservation, taken, mode = open_.pop(number % len(open_))
                await leased.settle(reservation, {"k": float(amount)})
                local.settle_now(taken, [0.0 if mode == "hold" else float(amount)])
            elif action == "reserve":
                group = groups[number % len(groups)]
                outcome = await leased.reserve(group.with_amounts([amount]), lease=1e9)
                other = local.reserve_now(group, [amount])
                assert isinstance(outcome, Refused) == isinstance(other, Refused)
                if not isinstance(outcome, Refused):
                    open_.append((outcome, other, group.limits[0].mode))
        assert await leased.used("k", period) == await local.used("k", period)

    asyncio.run(main())


@pytest.mark.parametrize("amount", [float("nan"), float("inf")])
def test_an_amount_that_cannot_be_counted_is_refused(amount):
    """And nothing of the limits before it is taken. Callers see to it that none is below 0."""
    store = MemoryStore()
    group = LimitGroup([Limit(key="a", maximum=10), Limit(key="b", maximum=10)])

    with pytest.raises(ConfigurationError):
        store.reserve_now(group, [1.0, amount])

    assert asyncio.run(store.used("a")) == 0


def test_all_limits_that_fit_only_at_a_second_look_are_taken():
    """Sums of fractions depend on their order: what fits when it is added up anew is admitted."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    group = LimitGroup(
        [
            Limit(key="places", maximum=5, mode="hold"),
            Limit(key="tokens", maximum=10, period=60),
            Limit(key="money", maximum=10, period=60, mode="reserve"),
        ]
    )
    store.reserve_now(group, [1, 4, 4])
    assert isinstance(store.reserve_now(group, [1, 7, 7]), Refused)
    clock.advance(59.5)
    held = store.reserve_now(group, [1, 6, 0])
    clock.advance(2)  # the first tokens have left the period, and nobody has asked since
    group.fresh_until = float("inf")

    taken = store.reserve_now(group, [1, 4, 6])

    assert not isinstance(taken, Refused)
    assert asyncio.run(store.used("places")) == 3
    assert asyncio.run(store.used("tokens", 60)) == 10
    assert asyncio.run(store.used("money", 60)) == 10
    store.settle_now(held, [0, 6, 0])
    assert asyncio.run(store.used("places")) == 2
