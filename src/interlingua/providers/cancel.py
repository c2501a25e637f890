"""
Ending work early: the signal of a caller, and the one scope that each run or call has.

`AbortController` and `AbortSignal` are for callers. A `CancelScope` is what the library waits
through; `Scopes` finds it by the request id.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias, TypeVar

from interlingua.spec.contracts import HttpReply
from interlingua.spec.errors import AbortError, RequestTimeoutError, SDKError
from interlingua.spec.response import Response

Value = TypeVar("Value")
Cause: TypeAlias = Literal["cancel", "abort", "timeout"]
"""Who ended a scope: `cancel(id)` or `close()`, the caller's signal, or a clock."""

CANCELLED = "the call was cancelled"
_RESOLUTION = 0.001  # seconds; a timer may fire a little before its time


class AbortSignal:
    """Tells whether the work was given up. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self._reason: str | None = None

    @property
    def aborted(self) -> bool:
        """Whether it was."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why, in the words of whoever gave up."""
        return self._reason

    def raise_if_aborted(self) -> None:
        """`AbortError` if it was."""
        if self._reason is not None:
            raise AbortError(self._reason)

    def add_callback(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call `callback` when it is, at once if it was; the function returned takes it back."""
        with self._lock:
            is_pending = self._reason is None
            if is_pending:
                self._callbacks.append(callback)
        if not is_pending:
            callback()

        def remove() -> None:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

        return remove

    def _fire(self, reason: str) -> None:
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            callbacks, self._callbacks = self._callbacks, []
        errors: list[BaseException] = []
        for callback in callbacks:
            try:
                callback()
            except BaseException as error:  # noqa: BLE001 -- the others have to be called first
                errors.append(error)
        if len(errors) > 1:
            raise BaseExceptionGroup("callbacks of an abort signal failed", errors)
        if errors:
            raise errors[0]


class AbortController:
    """
    Holds the other end of a signal.

        controller = AbortController()
        task = generate(..., abort_signal=controller.signal)
        controller.abort()  # from any thread; a second call does nothing
    """

    def __init__(self) -> None:
        self.signal: AbortSignal = AbortSignal()

    def abort(self, reason: str = "the caller gave up") -> None:
        """Give up: every callback is called, and then what one of them raised is raised here."""
        self.signal._fire(reason)  # noqa: SLF001 -- a controller and its signal are one object


class CancelScope:
    """
    The life of one run or call, which may be ended from any thread.

    Whatever the work waits for, it waits for through `wait` (or, in `providers/fold.py`, in the
    same way in place). Ending the scope wakes the task there, and only there: a task that is
    busy with something else is never touched, and stops at its next wait. Only the connections
    that it holds are closed at once.

    `pauses` says whether `pause` stops the clocks while the reader of a stream has an event.
    """

    __slots__ = (
        "_controller",
        "_loop",
        "_reason",
        "_step",
        "cause",
        "clocks",
        "is_cancelled",
        "pauses",
        "replies",
        "task",
        "unlink",
    )

    def __init__(self, *, pauses: bool = True) -> None:
        self._loop = asyncio.get_running_loop()
        self.cause: Cause | None = None
        self._reason = ""
        self._controller: AbortController | None = None
        self._step: _Clock | None = None
        self.unlink: Callable[[], None] | None = None
        self.pauses: bool = pauses
        self.is_cancelled: bool = False
        self.task: asyncio.Task[object] | None = None
        """The task that waits in this scope now."""
        self.clocks: tuple[_Clock, ...] = ()
        self.replies: tuple[HttpReply, ...] = ()
        """Replies whose connections are held; several while requests are hedged."""

    # Waiting.

    async def wait(self, awaitable: Awaitable[Value]) -> Value:
        """The result; the error of `error()` if the scope is ended before it has come."""
        if self.is_cancelled:
            if asyncio.iscoroutine(awaitable):
                awaitable.close()  # else Python complains that it was never awaited
            raise self.error()
        task = self.task = asyncio.current_task()
        before = 0 if task is None else task.cancelling()  # some may have been caught and left
        try:
            return await awaitable
        except asyncio.CancelledError:
            if self.woke(task, before):
                raise self.error() from None
            raise
        finally:
            self.task = None

    def woke(self, task: asyncio.Task[object] | None, before: int) -> bool:
        """
        Whether a `CancelledError` is this scope's own; it is then taken back.

        Another cancellation of the same task at the same time is the caller's, and goes first.
        """
        return self.is_cancelled and task is not None and task.uncancel() <= before

    # Ending.

    def cancel(self, reason: str = CANCELLED) -> bool:
        """End it; False if it was ended before."""
        return self._end("cancel", reason)

    def link(self, signal: AbortSignal) -> None:
        """End with this signal. `AbortError` if it has fired already."""
        signal.raise_if_aborted()
        self.unlink = signal.add_callback(lambda: self._end("abort", signal.reason or ""))

    @property
    def is_quiet(self) -> bool:
        """Whether a stream just ends after its last event, without raising an error."""
        return self.cause == "cancel"

    @property
    def signal(self) -> AbortSignal:
        """A signal that fires when the scope is ended, for the tools of a run."""
        if self._controller is None:
            self._controller = AbortController()
            if self.is_cancelled:
                self._controller.abort(self._reason)
        return self._controller.signal

    def error(self, partial: Response | None = None) -> SDKError:
        """What to raise for its end."""
        if self.cause == "timeout":
            return RequestTimeoutError(
                self._reason, phase="request", retryable=False, partial=partial
            )
        return AbortError(self._reason or CANCELLED, partial=partial)

    def close(self) -> None:
        """It came to its end: stop the clocks, and listen to the caller's signal no more."""
        for clock in self.clocks:
            clock.stop()
        if self.unlink is not None:
            self.unlink()

    def _end(self, cause: Cause, reason: str) -> bool:
        with _ending:
            if self.is_cancelled:
                return False
            self.cause, self._reason = cause, reason
            self.is_cancelled = True
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here and self.task is not asyncio.current_task():
            self._wake()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)
        if self._controller is not None:
            self._controller.abort(reason)
        return True

    # A task that ends its own scope is woken later: it may leave the wait before it waits for
    # anything else, and a cancellation would then reach whoever called it.
    def _wake(self) -> None:
        if self.task is not None:
            self.task.cancel()
            return
        for reply in self.replies:  # the task is busy: the sockets are closed all the same
            reply.abort()

    # Deadlines.

    def limit_total(self, seconds: float) -> None:
        """End it after so many seconds."""
        self._start(seconds, f"timed out after {seconds:g} s (total timeout)")

    def limit_step(self, seconds: float) -> None:
        """End it after so many seconds, unless `end_step` comes first."""
        self._step = self._start(seconds, f"timed out after {seconds:g} s (timeout of one step)")

    def end_step(self) -> None:
        """The step is over; a second call does nothing."""
        if self._step is not None:
            self._step.stop()
            self.clocks = tuple(clock for clock in self.clocks if clock is not self._step)
            self._step = None

    def pause(self) -> None:
        """Stop the clocks while a reader has an event."""
        if self.pauses:
            for clock in self.clocks:
                clock.pause()

    def resume(self) -> None:
        """The reader asks for more."""
        if self.pauses:
            for clock in self.clocks:
                clock.resume()

    def _start(self, seconds: float, reason: str) -> _Clock:
        clock = _Clock(self._loop, seconds, lambda: self._end("timeout", reason))
        self.clocks = (*self.clocks, clock)
        return clock


_ending = threading.Lock()  # of all scopes: it is held for an instant, and only when one ends


class Scopes:
    """The scopes under way, by request id. One id may have several: hedging runs two."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[str, tuple[CancelScope, ...]] = {}

    def add(self, request_id: str, scope: CancelScope) -> None:
        """It begins."""
        self._by_id[request_id] = (*self._by_id.get(request_id, ()), scope)

    def remove(self, request_id: str, scope: CancelScope) -> None:
        """It is over."""
        others = tuple([each for each in self._by_id.get(request_id, ()) if each is not scope])
        if others:
            self._by_id[request_id] = others
        else:
            self._by_id.pop(request_id, None)

    async def wait(
        self, request_id: str, awaitable: Awaitable[Value], scope: CancelScope | None = None
    ) -> Value:
        """The result of a call, which `cancel` may end; in a scope of its own unless given."""
        scope = scope or CancelScope()
        self.add(request_id, scope)
        try:
            return await scope.wait(awaitable)
        except AbortError as error:
            error.add_facts(request_id=request_id)
            raise
        finally:
            self.remove(request_id, scope)

    def cancel(self, request_id: str) -> bool:
        """End all scopes of this id; False if there are none, or they were ended before."""
        ended = [scope.cancel() for scope in self._by_id.get(request_id, ())]
        return any(ended)

    def cancel_all(self) -> None:
        """End everything."""
        for scopes in tuple(self._by_id.values()):
            for scope in scopes:
                scope.cancel()

    def __len__(self) -> int:
        return len(self._by_id)


class _Clock:
    """Calls a function after some seconds, not counting those in which it was paused."""

    __slots__ = ("_end", "_loop", "_on_end", "_paused_at", "_timer")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, on_end: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._on_end = on_end
        self._end = loop.time() + seconds
        self._paused_at: float | None = None
        self._timer: asyncio.TimerHandle | None = loop.call_at(self._end, self._check)

    def pause(self) -> None:
        self._paused_at = self._loop.time()

    def resume(self) -> None:
        if self._paused_at is None:
            return
        self._end += self._loop.time() - self._paused_at
        self._paused_at = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._end, self._check)

    def stop(self) -> None:
        self._paused_at = None
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        # the timer is set once and not at every event: most runs end long before it
        self._timer = None
        if self._paused_at is not None:
            return
        if self._end - self._loop.time() > _RESOLUTION:
            self._timer = self._loop.call_at(self._end, self._check)
        else:
            self._on_end()
