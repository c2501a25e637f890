"""The store of one process, in its memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from math import inf
from threading import Lock
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from interlingua.client.stores.buckets import (
    MICROSECONDS,
    TOLERANCE,
    Bucket,
    find_refusal,
    microseconds,
)
from interlingua.client.stores.contract import (
    RETENTION,
    Limit,
    Refused,
    Reservation,
    check_amounts,
    check_limits,
    check_ttl,
)

Value = TypeVar("Value")
_DIGITS = 12  # after the point; sums of fractions are not exact
_ROUNDING = 1e-9  # what they may leave over
_SWEEP = 1_024
"""How many entries there are at least before ended ones are looked for."""


class _Entries(dict[str, tuple[Value, float]], Generic[Value]):
    """Values with the microsecond at which each ends."""

    def find(self, key: str, now: int) -> tuple[Value, float] | None:
        entry = self.get(key)
        if entry is not None and entry[1] <= now:
            del self[key]
            return None
        return entry


class _MemoryBucket(Bucket):
    """
    A bucket from which amounts are also taken without leases.

    What is counted then is in `fresh`, until something may end: that takes less time than slots.
    """

    __slots__ = ("current", "direct", "fresh", "open", "total")

    def __init__(self, period: float | None) -> None:
        super().__init__(period)
        self.open: dict[str, tuple[int, float]] = {}
        self.current = 0
        """The slot of the last `refresh`."""
        self.fresh = 0.0
        """What was counted in the current slot since then."""
        self.direct = 0.0
        """What is held without a lease."""
        self.total = 0.0
        """What `used` returned at the last `refresh`, and what was taken since."""

    def refresh(self, now: int) -> None:
        """Drop what has ended, and add up what counts."""
        self.drop_ended(now)
        self.current = self.slot(now)
        if self.width is not None:
            self.slots.setdefault(self.current, 0.0)  # in order, also if it is corrected later
        self.total = self.used()

    def drop_ended(self, now: int) -> None:
        if self.fresh:
            self.correct(self.current, self.fresh)
            self.fresh = 0.0
        super().drop_ended(now)

    def correct(self, slot: int, amount: float) -> None:
        """Add to what was counted in a slot."""
        self.slots[slot] = max(0.0, round(self.slots.get(slot, 0.0) + amount, _DIGITS))

    def used(self) -> float:
        return sum(self.slots.values()) + self.held + self.direct

    def is_empty(self, now: int) -> bool:
        return not self.direct and super().is_empty(now)

    def hold(self, id_: str, amount: float, ends: int) -> None:
        self.open[id_] = (ends, amount)
        self.held += amount
        self.first_end = min(self.first_end, ends)

    def release(self, id_: str) -> None:
        _, amount = self.open.pop(id_, (0, 0.0))
        self.held -= amount
        if not self.open:
            self.held, self.first_end = 0.0, inf  # also what sums of fractions left over

    def extend(self, id_: str, ends: int) -> None:
        if id_ in self.open:
            self.open[id_] = (ends, self.open[id_][1])

    def leases(self) -> Iterable[tuple[int, float]]:
        return self.open.values()

    def drop_leases(self, now: int) -> None:
        self.open = {id_: lease for id_, lease in self.open.items() if lease[0] > now}
        self.held = sum((amount for _, amount in self.open.values()), 0.0)
        self.first_end = min((ends for ends, _ in self.open.values()), default=inf)


_Part: TypeAlias = tuple[_MemoryBucket, float, int]
"""The bucket of a limit, the ceiling, and what happens to an amount (see below)."""
_COUNTED, _HELD, _TIMED = range(3)
"""
What happens to an amount: it counts, and is corrected when it is settled; it counts until it is
settled; it counts until then, and the real amount for some time from then on.
"""


class LimitGroup:
    """
    Limits that are asked for together, each time with other amounts than their own.

    It keeps what `MemoryStore.reserve_now` has found out about them, until something ends.
    """

    __slots__ = ("fresh_until", "limits", "parts", "slots", "version")

    def __init__(self, limits: Iterable[Limit]) -> None:
        self.limits: tuple[Limit, ...] = tuple(limits)
        self.version: int = -1
        """The version of the store that the following is true for."""
        self.fresh_until: float = 0.0
        self.parts: tuple[_Part, ...] = ()
        self.slots: tuple[int, ...] = ()

    def with_amounts(self, amounts: Sequence[float]) -> tuple[Limit, ...]:
        """The limits with these amounts."""
        pairs = zip(self.limits, amounts, strict=True)
        return tuple(replace(limit, amount=amount) for limit, amount in pairs)


class Taken(Struct, frozen=True, gc=False):
    """What `MemoryStore.reserve_now` has taken."""

    group: LimitGroup
    amounts: Sequence[float]
    slots: tuple[int, ...]


class MemoryStore:
    """
    Limits, values, counters and lists in the memory of this process.

    Its methods do not wait, so one store may serve several threads and event loops. What it holds
    is lost when the process ends.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        """Make an empty store. `clock` returns seconds since the epoch."""
        self._clock = clock
        self._lock = Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._ids = count(1)
        self._buckets: dict[tuple[str, float | None], _MemoryBucket] = {}
        self._leases: dict[str, int] = {}  # when the lease of an open reservation ends
        self._values: _Entries[bytes] = _Entries()
        self._counters: _Entries[float] = _Entries()
        self._lists: _Entries[list[bytes]] = _Entries()
        self._kinds: tuple[_Entries[Any], ...] = (self._values, self._counters, self._lists)
        self._sweep_at = _SWEEP
        self._version = 0
        """Changes with everything that limit groups have to notice."""
        self._last = 0
        self._set_back = 0.0
        """The seconds by which the clock was set back."""

    def _now(self) -> int:
        """The time. If the clock is set back, time goes on: slots are in order of time."""
        now = round((self._clock() + self._set_back) * MICROSECONDS)
        if now < self._last:
            self._set_back += (self._last - now) / MICROSECONDS
            return self._last
        self._last = now
        return now

    def _bucket(self, key: str, period: float | None) -> _MemoryBucket:
        bucket = self._buckets.get((key, period))
        if bucket is None:
            bucket = self._buckets[key, period] = _MemoryBucket(period)
        return bucket

    async def reserve(
        self, limits: Sequence[Limit], *, lease: float = 60.0
    ) -> Reservation | Refused:
        """Take all amounts, or none."""
        checked = check_limits(limits, lease)
        with self._lock:
            now = self._now()
            self._version += 1
            self._sweep(now)
            pairs = [(limit, self._bucket(limit.key, limit.period)) for limit in checked]
            refused = find_refusal(pairs, now)
            if refused is not None:
                return refused
            id_ = str(next(self._ids))
            ends = now + microseconds(lease)
            for limit, bucket in pairs:
                bucket.take(limit, id_, now, ends)
            self._leases[id_] = ends
        return Reservation(id=id_, limits=checked, taken_at=now / MICROSECONDS)

    async def settle(self, reservation: Reservation, amounts: Mapping[str, float]) -> bool:
        """Replace what was taken by the real amounts; False if it was settled before."""
        check_amounts(amounts)
        with self._lock:
            now = self._now()
            ends = self._leases.pop(reservation.id, None)
            if ends is None or ends + microseconds(RETENTION) <= now:
                return False
            self._version += 1
            taken_at = microseconds(reservation.taken_at)
            for limit in reservation.limits:
                bucket = self._bucket(limit.key, limit.period)
                bucket.drop_ended(now)
                real = amounts.get(limit.key, limit.amount)
                bucket.settle(limit, reservation.id, real, taken_at, now)
        return True

    def reserve_now(self, group: LimitGroup, amounts: Sequence[float]) -> Taken | Refused:
        """
        Take all amounts, or none, until `settle_now`: for middleware of this process.

        There are no leases, because the store ends with the process. No limit may have a burst.
        """
        self._acquire()  # `with` takes twice as long
        try:
            if group.version != self._version or (
                group.fresh_until != inf and self._clock() + self._set_back >= group.fresh_until
            ):
                self._refresh(group)
            number = 0
            for bucket, ceiling, kind in group.parts:
                amount = amounts[number]
                total = bucket.total + amount
                if not (total <= ceiling and amount >= 0):
                    refused = self._refuse(group, amounts, number)
                    if refused is not None:
                        return refused
                    break
                bucket.total = total
                if kind:
                    bucket.direct += amount
                else:
                    bucket.fresh += amount
                number += 1  # noqa: SIM113 -- `enumerate` and `zip` take longer
            return Taken(group, amounts, group.slots)
        finally:
            self._release()

    def settle_now(self, taken: Taken, amounts: Sequence[float]) -> None:
        """Replace what was taken by the real amounts, 0 for what was only held; once for each."""
        group, expected = taken.group, taken.amounts
        self._acquire()
        try:
            if group.version != self._version:
                self._refresh(group)
            number = 0
            for bucket, _, kind in group.parts:
                amount, real = expected[number], amounts[number]
                if kind:
                    left = bucket.direct - amount
                    bucket.direct = left if left > amount * _ROUNDING else 0.0
                    bucket.total -= amount
                    if kind == _TIMED:
                        self._count(bucket, group.limits[number], real)
                elif real != amount:
                    if taken.slots[number] == bucket.current:
                        bucket.total += real - amount
                        bucket.fresh += real - amount
                    else:
                        self._correct(bucket, taken.slots[number], real - amount)
                number += 1  # noqa: SIM113 -- `enumerate` and `zip` take longer
        finally:
            self._release()

    def _count(self, bucket: _MemoryBucket, limit: Limit, amount: float) -> None:
        """Count an amount that ends at a time of its own."""
        ended, now = bucket.expires, self._now()
        bucket.drop_ended(now)
        bucket.count(limit, now, amount)
        bucket.refresh(now)
        if ended == inf != bucket.expires:  # groups wait for no end
            self._version += 1

    def _correct(self, bucket: _MemoryBucket, slot: int, difference: float) -> None:
        """Correct what was taken in an earlier slot."""
        now = self._now()
        bucket.drop_ended(now)
        if bucket.width is None or slot in bucket.slots:  # else it has left the period
            bucket.correct(slot, difference)
        bucket.refresh(now)

    def _refresh(self, group: LimitGroup) -> None:
        """Drop what has ended, and add up what counts."""
        now = self._now()
        self._sweep(now)
        ends = inf
        parts: list[_Part] = []
        for limit in group.limits:
            bucket = self._bucket(limit.key, limit.period)
            bucket.refresh(now)
            if bucket.width is not None:
                ends = min(ends, (bucket.current + 1) * bucket.width)
            ends = min(ends, bucket.first_end, bucket.expires)
            parts.append((bucket, limit.maximum * TOLERANCE, _kind(limit)))
        group.parts, group.slots = tuple(parts), tuple(part[0].current for part in parts)
        # One microsecond earlier: the clock is not rounded where this is compared with it.
        group.version, group.fresh_until = self._version, (ends - 1) / MICROSECONDS

    def _refuse(self, group: LimitGroup, amounts: Sequence[float], number: int) -> Refused | None:
        """
        Why the limit of this number refuses, after what the ones before it took is given back.

        If all amounts fit after all, because something has just ended or sums of fractions depend
        on their order, they are taken.
        """
        _take(group, [-amount for amount in amounts[:number]])
        limits = group.with_amounts(amounts)
        self._refresh(group)
        pairs = [(limit, part[0]) for limit, part in zip(limits, group.parts, strict=True)]
        refused = find_refusal(pairs, self._now())
        if refused is None:
            _take(group, amounts)
        return refused

    async def renew(self, reservation: Reservation, lease: float) -> bool:
        """Extend the lease to this long from now; False if it has ended or was settled."""
        with self._lock:
            now = self._now()
            ends = self._leases.get(reservation.id, 0)
            if ends <= now:
                return False
            ends = max(ends, now + microseconds(lease))
            self._leases[reservation.id] = ends
            for limit in reservation.limits:
                self._bucket(limit.key, limit.period).extend(reservation.id, ends)
        return True

    async def used(self, key: str, period: float | None = None) -> float:
        """What counts now for a key with this period, reservations included."""
        with self._lock:
            bucket = self._buckets.get((key, period))
            if bucket is None:
                return 0.0
            self._version += 1
            bucket.drop_ended(self._now())
            return bucket.used()

    async def add(self, key: str, amount: float, *, ttl: float | None = None) -> float:
        """Add to a counter; its new value."""
        with self._lock:
            now = self._now()
            total, ends = self._counters.find(key, now) or (0.0, _end(now, ttl))
            self._counters[key] = (total + amount, ends)
            self._sweep(now)
        return total + amount

    async def get(self, key: str) -> bytes | None:
        """The value; None if there is none or its time has ended."""
        with self._lock:
            entry = self._values.find(key, self._now())
        return entry and entry[0]

    async def put(
        self, key: str, value: bytes, *, ttl: float | None = None, only_new: bool = False
    ) -> bool:
        """Set a value; returns whether it was set."""
        with self._lock:
            now = self._now()
            ends = _end(now, ttl)
            if only_new and self._values.find(key, now) is not None:
                return False
            self._values[key] = (value, ends)
            self._sweep(now)
        return True

    async def delete(self, key: str) -> bool:
        """Remove the value, counter and list of a key; whether there was one."""
        with self._lock:
            now = self._now()
            held = [entries for entries in self._kinds if entries.find(key, now) is not None]
            for entries in held:
                del entries[key]
        return bool(held)

    async def append(self, key: str, value: bytes, *, ttl: float | None = None) -> int:
        """Add to the end of a list; the new length."""
        with self._lock:
            now = self._now()
            entry = self._lists.find(key, now)
            if entry is None:
                entry = self._lists[key] = ([], _end(now, ttl))
            entry[0].append(value)
            self._sweep(now)
            return len(entry[0])

    async def items(self, key: str, start: int = 0) -> list[bytes]:
        """The values of a list, from an index on."""
        with self._lock:
            entry = self._lists.find(key, self._now())
            return [] if entry is None else entry[0][max(0, start) :]

    async def close(self) -> None:
        """Nothing to release: a store in memory can be used on."""

    def _sweep(self, now: int) -> None:
        """Forget what has ended, when there is twice as much as was left the last time."""
        if self._size() < self._sweep_at:
            return
        for bucket in self._buckets.values():
            bucket.drop_ended(now)
        self._buckets = {
            name: bucket for name, bucket in self._buckets.items() if not bucket.is_empty(now)
        }
        self._version += 1
        forgotten = now - microseconds(RETENTION)
        self._leases = {id_: end for id_, end in self._leases.items() if end > forgotten}
        for entries in self._kinds:
            for key in [key for key, (_, ends) in entries.items() if ends <= now]:
                del entries[key]
        self._sweep_at = max(_SWEEP, 2 * self._size())

    def _size(self) -> int:
        entries = len(self._values) + len(self._counters) + len(self._lists)
        return len(self._buckets) + len(self._leases) + entries


def _kind(limit: Limit) -> int:
    if limit.mode == "hold":
        return _HELD
    is_timed = limit.period is not None or limit.ttl is not None
    return _TIMED if limit.mode == "reserve" and is_timed else _COUNTED


def _take(group: LimitGroup, amounts: Sequence[float]) -> None:
    for (bucket, _, kind), amount in zip(group.parts, amounts, strict=False):
        bucket.total += amount
        if kind:
            bucket.direct += amount
        else:
            bucket.fresh += amount


def _end(now: int, ttl: float | None) -> float:
    check_ttl(ttl)
    return inf if ttl is None else now + microseconds(ttl)
