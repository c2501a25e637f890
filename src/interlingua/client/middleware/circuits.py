"""
Circuits: whether something that has failed is tried again, and when.

A closed circuit lets every call through. Several failures in a row open it: no call goes through
until the cooldown has ended. It is half-open then, and exactly one call, the probe, goes through.
Its success closes the circuit, its failure opens it again, for longer. The state is in a store, so
that several processes can share it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from interlingua.client.middleware.rate_limit import is_local_limit
from interlingua.client.stores.contract import Store
from interlingua.client.stores.memory import MemoryStore
from interlingua.runtime.cancel import finish, start_task
from interlingua.runtime.log import logger
from interlingua.spec.content import Record
from interlingua.spec.errors import (
    AuthenticationError,
    BudgetExceededError,
    CircuitOpenError,
    ConfigurationError,
    ErrorClass,
    SDKError,
    StoreError,
)

CircuitState: TypeAlias = Literal["closed", "open", "half_open"]

LONGEST_WAIT = 3600.0
"""The seconds for which a `Retry-After` opens a circuit at most."""
_JITTER = 0.1  # of the cooldown: several circuits that opened together are not probed together
_BUSY = 1.0  # seconds to wait while a probe is under way, whose end is not known
_SKEW = 60.0  # seconds by which the clocks of two processes may differ
CIRCUIT_ERRORS = (
    ErrorClass.RATE_LIMIT,
    ErrorClass.AUTH,
    ErrorClass.SERVER_ERROR,
    ErrorClass.NETWORK,
)
"""The errors that count, unless told otherwise."""
_NOT_COUNTED = (BudgetExceededError, CircuitOpenError)


class CircuitRules(Record, frozen=True, kw_only=True):
    """When a circuit opens, and for how long."""

    failures: int = 5
    """So many failures in a row, within the window, open it."""
    window: float = 60.0
    cooldown: float = 30.0
    """The seconds until the first probe; twice as long after each probe that fails."""
    max_cooldown: float = 300.0
    probe_lease: float = 120.0
    """This many seconds after the process of a probe has ended, another one may go through."""

    def __post_init__(self) -> None:
        if self.failures < 1:
            raise ConfigurationError("A circuit opens after 1 failure at least.")
        times = (self.window, self.cooldown, self.max_cooldown, self.probe_lease)
        if not all(0 < seconds < float("inf") for seconds in times):  # refuses NaN, too
            raise ConfigurationError("The times of a circuit are seconds, more than 0.")


class Circuit(Record, frozen=True, kw_only=True):
    """A circuit that is not closed."""

    until: float
    """Until then no call goes through; after that, a probe."""
    since: float = 0.0
    """When it opened; before that, the clock has been set back, and `until` means nothing."""
    openings: int = 1
    """How often it has opened since it was closed."""
    reason: str = ""


class Failure(NamedTuple):
    """What a failure means for a circuit."""

    reason: str
    opens: bool = False
    """It opens the circuit at once."""
    wait: float | None = None
    """For so long, as the provider asked."""
    is_general: bool = False
    """It concerns all models of the provider."""


class Entry(NamedTuple):
    """A call that was let through."""

    key: str
    is_probe: bool = False
    renewal: asyncio.Task[None] | None = None
    """Extends the time of a probe while it is under way."""

    def stop(self) -> None:
        """The result is known, or there will be none."""
        if self.renewal is not None:
            self.renewal.cancel()


class Closed(NamedTuple):
    """A call that was not let through."""

    retry_after: float
    reason: str


# Pure.


def judge(error: BaseException, counted: Collection[ErrorClass] = CIRCUIT_ERRORS) -> Failure | None:
    """What an error means for a circuit; None if it says nothing about the provider's health."""
    if not isinstance(error, SDKError) or isinstance(error, _NOT_COUNTED):
        return None
    if is_local_limit(error):  # nothing was sent
        return None
    if error.error_class not in counted or error.has_alternative:
        return None
    reason = f"{type(error).__name__}: {error.message}"
    if error.error_class is ErrorClass.AUTH:
        return Failure(reason, opens=True, is_general=isinstance(error, AuthenticationError))
    if error.retry_after is not None and error.retry_after > 0:
        return Failure(reason, opens=True, wait=min(error.retry_after, LONGEST_WAIT))
    return Failure(reason)


def state_of(circuit: Circuit | None, now: float) -> CircuitState:
    """The state of a circuit; None is a closed one."""
    if circuit is None:
        return "closed"
    return "open" if circuit.since - _SKEW <= now < circuit.until else "half_open"


def opened(
    before: Circuit | None, failure: Failure, rules: CircuitRules, now: float, chance: float
) -> Circuit:
    """The circuit after it has opened, or opened again. `chance` is from 0 to 1."""
    openings = 1 if before is None else before.openings + 1
    growth = 2.0 ** min(openings - 1, 32)
    cooldown = min(rules.cooldown * growth, rules.max_cooldown)
    # After a wait that the provider asked for, a retry comes at that very time.
    until = now + (failure.wait or cooldown * (1 + _JITTER * chance))
    if before is not None and state_of(before, now) == "open":
        until = max(until, before.until)
    return Circuit(until=until, since=now, openings=openings, reason=failure.reason)


# With the store.


class Circuits:
    """The circuits of one middleware, by key."""

    def __init__(
        self,
        rules: CircuitRules,
        store: Store | None = None,
        *,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.rules: CircuitRules = rules
        self._store: Store = store or MemoryStore(clock=clock)
        self._clock = clock
        self._chance = chance
        self._counted: set[str] = set()  # keys with failures that this process has counted
        self._is_store_down = False

    async def find(self, key: str) -> Circuit | None:
        """The circuit of a key; None if it is closed."""
        value = await self._store.get(f"circuit:{key}")
        return None if value is None else _read(value)

    async def state(self, key: str) -> CircuitState:
        """The state of a key's circuit."""
        return state_of(await self.find(key), self._clock())

    async def enter(self, key: str) -> Entry | Closed:
        """Let a call through, or not. Calls are let through if the store cannot be reached."""
        try:
            circuit = await self.find(key)
            entry = Entry(key) if circuit is None else await self._enter(key, circuit)
        except StoreError as error:
            self._note_store(error)
            return Entry(key)
        self._is_store_down = False
        return entry

    async def _enter(self, key: str, circuit: Circuit) -> Entry | Closed:
        now = self._clock()
        if state_of(circuit, now) == "open":
            return Closed(circuit.until - now, circuit.reason)
        probe = f"circuit-probe:{key}"
        lease = self.rules.probe_lease
        taking = start_task(self._store.put(probe, b"1", ttl=lease, only_new=True))
        try:
            if not await asyncio.shield(taking):
                return Closed(_BUSY, circuit.reason)
            # Another call's probe may have ended between the two steps.
            latest = await self.find(key)
        except BaseException:  # cancelled, perhaps
            start_task(self._give_back(probe, taking))
            raise
        if state_of(latest, now) == "half_open":
            logger.info("Circuit %s is half-open: one call goes through.", key)
            return Entry(key, is_probe=True, renewal=asyncio.create_task(self._renew(probe)))
        await finish(self._store.delete(probe))
        return Entry(key) if latest is None else Closed(latest.until - now, latest.reason)

    async def _give_back(self, probe: str, taking: asyncio.Future[bool]) -> None:
        """Remove a probe that may have been taken for a call that has ended."""
        with suppress(StoreError):
            if await taking:
                await self._store.delete(probe)

    async def _renew(self, probe: str) -> None:
        """Extend the time of a probe again and again; if its process ends, it runs out."""
        lease = self.rules.probe_lease
        while True:
            await asyncio.sleep(lease / 3)
            with suppress(StoreError):
                await self._store.put(probe, b"1", ttl=lease)

    def awaits(self, entry: Entry) -> bool:
        """Whether the success of a call changes anything."""
        return entry.is_probe or entry.key in self._counted

    async def succeed(self, entry: Entry) -> None:
        """The call has succeeded."""
        entry.stop()
        if not self.awaits(entry):
            return
        try:
            self._counted.discard(entry.key)
            await self._store.delete(f"circuit-failures:{entry.key}")
            if entry.is_probe:
                await self._store.delete(f"circuit:{entry.key}")
                await self._store.delete(f"circuit-probe:{entry.key}")
                logger.info("Circuit %s is closed.", entry.key)
        except StoreError as error:
            self._note_store(error)

    async def fail(self, entry: Entry, failure: Failure) -> None:
        """The call has failed."""
        entry.stop()
        try:
            await self._fail(entry, failure)
        except StoreError as error:
            self._note_store(error)

    async def _fail(self, entry: Entry, failure: Failure) -> None:
        key, rules = entry.key, self.rules
        before = await self.find(key)
        if not entry.is_probe and not failure.opens:
            if before is not None:
                return  # the call began before the circuit opened
            self._counted.add(key)
            failures = await self._store.add(f"circuit-failures:{key}", 1, ttl=rules.window)
            if failures < rules.failures:
                return
        if before is not None and not entry.is_probe:
            if failure.wait is None:
                return
            before = replace(before, openings=before.openings - 1)  # both are one opening
        now = self._clock()
        circuit = opened(before, failure, rules, now, self._chance())
        ttl = circuit.until - now + 2 * rules.max_cooldown
        await self._store.put(f"circuit:{key}", msgspec.json.encode(circuit), ttl=ttl)
        await self._store.delete(f"circuit-failures:{key}")
        if entry.is_probe:
            await self._store.delete(f"circuit-probe:{key}")
        seconds = circuit.until - now
        logger.warning("Circuit %s is open for %.1f s: %s", key, seconds, failure.reason)

    async def leave(self, entry: Entry) -> None:
        """The call has ended without a result: another probe may go through."""
        entry.stop()
        if not entry.is_probe:
            return
        try:
            await self._store.delete(f"circuit-probe:{entry.key}")
        except StoreError as error:
            self._note_store(error)

    def _note_store(self, error: StoreError) -> None:
        if not self._is_store_down:  # not at every call
            logger.warning("The store of circuits failed, and all calls go through: %s", error)
        self._is_store_down = True


def _read(value: bytes) -> Circuit | None:
    try:
        return msgspec.json.decode(value, type=Circuit)
    except msgspec.DecodeError:  # of another program
        return None
