"""
A limit of requests, tokens and concurrency, for each attempt.

Callers that find no room wait in a fair queue. Before an attempt its tokens are estimated; at its
end the real ones are counted. What the provider says about its own limits is obeyed as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime
from math import inf
from time import monotonic
from typing import Any, ClassVar, TypeAlias

from msgspec import Struct

from interlingua.client.middleware.contract import Call, PerformNext, Progress
from interlingua.client.middleware.counting import Counting
from interlingua.client.middleware.fair_queue import Lines, waiting_time
from interlingua.client.middleware.leases import Hold, Leases, OnStoreFailure
from interlingua.client.middleware.meter import reserve_input
from interlingua.client.middleware.operation_meter import (
    estimate_operation,
    request_of,
    result_usage,
)
from interlingua.client.middleware.scopes import ScopeKey, scope_reader
from interlingua.client.stores.contract import Limit, Refused, Store
from interlingua.client.stores.memory import LimitGroup, MemoryStore
from interlingua.lazy import Remade
from interlingua.runtime.cancel import outlast
from interlingua.runtime.items import ItemsEnd, WatchedItems
from interlingua.spec.errors import ConfigurationError, RateLimitError
from interlingua.spec.request import Request
from interlingua.spec.response import Cost, RateLimitInfo, Usage

ASSUMED_OUTPUT = 512
"""The output tokens of a request without `max_tokens`, before any answer was seen."""
LAST_WEIGHT = 0.1
"""The weight of the last answer in the average output."""
_FLOOR = 0.1  # the least share of the limits
_DECREASE = 0.5


class Learned:
    """
    The share of the limits that is used, and a pause that the provider asked for.

    A 429 halves the share; each success adds one request to it (AIMD: additive increase,
    multiplicative decrease).
    """

    __slots__ = (
        "_is_active",
        "_step",
        "average_output",
        "decreases",
        "group",
        "paused_until",
        "share",
    )

    def __init__(self, step: float, *, is_active: bool) -> None:
        self._step = step
        self._is_active = is_active
        self.paused_until: float = 0.0
        """0 if there is no pause."""
        self.share: float = 1.0
        self.decreases: int = 0
        """How often the share was decreased."""
        self.average_output: float = float(ASSUMED_OUTPUT)
        """The output tokens of the last answers, the newest with `LAST_WEIGHT`."""
        self.group: LimitGroup | None = None
        """The limits of this key with this share, if they were made already."""

    def wait(self) -> float:
        """The seconds of the pause that are left."""
        if not self.paused_until:
            return 0.0
        left = self.paused_until - monotonic()
        if left <= 0:
            self.paused_until = 0.0
            return 0.0
        return left

    def is_idle(self) -> bool:
        """Whether nothing but the average is lost if this is forgotten."""
        return self.share == 1.0 and not self.wait()

    def read(self, limit: RateLimitInfo | None) -> None:
        """Pause until the reset if the provider reports that nothing is left."""
        if limit is None or not self._is_active:
            return
        if 0 not in (limit.requests_remaining, limit.tokens_remaining):
            return
        wait = limit.reset_after
        if wait is None and limit.reset_at is not None:
            wait = (limit.reset_at - datetime.now(UTC)).total_seconds()
        self._pause(wait)

    def succeed(self, output: int) -> None:
        """An attempt succeeded, with so many output tokens."""
        if self.share < 1.0:
            self._set_share(min(1.0, self.share + self._step))
        if output:
            self.average_output += LAST_WEIGHT * (output - self.average_output)

    def fail(self, error: RateLimitError, decreases: int) -> None:
        """
        An attempt got a 429 that began after this number of decreases.

        The attempts that were under way at the first 429 tell nothing new.
        """
        if not self._is_active:
            return
        if decreases == self.decreases:
            self.decreases += 1
            self._set_share(max(_FLOOR, self.share * _DECREASE))
        if error.retry_after:
            self._pause(error.retry_after)
        else:
            self.read(error.rate_limit)

    def _set_share(self, share: float) -> None:
        self.share, self.group = share, None

    def _pause(self, seconds: float | None) -> None:
        if seconds is not None and seconds > 0:
            self.paused_until = max(self.paused_until, monotonic() + seconds)


LOCAL_LIMIT = "local_rate_limit"
"""The `error_code` of an attempt that was not sent because of a limit of the program's own."""
_MAX_KEYS = 10_000


class RateLimit(Counting["_Permit"], Remade):
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
        self._most_input = inf if input_tokens_per_minute is None else input_tokens_per_minute
        self._output = output_tokens_per_minute
        self._most_output = inf if output_tokens_per_minute is None else output_tokens_per_minute
        self._concurrency = concurrency
        self._scope = scope_reader(key)
        self._max_wait = max_wait
        self._burst = burst
        self._period = period
        self._learns = learn
        self._name = name
        self._is_limited = any(limit is not None for limit in self._limits.values())
        self._places = tuple(
            place for place, limit in enumerate(self._limits.values()) if limit is not None
        )
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as its configuration; refused if other processes would count for themselves."""
        if self._is_limited and isinstance(self._leases.store, MemoryStore):
            raise ConfigurationError(
                f"{self!r} counts in the memory of this process. To pickle it, give it a store "
                "that processes share: store=RedisStore(…)."
            )
        return super().__reduce__()

    def __repr__(self) -> str:
        limits = (f"{name}={limit:g}" for name, limit in self._limits.items() if limit is not None)
        return f"RateLimit({', '.join(limits)})"

    async def used(self, scope: str) -> dict[str, float]:
        """Return what counts now for a scope, such as `model=openai:gpt-5.2`, by kind of limit."""
        amounts: dict[str, float] = {}
        for kind, limit in self._limits.items():
            if limit is not None:
                period = None if kind == "concurrency" else self._period
                key = f"{self._name}:{kind}:{scope}"
                amounts[kind] = await self._leases.store.used(key, period)
        return amounts

    # Attempts.

    async def begin(self, request: Request, call: Call) -> _Permit | None:
        """Take what an attempt needs; wait for room if there is none."""
        scope = self._scope(request)
        if scope is None:
            return None
        learned = self._learned.get(scope) or self._make_learned(scope)
        tokens = 0 if self._input is None else reserve_input(request)
        output: float | None = request.max_tokens
        if output is None or output < 0:
            output = learned.average_output
        permit = _Permit(scope, learned, tokens, output, call.progress)
        return await self._admit(permit, request)

    def learn(self, permit: _Permit, limit: RateLimitInfo) -> None:
        """Obey what the provider reports."""
        permit.learned.read(limit)

    async def end(
        self, permit: _Permit, usage: Usage | None, _: Cost | None, error: BaseException | None
    ) -> None:
        """Count what an attempt used, and let the next caller ask."""
        if error is not None or usage is None:
            amounts = self._fail(permit, error, usage)
        else:
            permit.learned.succeed(usage.output_tokens)
            amounts = (1.0, usage.input_tokens, usage.output_tokens, 0.0)
        settlement = None if permit.hold is None else self._leases.settle(permit.hold, amounts)
        try:
            if settlement is not None:
                await outlast(settlement)
        finally:
            self._lines.wake(permit.scope)

    async def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Any:
        """Wait for room for an operation; tokens count as far as its value or result shows them."""
        request = request_of(operation, value)
        scope = self._scope(request)
        if scope is None:
            return await call_next(value)
        is_counted = self._input is not None and not isinstance(value, Request)
        tokens = estimate_operation(operation, value) if is_counted else 0
        learned = self._learned.get(scope) or self._make_learned(scope)
        permit = _Permit(scope, learned, tokens, 0, operation.progress)
        await self._admit(permit, request)
        try:
            result = await call_next(value)
        except BaseException as error:
            await self.end(permit, None, None, error)
            raise
        if isinstance(result, AsyncGenerator):

            async def end(items: ItemsEnd) -> None:
                await self.end(permit, result_usage(items.result), None, None)

            return WatchedItems(result, end)
        await self.end(permit, result_usage(result), None, None)
        return result

    # Before an attempt.

    async def _admit(self, permit: _Permit, request: Request) -> _Permit:
        """Wait for room."""
        scope = permit.scope
        if permit.tokens > self._most_input:
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
        permit.decreases = learned.decreases
        if not self._is_limited:
            return None
        group = learned.group or self._make_group(permit.scope, learned)
        amounts = self._clip((1.0, permit.tokens, permit.output, 1.0), learned.share)
        renews = self._concurrency is not None
        outcome = await self._leases.reserve(group, amounts, renew=renews)
        if isinstance(outcome, Refused):
            is_held = outcome.key.startswith(f"{self._name}:concurrency:")
            # The end of a lease is not when an attempt ends.
            permit.expected = None if is_held else outcome.retry_after
            return waiting_time(outcome, is_local=self._leases.local is not None, is_held=is_held)
        permit.hold = outcome
        return None

    def _make_group(self, scope: str, learned: Learned) -> LimitGroup:
        limits = self._make_limits(scope, learned.share)
        group = learned.group = LimitGroup(limits, self._places)
        return group

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

    def _clip(self, amounts: _Amounts, share: float) -> _Amounts:
        """An estimate takes at most all of a limit."""
        requests, tokens, output, held = amounts
        most_input, most_output = self._most_input * share, self._most_output * share
        return requests, min(tokens, most_input), min(output, most_output), held

    def _make_learned(self, scope: str) -> Learned:
        if len(self._learned) >= _MAX_KEYS:  # callers may choose the names
            self._learned = {key: each for key, each in self._learned.items() if not each.is_idle()}
        learned = self._learned[scope] = Learned(self._step, is_active=self._learns)
        return learned

    # After an attempt.

    @staticmethod
    def _fail(permit: _Permit, error: BaseException | None, usage: Usage | None) -> _Amounts:
        """Learn from a failure; what the attempt used."""
        if not permit.progress.is_sent:
            return 0.0, 0, 0, 0.0
        if isinstance(error, RateLimitError):
            permit.learned.fail(error, permit.decreases)
        if usage is None:  # a provider may have counted the input
            return 1.0, permit.tokens, 0, 0.0
        return 1.0, usage.input_tokens, usage.output_tokens, 0.0

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
            f"The call was not sent: its input is about {permit.tokens} tokens, and {self!r} "
            f"of {permit.scope} never admits so many. Shorten the input, or raise the limit.",
            request,
            None,
        )


class _Permit(Struct, gc=False):
    """What one attempt has taken."""

    scope: str
    learned: Learned
    tokens: int
    """The estimated input tokens."""
    output: float
    """The output tokens that are expected."""
    progress: Progress
    hold: Hold | None = None
    decreases: int = 0
    """How often the share of the limits had been decreased before it was sent."""
    expected: float | None = None
    """The seconds until there may be room, as far as that is known."""


_Amounts: TypeAlias = tuple[float, float, float, float]
"""Of requests, input tokens, output tokens and concurrency."""


def is_local_limit(error: BaseException | None) -> bool:
    """Whether a limit of the program refused the attempt, not the provider."""
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
