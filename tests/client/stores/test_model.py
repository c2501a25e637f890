"""Whatever is done to it, every store decides as the model does."""

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    precondition,
    rule,
)
from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from interlingua.stores import Limit, Refused, Reservation
from support.store_model import Model, micro
from support.stores import KINDS, Blocking, Clock

# Amounts whose sums are exact, and periods whose slots and paces are.
amounts = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])
limits = st.one_of(
    st.builds(
        Limit,
        key=st.sampled_from("ab"),
        maximum=st.sampled_from([2.0, 3.0, 5.0]),
        amount=amounts,
        period=st.sampled_from([None, 6.0, 60.0]),
        mode=st.sampled_from(["spend", "reserve", "hold"]),
        burst=st.sampled_from([None, None, 1.0, 2.0]),
    ),
    st.builds(
        Limit,
        key=st.just("dated"),
        maximum=st.just(5.0),
        amount=amounts,
        mode=st.sampled_from(["spend", "reserve", "hold"]),
        ttl=st.sampled_from([5.0, 50.0]),
    ),
)
BUCKETS = [(key, period) for key in "ab" for period in (None, 6.0, 60.0)] + [("dated", None)]
wanted = st.lists(limits, max_size=3, unique_by=lambda limit: (limit.key, limit.period))
seconds = st.sampled_from([1e-6, 0.05, 0.1, 0.9, 1.0, 5.0, 5.9, 6.1, 30.0, 59.0, 61.0, 86_500.0])
leases = st.sampled_from([1.0, 10.0, 100.0])
names = st.sampled_from(["x", "y"])


class Machine(RuleBasedStateMachine):
    """Limits and values of one store beside the model."""

    kind = ""
    taken = Bundle("taken")

    def __init__(self):
        super().__init__()
        self.clock = Clock()
        self.folder = tempfile.TemporaryDirectory()
        try:
            store = KINDS[self.kind](self.clock, Path(self.folder.name))
        except BaseException:  # there may be no server to test
            self.folder.cleanup()
            raise
        self.store = Blocking(store, self.clock)
        self.model = Model()
        self.model.now = micro(self.clock())
        self.values = {}  # (kind, key): (value, end)

    def teardown(self):
        self.store.stop()
        self.folder.cleanup()

    @rule(passed=seconds)
    def advance(self, passed):
        self.store.advance(passed)
        self.model.now += micro(passed)

    # Limits.

    @rule(target=taken, limits=wanted, lease=leases)
    def reserve(self, limits, lease):
        decision = self.store.reserve(limits, lease=lease)
        model = self.model
        assert isinstance(decision, Reservation) == model.fits(limits, model.now)
        if isinstance(decision, Reservation):
            assert micro(decision.taken_at) == model.now
            model.reserve(decision.id, limits, lease)
            return decision
        named = [  # two periods of a key may be full at once
            limit
            for limit in limits
            if (limit.key, limit.maximum) == (decision.key, decision.maximum)
            if decision.used == model.used(limit.key, limit.period)
        ]
        if decision.retry_after is None:
            assert not all(model.fits([limit], model.last_change()) for limit in named)
        else:
            moment = model.now + micro(decision.retry_after)
            assert model.fits(limits, moment)
            assert not all(model.fits([limit], moment - 1) for limit in named)
        return multiple()

    @rule(reservation=taken, real=st.dictionaries(st.sampled_from(["a", "b", "dated"]), amounts))
    def settle(self, reservation, real):
        expected = self.model.settle(reservation.id, real)
        assert self.store.settle(reservation, real) == expected

    @rule(reservation=taken, lease=leases)
    def renew(self, reservation, lease):
        assert self.store.renew(reservation, lease) == self.model.renew(reservation.id, lease)

    @invariant()
    def same_amounts(self):
        expected = [self.model.used(*bucket) for bucket in BUCKETS]
        assert self.store.used_of_all(BUCKETS) == expected

    # Values, counters, lists. The server ends its values by its own clock.

    def _ttl(self, ttl):
        return None if self.kind == "redis" else ttl

    def _find(self, kind, key, default):
        value, end = self.values.get((kind, key), (default, None))
        return (default, None) if end is not None and end <= self.model.now else (value, end)

    def _end(self, ttl):
        return None if ttl is None else self.model.now + micro(ttl)

    ttls = st.sampled_from([None, 1.0, 10.0])

    @rule(key=names, value=st.binary(max_size=3), ttl=ttls, only_new=st.booleans())
    def put(self, key, value, ttl, only_new):
        ttl = self._ttl(ttl)
        is_set = not only_new or self._find("value", key, None)[0] is None
        assert self.store.put(key, value, ttl=ttl, only_new=only_new) == is_set
        if is_set:
            self.values["value", key] = (value, self._end(ttl))

    @rule(key=names, amount=amounts, ttl=ttls)
    def add(self, key, amount, ttl):
        ttl = self._ttl(ttl)
        total, end = self._find("counter", key, None)
        end = self._end(ttl) if total is None else end
        self.values["counter", key] = ((total or 0) + amount, end)
        assert self.store.add(key, amount, ttl=ttl) == (total or 0) + amount

    @rule(key=names, value=st.binary(max_size=3), ttl=ttls)
    def append(self, key, value, ttl):
        ttl = self._ttl(ttl)
        items, end = self._find("list", key, None)
        end = self._end(ttl) if items is None else end
        items = [*(items or []), value]
        self.values["list", key] = (items, end)
        assert self.store.append(key, value, ttl=ttl) == len(items)

    @rule(key=names)
    def delete(self, key):
        kinds = ("value", "counter", "list")
        held = [self._find(kind, key, None)[0] is not None for kind in kinds]
        assert self.store.delete(key) == any(held)
        for kind in kinds:
            self.values.pop((kind, key), None)

    @rule(key=names, start=st.integers(0, 2))
    def look(self, key, start):
        assert self.store.get(key) == self._find("value", key, None)[0]
        assert self.store.items(key, start) == self._find("list", key, [])[0][start:]

    @precondition(lambda self: self.kind == "sqlite")
    @rule()
    def reopen(self):
        self.store.close()


def machine(kind):
    return type(f"Machine_{kind}", (Machine,), {"kind": kind}).TestCase


TestMemory = machine("memory")
TestSQLite = machine("sqlite")
TestRedis = machine("redis")


# The oracle.


class FakeTime:
    """The module `time` for the oracle."""

    def __init__(self, clock):
        self.time = clock


@pytest.mark.parametrize("kind", KINDS)
@given(
    maximum=st.integers(1, 5),
    steps=st.lists(
        st.tuples(st.integers(1, 3), st.floats(0, 30, allow_subnormal=False)), max_size=40
    ),
)
def test_a_moving_window_agrees(kind, maximum, steps):
    """What is admitted, an exact window admits; what is refused, one that is a slot longer."""
    clock, admitted = Clock(), []
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr("limits.storage.memory.time", FakeTime(clock))
        storage = MemoryStorage()
        stack.callback(lambda: storage.timer.cancel())  # noqa: PLW0108 -- each use sets another
        oracle = MovingWindowRateLimiter(storage)
        exact = RateLimitItemPerSecond(maximum, 60)
        store = Blocking(KINDS[kind](clock, Path(folder)), clock)
        stack.callback(store.stop)
        for amount, pause in steps:
            limit = Limit(key="k", maximum=maximum, amount=amount, period=60.0)
            if isinstance(store.reserve([limit]), Refused):
                within = sum(taken for at, taken in admitted if at >= clock() - 61)
                assert within + amount > maximum
            else:
                assert oracle.hit(exact, cost=amount)
                admitted.append((clock(), amount))
            clock.advance(pause)
