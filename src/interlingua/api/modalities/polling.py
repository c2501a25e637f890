"""How jobs are waited for: the delays between two questions, and the loop that asks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from interlingua.runtime.callbacks import settle
from interlingua.spec.check import describe
from interlingua.spec.errors import ConfigurationError

Job = TypeVar("Job")

INTERVAL = 3.0
"""Seconds before the first question."""
_GROWTH = 1.5
_LONGEST = 10.0  # the longest delay, in intervals
_SPREAD = 0.2  # each delay varies by up to this part, so that many jobs are not asked for at once


def poll_delays(
    interval: float = INTERVAL, chance: Callable[[], float] = random.random
) -> Iterator[float]:
    """The seconds before each question: they grow to ten times the interval, with jitter."""
    delay, longest = interval, interval * _LONGEST
    while True:
        yield delay * (1 - _SPREAD + 2 * _SPREAD * chance())
        delay = min(delay * _GROWTH, longest)


async def poll(
    ask: Callable[[], Awaitable[Job]],
    is_ended: Callable[[Job], bool],
    *,
    interval: float | None = None,
    on_progress: Callable[[Job], object] | None = None,
) -> Job:
    """
    Ask until a job has ended; `on_progress`, sync or async, is called with each answer.

    The first question is asked at once: a job that is waited for again may have ended long ago.
    """
    for delay in poll_delays(INTERVAL if interval is None else interval):
        job = await ask()
        if on_progress is not None:
            await settle(on_progress(job))
        if is_ended(job):
            return job
        await asyncio.sleep(delay)
    raise AssertionError("unreachable")


def check_interval(interval: Any) -> None:
    """Raise `ConfigurationError` unless this is None or a number of seconds above 0."""
    is_number = isinstance(interval, (int, float)) and not isinstance(interval, bool)
    if interval is not None and not (is_number and 0 < interval < float("inf")):
        raise ConfigurationError(
            f"`poll_interval` must be a number of seconds above 0, not {describe(interval)}."
        )
