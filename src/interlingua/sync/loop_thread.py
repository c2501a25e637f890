"""
The event loop behind every blocking call: one for the process, in a thread of its own.

The first call starts it, a forked child starts its own, and it ends with the interpreter. Whoever
calls blocks only their own thread, so it makes no difference whether that one has a running loop.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from _thread import LockType, allocate_lock
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

from interlingua.spec.errors import AbortError, ConfigurationError

Value = TypeVar("Value")

_EXIT_SECONDS = 5.0  # what does not end by itself is not waited for longer
_LOOK_UP = 0.1 if os.name == "nt" else -1  # there, a wait without end is deaf to Ctrl-C


class Background:
    """The loop and its thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ident: int | None = None
        self._is_over = False

    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, running; `ConfigurationError` if waiting for it would be for ever."""
        loop = self._loop
        if loop is None:
            loop = self._start()
        if self.is_here():
            raise ConfigurationError(
                "a blocking function was called where it would wait for itself: in an async tool, "
                "or in a hook; await the async function there, or make the tool a plain function"
            )
        return loop

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good, with all that was open in it."""
        return self._is_over

    def is_here(self) -> bool:
        """Whether this is the loop's own thread."""
        return self._ident == threading.get_ident()

    def is_running(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether this loop is the one; it is not after a fork, and after the end."""
        return self._loop is loop

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """
        What the work gives, awaited in the loop.

        It is cancelled, and not waited for, if the wait here is broken off, as Ctrl-C does.
        """
        try:
            loop = self.loop()
        except BaseException:
            work.close()  # else Python complains that it was never awaited
            raise
        call = _Call(work)
        try:
            loop.call_soon_threadsafe(call.start)
            wait(call.gate)
        except BaseException:
            with suppress(RuntimeError):  # the loop is closed, and the work with it
                loop.call_soon_threadsafe(call.cancel)
            raise
        return call.result()

    def stop(self) -> None:
        """End what runs, close what is open, and start no more."""
        with self._lock:
            self._is_over = True
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None or self.is_here():
            return
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        thread.join(_EXIT_SECONDS)

    def before_fork(self) -> None:
        """A fork waits until a loop that starts has started."""
        self._lock.acquire()

    def after_fork(self) -> None:
        """In the parent."""
        self._lock.release()

    def forget(self) -> None:
        """In a forked child: the thread is not there, and its loop is the parent's."""
        if self._loop is not None:
            _inherited.append(self._loop)
        self.__init__()  # type: ignore[misc] # as new, its lock too: the old one may be held

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is not None:
                return self._loop
            if self._is_over:
                raise ConfigurationError("the interpreter exits; no call can begin now")
            # Loaded here, since a fork waits for this lock: a child that is forked while another
            # thread loads a module can never load it. And the loop is not held up.
            import hashlib  # noqa: F401
            import importlib.metadata  # noqa: F401

            from interlingua.transport import aiohttp_pool  # noqa: F401

            # made here, so that its errors are raised here; it is not this thread's loop
            runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
            loop = runner.get_loop()
            thread = threading.Thread(
                target=self._live, args=(runner,), name="interlingua", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:
                runner.close()
                raise
            self._thread, self._ident, self._loop = thread, thread.ident, loop
            return loop

    def _live(self, runner: asyncio.Runner) -> None:
        with runner:  # it closes all that is left when it ends
            loop = runner.get_loop()
            while not self._is_over:
                # a tool that exits ends its caller, who is told, and not all the others
                with suppress(SystemExit, KeyboardInterrupt):
                    loop.run_forever()


class _Call(Generic[Value]):
    """Work that one thread waits for while another does it."""

    def __init__(self, work: Coroutine[Any, Any, Value]) -> None:
        self.gate = shut_gate()
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._value: Value | None = None
        self._error: BaseException | None = None
        self._has_begun = False

    def start(self) -> None:
        """In the loop."""
        self._task = asyncio.ensure_future(self._run())

    def cancel(self) -> None:
        """In the loop, after `start` if at all."""
        if self._task is not None:
            self._task.cancel()
        if not self._has_begun:  # and it never will
            self._work.close()

    def result(self) -> Value:
        """What came of it, once the gate was opened."""
        error = self._error
        if error is None:
            return self._value  # type: ignore[return-value] # it is there if no error is
        try:
            raise error
        finally:
            del error, self  # the error's traceback would hold the error

    async def _run(self) -> None:
        self._has_begun = True
        try:
            self._value = await self._work
        except asyncio.CancelledError:
            self._error = AbortError("the call was cancelled")
        except BaseException as error:  # noqa: BLE001 -- it is raised where it is waited for
            self._error = error
        finally:
            self.gate.release()


def shut_gate() -> LockType:
    """A gate that `wait` stops at until it is released."""
    gate = allocate_lock()
    gate.acquire()
    return gate


def open_gate(gate: LockType) -> None:
    """Let one thread through; nothing more if it is open already, or was opened just now."""
    with suppress(RuntimeError):
        gate.release()


def wait(gate: LockType) -> None:
    """Stop until it is released; signals are handled meanwhile."""
    while not gate.acquire(timeout=_LOOK_UP):
        pass


background: Background = Background()
_inherited: list[object] = []
"""Loops of a parent process: kept, since closing one here would deafen the parent's."""

atexit.register(background.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=background.before_fork,
        after_in_parent=background.after_fork,
        after_in_child=background.forget,
    )
