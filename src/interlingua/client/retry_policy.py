"""When to try again, and how long to wait before that."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal, TypeAlias, TypeVar

import msgspec

from interlingua.spec.errors import ConfigurationError, RequestTimeoutError, SDKError
from interlingua.spec.events import StreamEvent

Value = TypeVar("Value")
OnRetry: TypeAlias = Callable[[SDKError, int, float], object]
"""Called before each retry with the error, the number of the attempt that failed, the delay."""


class RetryPolicy(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """How often to try again, and after what delay. N retries are at most N + 1 calls."""

    max_retries: int = 2
    base_delay: float = 1.0
    max_delay: float = 60.0
    backoff_multiplier: float = 2.0
    jitter: bool = True
    """Stretch or shorten each delay by up to a half, so that many clients do not come at once."""
    on_long_wait: Literal["raise", "cap"] = "raise"
    """A provider that asks for more than `max_delay` is taken at its word, or called sooner."""
    retry_read_timeouts: bool = False
    """A call whose answer never came may have been billed: it is repeated only if asked."""
    on_retry: OnRetry | None = None

    def __post_init__(self) -> None:
        counted = (self.max_retries, self.base_delay, self.max_delay, self.backoff_multiplier)
        if not all(number >= 0 for number in counted):  # so written, NaN is refused too
            raise ConfigurationError("a retry policy counts and waits from 0 up")

    def delay(
        self, error: Exception, attempt: int, chance: Callable[[], float] = random.random
    ) -> float | None:
        """
        Seconds to wait after this attempt (0 is the first) has failed; None to give up.

        What the provider asks for in this very answer goes before the backoff.
        """
        if attempt >= self.max_retries or not self.is_retryable(error):
            return None
        asked = getattr(error, "retry_after", None)
        if asked is not None:
            if asked <= self.max_delay:
                return max(float(asked), 0.0)
            return self.max_delay if self.on_long_wait == "cap" else None
        growth: float = self.backoff_multiplier**attempt if attempt < 64 else float("inf")
        delay = min(self.base_delay * growth, self.max_delay)
        return delay * (0.5 + chance()) if self.jitter else delay

    def is_retryable(self, error: Exception) -> bool:
        """Whether another attempt may help."""
        if self.retry_read_timeouts and isinstance(error, RequestTimeoutError):
            return True
        return isinstance(error, SDKError) and error.retryable


DEFAULT_POLICY = RetryPolicy()
NO_RETRIES = RetryPolicy(max_retries=0)

Sleep: TypeAlias = Callable[[float], Awaitable[object]]


async def retry(
    call: Callable[[], Awaitable[Value]],
    policy: RetryPolicy = DEFAULT_POLICY,
    *,
    sleep: Sleep = asyncio.sleep,
) -> Value:
    """What `call` gives, after as many attempts as the policy allows; its last error else."""
    attempt = 0
    while True:
        try:
            return await call()
        except SDKError as error:
            await _wait(error, attempt, policy, sleep)
        attempt += 1


async def retry_stream(
    call: Callable[[], AsyncIterator[StreamEvent]],
    policy: RetryPolicy = DEFAULT_POLICY,
    *,
    sleep: Sleep = asyncio.sleep,
) -> AsyncIterator[StreamEvent]:
    """The same for a stream: only what fails before the first event is tried again."""
    attempt = 0
    while True:
        events = call()
        begun = False
        try:
            async for event in events:
                begun = True
                yield event
            return
        except SDKError as error:
            if begun:
                raise
            await _wait(error, attempt, policy, sleep)
        finally:
            await close(events)
        attempt += 1


async def close(events: AsyncIterator[StreamEvent]) -> None:
    """Close an iterator that may be a generator, so that what it holds is released now."""
    ended = getattr(events, "aclose", None)
    if ended is not None:
        await ended()


async def _wait(error: SDKError, attempt: int, policy: RetryPolicy, sleep: Sleep) -> None:
    """Wait before the next attempt, or raise the error if there is none."""
    delay = policy.delay(error, attempt)
    if delay is None:
        raise error
    if policy.on_retry is not None:
        policy.on_retry(error, attempt, delay)
    await sleep(delay)
