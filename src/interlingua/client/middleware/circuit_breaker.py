"""`CircuitBreaker`: no calls to a provider or model that has failed too often."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncGenerator, Callable, Collection
from typing import Any, ClassVar

from interlingua.client.middleware.circuits import (
    CIRCUIT_ERRORS,
    CircuitRules,
    Circuits,
    CircuitState,
    Closed,
    Entry,
    Failure,
    judge,
)
from interlingua.client.middleware.contract import (
    Call,
    CompleteNext,
    PerformNext,
    StreamNext,
)
from interlingua.client.stores.contract import Store, storable
from interlingua.lazy import Remade
from interlingua.runtime.cancel import finish
from interlingua.runtime.fold import close_stream
from interlingua.spec.errors import (
    CircuitOpenError,
    ConfigurationError,
    ErrorClass,
    StreamError,
)
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.grammar import is_content


class CircuitBreaker(Remade):
    """
    Refuses calls to a provider or model that has failed too often, until it works again.

        Client(adapters, middleware=[CircuitBreaker(failures=5, window=60, cooldown=30)])

    Each model has a circuit. `failures` in a row within `window` seconds open it: calls raise
    `CircuitOpenError` at once. After `cooldown` seconds one call goes through. If it succeeds, the
    circuit closes; if not, it stays open for twice as long, up to `max_cooldown`. A wrong key opens
    the circuit of the whole provider at once, and `Retry-After` that of the model for so long.
    Invalid requests, too long ones and cancellations never count; of the others, those of `errors`
    do. Without `ErrorClass.RATE_LIMIT`, a provider that only asks to wait is no failure: each
    caller gets its `RateLimitError` and waits.

    With `store`, several processes share the circuits. `key(request)` gives, for instance, each
    customer's key circuits of its own.
    """

    per_attempt: ClassVar[bool] = True

    def __init__(
        self,
        *,
        failures: int = 5,
        window: float = 60.0,
        cooldown: float = 30.0,
        max_cooldown: float = 300.0,
        errors: Collection[ErrorClass] = CIRCUIT_ERRORS,
        store: Store | None = None,
        key: Callable[[Request], str] | None = None,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        rules = CircuitRules(
            failures=failures,
            window=window,
            cooldown=cooldown,
            max_cooldown=max(cooldown, max_cooldown),
        )
        self._circuits = Circuits(rules, store, clock=clock, chance=chance)
        self._key = key
        for error in errors:
            if error not in CIRCUIT_ERRORS:
                known = ", ".join(CIRCUIT_ERRORS)
                raise ConfigurationError(
                    f"CircuitBreaker: errors has values of ErrorClass, not {error!r:.60}; "
                    f"those that can count: {known}."
                )
        self._errors = tuple(errors)

    async def state(
        self, provider: str, model: str | None = None, *, key: str = ""
    ) -> CircuitState:
        """Return the state of a provider, or of one of its models."""
        general = await self._circuits.state(_circuit_key(key, provider))
        if model is None or general != "closed":
            return general
        return await self._circuits.state(_circuit_key(key, provider, model))

    async def complete(self, request: Request, call_next: CompleteNext) -> Response:
        """Return the answer; raise `CircuitOpenError` if the circuit is open."""
        passage = await self._enter(request)
        try:
            response = await call_next(request)
        except BaseException as error:
            await passage.fail(error)
            raise
        await passage.succeed()
        return response

    async def stream(
        self, request: Request, call_next: StreamNext
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events; the first part of the answer counts as success."""
        passage = await self._enter(request)
        events = call_next(request)
        try:
            async for event in events:
                if passage.is_open and (is_content(event) or type(event) is Finish):
                    await passage.succeed()
                yield event
            if passage.is_open:
                await passage.fail(StreamError("The stream ended without a finish event."))
        except BaseException as error:
            await passage.fail(error)
            raise
        finally:
            await close_stream(events)

    async def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Any:
        """Return the result of an operation; operations without a model share one circuit."""
        model = getattr(value, "model", None)
        named = Request(
            provider=operation.provider,
            model=model if isinstance(model, str) else operation.name,
            request_id=operation.request_id,
        )
        passage = await self._enter(named)
        try:
            result = await call_next(value)
        except BaseException as error:
            await passage.fail(error)
            raise
        await passage.succeed()
        return result

    async def _enter(self, request: Request) -> Passage:
        key = "" if self._key is None else self._key(request)
        try:
            return await self.enter(request.provider or "", request.model, key=key)
        except CircuitOpenError as refusal:
            refusal.add_facts(request_id=request.request_id)
            raise

    async def enter(self, provider: str, model: str, *, key: str = "") -> Passage:
        """Let a call through, or raise `CircuitOpenError`."""
        circuits = self._circuits
        general = await circuits.enter(_circuit_key(key, provider))
        if isinstance(general, Closed):
            raise _refusal(general, provider, model, is_general=True)
        try:
            own = await circuits.enter(_circuit_key(key, provider, model))
        except BaseException:  # cancelled: the probe of the provider would never end
            await finish(circuits.leave(general))
            raise
        if isinstance(own, Closed):
            await finish(circuits.leave(general))
            raise _refusal(own, provider, model)
        return Passage(circuits, general, own, self._errors)


class Passage:
    """One call on its way through the circuits of its provider and its model."""

    __slots__ = ("_circuits", "_errors", "_general", "_own", "is_open")

    def __init__(
        self,
        circuits: Circuits,
        general: Entry,
        own: Entry,
        errors: Collection[ErrorClass] = CIRCUIT_ERRORS,
    ) -> None:
        self._errors = errors
        self._circuits = circuits
        self._general = general
        self._own = own
        self.is_open: bool = True
        """Whether the circuits wait for the result of this call."""

    async def succeed(self) -> None:
        """The call has succeeded, or its answer has begun."""
        self.is_open = False
        if self._circuits.awaits(self._general) or self._circuits.awaits(self._own):
            await finish(self._succeed())

    async def _succeed(self) -> None:
        await self._circuits.succeed(self._general)
        await self._circuits.succeed(self._own)

    async def fail(self, error: BaseException) -> None:
        """The call has ended with this error, which may say nothing about the provider."""
        if not self.is_open:  # it failed after the beginning of its answer
            self._general, self._own = Entry(self._general.key), Entry(self._own.key)
        self.is_open = False
        failure = judge(error, self._errors)
        if failure is not None or self._general.is_probe or self._own.is_probe:
            await finish(self._fail(failure))

    async def _fail(self, failure: Failure | None) -> None:
        for entry, is_general in ((self._general, True), (self._own, False)):
            if failure is None or failure.is_general is not is_general:
                await self._circuits.leave(entry)
            else:
                await self._circuits.fail(entry, failure)


def _circuit_key(key: str, *names: str) -> str:
    return storable(":".join((key, *names) if key else names))


def _refusal(
    closed: Closed, provider: str, model: str, *, is_general: bool = False
) -> CircuitOpenError:
    name = provider if is_general else f"{provider}:{model}"
    what = "No model of the provider is" if is_general else "The model is not"
    text = (
        f"{what} called for the next {max(closed.retry_after, 0.1):.1f} s, because {name} has "
        f"failed too often; last: {closed.reason}"
    )
    return CircuitOpenError(
        text, provider=provider, model=model or None, retry_after=closed.retry_after
    )
