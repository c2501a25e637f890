"""
Reservations of this process in a store, and what happens when the store fails.

A reservation is renewed while its call is under way, and settled whatever happens to the task of
the call. A settlement that the store did not take is repeated when the store answers again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Literal, TypeAlias

from interlingua.client.stores.contract import Refused, Reservation, Store
from interlingua.client.stores.memory import LimitGroup, MemoryStore, Taken
from interlingua.runtime.log import logger
from interlingua.spec.errors import ConfigurationError, StoreError

OnStoreFailure: TypeAlias = Literal["open", "closed"]
"""What happens to calls while the store fails: they are sent without the limit, or refused."""

_REMINDER = 60.0  # seconds between two log lines of one outage
_UNSETTLED = 10_000


class Leases:
    """The reservations of one middleware; `is_paced`: some limits have a burst."""

    def __init__(
        self,
        store: Store,
        *,
        owner: str,
        seconds: float,
        on_failure: OnStoreFailure,
        is_paced: bool = False,
    ) -> None:
        if on_failure not in ("open", "closed"):
            raise ConfigurationError(
                f"{owner}: on_store_failure must be 'open' or 'closed', not {on_failure!r}."
            )
        if not seconds > 0:
            raise ConfigurationError(f"{owner}: lease must be more than 0 seconds.")
        self.store: Store = store
        # What is in the memory of a process is lost with it, so it needs no leases.
        is_local = type(store) is MemoryStore and not is_paced
        self.local: MemoryStore | None = store if is_local else None  # type: ignore[assignment]
        """The store, if no other process uses it."""
        self.settle: Callable[[Any, Sequence[float]], asyncio.Task[None] | None] = (
            self._settle_lease if self.local is None else self.local.settle_now
        )
        """
        Settle a `Hold`, even if the task of the call is cancelled meanwhile. It never fails.

        The amounts are the real ones, in the places of the group, 0 for what was only held. The
        task that is returned is for `outlast`.
        """
        self.seconds: float = seconds
        self._owner = owner
        self._on_failure = on_failure
        self._reported: float | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsettled: deque[tuple[Reservation, Mapping[str, float]]] = deque(maxlen=_UNSETTLED)

    async def reserve(
        self, group: LimitGroup, amounts: Sequence[float], *, renew: bool = True
    ) -> Hold | Refused | None:
        """Take the amounts; None if the store failed and calls are sent all the same."""
        if self.local is not None:
            return self.local.reserve_now(group, amounts)
        try:
            limits = group.with_amounts(amounts)
            outcome = await self.store.reserve(limits, lease=self.seconds)
        except StoreError as error:
            self._report(error)
            if self._on_failure == "open":
                return None
            raise StoreError(
                f"{self._owner}: the call was not sent, because the store failed: "
                f"{error.message} Calls are refused until it answers; on_store_failure='open' "
                "would send them.",
                cause=error,
            ) from error
        if self._reported is not None:
            self._recover()
        if self._unsettled:
            self._start(self._settle_rest())  # a cancellation here would lose the outcome
        if isinstance(outcome, Refused):
            return outcome
        return Lease(self, outcome, group.places, renew=renew)

    def _settle_lease(self, hold: Hold, amounts: Sequence[float]) -> asyncio.Task[None] | None:
        if not isinstance(hold, Lease):
            return None
        hold.stop()
        pairs = zip(hold.reservation.limits, hold.places, strict=True)
        real = {limit.key: amounts[place] for limit, place in pairs}
        return self._start(self._settle(hold.reservation, real))

    async def renew(self, lease: Lease) -> None:
        """Extend a lease, and plan the next time."""
        try:
            is_held = await self.store.renew(lease.reservation, self.seconds)
        except StoreError as error:
            self._report(error)
            is_held = True  # try again
        if is_held:
            lease.plan()

    def start_renewal(self, lease: Lease) -> None:
        """Called by the timer of a lease."""
        self._start(self.renew(lease))

    def _start(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)  # the event loop keeps only a weak reference
        task.add_done_callback(self._tasks.discard)
        return task

    async def _settle(self, reservation: Reservation, amounts: Mapping[str, float]) -> None:
        if self._reported is not None:  # the store fails: no call waits for it twice
            self._unsettled.append((reservation, amounts))
            return
        try:
            await self.store.settle(reservation, amounts)
        except StoreError as error:
            self._report(error)
            self._unsettled.append((reservation, amounts))

    async def _settle_rest(self) -> None:
        """Settle what could not be settled while the store failed."""
        for _ in range(len(self._unsettled)):
            if self._unsettled and self._reported is None:
                await self._settle(*self._unsettled.popleft())

    def _report(self, error: StoreError) -> None:
        """One log line when an outage begins, and one a minute while it lasts."""
        now = monotonic()
        if self._reported is not None and now - self._reported < _REMINDER:
            return
        self._reported = now
        sends = self._on_failure == "open"
        effect = "are sent without this limit" if sends else "are refused"
        logger.warning(
            "%s: the store failed (%s). Calls %s until it answers again.",
            self._owner,
            error.message,
            effect,
            extra={"on_store_failure": self._on_failure},
        )

    def _recover(self) -> None:
        self._reported = None
        logger.warning("%s: the store answers again.", self._owner)


class Lease:
    """A reservation that is renewed until it is settled."""

    __slots__ = ("_leases", "_timer", "places", "reservation")

    def __init__(
        self, leases: Leases, reservation: Reservation, places: tuple[int, ...], *, renew: bool
    ) -> None:
        self._leases = leases
        self._timer: asyncio.TimerHandle | None = None
        self.reservation: Reservation = reservation
        self.places: tuple[int, ...] = places
        """Where the amounts of its limits are among the amounts that it is settled with."""
        if renew:
            self.plan()

    def plan(self) -> None:
        """Renew it after a third of its time; two renewals may fail before it ends."""
        leases = self._leases
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(leases.seconds / 3, leases.start_renewal, self)

    def stop(self) -> None:
        """Renew it no longer."""
        if self._timer is not None:
            self._timer.cancel()


Hold: TypeAlias = Lease | Taken
"""What was taken of a store until it is settled: with a lease, or in this process's memory."""
