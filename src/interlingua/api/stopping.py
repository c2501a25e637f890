"""Ends a run early: because its caller gave up, or because its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from interlingua.api.abort import AbortSignal
from interlingua.api.options import TimeoutConfig
from interlingua.providers.flights import CancelledCallError, Flight
from interlingua.spec.errors import AbortError, RequestTimeoutError, SDKError
from interlingua.spec.response import Response

Value = TypeVar("Value")


class Stopper:
    """
    The clocks and the signal of one run.

    What is awaited through `wait` ends when it is stopped; `on_stop` is called for what is not.
    """

    def __init__(self, signal: AbortSignal | None, timeouts: TimeoutConfig) -> None:
        self._signal = signal
        self._timeouts = timeouts
        self._loop = asyncio.get_running_loop()
        self._flight = Flight()
        self._timers: list[asyncio.TimerHandle] = []
        self._step: asyncio.TimerHandle | None = None
        self._remove: Callable[[], None] | None = None
        self._why: str | None = None
        self._expired = False
        self.on_stop: Callable[[], object] | None = None

    def __enter__(self) -> Self:
        if self._signal is not None:
            self._signal.raise_if_aborted()
            self._remove = self._signal.add_callback(self._aborted)
        total = self._timeouts.total
        if total is not None:
            why = f"it took longer than {total:g} s in all"
            self._timers.append(self._loop.call_later(total, self._expire, why))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end_step()
        for timer in self._timers:
            timer.cancel()
        if self._remove is not None:
            self._remove()

    @property
    def is_stopped(self) -> bool:
        """Whether it was."""
        return self._why is not None

    def start_step(self) -> None:
        """A call of the model begins, and its clock."""
        seconds = self._timeouts.per_step
        if seconds is not None:
            why = f"a call of the model took longer than {seconds:g} s"
            self._step = self._loop.call_later(seconds, self._expire, why)

    def end_step(self) -> None:
        """It is over."""
        if self._step is not None:
            self._step.cancel()
            self._step = None

    async def wait(self, awaited: Awaitable[Value]) -> Value:
        """What is awaited; the error of `error` if it is stopped meanwhile."""
        try:
            return await self._flight.wait(awaited)
        except CancelledCallError:
            raise self.error(None) from None

    def error(self, partial: Response | None) -> SDKError:
        """What to raise for it."""
        why = self._why or "it was stopped"
        if self._expired:
            return RequestTimeoutError(why, phase="request", retryable=False, partial=partial)
        return AbortError(why, partial=partial)

    def _aborted(self) -> None:
        """Called from any thread."""
        why = (self._signal.reason if self._signal is not None else None) or "the caller gave up"
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop, why)

    def _expire(self, why: str) -> None:
        if self._why is None:
            self._expired = True
        self._stop(why)

    def _stop(self, why: str) -> None:
        if self._why is None:
            self._why = why
            self._flight.cancel()
            if self.on_stop is not None:
                self.on_stop()
