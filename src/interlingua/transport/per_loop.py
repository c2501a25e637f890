"""
One value per event loop, such as a connection pool.

A connection belongs to the event loop in which it was opened. A value is closed on `close`, when
its loop shuts down its async generators (as `asyncio.run` does), or when its `PerLoop` is garbage
collected. After a fork, the child does not touch the parent's values and opens its own.

`SocketProbe` looks below an event loop, at the socket of a connection.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import warnings
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
    Opens a value on its first use in an event loop.

    `close_value` runs in the loop of the value. `discard` releases a value whose loop no longer
    runs, so it must not use the loop.
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
        # Not a WeakKeyDictionary: a value refers to its loop, so the loop would never be collected.
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
            # The first step registers the generator with the loop. It does not wait for anything.
            with suppress(StopIteration):
                entry.keeper.__anext__().__await__().__next__()
        return entry.value

    async def close(self) -> None:
        """Close the value of this loop, and schedule the close of the others in their loops."""
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

    def drop(self, loop: asyncio.AbstractEventLoop, value: Value) -> None:
        """Return this value no more; its loop may have opened another one meanwhile."""
        entry = self._entries.get(loop)
        if entry is not None and entry.value is value:
            del self._entries[loop]

    def forget(self) -> None:
        """Drop the values without closing them: they belong to the parent process."""
        _inherited.append(dict(self._entries))
        self._entries.clear()


async def _keep(
    owner: weakref.ref[PerLoop[Value]],
    loop: asyncio.AbstractEventLoop,
    value: Value,
    close: Callable[[Value], Awaitable[None]],
) -> AsyncGenerator[None, None]:
    """
    A generator that closes the value when the generator is closed.

    The event loop closes its async generators at shutdown, and when they are garbage collected.
    """
    try:
        yield
    finally:
        holder = owner()
        if holder is not None:
            holder.drop(loop, value)
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
    # A running loop closes the generator itself.
    for loop in tuple(entries):
        if not loop.is_running():
            discard(entries.pop(loop).value)


def collect_unclosed() -> None:
    """
    Let the garbage collector close the connections of a loop that was closed before them.

    asyncio closes a connection only in its loop, and warns if the collector does it instead; here
    nothing else can. It takes longer than a call, but few programs close their loops by hand.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


class SocketProbe:
    """Looks at the socket of a connection."""

    __slots__ = ("_peer", "_poll")

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        self._peer = transport.get_extra_info("socket")
        self._poll = None
        if self._peer is not None and hasattr(select, "poll"):  # Windows has only `select`
            self._poll = select.poll()
            self._poll.register(self._peer, select.POLLIN)

    def has_input(self) -> bool:
        """Whether bytes, or the end of the connection, wait in the socket."""
        if self._peer is None:
            return False
        try:
            if self._poll is None:
                return bool(select.select([self._peer], [], [], 0)[0])
            return bool(self._poll.poll(0))
        except (OSError, ValueError):  # the socket is closed
            return True


_alive: weakref.WeakSet[PerLoop[Any]] = weakref.WeakSet()
_inherited: list[object] = []
"""Values of the parent process. They are kept alive: closing them would disturb the parent."""


def _after_fork() -> None:
    for holder in tuple(_alive):
        holder.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
