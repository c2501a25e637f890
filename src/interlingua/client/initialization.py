"""Calls `initialize` of each adapter that has one, once, before its first call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from inspect import isawaitable
from threading import Lock
from typing import Any

from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.contracts import Adapter


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

    def forget(self, key: str) -> None:
        """Another adapter has this key now, which is initialized, or none has."""
        self.pending.pop(key, None)


async def initialize(adapter: Adapter) -> None:
    """Call `initialize` of an adapter that has one; it may be async."""
    method: Any = getattr(adapter, "initialize", None)
    result = None if method is None else method()
    if isawaitable(result):
        await result


def _has_own_initialize(adapter: Adapter) -> bool:
    method = getattr(type(adapter), "initialize", None)
    # That of `HttpAdapter` only checks the key, as each of its calls does.
    return method is not None and method is not HttpAdapter.initialize
