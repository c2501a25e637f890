"""When to retry a failed call, and after what delay."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Literal, TypeAlias, TypeVar

import msgspec

from interlingua.runtime.callbacks import settle
from interlingua.spec.behaviour import RETRIED, Behaviour
from interlingua.spec.errors import (
    ConfigurationError,
    InvalidRequestError,
    RequestTimeoutError,
    SDKError,
)

Value = TypeVar("Value")
OnRetry: TypeAlias = Callable[[SDKError, int, float], object]
"""
Called before each retry with the error, the number of the failed attempt, and the delay.

It may be async.
"""


class RetryPolicy(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """How often to retry, and after what delay. N retries are at most N + 1 attempts."""

    max_retries: int = 2
    """How often a call is repeated after a retryable error."""
    base_delay: float = 1.0
    """Seconds before the first retry."""
    max_delay: float = 60.0
    """The longest delay in seconds."""
    backoff_multiplier: float = 2.0
    """The factor by which each delay is longer than the one before."""
    jitter: bool = True
    """Vary each delay by up to half, so that many clients do not retry at the same moment."""
    on_long_wait: Literal["raise", "cap"] = "raise"
    """What to do if the provider asks for more than `max_delay`: raise, or wait `max_delay`."""
    retry_read_timeouts: bool = False
    """Whether to retry a call whose answer did not arrive, although it may have been billed."""
    errors: tuple[str, ...] | None = None
    """The error classes that are retried, as in `RetrySettings`; None for all retryable errors."""
    on_retry: OnRetry | None = None
    """Called with the error, the attempt and the delay before each retry; sync or async."""

    def __post_init__(self) -> None:
        numbers = (self.max_retries, self.base_delay, self.max_delay, self.backoff_multiplier)
        if not all(number >= 0 for number in numbers):  # refuses NaN, too
            raise ConfigurationError("RetryPolicy: all numbers must be 0 or more.")
        for name in self.errors or ():
            if name not in RETRIED:
                known = ", ".join(RETRIED)
                raise ConfigurationError(
                    f"RetryPolicy: no error class {name!r}; there are {known}."
                )

    def delay(
        self, error: Exception, attempt: int, chance: Callable[[], float] = random.random
    ) -> float | None:
        """
        Seconds to wait after this attempt (from 0) has failed; None to give up.

        A wait that the provider asked for in this response takes precedence over the backoff.
        """
        if attempt >= self.max_retries or not self.is_retryable(error):
            return None
        wait = getattr(error, "retry_after", None)
        if wait is not None and wait > 0:  # for 0 or a time in the past, use the backoff
            if wait <= self.max_delay:
                return float(wait)
            return self.max_delay if self.on_long_wait == "cap" else None
        growth: float = self.backoff_multiplier**attempt if attempt < 64 else float("inf")
        delay = min(self.base_delay * growth, self.max_delay)
        return delay * (0.5 + chance()) if self.jitter else delay

    async def notify(self, error: SDKError, attempt: int, delay: float) -> None:
        """Call `on_retry`, which may be async."""
        if self.on_retry is not None:
            await settle(self.on_retry(error, attempt, delay))

    def explain(self, error: Exception, attempt: int) -> str | None:
        """Say why a retryable error is not retried, if the reason is the wait that it asks for."""
        wait = getattr(error, "retry_after", None)
        if wait is None or wait <= self.max_delay or attempt >= self.max_retries:
            return None
        if not self.is_retryable(error):
            return None
        return f"not retried: asked to wait {wait:g} s, more than max_delay {self.max_delay:g} s"

    def is_retryable(self, error: Exception) -> bool:
        """Tell whether a retry may succeed."""
        if self.retry_read_timeouts and isinstance(error, RequestTimeoutError):
            return True
        if not isinstance(error, SDKError):
            return False
        if self.errors is None:
            return error.retryable
        if _LOST_CALL in self.errors and _is_lost_call(error):
            return True
        return error.retryable and any(RETRIED[name] is error.error_class for name in self.errors)


_LOST_CALL = "tool_error"
_LOST = ("no tool call found", "no tool output found")


def _is_lost_call(error: SDKError) -> bool:
    """Whether a provider refused a request because it had lost a tool call that it has made."""
    text = error.message.lower()
    return isinstance(error, InvalidRequestError) and any(sentence in text for sentence in _LOST)


DEFAULT_POLICY = RetryPolicy()
"""The policy of the high-level functions; `max_retries` of an adapter takes precedence."""


def adapter_policy(
    max_retries: int, behaviour: Behaviour | None, default: RetryPolicy | None
) -> RetryPolicy | None:
    """
    The policy of an adapter with these retries and this behaviour, or the default.

    The settings of the behaviour take precedence. What they leave open is the adapter's, and what
    that leaves open is the default.
    """
    settings = None if behaviour is None else behaviour.retry
    if settings is None:
        return RetryPolicy(max_retries=max_retries) if max_retries else default
    count = settings.max_retries
    if count is None:
        count = max_retries or (0 if default is None else default.max_retries)
    base, limit, errors = settings.base_delay, settings.max_delay, settings.errors
    return RetryPolicy(
        max_retries=count,
        base_delay=DEFAULT_POLICY.base_delay if base is None else base,
        max_delay=DEFAULT_POLICY.max_delay if limit is None else limit,
        retry_read_timeouts="timeout" in (errors or ()),
        errors=errors,
    )


def check_callable(call: object) -> None:
    """Raise `ConfigurationError` for a call that was made already, and so cannot be made again."""
    if callable(call):
        return
    if asyncio.iscoroutine(call):
        call.close()  # nobody will await it
    raise ConfigurationError(
        f"`retry` takes a function, not a {type(call).__name__}: it calls the function once for "
        "each attempt. Write retry(lambda: fetch(url)), not retry(fetch(url))."
    )


async def retry(
    call: Callable[[], Awaitable[Value]], policy: RetryPolicy = DEFAULT_POLICY
) -> Value:
    """
    Call a function of your own, with retries as the policy allows; raises its last error.

    Calls of a client are retried with `client.complete(request, retry=policy)` instead.
    """
    check_callable(call)
    for attempt in count():
        try:
            return await call()
        except SDKError as error:
            delay = policy.delay(error, attempt)
            if delay is None:
                raise
            await policy.notify(error, attempt, delay)
        await asyncio.sleep(delay)
    raise AssertionError("unreachable")
