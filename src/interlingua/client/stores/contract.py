"""
The contract of stores.

A decision about limits is one atomic step over all of their keys: either every amount fits and all
are taken, or none is. What is taken belongs to a reservation with a lease. The caller settles it
with the real amounts; if the caller has crashed, the lease ends and the store acts as `Limit.mode`
says.

A store that cannot answer in time raises `StoreError`; it never decides what a failure means. The
middleware that uses it does (`on_store_failure="open"` lets the call through, `"closed"` raises the
error), so one store may serve a strict budget and a lenient rate limit.

The program that made a store closes it. `Client.close` does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Literal, Protocol, TypeAlias, final, runtime_checkable

from interlingua.spec.content import Record
from interlingua.spec.errors import ConfigurationError

LimitMode: TypeAlias = Literal["spend", "reserve", "hold"]
SLOTS = 60
"""
In how many slots a rolling period is divided.

What was taken is given back when its slot has left the period as a whole, so that no period of
this length ever has more than the maximum.
"""
RETENTION = 86_400.0
"""For how many seconds after the end of its lease a reservation can still be settled."""
LONGEST = 1e9
"""Seconds, about 30 years: longer times cannot be added to a date in every store."""
REDIS_URLS = ("redis://", "rediss://", "unix://")
"""How the URLs of Redis servers begin."""
POSTGRES_URLS = ("postgresql://", "postgres://")
"""How the URLs of PostgreSQL databases begin."""
SERVER_URLS = (*REDIS_URLS, *POSTGRES_URLS)
"""How the places of stores begin that several machines share."""


class Limit(Record, frozen=True, kw_only=True):
    """
    A maximum for one key, and the amount that a call wants to take of it.

    The modes differ in when the amount counts:

    - `spend`: from the decision on, for one period; settling corrects the amount, not its time. The
      end of the lease changes nothing. For requests and tokens per minute.
    - `reserve`: until it is settled; from then on the real amount counts, for one period. The end
      of the lease gives it back. For money.
    - `hold`: until it is settled or the lease ends; then nothing counts. For concurrency.

    What counts is kept by key and period: limits with the same two share it, whatever their
    maximum and mode.
    """

    key: str
    """What is counted."""
    maximum: float
    """The most that may count at once."""
    amount: float = 1.0
    """0 asks whether the maximum has been passed already."""
    period: float | None = None
    """Amounts count for this many seconds; None: without a limit."""
    mode: LimitMode = "spend"
    """`spend`, `reserve` or `hold`."""
    burst: float | None = None
    """
    With a period: how much may be taken at once; more is spread evenly over the period (GCRA).

    An amount above the burst is taken only when nothing is owed. The maximum holds as well. None:
    the whole maximum may be taken at once.
    """
    ttl: float | None = None
    """
    Without a period: the total is forgotten this many seconds after it last changed.

    For keys that contain a date, which would fill the store. None: never.
    """

    def __post_init__(self) -> None:
        """Check the numbers: a NaN or a negative amount would make every later decision wrong."""
        if not (0 <= self.amount < inf and 0 <= self.maximum < inf):
            raise ConfigurationError(
                f"Limit {self.key!r}: amount and maximum must be finite numbers, at least 0."
            )
        for value in (self.period, self.ttl):
            if value is not None and not 0 < value <= LONGEST:
                raise ConfigurationError(
                    f"Limit {self.key!r}: period and ttl must be above 0, and at most "
                    f"{LONGEST:,.0f} seconds. Leave them out for no end."
                )
        if self.burst is not None and not 0 < self.burst < inf:
            raise ConfigurationError(f"Limit {self.key!r}: burst must be above 0.")


class Reservation(Record, frozen=True, kw_only=True):
    """Amounts that were taken; valid until the end of its lease."""

    id: str
    """Its id in the store."""
    limits: tuple[Limit, ...] = ()
    """What was taken."""
    taken_at: float = 0.0
    """Seconds since the epoch, by the clock of the store."""


@final
class Refused(Record, frozen=True, kw_only=True):
    """
    Why nothing was taken: a key whose maximum would have been passed.

    If there are several, it is the one that has to wait longest, and the first of equals.
    """

    key: str
    """The key."""
    used: float
    """What counts for the key now."""
    maximum: float
    """The maximum that would have been passed."""
    retry_after: float | None = None
    """
    The seconds after which everything fits, if nobody else takes or settles anything.

    A settled reservation may make it fit earlier. None: it never fits.
    """


@runtime_checkable
class Store(Protocol):
    """
    Shared state. Keys are strings, values are bytes, times to live are seconds above 0.

    Limits, values, counters and lists do not see one another: each may have the same key.

    Every method may raise `StoreError` if the store cannot be reached in time. What it asked for
    may then have happened or not.
    """

    async def reserve(
        self, limits: Sequence[Limit], *, lease: float = 60.0
    ) -> Reservation | Refused:
        """
        Take all amounts, or none. No two limits may have the same key and period.

        An amount above its maximum is always refused, and `retry_after` is None then.
        """

    async def settle(self, reservation: Reservation, amounts: Mapping[str, float]) -> bool:
        """
        Replace what was taken by the real amounts, by key; a key that is missing keeps its amount.

        Real amounts may be larger: what happened is counted. Keys that the reservation does not
        have are ignored. Returns False if the reservation was settled before. A reservation whose
        lease has ended can still be settled, for `RETENTION` seconds.
        """

    async def renew(self, reservation: Reservation, lease: float) -> bool:
        """Extend the lease to this long from now; False if it has ended or was settled."""

    async def used(self, key: str, period: float | None = None) -> float:
        """Return what counts now for a key with this period, reservations included."""

    async def add(self, key: str, amount: float, *, ttl: float | None = None) -> float:
        """Add to a counter, which starts at 0; its new value. The first call sets its end."""

    async def get(self, key: str) -> bytes | None:
        """Return the value; None if there is none or its time has ended."""

    async def put(
        self, key: str, value: bytes, *, ttl: float | None = None, only_new: bool = False
    ) -> bool:
        """Set a value; with `only_new` not over another. Returns whether it was set."""

    async def delete(self, key: str) -> bool:
        """Remove the value, counter and list of a key; whether there was one."""

    async def append(self, key: str, value: bytes, *, ttl: float | None = None) -> int:
        """
        Add to the end of a list; the new length. The first call sets its end.

        It is in the store when this returns: see the store for what that survives.
        """

    async def items(self, key: str, start: int = 0) -> list[bytes]:
        """Return the values of a list, from an index on."""

    async def close(self) -> None:
        """Release connections and threads; idempotent."""


def check_limits(limits: Sequence[Limit], lease: float) -> tuple[Limit, ...]:
    """The limits of one decision; raises if two would share what they count."""
    check_lease(lease)
    if len(limits) > 1 and len({(limit.key, limit.period) for limit in limits}) < len(limits):
        raise ConfigurationError(
            "Two limits of one reservation have the same key and period. Give them different keys."
        )
    return tuple(limits)


def check_lease(lease: float) -> None:
    """Raise if a lease cannot be counted."""
    if not 0 < lease <= LONGEST:
        raise ConfigurationError(f"A lease must be above 0, and at most {LONGEST:,.0f} seconds.")


def check_amounts(amounts: Mapping[str, float]) -> None:
    """Raise if a real amount cannot be counted."""
    for key, amount in amounts.items():
        if not 0 <= amount < inf:
            raise ConfigurationError(f"The real amount of {key!r} must be a finite number >= 0.")


def check_added(amount: float) -> None:
    """Raise if an amount cannot be added to a counter."""
    if not -inf < amount < inf:
        raise ConfigurationError(f"The amount for a counter must be a finite number: {amount}.")


def check_ttl(ttl: float | None) -> None:
    """Raise if a time to live cannot be counted."""
    if ttl is not None and not 0 < ttl <= LONGEST:
        raise ConfigurationError(
            f"`ttl` must be above 0, and at most {LONGEST:,.0f} seconds. Leave it out for no end."
        )


def storable(name: str) -> str:
    """The name in a form that every store takes: a lone surrogate is written as an escape."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode()
