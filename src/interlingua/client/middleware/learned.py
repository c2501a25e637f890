"""What a rate limit learns from a provider about one key."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic

from interlingua.client.stores.memory import LimitGroup
from interlingua.spec.errors import RateLimitError
from interlingua.spec.response import RateLimitInfo

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
