"""When to try again, and how long to wait before that."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from interlingua.spec.errors import ConfigurationError, RequestTimeoutError, SDKError

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
        if asked is not None and asked > 0:  # 0 or a moment that has passed: wait the backoff
            if asked <= self.max_delay:
                return float(asked)
            return self.max_delay if self.on_long_wait == "cap" else None
        growth: float = self.backoff_multiplier**attempt if attempt < 64 else float("inf")
        delay = min(self.base_delay * growth, self.max_delay)
        return delay * (0.5 + chance()) if self.jitter else delay

    def notify(self, error: SDKError, attempt: int, delay: float) -> None:
        """Call `on_retry`."""
        if self.on_retry is not None:
            self.on_retry(error, attempt, delay)

    def explain(self, error: Exception, attempt: int) -> str | None:
        """Why a retryable error is not retried, if that is because of the wait it asks for."""
        asked = getattr(error, "retry_after", None)
        if asked is None or asked <= self.max_delay or attempt >= self.max_retries:
            return None
        if not self.is_retryable(error):
            return None
        return (
            f"not retried: the provider asks to wait {asked:g} s, and max_delay is "
            f"{self.max_delay:g} s"
        )

    def is_retryable(self, error: Exception) -> bool:
        """Whether another attempt may help."""
        if self.retry_read_timeouts and isinstance(error, RequestTimeoutError):
            return True
        return isinstance(error, SDKError) and error.retryable


DEFAULT_POLICY = RetryPolicy()
"""What the high-level functions pass if their caller says nothing; an adapter's own goes before."""
