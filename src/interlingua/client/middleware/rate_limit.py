"""
A limit of requests, tokens and concurrency, for each attempt.

Callers that find no room wait in a fair queue. Before an attempt its tokens are estimated; at its
end the real ones are counted. What the provider says about its own limits is obeyed as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from time import monotonic
from typing import Any, ClassVar

from msgspec import Struct

from interlingua.client.middleware.fair_queue import Lines, waiting_time
from interlingua.client.middleware.layers import (
    CompleteNext,
    OperationCall,
    PerformNext,
    StreamNext,
)
from interlingua.client.middleware.learned import Learned
from interlingua.client.middleware.leases import Hold, Leases, OnStoreFailure
from interlingua.client.middleware.meter import (
    StreamMeter,
    estimate_input,
    estimate_operation,
    failed_usage,
    request_of,
    result_usage,
)
from interlingua.client.middleware.scopes import ScopeKey, scope_reader
from interlingua.client.stores.contract import Limit, Refused, Store
from interlingua.client.stores.memory import LimitGroup, MemoryStore, Taken
from interlingua.providers.fold import ClosedStream
from interlingua.spec.errors import (
    BudgetExceededError,
    CircuitOpenError,
    ConfigurationError,
    RateLimitError,
    StoreError,
)
from interlingua.spec.events import StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Usage

LOCAL_LIMIT = "local_rate_limit"
"""The `error_code` of an attempt that was not sent because of a limit of the program's own."""
_UNSENT = (BudgetExceededError, CircuitOpenError, ConfigurationError, StoreError)
_MAX_KEYS = 10_000


class RateLimit:
    """
    Delays attempts so that none is sent above the limits.

        Client.from_env(middleware=[RateLimit(requests_per_minute=500, concurrency=20)])

    `key` says what has limits of its own: see `ScopeKey`; by default each model of each provider.
    An attempt that would wait longer than `max_wait` seconds raises `RateLimitError` instead.
    `burst` is the number of requests that may start at once; the others are spread evenly. `period`
    is the length of the "minute" in seconds. With `learn`, limits that a provider reports, and its
    429s, are obeyed too. A concurrent attempt of a process that has crashed counts until `lease`
    seconds have passed.
    """

    guard: ClassVar[bool] = True
    transparent: ClassVar[bool] = True
    per_attempt: ClassVar[bool] = True

    def __init__(  # noqa: PLR0913 -- options, all by name
        self,
        *,
        requests_per_minute: float | None = None,
        input_tokens_per_minute: float | None = None,
        output_tokens_per_minute: float | None = None,
        concurrency: int | None = None,
        key: ScopeKey = "model",
        store: Store | None = None,
        max_wait: float | None = None,
        burst: float | None = None,
        period: float = 60.0,
        learn: bool = True,
        lease: float = 60.0,
        on_store_failure: OnStoreFailure = "open",
        name: str = "rate",
    ) -> None:
        self._limits = {
            "requests": requests_per_minute,
            "input_tokens": input_tokens_per_minute,
            "output_tokens": output_tokens_per_minute,
            "concurrency": concurrency,
        }
        _check(self._limits, period, max_wait)
        self._requests = requests_per_minute
        self._input = input_tokens_per_minute
        self._output = output_tokens_per_minute
        self._concurrency = concurrency
        self._scope = scope_reader(key)
        self._max_wait = max_wait
        self._burst = burst
        self._period = period
        self._learns = learn
        self._name = name
        self._is_limited = any(limit is not None for limit in self._limits.values())
        names = [name for name, limit in self._limits.items() if limit is not None]
        self._ones: list[float] = [1.0] * len(names)
        self._nones: list[float | None] = [None] * len(names)
        self._input_at = names.index("input_tokens") if "input_tokens" in names else 0
        self._output_at = names.index("output_tokens") if "output_tokens" in names else 0
        # What counts for requests is known when they begin.
        self._is_corrected = any(limit is not None for limit in [*self._limits.values()][1:])
        self._step = 1.0 / (requests_per_minute or concurrency or 100)
        self._leases = Leases(
            MemoryStore() if store is None else store,
            owner=f"RateLimit {name!r}",
            seconds=lease,
            on_failure=on_store_failure,
            is_paced=burst is not None,
        )
        self._learned: dict[str, Learned] = {}
        self._lines = Lines()

    def __repr__(self) -> str:
        limits = (f"{name}={limit:g}" for name, limit in self._limits.items() if limit is not None)
        return f"RateLimit({', '.join(limits)})"

    async def used(self, scope: str) -> dict[str, float]:
        """What counts now for a scope, such as `model=openai:gpt-5.2`, by kind of limit."""
        amounts: dict[str, float] = {}
        for kind, limit in self._limits.items():
            if limit is not None:
                period = None if kind == "concurrency" else self._period
                key = f"{self._name}:{kind}:{scope}"
                amounts[kind] = await self._leases.store.used(key, period)
        return amounts

    # Layers.

    async def complete(self, request: Request, call_next: CompleteNext) -> Response:
        """Wait for room, send the attempt, count what it used."""
        scope = self._scope(request)
        if scope is None:
            return await call_next(request)
        permit = self._take_now(scope, request)
        if permit is None:
            permit = await self._admit(scope, request, self._tokens(request))
        try:
            response = await call_next(request)
        except BaseException as error:
            await self._fail(permit, error, failed_usage(error, request))
            raise
        if response.rate_limit is not None:
            permit.learned.read(response.rate_limit)
        if type(permit.hold) is Taken:
            self._succeed_now(permit, permit.hold, response.usage)
        else:
            await self._succeed(permit, response.usage)
        return response

    async def stream(
        self, request: Request, call_next: StreamNext
    ) -> AsyncGenerator[StreamEvent, None]:
        """Wait for room, pass the events on, and count what was used where they end."""
        scope = self._scope(request)
        permit = None
        if scope is not None:
            permit = await self._admit(scope, request, self._tokens(request))
        meter, failure = StreamMeter(), None
        try:
            async with ClosedStream(call_next(request)) as events:
                async for event in events:
                    meter.feed(event)
                    if type(event) is StreamStart and permit is not None:
                        permit.learned.read(event.rate_limit)
                    yield event
        except BaseException as error:
            failure = error
            raise
        finally:
            if permit is not None:
                await self._end_stream(permit, meter, request, failure)

    async def perform(self, operation: OperationCall, value: Any, call_next: PerformNext) -> Any:
        """Wait for room for an operation; tokens count as far as its value or result shows them."""
        request = request_of(operation, value)
        scope = self._scope(request)
        if scope is None:
            return await call_next(value)
        tokens = (0, 0) if isinstance(value, Request) else self._operation(operation, value)
        permit = await self._admit(scope, request, tokens)
        try:
            result = await call_next(value)
        except BaseException as error:
            await self._fail(permit, error, None)
            raise
        await self._succeed(permit, result_usage(result))
        return result

    # Before an attempt.

    def _tokens(self, request: Request) -> tuple[int, int | None]:
        """The estimated input and output tokens; None: what answers had on the average."""
        return 0 if self._input is None else estimate_input(request), request.max_tokens

    def _operation(self, operation: OperationCall, value: Any) -> tuple[int, int]:
        return 0 if self._input is None else estimate_operation(operation, value), 0

    def _take_now(self, scope: str, request: Request) -> _Permit | None:
        """Fast path: take what an attempt needs in this process, if there is room and no queue."""
        local = self._leases.local
        if local is None or not self._is_limited or not self._lines.is_empty:
            return None
        learned = self._learned.get(scope)
        if learned is None or learned.paused_until:
            return None
        share, known, tokens = learned.share, learned.group, 0
        if known is None or known[0] != share:
            return None  # the slow path makes it
        amounts, output = self._ones.copy(), request.max_tokens  # as `_amounts`, without a call
        if self._input is not None:
            tokens = estimate_input(request)
            if tokens > self._input * share:
                return None  # the slow path refuses or shortens it
            amounts[self._input_at] = tokens
        if self._output is not None:
            expected = learned.average_output if output is None else output
            amounts[self._output_at] = min(expected, self._output * share)
        outcome = local.reserve_now(known[1], amounts)
        if type(outcome) is not Taken:
            return None
        return _Permit(scope, learned, (tokens, output), outcome, monotonic())

    async def _admit(self, scope: str, request: Request, tokens: tuple[int, int | None]) -> _Permit:
        permit = _Permit(scope, self._find_learned(scope), tokens)
        if self._input is not None and tokens[0] > self._input:
            raise self._too_large(permit, request)
        line = self._lines.find(scope)
        if line is None:
            if await self._ask(permit) is None:
                return permit
            if self._max_wait is not None and (permit.expected or 0.0) > self._max_wait:
                raise self._refusal(permit, request)
        try:
            async with asyncio.timeout(self._max_wait):
                await self._lines.wait(scope, lambda: self._ask(permit))
        except TimeoutError:
            raise self._refusal(permit, request) from None
        return permit

    async def _ask(self, permit: _Permit) -> float | None:
        """Try to take what an attempt needs; the seconds to wait if there is no room."""
        learned = permit.learned
        wait = learned.wait()
        if wait:
            permit.expected = wait
            return wait
        permit.began = monotonic()
        if not self._is_limited:
            return None
        outcome = await self._leases.reserve(
            self._group(permit.scope, learned),
            self._amounts(learned, permit.tokens),
            renew=self._concurrency is not None,
        )
        if isinstance(outcome, Refused):
            is_held = outcome.key.startswith(f"{self._name}:concurrency:")
            # The end of a lease is not when an attempt ends.
            permit.expected = None if is_held else outcome.retry_after
            return waiting_time(outcome, is_local=self._leases.local is not None, is_held=is_held)
        permit.hold = outcome
        return None

    def _group(self, scope: str, learned: Learned) -> LimitGroup:
        """The limits of a scope."""
        known = learned.group
        if known is None or known[0] != learned.share:
            limits = self._make_limits(scope, learned.share)
            known = learned.group = (learned.share, LimitGroup(limits))
        return known[1]

    def _make_limits(self, scope: str, share: float) -> Iterator[Limit]:
        name, period = self._name, self._period
        if self._requests is not None:
            most = max(1.0, self._requests * share)
            key = f"{name}:requests:{scope}"
            yield Limit(key=key, maximum=most, period=period, burst=self._burst)
        if self._input is not None:
            key = f"{name}:input_tokens:{scope}"
            yield Limit(key=key, maximum=self._input * share, period=period)
        if self._output is not None:
            key = f"{name}:output_tokens:{scope}"
            yield Limit(key=key, maximum=self._output * share, period=period)
        if self._concurrency is not None:
            most = max(1.0, self._concurrency * share // 1)
            yield Limit(key=f"{name}:concurrency:{scope}", maximum=most, mode="hold")

    def _amounts(self, learned: Learned, tokens: tuple[int, int | None]) -> list[float]:
        """What an attempt takes of each limit; an estimate takes at most all of it."""
        amounts = self._ones.copy()
        if self._input is not None:
            most = self._input * learned.share
            amounts[self._input_at] = min(tokens[0], most)
        if self._output is not None:
            most, output = self._output * learned.share, tokens[1]
            expected = learned.average_output if output is None else output
            amounts[self._output_at] = min(expected, most)
        return amounts

    def _real_amounts(self, usage: Usage | None) -> list[float | None]:
        """What an attempt has taken of each limit; None: as much as was expected."""
        amounts: list[float | None] = self._nones.copy()
        if usage is not None:
            if self._input is not None:
                amounts[self._input_at] = usage.input_tokens
            if self._output is not None:
                amounts[self._output_at] = usage.output_tokens
        return amounts

    def _find_learned(self, scope: str) -> Learned:
        learned = self._learned.get(scope)
        if learned is None:
            if len(self._learned) >= _MAX_KEYS:  # callers may choose the names
                self._learned = {
                    key: each for key, each in self._learned.items() if not each.is_idle()
                }
            learned = self._learned[scope] = Learned(self._step, is_active=self._learns)
        return learned

    # After an attempt.

    async def _succeed(self, permit: _Permit, usage: Usage | None) -> None:
        permit.learned.succeed(0 if usage is None else usage.output_tokens)
        await self._settle(permit, usage)

    def _succeed_now(self, permit: _Permit, hold: Taken, usage: Usage) -> None:
        """The same for what was taken in this process."""
        permit.learned.succeed(usage.output_tokens)
        local = self._leases.local
        if self._is_corrected and local is not None:
            amounts: list[float | None] = self._nones.copy()
            if self._input is not None:
                amounts[self._input_at] = usage.input_tokens
            if self._output is not None:
                amounts[self._output_at] = usage.output_tokens
            local.settle_now(hold, amounts)
        if not self._lines.is_empty:
            self._lines.wake(permit.scope)

    async def _fail(self, permit: _Permit, error: BaseException, usage: Usage | None) -> None:
        if isinstance(error, _UNSENT) or _is_local(error):
            await self._give_back(permit)
            return
        if isinstance(error, RateLimitError):
            permit.learned.fail(error, permit.began)
        # A provider may have counted the input of an attempt that failed.
        await self._settle(permit, usage or Usage(input_tokens=permit.tokens[0]))

    async def _end_stream(
        self,
        permit: _Permit,
        meter: StreamMeter,
        request: Request,
        failure: BaseException | None,
    ) -> None:
        usage = meter.usage(request, failure)
        if meter.finish is not None:
            await self._succeed(permit, usage)
        elif failure is not None:
            await self._fail(permit, failure, usage)
        else:
            await self._settle(permit, usage)

    async def _settle(self, permit: _Permit, usage: Usage | None) -> None:
        """Count the real tokens, and let the next caller ask."""
        if permit.hold is not None:
            await self._leases.settle(permit.hold, self._real_amounts(usage))
        self._lines.wake(permit.scope)

    async def _give_back(self, permit: _Permit) -> None:
        """Nothing was sent: nothing counts."""
        if permit.hold is not None:
            amounts = [0.0] * len(self._ones)
            await self._leases.settle(permit.hold, amounts)
        self._lines.wake(permit.scope)

    # Errors.

    def _refusal(self, permit: _Permit, request: Request) -> RateLimitError:
        wait = permit.expected
        delay = "" if wait is None else f" There may be room in {wait:.3g} s."
        return _error(
            f"The call was not sent: it would wait longer than max_wait={self._max_wait:g} s for "
            f"{self!r} of {permit.scope}.{delay}",
            request,
            wait,
        )

    def _too_large(self, permit: _Permit, request: Request) -> RateLimitError:
        return _error(
            f"The call was not sent: its input is about {permit.tokens[0]} tokens, and {self!r} "
            f"of {permit.scope} never admits so many. Shorten the input, or raise the limit.",
            request,
            None,
        )


class _Permit(Struct):
    """What one attempt has taken."""

    scope: str
    learned: Learned
    tokens: tuple[int, int | None]
    hold: Hold | None = None
    began: float = 0.0
    expected: float | None = None
    """The seconds until there may be room, as far as that is known."""


def _is_local(error: BaseException) -> bool:
    """Whether another limit of the program refused the attempt."""
    return isinstance(error, RateLimitError) and error.error_code == LOCAL_LIMIT


def _error(message: str, request: Request, wait: float | None) -> RateLimitError:
    """Not retryable: the attempts would wait for what the caller does not want to wait for."""
    return RateLimitError(
        message,
        retryable=False,
        retry_after=wait,
        error_code=LOCAL_LIMIT,
        provider=request.provider,
        model=request.model or None,
        request_id=request.request_id,
    )


def _check(limits: dict[str, float | None], period: float, max_wait: float | None) -> None:
    for name, limit in limits.items():
        if limit is not None and not limit >= 1:
            raise ConfigurationError(f"RateLimit: the limit of {name} is {limit!r}, less than 1.")
    if not period > 0:
        raise ConfigurationError(f"RateLimit: period must be above 0, not {period!r}.")
    if max_wait is not None and not max_wait >= 0:
        raise ConfigurationError(f"RateLimit: max_wait must be 0 or more, not {max_wait!r}.")
