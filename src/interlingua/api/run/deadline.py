"""Ends a run early: because its caller gave up, or because its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

from interlingua.api.run.abort import AbortController, AbortSignal
from interlingua.api.run.options import TimeoutConfig
from interlingua.providers.cancel import CancelledCallError, Flight
from interlingua.spec.errors import AbortError, RequestTimeoutError, SDKError
from interlingua.spec.response import Response

Value = TypeVar("Value")


class _Clock:
    """Rings when its time is over; it stands still while it is held."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, ring: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._ring = ring
        self._end = loop.time() + seconds
        self._held_at: float | None = None
        self._timer: asyncio.TimerHandle | None = loop.call_at(self._end, self._look)

    def hold(self) -> None:
        self._held_at = self._loop.time()

    def release(self) -> None:
        if self._held_at is None:
            return
        self._end += self._loop.time() - self._held_at
        self._held_at = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._end, self._look)

    def stop(self) -> None:
        self._held_at = None
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        # it is set once, not at every event: most runs are over long before it
        self._timer = None
        if self._held_at is not None:
            return
        timer_is_early = self._end - self._loop.time()
        if timer_is_early > _RESOLUTION:
            self._timer = self._loop.call_at(self._end, self._look)
        else:
            self._ring()


_RESOLUTION = 0.001  # seconds; a timer may come a little before its time


class Stopper:
    """
    The clocks and the signal of one run.

    What is awaited through `wait` ends when it is stopped; `on_stop` is called for what is not.
    `signal` is the run's own, for its tools: it fires with the caller's and with the clocks.
    """

    def __init__(self, signal: AbortSignal | None, timeouts: TimeoutConfig) -> None:
        self._given = signal
        self._timeouts = timeouts
        self._loop = asyncio.get_running_loop()
        self._flight = Flight()
        self._controller = AbortController()
        self._clocks: tuple[_Clock, ...] = ()
        self._step: _Clock | None = None
        self._remove: Callable[[], None] | None = None
        self._why: str | None = None
        self._expired = False
        self.on_stop: Callable[[], object] | None = None

    def __enter__(self) -> Self:
        if self._given is not None:
            self._given.raise_if_aborted()
            self._remove = self._given.add_callback(self._aborted)
        total = self._timeouts.total
        if total is not None:
            self._start(total, f"it took longer than {total:g} s in all")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for clock in self._clocks:
            clock.stop()
        if self._remove is not None:
            self._remove()

    @property
    def signal(self) -> AbortSignal:
        """Tells the run's tools that it is stopped."""
        return self._controller.signal

    @property
    def is_stopped(self) -> bool:
        """Whether it was; true as soon as the caller's signal says so."""
        return self._why is not None or self.is_aborted

    @property
    def is_aborted(self) -> bool:
        """Whether the caller gave up; what has come is then not wanted any more."""
        return self._given is not None and self._given.aborted

    def start_step(self) -> None:
        """A call of the model begins, and its clock."""
        seconds = self._timeouts.per_step
        if seconds is not None:
            why = f"a call of the model took longer than {seconds:g} s"
            self._step = self._start(seconds, why)

    def end_step(self) -> None:
        """It is over; asked twice it does nothing more."""
        if self._step is not None:
            self._step.stop()
            self._clocks = tuple(clock for clock in self._clocks if clock is not self._step)
            self._step = None

    def hold(self) -> None:
        """Somebody reads what has come: the clocks stand still meanwhile."""
        for clock in self._clocks:
            clock.hold()

    def release(self) -> bool:
        """And asks for more; False if it is stopped, so that nothing more is wanted."""
        for clock in self._clocks:
            clock.release()
        return not self.is_stopped

    async def wait(self, awaited: Awaitable[Value]) -> Value:
        """What is awaited; the error of `error` if it is stopped meanwhile."""
        if self.is_stopped:
            self._flight.cancel()
        try:
            return await self._flight.wait(awaited)
        except CancelledCallError:
            raise self.error(None) from None

    def error(self, partial: Response | None) -> SDKError:
        """What to raise for it."""
        if self._expired:
            why = self._why or ""
            return RequestTimeoutError(why, phase="request", retryable=False, partial=partial)
        reason = None if self._given is None else self._given.reason
        return AbortError(self._why or reason or "it was stopped", partial=partial)

    def _start(self, seconds: float, why: str) -> _Clock:
        clock = _Clock(self._loop, seconds, lambda: self._expire(why))
        self._clocks = (*self._clocks, clock)
        return clock

    def _aborted(self) -> None:
        """Called from any thread."""
        why = (self._given.reason if self._given is not None else None) or "the caller gave up"
        with suppress(RuntimeError):  # a loop that is closed has nothing left to stop
            self._loop.call_soon_threadsafe(self._stop, why)
        self._controller.abort(why)

    def _expire(self, why: str) -> None:
        if not self.is_stopped:
            self._expired = True
        self._stop(why)

    def _stop(self, why: str) -> None:
        if self._why is None:
            self._why = why
            self._flight.cancel()
            if self.on_stop is not None:
                self.on_stop()
            self._controller.abort(why)
