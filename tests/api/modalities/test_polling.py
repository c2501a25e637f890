"""Tests of the polling of jobs."""

from __future__ import annotations

import asyncio
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.api.modalities.polling import check_interval, poll, poll_delays
from interlingua.errors import ConfigurationError


@given(st.floats(0.001, 100), st.floats(0, 1))
def test_delays_grow_and_stay_in_their_bounds(interval: float, chance: float) -> None:
    """Each delay is within a fifth of its backoff, which grows to ten times the interval."""
    delays = list(islice(poll_delays(interval, lambda: chance), 20))
    assert delays == sorted(delays)
    assert all(interval * 0.799 <= delay <= interval * 12.001 for delay in delays)
    assert delays[-1] == pytest.approx(10 * delays[0])


def test_polling_ends_with_the_job_and_reports_each_answer() -> None:
    """Each answer is reported, also to an async callback, and no question follows the last one."""
    answers, reported = iter(["queued", "in_progress", "completed", "never asked"]), []

    async def ask() -> str:
        return next(answers)

    async def report(state: str) -> None:
        reported.append(state)

    end = poll(ask, lambda state: state == "completed", interval=0.001, on_progress=report)
    assert asyncio.run(end) == "completed"
    assert reported == ["queued", "in_progress", "completed"]
    assert next(answers) == "never asked"


@pytest.mark.parametrize("interval", [0, -1, float("inf"), float("nan"), "1", True])
def test_a_wrong_interval_is_refused(interval: object) -> None:
    """An interval must be a finite number of seconds above 0."""
    with pytest.raises(ConfigurationError, match="poll_interval"):
        check_interval(interval)
