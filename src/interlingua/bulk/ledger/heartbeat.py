"""Says again and again that an owner lives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from interlingua.runtime.log import logger
from interlingua.spec.errors import StoreError

_TIMES = 3  # in the length of a lease, so that one that fails does not end it


class Heartbeat:
    """A task that calls a function three times in each lease."""

    def __init__(self, beat: Callable[[], Awaitable[object]], lease: float) -> None:
        self._beat = beat
        self._pause = lease / _TIMES
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """End. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            try:
                await self._beat()
            except StoreError as error:
                logger.warning("The ledger did not take the sign of life of a worker: %s", error)
