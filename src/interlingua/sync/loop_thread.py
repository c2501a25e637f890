"""
The event loop of all blocking calls: one per process, in a background thread.

The first call starts it, a forked child starts its own, and it ends with the interpreter. A call
blocks only its own thread, so it does not matter whether that thread has a running loop.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401 -- see the end of this file
import os
import threading
from _thread import LockType, allocate_lock
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from interlingua.spec.errors import AbortError, ConfigurationError

Value = TypeVar("Value")

_EXIT_SECONDS = 5.0  # how long to wait at exit for the loop to end
_STEP_SECONDS = 1.0  # how long a fork waits for a step of the loop to end
_POLL = 0.1 if os.name == "nt" else -1  # on Windows, Ctrl-C does not end an endless wait


class Background:
    """The loop and its thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ident: int | None = None
        self._is_over = False
        self._pause: _Pause | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; `ConfigurationError` in its own thread, where waiting deadlocks."""
        loop = self._loop
        if loop is None:
            loop = self._start()
        if self.is_loop_thread():
            raise ConfigurationError(
                "Deadlock: a blocking function was called from the event loop thread, for example "
                "in an async tool or a hook. Await the async function instead, or make the tool a "
                "plain function."
            )
        return loop

    @property
    def is_over(self) -> bool:
        """Whether the loop was stopped for good, at interpreter exit."""
        return self._is_over

    def is_loop_thread(self) -> bool:
        """Whether the current thread is the loop's own."""
        return self._ident == threading.get_ident()

    def is_running(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether this loop is the current one; not after a fork or at exit."""
        return self._loop is loop

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """
        The result of the coroutine, which runs in the loop.

        If the wait is interrupted, for example by Ctrl-C, the coroutine is cancelled.
        """
        try:
            loop = self.loop()
        except BaseException:
            work.close()  # avoids the warning that it was never awaited
            raise
        call = _Call(work)
        try:
            loop.call_soon_threadsafe(call.start, context=copy_context())
            wait(call.gate)
        except BaseException:
            with suppress(RuntimeError):  # the loop is closed, and the coroutine too
                loop.call_soon_threadsafe(call.cancel)
            raise
        return call.result()

    def stop(self) -> None:
        """Stop the loop and its thread; no call can begin afterwards."""
        with self._lock:
            self._is_over = True
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None or self.is_loop_thread():
            return
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        thread.join(_EXIT_SECONDS)

    def before_fork(self) -> None:
        """
        Make a fork wait until a starting loop has started, and is between two steps.

        A step may import a module, and a child that is forked meanwhile can never import it.
        """
        self._lock.acquire()
        if self._loop is not None and not self.is_loop_thread():
            self._pause = _Pause(self._loop)

    def after_fork(self) -> None:
        """Called in the parent."""
        if self._pause is not None:
            self._pause.end()
            self._pause = None
        self._lock.release()

    def forget(self) -> None:
        """Called in a forked child, which has no such thread; the loop is the parent's."""
        if self._loop is not None:
            _inherited.append(self._loop)
        self.__init__()  # type: ignore[misc] # also makes a new lock: the old one may be held

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is not None:
                return self._loop
            if self._is_over:
                raise ConfigurationError("The interpreter is exiting: no call can begin now.")
            # Imported here because that would block the loop, and a fork waits for this lock.
            import interlingua.transport.http1.exchange  # noqa: F401

            made: Future[asyncio.AbstractEventLoop] = Future()
            thread = threading.Thread(
                target=self._live, args=(made,), name="interlingua", daemon=True
            )
            try:
                thread.start()
                made.exception()  # waits
            finally:
                if not made.cancel():  # after Ctrl-C the loop may be there all the same
                    loop = made.result()
                    self._thread, self._ident, self._loop = thread, thread.ident, loop
            return loop

    def _live(self, made: Future[asyncio.AbstractEventLoop]) -> None:
        """Make the loop here, where Ctrl-C cannot leave half of it, and run it."""
        runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        try:
            loop = runner.get_loop()
        except BaseException as error:  # noqa: BLE001 -- raised in the waiting thread
            if made.set_running_or_notify_cancel():
                made.set_exception(error)
            return
        try:
            if not made.set_running_or_notify_cancel():
                return
            made.set_result(loop)
            while not self._is_over:
                # SystemExit of a tool ends its own caller only, not all other calls.
                with suppress(SystemExit, KeyboardInterrupt):
                    loop.run_forever()
        finally:
            self._close(runner)

    def _close(self, runner: asyncio.Runner) -> None:
        """
        Close what is still open, and the loop.

        The last thing that a runner does is to wait for the threads of the loop, in another thread.
        Python 3.12 refuses to start one at exit, when the threads have ended already.
        """
        try:
            runner.close()
        except RuntimeError:
            if not self._is_over:
                raise


class _Pause:
    """Holds a loop between two of its steps."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until the loop is held, unless its step takes too long."""
        self._begun, self._ended = shut_gate(), shut_gate()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._hold)
            self._begun.acquire(timeout=_STEP_SECONDS)

    def _hold(self) -> None:
        self._begun.release()
        self._ended.acquire()

    def end(self) -> None:
        """Let the loop go on."""
        self._ended.release()


class _Call(Generic[Value]):
    """A coroutine that runs in the loop while another thread waits for it."""

    def __init__(self, work: Coroutine[Any, Any, Value]) -> None:
        self.gate = shut_gate()
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._value: Value | None = None
        self._error: BaseException | None = None
        self._has_begun = False

    def start(self) -> None:
        """Called in the loop."""
        self._task = asyncio.ensure_future(self._run())

    def cancel(self) -> None:
        """Called in the loop, after `start`."""
        if self._task is not None:
            self._task.cancel()
        if not self._has_begun:  # and will not begin now
            self._work.close()

    def result(self) -> Value:
        """The result, after the gate was opened."""
        error = self._error
        if error is None:
            return self._value  # type: ignore[return-value] # set if there is no error
        try:
            raise error
        finally:
            del error, self  # avoids a reference cycle through the traceback

    async def _run(self) -> None:
        self._has_begun = True
        try:
            self._value = await self._work
        except asyncio.CancelledError:
            self._error = AbortError("The call was cancelled.")
        except BaseException as error:  # noqa: BLE001 -- raised in the waiting thread
            self._error = error
        finally:
            self.gate.release()


def shut_gate() -> LockType:
    """A locked gate, at which `wait` blocks until it is opened."""
    gate = allocate_lock()
    gate.acquire()
    return gate


def open_gate(gate: LockType) -> None:
    """Let one thread through; does nothing if the gate is open."""
    with suppress(RuntimeError):
        gate.release()


def wait(gate: LockType) -> None:
    """Block until the gate is opened; signals are handled meanwhile."""
    while not gate.acquire(timeout=_POLL):
        pass


background: Background = Background()
_inherited: list[object] = []
"""Loops of the parent process, kept alive: closing one would break the parent's."""

# `concurrent.futures.thread` has a lock that every fork takes. It is imported above, before the
# first loop runs: if a loop imported it while another thread forks, the fork would release a lock
# that it has not taken.
atexit.register(background.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=background.before_fork,
        after_in_parent=background.after_fork,
        after_in_child=background.forget,
    )
