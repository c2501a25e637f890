"""The store of one process, in its memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, takewhile
from math import inf
from threading import Lock
from typing import Any, Generic, TypeAlias, TypeVar

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
    check_added,
    check_amounts,
    check_lease,
    check_limits,
    check_ttl,
)

Value = TypeVar("Value")
_DIGITS = 12  # after the point; sums of fractions are not exact
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


class _Cell:
    """What is taken of a bucket without leases: what is held, or what was counted in one slot."""

    __slots__ = ("amount", "bucket")

    def __init__(self, bucket: _MemoryBucket) -> None:
        self.amount = 0.0
        """Of a slot: what the bucket has not yet added to it."""
        self.bucket = bucket
        """`_ENDED` after the slot has left the period."""

    def add(self, amount: float) -> None:
        """Take an amount; give it back if it is below 0."""
        self.amount += amount
        self.bucket.total += amount


class _MemoryBucket(Bucket):
    """
    A bucket from which amounts are also taken without leases.

    These are in cells, which are found and changed faster than slots. A settlement finds the cell
    from which an amount was taken, however old it is.
    """

    __slots__ = ("cells", "direct", "open", "total")

    def __init__(self, period: float | None) -> None:
        super().__init__(period)
        self.open: dict[str, tuple[int, float]] = {}
        self.cells: dict[int, _Cell] = {}
        """By the number of their slot."""
        self.direct = _Cell(self)
        """What is held without a lease."""
        self.total = 0.0
        """What `used` returned at the last `refresh`, and what was taken from cells since."""

    def refresh(self, now: int) -> None:
        """Drop what has ended, and add up what counts."""
        self.drop_ended(now)
        self.total = self.used()

    def cell(self, now: int) -> _Cell:
        """The cell of the slot of a time."""
        slot = self.slot(now)
        cell = self.cells.get(slot)
        if cell is None:
            cell = self.cells[slot] = _Cell(self)
            self.slots.setdefault(slot, 0.0)  # in order, also if it is corrected later
        return cell

    def drop_ended(self, now: int) -> None:
        slots, direct = self.slots, self.direct
        direct.amount = max(0.0, round(direct.amount, _DIGITS))
        for slot, cell in self.cells.items():
            if cell.amount:
                slots[slot] = max(0.0, round(slots[slot] + cell.amount, _DIGITS))
                cell.amount = 0.0
        super().drop_ended(now)
        for slot in self.cells.keys() - slots.keys():
            self.cells.pop(slot).bucket = _ENDED

    def used(self) -> float:
        return sum(self.slots.values()) + self.held + self.direct.amount

    def is_empty(self, now: int) -> bool:
        return not self.direct.amount and super().is_empty(now)

    def hold(self, id_: str, amount: float, ends: int) -> None:
        self.open[id_] = (ends, amount)
        self.held += amount
        self.first_end = min(self.first_end, ends)

    def release(self, id_: str) -> bool:
        lease = self.open.pop(id_, None)
        if lease is not None:
            self.held -= lease[1]
        if not self.open:
            self.held, self.first_end = 0.0, inf  # also what sums of fractions left over
        return lease is not None

    def extend(self, id_: str, ends: int) -> None:
        if id_ in self.open:
            self.open[id_] = (ends, self.open[id_][1])

    def leases(self) -> Iterable[tuple[int, float]]:
        return self.open.values()

    def drop_leases(self, now: int) -> None:
        self.open = {id_: lease for id_, lease in self.open.items() if lease[0] > now}
        self.held = sum((amount for _, amount in self.open.values()), 0.0)
        self.first_end = min((ends for ends, _ in self.open.values()), default=inf)


_ENDED = _MemoryBucket(None)
"""The bucket of cells that count no longer: nothing more can be taken from them."""
_ENDED.total = inf


class LimitGroup:
    """
    Limits that are asked for together, each time with other amounts than their own.

    `places` says where the amount of each limit is among the amounts; without it they are in the
    order of the limits. A group keeps what `MemoryStore.reserve_now` has found out about its
    limits, until something ends.
    """

    __slots__ = ("cells", "fresh_until", "limits", "parts", "places", "timed", "version")

    def __init__(self, limits: Iterable[Limit], places: Iterable[int] | None = None) -> None:
        self.limits: tuple[Limit, ...] = tuple(limits)
        self.places: tuple[int, ...] = tuple(range(len(self.limits)) if places is None else places)
        self.version: int = -1
        """The version of the store that the following is true for."""
        self.fresh_until: float = 0.0
        self.parts: tuple[tuple[_Cell, float, int], ...] = ()
        """Where the amount of each limit is taken, what may count at most, and its place."""
        self.cells: tuple[tuple[_Cell, int], ...] = ()
        """The same without what may count."""
        self.timed: tuple[tuple[Limit, int], ...] = tuple(
            pair for pair in zip(self.limits, self.places, strict=True) if _is_timed(pair[0])
        )
        """The limits of which an amount is held, and the real one then counts for some time."""

    def with_amounts(self, amounts: Sequence[float]) -> tuple[Limit, ...]:
        """The limits with these amounts."""
        pairs = zip(self.limits, self.places, strict=True)
        return tuple(replace(limit, amount=amounts[place]) for limit, place in pairs)


Taken: TypeAlias = tuple[LimitGroup, Sequence[float], tuple[tuple[_Cell, int], ...]]
"""What `MemoryStore.reserve_now` has taken: of which limits, how much, and where."""


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

        There are no leases, because the store ends with the process. No limit may have a burst,
        and no amount may be below 0.
        """
        lock, clock = self._lock, self._clock
        lock.acquire()  # `with` takes twice as long
        try:
            if group.version != self._version or (
                group.fresh_until != inf and clock() + self._set_back >= group.fresh_until
            ):
                self._refresh(group)
            for cell, ceiling, place in group.parts:
                amount, bucket = amounts[place], cell.bucket
                total = bucket.total + amount
                if not total <= ceiling:  # also if it is not a number
                    refused = self._refuse(group, amounts, cell)
                    if refused is not None:
                        return refused
                    break
                bucket.total = total
                cell.amount += amount
            return group, amounts, group.cells
        finally:
            lock.release()

    def settle_now(self, taken: Taken, amounts: Sequence[float]) -> None:
        """Replace what was taken by the real amounts, 0 for what was only held; once for each."""
        group, expected, cells = taken
        lock = self._lock
        lock.acquire()
        try:
            if group.timed:
                amounts = self._count_timed(group, amounts)
            for cell, place in cells:
                difference = amounts[place] - expected[place]
                if difference:
                    cell.amount += difference
                    cell.bucket.total += difference
        finally:
            lock.release()

    def _count_timed(self, group: LimitGroup, amounts: Sequence[float]) -> Sequence[float]:
        """Count the amounts that end at a time of their own; what is left to settle."""
        left, now = [*amounts], self._now()
        for limit, place in group.timed:
            bucket = self._bucket(limit.key, limit.period)
            ended = bucket.expires
            bucket.drop_ended(now)
            bucket.count(limit, now, amounts[place])
            bucket.refresh(now)
            if ended == inf != bucket.expires:  # groups wait for no end
                self._version += 1
            left[place] = 0.0
        return left

    def _refresh(self, group: LimitGroup) -> None:
        """Drop what has ended, and add up what counts."""
        now = self._now()
        self._sweep(now)
        ends = inf
        parts: list[tuple[_Cell, float, int]] = []
        for limit, place in zip(group.limits, group.places, strict=True):
            bucket = self._bucket(limit.key, limit.period)
            bucket.refresh(now)
            if bucket.width is not None:
                ends = min(ends, (bucket.slot(now) + 1) * bucket.width)
            ends = min(ends, bucket.first_end, bucket.expires)
            is_held = limit.mode == "hold" or _is_timed(limit)
            cell = bucket.direct if is_held else bucket.cell(now)
            parts.append((cell, limit.maximum * TOLERANCE, place))
        group.parts, group.cells = tuple(parts), tuple((cell, place) for cell, _, place in parts)
        # One microsecond earlier: the clock is not rounded where this is compared with it.
        group.version, group.fresh_until = self._version, (ends - 1) / MICROSECONDS

    def _refuse(self, group: LimitGroup, amounts: Sequence[float], full: _Cell) -> Refused | None:
        """
        Why the limit of this cell refuses, after what the ones before it took is given back.

        If all amounts fit after all, because something has just ended or sums of fractions depend
        on their order, they are taken.
        """
        for cell, place in takewhile(lambda pair: pair[0] is not full, group.cells):
            cell.add(-amounts[place])
        limits = group.with_amounts(amounts)
        self._refresh(group)
        pairs = [(limit, part[0].bucket) for limit, part in zip(limits, group.cells, strict=True)]
        refused = find_refusal(pairs, self._now())
        if refused is None:
            for cell, place in group.cells:
                cell.add(amounts[place])
        return refused

    async def renew(self, reservation: Reservation, lease: float) -> bool:
        """Extend the lease to this long from now; False if it has ended or was settled."""
        check_lease(lease)
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
        """Return what counts now for a key with this period, reservations included."""
        with self._lock:
            bucket = self._buckets.get((key, period))
            if bucket is None:
                return 0.0
            self._version += 1
            bucket.drop_ended(self._now())
            return bucket.used()

    async def add(self, key: str, amount: float, *, ttl: float | None = None) -> float:
        """Add to a counter; its new value."""
        check_added(amount)
        with self._lock:
            now = self._now()
            total, ends = self._counters.find(key, now) or (0.0, _end(now, ttl))
            self._counters[key] = (total + amount, ends)
            self._sweep(now)
        return total + amount

    async def get(self, key: str) -> bytes | None:
        """Return the value; None if there is none or its time has ended."""
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
        """Return the values of a list, from an index on."""
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


def _is_timed(limit: Limit) -> bool:
    return limit.mode == "reserve" and not (limit.period is None and limit.ttl is None)


def _end(now: int, ttl: float | None) -> float:
    check_ttl(ttl)
    return inf if ttl is None else now + microseconds(ttl)
