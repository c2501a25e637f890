"""
The beginning and the end of adapters in a client.

`Initialization` calls `initialize` of each adapter that has one, once, before its first call.
`Retirement` closes the adapters that were unregistered, after the calls that still use them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from inspect import isawaitable
from threading import Lock
from typing import Any

from interlingua.client.routing import Routing
from interlingua.providers.adapter import HttpAdapter
from interlingua.runtime.cancel import Scopes
from interlingua.runtime.log import logger
from interlingua.spec.contracts import Adapter, Transport


class Initialization:
    """
    The adapters of a client that are not initialized yet.

    Calls may come from several event loops at once: one of them initializes the adapter, and the
    others wait. If it fails, its call fails, and the next call tries again.
    """

    def __init__(self, adapters: Mapping[str, Adapter]) -> None:
        self._adapters = adapters
        self._lock = Lock()
        self.pending: dict[str, Future[None] | None] = {
            key: None for key, adapter in adapters.items() if _has_own_initialize(adapter)
        }
        """By key: None, or what the calls wait for that came after the first."""

    async def ensure(self, key: str) -> None:
        """Initialize the adapter, unless that was done; wait if another call does it."""
        own: Future[None] = Future()
        while key in self.pending:
            with self._lock:
                running = self.pending.get(key, own)
                if running is None:
                    self.pending[key] = own
            if running is None:
                await self._initialize(key, own)
            elif running is not own:
                await asyncio.shield(asyncio.wrap_future(running))

    async def _initialize(self, key: str, ended: Future[None]) -> None:
        try:
            await initialize(self._adapters[key])
            self.pending.pop(key, None)
        except BaseException:
            if key in self.pending:
                self.pending[key] = None
            raise
        finally:
            ended.set_result(None)

    async def get_ready(self, key: str, adapter: Adapter) -> None:
        """
        Wait until a request to the adapter would leave at once.

        Limits count a request from its admission on, and providers from its arrival.
        """
        if key in self.pending:
            await self.ensure(key)
        await get_ready(adapter)

    def forget(self, key: str) -> None:
        """Another adapter has this key now, which is initialized, or none has."""
        self.pending.pop(key, None)


async def initialize(adapter: Adapter) -> None:
    """Call `initialize` of an adapter that has one; it may be async."""
    await _call(adapter, "initialize")


async def get_ready(adapter: Adapter) -> None:
    """Call `get_ready` of an adapter that has one; it may be async."""
    await _call(adapter, "get_ready")


async def _call(owner: object, name: str) -> None:
    method: Any = getattr(owner, name, None)
    result = None if method is None else method()
    if isawaitable(result):
        await result


def _has_own_initialize(adapter: Adapter) -> bool:
    method = getattr(type(adapter), "initialize", None)
    # That of `HttpAdapter` only checks the key, as each of its calls does.
    return method is not None and method is not HttpAdapter.initialize


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
    await _call(adapter, "close")
