"""
What counts for one key and period. Pure: the stores in this process and in SQLite use it.

Times are whole microseconds, so that "sleep for `retry_after`, then it fits" is exact. The Lua
script of the Redis store computes the same in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop
from math import ceil, inf

from interlingua.client.stores.contract import SLOTS, Limit, Refused

MICROSECONDS = 1_000_000
TOLERANCE = 1 + 1e-9
"""Sums of fractions are not exact: 0.1 + 0.2 must fit in 0.3."""
LATEST = 2.0**53
"""The last time, in the year 2255: up to here floats are exact microseconds."""


def microseconds(seconds: float) -> int:
    """Seconds as whole microseconds."""
    return round(seconds * MICROSECONDS)


def slot_width(period: float) -> int:
    """The microseconds of a slot, rounded up, so that all slots together are never too short."""
    return max(1, -(-microseconds(period) // SLOTS))


class Bucket:
    """The amounts that count for one key and period. Subclasses keep the open reservations."""

    __slots__ = ("expires", "first_end", "held", "slots", "tat", "width")

    def __init__(self, period: float | None) -> None:
        self.width: int | None = None if period is None else slot_width(period)
        self.slots: dict[int, float] = {}
        """
        Amounts by the number of their slot, oldest first.

        Without a period there is one slot, and its number is the time from which it counts.
        """
        self.held: float = 0.0
        """The sum of the open reservations."""
        self.first_end: float = inf
        """No lease of an open reservation ends before this."""
        self.tat: float = 0.0
        """GCRA: when everything that was taken will have been paced out."""
        self.expires: float = inf

    # The open reservations.

    def hold(self, id_: str, amount: float, ends: int) -> None:
        """Count an amount until the reservation is settled or its lease ends."""
        raise NotImplementedError

    def release(self, id_: str) -> bool:
        """Count a reservation no longer; False if its lease has ended."""
        raise NotImplementedError

    def extend(self, id_: str, ends: int) -> None:
        """Let a lease end later."""
        raise NotImplementedError

    def leases(self) -> Iterable[tuple[int, float]]:
        """The end of its lease and the amount of each open reservation."""
        raise NotImplementedError

    def drop_leases(self, now: int) -> None:
        """Forget the reservations whose lease has ended."""
        raise NotImplementedError

    # What counts.

    def slot(self, now: int) -> int:
        """The slot of a time."""
        return next(iter(self.slots), now) if self.width is None else now // self.width

    def drop_ended(self, now: int) -> None:
        """Forget what no longer counts."""
        if self.first_end <= now:
            self.drop_leases(now)
        slots = self.slots
        if self.width is not None and slots:
            current = now // self.width
            if next(reversed(slots)) > current:
                self.bring_back(current)
            oldest = current - SLOTS
            while slots and (first := next(iter(slots))) < oldest:
                del slots[first]
        elif self.expires <= now:
            slots.clear()
            self.expires = inf

    def bring_back(self, current: int) -> None:
        """The clock was set back: what was counted later than now counts as taken now."""
        later = [slot for slot in self.slots if slot > current]
        self.tat = max(0.0, self.tat - (later[-1] - current) * (self.width or 0))
        amount = sum(self.slots.pop(slot) for slot in later)
        self.slots[current] = self.slots.get(current, 0.0) + amount

    def used(self) -> float:
        """What counts, after `drop_ended`."""
        return sum(self.slots.values()) + self.held

    def wait(self, limit: Limit, now: int) -> float:
        """In how many microseconds the amount fits; 0: now, infinite: never."""
        ceiling = limit.maximum * TOLERANCE
        total = self.used() + limit.amount
        waiting: float = 0
        if total > ceiling:
            waiting = inf if limit.amount > ceiling else self._release(total, ceiling, now)
        if limit.burst is not None:
            allowed = max(0.0, limit.burst - limit.amount) * _interval(limit)
            waiting = max(waiting, ceil(max(0.0, self.tat - allowed - now)))
        return waiting

    def _release(self, total: float, ceiling: float, now: int) -> float:
        """When enough will have ended."""
        releases = [*self._slot_releases(), *self.leases()]
        heapify(releases)
        while releases:
            time, amount = heappop(releases)
            total -= amount
            if total <= ceiling:
                return time - now
        return inf

    def _slot_releases(self) -> Iterable[tuple[int, float]]:
        if self.width is None:
            totals = self.slots.values()
            return () if self.expires == inf else ((int(self.expires), total) for total in totals)
        return (((slot + SLOTS + 1) * self.width, total) for slot, total in self.slots.items())

    def take(self, limit: Limit, id_: str, now: int, ends: int) -> None:
        """Count the amount for a reservation."""
        if limit.mode == "spend":
            self.count(limit, now, limit.amount)
        else:
            self.hold(id_, limit.amount, ends)
        if limit.burst is not None:
            self.tat = min(LATEST, max(self.tat, now) + limit.amount * _interval(limit))

    def settle(self, limit: Limit, id_: str, real: float, taken_at: int, now: int) -> None:
        """Replace what was taken, after `drop_ended`."""
        more = real - limit.amount
        if limit.mode == "spend":
            slot = self.slot(taken_at)
            # else it has left the period, or the total was forgotten and began anew
            is_counted = slot in self.slots and (slot <= taken_at or self.expires == inf)
            if is_counted:
                self.slots[slot] = max(0.0, self.slots[slot] + more)
        else:
            is_counted = self.release(id_)
            if limit.mode == "hold":
                return
            self.count(limit, now, real)
        # What no longer counts is not paced again: the bucket may have been forgotten since.
        if limit.burst is not None and (is_counted or more < 0):
            self.tat = max(0.0, min(LATEST, self.tat + more * _interval(limit)))

    def is_empty(self, now: int) -> bool:
        """Whether forgetting the bucket changes no decision, after `drop_ended`."""
        return not self.slots and self.first_end == inf and self.tat <= now

    def count(self, limit: Limit, now: int, amount: float) -> None:
        """Count an amount from now on."""
        slot = self.slot(now)
        self.slots[slot] = self.slots.get(slot, 0.0) + amount
        if limit.period is None and limit.ttl is not None:
            self.expires = now + microseconds(limit.ttl)


def _interval(limit: Limit) -> float:
    """GCRA: the microseconds that one unit takes; 0 where there is no pace."""
    if limit.period is None or not limit.maximum:
        return 0.0
    return microseconds(limit.period) / limit.maximum


def find_refusal(pairs: Sequence[tuple[Limit, Bucket]], now: int) -> Refused | None:
    """Why not all amounts fit; None if they do. Drops from the buckets what has ended."""
    refused: tuple[Limit, Bucket] | None = None
    longest: float = 0
    for limit, bucket in pairs:
        bucket.drop_ended(now)
        waiting = bucket.wait(limit, now)
        if waiting > longest:
            longest = waiting
            refused = limit, bucket
    if refused is None:
        return None
    limit, bucket = refused
    return Refused(
        key=limit.key,
        used=bucket.used(),
        maximum=limit.maximum,
        retry_after=None if longest == inf else longest / MICROSECONDS,
    )
