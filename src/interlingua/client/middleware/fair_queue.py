"""A fair queue: callers wait in the order in which they came, and only the first asks again."""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from interlingua.client.stores.contract import Refused
from interlingua.runtime.cancel import call_in_loop

Value = TypeVar("Value")

_JITTER = 0.02  # seconds; processes that share a store do not all ask at the same moment
_LONGEST = 1.0  # seconds until a shared store is asked again: other processes settle early
_POLL = 0.05  # seconds until a shared store is asked again about what has no time of its own


class Line:
    """The callers that wait for one key in one event loop."""

    __slots__ = ("_loop", "_tickets", "_wake")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tickets: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self._wake: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._tickets)

    async def wait(self, ask: Callable[[], Awaitable[Value | float]]) -> Value:
        """
        What `ask` returns when it is no longer a number of seconds to wait.

        A caller that is cancelled leaves the line, and the next one moves up.
        """
        ticket: asyncio.Future[None] = self._loop.create_future()
        self._tickets[ticket] = None
        try:
            if len(self._tickets) > 1:
                await ticket
            while True:
                outcome = await ask()
                if not isinstance(outcome, float):
                    return outcome
                await self._pause(outcome)
        finally:
            del self._tickets[ticket]
            first = next(iter(self._tickets), None)
            if first is not None and not first.done():
                first.set_result(None)

    def wake(self) -> None:
        """Let the first caller ask now: something was given back."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _pause(self, seconds: float) -> None:
        self._wake = wake = self._loop.create_future()
        timer = self._loop.call_later(seconds, _set, wake)
        try:
            await wake
        finally:
            timer.cancel()
            self._wake = None


class Lines:
    """The lines of all keys and event loops; a line exists only while somebody waits."""

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Line]] = (
            WeakKeyDictionary()
        )
        self.is_empty: bool = True
        """Nobody waits anywhere."""

    def find(self, key: str) -> Line | None:
        """The line of a key in this event loop, if somebody waits."""
        if self.is_empty:
            return None
        return self._loops.get(asyncio.get_running_loop(), {}).get(key)

    async def wait(self, key: str, ask: Callable[[], Awaitable[Value | float]]) -> Value:
        """Join the line of a key; see `Line.wait`."""
        loop = asyncio.get_running_loop()
        lines = self._loops.setdefault(loop, {})
        line = lines.get(key)
        if line is None:
            line = lines[key] = Line(loop)
        self.is_empty = False
        try:
            return await line.wait(ask)
        finally:
            if not line:
                lines.pop(key, None)
                self.is_empty = not any(self._loops.values())

    def wake(self, key: str) -> None:
        """Let the first caller of a key ask now, in every event loop."""
        if self.is_empty:
            return
        running = asyncio.get_running_loop()
        for loop, lines in tuple(self._loops.items()):
            line = lines.get(key)
            if line is not None and loop is running:
                line.wake()
            elif line is not None:
                call_in_loop(loop, line.wake)


def waiting_time(refused: Refused, *, is_local: bool, is_held: bool) -> float:
    """
    The seconds until a store is asked again.

    What others give back early is not announced to this process, so the store is asked more often
    than it says; a shared one not by all processes at the same moment.
    """
    longest = _POLL if is_held else _LONGEST
    wait = longest if refused.retry_after is None else min(refused.retry_after, longest)
    return wait if is_local else wait + random.random() * _JITTER  # noqa: S311 -- no secret


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
