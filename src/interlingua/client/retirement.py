"""Closes the adapters that were unregistered, after the calls that still use them have ended."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from inspect import isawaitable

from interlingua.client.routing import Routing
from interlingua.runtime.cancel import Scopes
from interlingua.runtime.log import logger
from interlingua.spec.contracts import Adapter, Transport


class Retirement:
    """The adapters of a client that are no longer registered, but not closed yet."""

    def __init__(self) -> None:
        self._adapters: list[Adapter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def close_later(self, adapter: Adapter | None, routing: Routing, scopes: Scopes) -> None:
        """
        Close an adapter when all calls that are active now have ended; at once if there are none.

        An adapter whose connections another one uses is closed with the client.
        """
        if adapter is None or any(adapter is each for each in routing.adapters.values()):
            return
        self._adapters.append(adapter)
        transport = getattr(adapter, "transport", None)
        if transport is not None and routing.is_used(transport):
            return
        ended = scopes.all_ended()
        if ended.done():
            await self._close(adapter)
            return
        # If the event loop ends before these calls, which may be in other threads, `take_all`
        # still has the adapter.
        task = asyncio.create_task(self._close_after(ended, adapter))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def take_all(self) -> list[Adapter]:
        """All adapters that are not closed yet; the caller closes them."""
        adapters, self._adapters = self._adapters, []
        return adapters

    async def _close_after(self, ended: Future[None], adapter: Adapter) -> None:
        await asyncio.wrap_future(ended)
        try:
            await self._close(adapter)
        except Exception:  # noqa: BLE001 -- nobody waits for it
            logger.exception("Closing the adapter %r failed.", adapter.name)

    async def _close(self, adapter: Adapter) -> None:
        others = [each for each in self._adapters if each is not adapter]
        if len(others) < len(self._adapters):
            self._adapters = others
            await close(adapter)


async def close(adapter: Adapter | Transport | None) -> None:
    """Close what has `close`, which may be async."""
    method = getattr(adapter, "close", None)
    result = None if method is None else method()
    if isawaitable(result):
        await result
