"""
One value for each event loop.

Connections belong to the loop they were opened in. A value opened here is closed when its loop
shuts down its generators (as `asyncio.run` does), when its holder is collected, or on `close`;
after a fork the child leaves the parent's values alone and opens its own.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

Value = TypeVar("Value")


class _Entry(NamedTuple, Generic[Value]):
    value: Value
    keeper: AsyncGenerator[None, None]


class PerLoop(Generic[Value]):
    """
    Opens a value on first use in a loop.

    `close_value` runs in the loop; `discard` must do without, since the loop no longer runs.
    """

    def __init__(
        self,
        open_value: Callable[[], Value],
        close_value: Callable[[Value], Awaitable[None]],
        discard: Callable[[Value], None],
    ) -> None:
        self._open = open_value
        self._close = close_value
        self._discard = discard
        # The values hold their loops, so weak keys would never go: entries are removed by hand.
        self._entries: dict[asyncio.AbstractEventLoop, _Entry[Value]] = {}
        weakref.finalize(self, _discard_stopped, self._entries, discard)
        _alive.add(self)

    def get(self, loop: asyncio.AbstractEventLoop) -> Value:
        """The value of the running loop."""
        entry = self._entries.get(loop)
        if entry is None:
            _discard_closed(self._entries, self._discard)
            value = self._open()
            entry = _Entry(value, _keep(weakref.ref(self), loop, value, self._close))
            self._entries[loop] = entry
            # Its first step makes the loop know it; it has nothing to wait for.
            with suppress(StopIteration):
                entry.keeper.__anext__().__await__().__next__()
        return entry.value

    async def close(self) -> None:
        """Close the value of this loop, and ask the other loops to close theirs."""
        here = asyncio.get_running_loop()
        for loop in tuple(self._entries):
            entry = self._entries.pop(loop, None)
            if entry is None:
                continue
            if loop is here:
                await entry.keeper.aclose()
            elif loop.is_running():
                asyncio.run_coroutine_threadsafe(entry.keeper.aclose(), loop)
            else:
                self._discard(entry.value)

    def forget(self) -> None:
        """Let go of everything without touching it: it is another process's."""
        _inherited.append(dict(self._entries))
        self._entries.clear()


async def _keep(
    owner: weakref.ref[PerLoop[Value]],
    loop: asyncio.AbstractEventLoop,
    value: Value,
    close: Callable[[Value], Awaitable[None]],
) -> AsyncGenerator[None, None]:
    """A generator that the loop closes before it ends, or when nobody holds it any more."""
    try:
        yield
    finally:
        holder = owner()
        if holder is not None:
            holder._entries.pop(loop, None)  # noqa: SLF001 -- the two are one
        await close(value)


def _discard_closed(
    entries: dict[asyncio.AbstractEventLoop, _Entry[Value]], discard: Callable[[Value], None]
) -> None:
    for loop in tuple(entries):
        if loop.is_closed():
            entry = entries.pop(loop, None)
            if entry is not None:
                discard(entry.value)


def _discard_stopped(
    entries: dict[asyncio.AbstractEventLoop, _Entry[Value]], discard: Callable[[Value], None]
) -> None:
    # A loop that runs closes its keeper itself.
    for loop in tuple(entries):
        if not loop.is_running():
            discard(entries.pop(loop).value)


_alive: weakref.WeakSet[PerLoop[Any]] = weakref.WeakSet()
_inherited: list[object] = []
"""What a parent process had open: kept, since closing it here would disturb the parent."""


def _after_fork() -> None:
    for holder in tuple(_alive):
        holder.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
