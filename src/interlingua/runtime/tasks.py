"""Tasks that go on to their end, whoever waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
_running: set[asyncio.Task[Any]] = set()  # the event loop keeps only weak references


def start_task(work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
    """A task of the running event loop that is not garbage collected before its end."""
    task = asyncio.get_running_loop().create_task(work)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task


async def finish(work: Coroutine[Any, Any, Result]) -> Result:
    """Wait for work that goes on to its end if the task that waits is cancelled."""
    return await asyncio.shield(start_task(work))
