"""
Cancellation: the signal of a caller, and the scope of each run or call.

`AbortController` and `AbortSignal` are for callers. The library waits through a `CancelScope`;
`Scopes` finds it by the request id. `finish` and `outlast` are for work that no cancellation ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Literal, TypeAlias, TypeVar

from interlingua.spec.contracts import HttpReply
from interlingua.spec.errors import AbortError, ConfigurationError, RequestTimeoutError, SDKError
from interlingua.spec.response import Response

Value = TypeVar("Value")
Cause: TypeAlias = Literal["cancel", "close", "abort", "timeout"]
"""What ended a scope: `cancel(id)`, `close()`, the caller's signal, or a timeout."""

CANCELLED = "The call was cancelled."
CLOSED = "The call was cancelled because its client was closed."
ABORTED = "The caller aborted."
_RESOLUTION = 0.001  # seconds; a timer may fire slightly early
_running: set[asyncio.Task[Any]] = set()  # the event loop keeps only weak references


class AbortSignal:
    """Says whether the caller has aborted. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self._reason: str | None = None

    @property
    def aborted(self) -> bool:
        """Whether `abort` was called."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """The reason that was passed to `abort`; None before."""
        return self._reason

    def raise_if_aborted(self) -> None:
        """Raise `AbortError` if `abort` was called."""
        if self._reason is not None:
            raise AbortError(self._reason)

    def add_callback(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call `callback` on abort, or now if aborted; returns a function that removes it."""
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
            except BaseException as error:  # noqa: BLE001 -- the other callbacks are called first
                errors.append(error)
        if len(errors) > 1:
            raise BaseExceptionGroup("Callbacks of an abort signal failed.", errors)
        if errors:
            raise errors[0]


class AbortController:
    """
    Creates a signal and fires it.

        controller = AbortController()
        task = asyncio.create_task(generate(model, prompt, abort_signal=controller.signal))
        controller.abort()  # from any thread; the task raises AbortError
    """

    def __init__(self) -> None:
        self.signal: AbortSignal = AbortSignal()

    def abort(self, reason: str = ABORTED) -> None:
        """Fire the signal and call all callbacks; what a callback raises is raised at the end."""
        self.signal._fire(reason)  # noqa: SLF001 -- they belong together


def running_loop() -> asyncio.AbstractEventLoop:
    """The event loop of asyncio; `ConfigurationError` if there is none, as under trio."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigurationError(
            "There is no running asyncio event loop. Call this in a coroutine under asyncio.run. "
            "Programs with trio or another loop use the functions of interlingua.sync in a thread."
        ) from None


def call_in_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    """Call a function in an event loop, from any thread; nothing happens if the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function)


class CancelScope:
    """
    The lifetime of one run or call; any thread may end it.

    All waiting goes through `wait` (`runtime/fold.py` does the same inline). Ending the scope
    cancels the task only while it waits there. A task that does something else is not touched: it
    stops at its next wait, but the connections of the scope are closed at once.

    `pauses` says whether `pause` stops the clocks while the reader of a stream handles an event.
    """

    __slots__ = (
        "_controller",
        "_loop",
        "_reason",
        "_step",
        "cause",
        "clocks",
        "is_cancelled",
        "is_finished",
        "pauses",
        "replies",
        "task",
        "unlink",
    )

    def __init__(self, *, pauses: bool = True) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = running_loop()  # raises
        self.cause: Cause | None = None
        self._reason = ""
        self._controller: AbortController | None = None
        self._step: _Clock | None = None
        self.unlink: Callable[[], None] | None = None
        self.pauses: bool = pauses
        self.is_cancelled: bool = False
        self.is_finished: bool = False
        self.task: asyncio.Task[object] | None = None
        """The task that is waiting in this scope, if any."""
        self.clocks: tuple[_Clock, ...] = ()
        self.replies: tuple[HttpReply, ...] = ()
        """The open replies; several while requests are hedged."""

    # Waiting.

    async def wait(self, awaitable: Awaitable[Value]) -> Value:
        """The result of the awaitable; raises `error()` if the scope is ended first."""
        if self.is_cancelled:
            if asyncio.iscoroutine(awaitable):
                awaitable.close()  # avoids the warning that it was never awaited
            raise self.error()
        outer, task = self.task, asyncio.current_task()
        self.task = task
        before = 0 if task is None else task.cancelling()  # may be swallowed earlier ones
        try:
            value = await awaitable
        except asyncio.CancelledError:
            if self.woke(task, before):
                raise self.error() from None
            raise
        finally:
            self.task = outer if outer is task else None  # a task may wait in a wait
        if self.cause is not None and task is not None and task.cancelling() > before:
            task.uncancel()  # a tool, adapter or middleware has swallowed the cancellation
        return value

    def woke(self, task: asyncio.Task[object] | None, before: int) -> bool:
        """
        Whether this scope caused a `CancelledError`; if so, the task's count is reduced again.

        If the caller cancelled the task at the same time, that takes precedence.
        """
        return self.is_cancelled and task is not None and task.uncancel() <= before

    # Ending.

    def cancel(self, reason: str = CANCELLED, cause: Cause = "cancel") -> bool:
        """End the scope; False if it was already ended."""
        return self._end(cause, reason)

    def finish(self) -> bool:
        """Mark the work as done: it cannot be cancelled any more. False if it was before."""
        with _ending:
            self.is_finished = not self.is_cancelled
        return self.is_finished or self.cause == "timeout"

    def link(self, signal: AbortSignal) -> None:
        """End the scope when this signal fires. `AbortError` if it has fired already."""
        signal.raise_if_aborted()
        self.unlink = signal.add_callback(lambda: self._end("abort", signal.reason or ""))

    @property
    def is_quiet(self) -> bool:
        """Whether a stream ends without an error, because it was cancelled by its id."""
        return self.cause == "cancel"

    @property
    def signal(self) -> AbortSignal:
        """A signal that fires when the scope is ended; for the tools of a run."""
        if self._controller is None:
            self._controller = AbortController()
            if self.is_cancelled:
                self._controller.abort(self._reason)
        return self._controller.signal

    def error(self, partial: Response | None = None) -> SDKError:
        """The error to raise because the scope was ended."""
        if self.cause == "timeout":
            return RequestTimeoutError(
                self._reason, phase="request", retryable=False, partial=partial
            )
        return AbortError(self._reason or CANCELLED, partial=partial)

    def close(self) -> None:
        """The work is done: stop the clocks and remove the callback from the caller's signal."""
        for clock in self.clocks:
            clock.stop()
        if self.unlink is not None:
            self.unlink()

    def _end(self, cause: Cause, reason: str) -> bool:
        with _ending:
            if self.is_cancelled or self.is_finished:
                return False
            self.cause, self._reason = cause, reason
            self.is_cancelled = True
        try:
            in_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            in_loop = False
        if in_loop and self.task is not asyncio.current_task():
            self._wake()
        else:
            call_in_loop(self._loop, self._wake)
        if self._controller is not None:
            self._controller.abort(reason)
        return True

    # Called later if the task ends its own scope: it may leave `wait` without waiting again, and
    # a cancellation would then reach its caller.
    def _wake(self) -> None:
        if self.task is not None:
            self.task.cancel()
            return
        for reply in self.replies:  # the task is not waiting: close its connections at least
            reply.abort()

    # Deadlines.

    def limit_total(self, seconds: float) -> None:
        """End the scope after this many seconds."""
        self._start(seconds, f"Timed out after {seconds:g} s (total timeout).")

    def limit_step(self, seconds: float) -> None:
        """End the scope after this many seconds, unless `end_step` is called first."""
        self._step = self._start(seconds, f"Timed out after {seconds:g} s (step timeout).")

    def end_step(self) -> None:
        """Stop the clock of the step; idempotent."""
        if self._step is not None:
            self._step.stop()
            self.clocks = tuple(clock for clock in self.clocks if clock is not self._step)
            self._step = None

    def pause(self) -> None:
        """Stop the clocks while the reader handles an event."""
        if self.pauses:
            for clock in self.clocks:
                clock.pause()

    def resume(self) -> None:
        """Start the clocks again."""
        if self.pauses:
            for clock in self.clocks:
                clock.resume()

    def _start(self, seconds: float, reason: str) -> _Clock:
        clock = _Clock(self._loop, seconds, lambda: self._end("timeout", reason))
        self.clocks = (*self.clocks, clock)
        return clock


_ending = threading.Lock()  # shared by all scopes; held only for a moment when one ends


_Awaited: TypeAlias = "tuple[dict[int, CancelScope], Future[None]]"
"""The scopes that have not ended yet, by identity, and what is done when they have."""


class Scopes:
    """The active scopes by request id. One id may have several: hedging runs two."""

    __slots__ = ("_awaited", "_by_id")

    def __init__(self) -> None:
        self._by_id: dict[str, tuple[CancelScope, ...]] = {}
        self._awaited: tuple[_Awaited, ...] = ()  # by `all_ended`; rarely any

    def add(self, request_id: str, scope: CancelScope) -> None:
        """Register a scope."""
        self._by_id[request_id] = (*self._by_id.get(request_id, ()), scope)

    def remove(self, request_id: str, scope: CancelScope) -> None:
        """Remove a scope."""
        scopes = self._by_id.get(request_id, ())
        others = () if scopes == (scope,) else tuple(each for each in scopes if each is not scope)
        if others:
            self._by_id[request_id] = others
        else:
            self._by_id.pop(request_id, None)
        if self._awaited:
            self._note_end(scope)

    def all_ended(self) -> Future[None]:
        """A future that is done when every scope that is active now has ended, in any thread."""
        ended: Future[None] = Future()
        ended.set_running_or_notify_cancel()  # a waiter that is cancelled does not cancel it
        active = {id(scope): scope for scopes in tuple(self._by_id.values()) for scope in scopes}
        if active:
            self._awaited = (*self._awaited, (active, ended))
        else:
            ended.set_result(None)
        return ended

    def _note_end(self, scope: CancelScope) -> None:
        for active, ended in self._awaited:
            if active.pop(id(scope), None) is not None and not active:
                self._awaited = tuple(each for each in self._awaited if each[1] is not ended)
                ended.set_result(None)

    async def wait(
        self,
        request_id: str,
        awaitable: Awaitable[Value],
        scope: CancelScope | None = None,
        goes_on: Callable[[Value], bool] | None = None,
    ) -> Value:
        """
        Wait for a call that `cancel` can end; closes its scope, which is new unless given.

        If `goes_on` says so of the value, the scope stays open, and the caller removes it.
        """
        scope = scope or CancelScope()
        self.add(request_id, scope)
        is_over = True
        try:
            value = await scope.wait(awaitable)
            is_over = goes_on is None or not goes_on(value)
            if is_over and not scope.finish():
                raise scope.error()
        except AbortError as error:
            error.add_facts(request_id=request_id)
            raise
        else:
            return value
        finally:
            if is_over:
                if scope.clocks or scope.unlink is not None:
                    scope.close()
                self.remove(request_id, scope)

    def cancel(self, request_id: str) -> bool:
        """End all scopes of this id; False if there are none or all were already ended."""
        ended = [scope.cancel() for scope in self._by_id.get(request_id, ())]
        return any(ended)

    def cancel_all(self) -> None:
        """End all scopes."""
        for scopes in tuple(self._by_id.values()):
            for scope in scopes:
                scope.cancel(CLOSED, cause="close")

    def __len__(self) -> int:
        return len(self._by_id)


class _Clock:
    """Calls a function after some seconds; the time while it is paused does not count."""

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
        # The timer is set once, not at every pause: most runs end long before it fires.
        self._timer = None
        if self._paused_at is not None:
            return
        if self._end - self._loop.time() > _RESOLUTION:
            self._timer = self._loop.call_at(self._end, self._check)
        else:
            self._on_end()


def is_cancelled(error: BaseException | None) -> bool:
    """Whether an error says that the caller, or a hedge, has ended the work, or has left it."""
    return isinstance(error, (asyncio.CancelledError, GeneratorExit, AbortError))


def start_task(work: Coroutine[Any, Any, Value]) -> asyncio.Task[Value]:
    """Start a task that is not garbage collected before its end."""
    task = asyncio.get_running_loop().create_task(work)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task


async def outlast(*tasks: asyncio.Task[Any] | None) -> None:
    """
    Wait for tasks to their ends, and raise their errors.

    A cancellation of the waiting task is raised after their ends: the event loop may be closed as
    soon as that task has ended. A second cancellation is raised at once.
    """
    awaited = {task for task in tasks if task is not None}
    if not awaited:
        return
    try:
        await asyncio.wait(awaited)
    except asyncio.CancelledError:
        if not all(task.done() for task in awaited):
            await asyncio.wait(awaited)
        raise
    for task in awaited:
        task.result()


async def finish(work: Coroutine[Any, Any, Value]) -> Value:
    """Wait for work that goes on to its end even if the waiting task is cancelled."""
    return await asyncio.shield(start_task(work))
