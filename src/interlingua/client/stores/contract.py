"""
The contract of stores.

A decision about limits is one atomic step over all of their keys: either every amount fits and all
are taken, or none is. What is taken belongs to a reservation with a lease. The caller settles it
with the real amounts; if the caller has crashed, the lease ends and the store acts as if it had
been settled (see `Limit.mode`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from interlingua.spec.content import Record

LimitMode: TypeAlias = Literal["spend", "reserve", "hold"]
SLOTS = 60
"""
In how many slots a rolling period is divided.

What was taken is given back when its slot has left the period as a whole, so that no period of
this length ever has more than the maximum.
"""


class Limit(Record, frozen=True, kw_only=True):
    """
    A maximum for one key, and the amount that a call wants to take of it.

    The modes differ in when the amount counts:

    - `spend`: from the decision on; settling corrects it. The end of the lease changes nothing.
      For requests and tokens per minute.
    - `reserve`: until it is settled; then the real amount counts. The end of the lease gives it
      back. For money.
    - `hold`: until it is settled or the lease ends; then nothing counts. For concurrency.
    """

    key: str
    maximum: float
    amount: float = 1.0
    period: float | None = None
    """Amounts count for this many seconds; None: for ever."""
    mode: LimitMode = "spend"
    burst: float | None = None
    """
    With a period: how much may be taken at once; more is spread evenly over the period (GCRA).

    None: the whole maximum may be taken at once.
    """


class Reservation(Record, frozen=True, kw_only=True):
    """Amounts that were taken; valid until the end of its lease."""

    id: str
    limits: tuple[Limit, ...] = ()
    taken_at: float = 0.0
    """Seconds since the epoch, by the clock of the store."""


class Refused(Record, frozen=True, kw_only=True):
    """Why nothing was taken: the first key whose maximum would have been passed."""

    key: str
    used: float
    maximum: float
    retry_after: float | None = None
    """The seconds after which it may fit; None if that is unknown or never."""


@runtime_checkable
class Store(Protocol):
    """
    Shared state. Keys are strings, values are bytes, times to live are seconds.

    Every method may raise `StoreError` if the store cannot be reached in time.
    """

    async def reserve(
        self, limits: Sequence[Limit], *, lease: float = 60.0
    ) -> Reservation | Refused:
        """
        Take all amounts, or none.

        An amount above its maximum is always refused, and `retry_after` is None then.
        """

    async def settle(self, reservation: Reservation, amounts: Mapping[str, float]) -> bool:
        """
        Replace what was taken by the real amounts, by key; a key that is missing keeps its amount.

        Real amounts may be larger: what happened is counted. Returns False if the reservation was
        settled before. A reservation whose lease has ended can still be settled.
        """

    async def renew(self, reservation: Reservation, lease: float) -> bool:
        """Extend the lease from now on; False if it has ended or was settled."""

    async def used(self, key: str, period: float | None = None) -> float:
        """What counts now for a key with this period, reservations included."""

    async def add(self, key: str, amount: float, *, ttl: float | None = None) -> float:
        """Add to a counter, which starts at 0; its new value. The first call sets its end."""

    async def get(self, key: str) -> bytes | None:
        """The value; None if there is none or its time has ended."""

    async def put(
        self, key: str, value: bytes, *, ttl: float | None = None, only_new: bool = False
    ) -> bool:
        """Set a value; with `only_new` not over another. Returns whether it was set."""

    async def delete(self, key: str) -> bool:
        """Remove the value, counter or list of a key; whether there was one."""

    async def append(self, key: str, value: bytes, *, ttl: float | None = None) -> int:
        """Add to the end of a list, durably when this returns; the new length."""

    async def items(self, key: str, start: int = 0) -> list[bytes]:
        """The values of a list, from an index on."""

    async def close(self) -> None:
        """Release connections and threads; idempotent."""
