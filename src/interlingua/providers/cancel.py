"""Calls under way, so that each can be cancelled by its request id."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TypeVar

from interlingua.spec.contracts import HttpReply

Value = TypeVar("Value")


class CancelledCallError(Exception):
    """Raised inside a call that `cancel` stopped; it never leaves the adapter."""


class Flight:
    """
    One call under way.

    Everything that waits for the network waits through `wait`. `cancel` wakes it there, and
    only there: a task that is busy with something else is never touched, and stops at its
    next wait. Leaving the transport's block is what closes the socket.
    """

    __slots__ = ("_loop", "_task", "is_cancelled", "reply")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self.is_cancelled: bool = False
        self.reply: HttpReply | None = None
        """The reply whose connection is held, once it has begun."""

    async def wait(self, awaited: Awaitable[Value]) -> Value:
        """What is awaited; `CancelledCallError` if the call is cancelled meanwhile."""
        self._check(awaited)
        task = self._task = asyncio.current_task()
        before = 0 if task is None else task.cancelling()  # some may have been caught and left
        try:
            return await awaited
        except asyncio.CancelledError:
            # another cancellation at the same time is the caller's own, and goes first
            if self.is_cancelled and task is not None and task.uncancel() <= before:
                raise CancelledCallError from None
            raise
        finally:
            self._task = None

    async def next_chunk(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """The next piece of a body; None at its end."""
        try:
            return await self.wait(anext(chunks))
        except StopAsyncIteration:
            return None

    def cancel(self) -> bool:
        """Stop the call, from any thread; False if that was asked before."""
        if self.is_cancelled:
            return False
        self.is_cancelled = True
        try:
            same = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            same = False
        if same:
            self._wake()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)
        return True

    def _check(self, awaited: Awaitable[object]) -> None:
        if self.is_cancelled:
            if asyncio.iscoroutine(awaited):
                awaited.close()  # else Python complains that it was never awaited
            raise CancelledCallError

    def _wake(self) -> None:
        if self._task is not None:
            self._task.cancel()
        elif self.reply is not None:  # whoever reads it is busy: the socket closes all the same
            self.reply.abort()


class Watched:
    """A transport's block whose entry can be cancelled."""

    __slots__ = ("_flight", "_held")

    def __init__(self, held: AbstractAsyncContextManager[HttpReply], flight: Flight) -> None:
        self._held = held
        self._flight = flight

    async def __aenter__(self) -> HttpReply:
        reply = await self._flight.wait(self._held.__aenter__())
        self._flight.reply = reply
        return reply

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._flight.reply = None
        return await self._held.__aexit__(kind, error, trace)
