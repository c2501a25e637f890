"""An async iterator, read from a thread without a loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import Generic, Self, TypeVar

from interlingua.spec.errors import AbortError, ConfigurationError, SDKError
from interlingua.sync.loop_thread import background, open_gate, shut_gate, wait

Item = TypeVar("Item")

_READ_AHEAD = 256  # items; a reader that is slower than the network is waited for


class BlockingIterator(Generic[Item]):
    """
    The items of an async iterator, each as soon as it is there.

    Nothing is read before the first `next`. `close`, leaving its block, losing the last reference
    to it, or Ctrl-C while it waits: each closes what is behind it. Several threads may read it,
    each item going to one of them, and any may close it: who waits for more then finds its end.
    """

    def __init__(self, source: AsyncIterator[Item]) -> None:
        self._pump = _Pump(source)
        self._ready = self._pump.ready
        self._loop: asyncio.AbstractEventLoop | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        try:
            return self._ready.popleft()
        except IndexError:
            return self._next()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self._leave()

    def close(self) -> None:
        """Stop reading, and wait until what is behind it is closed; may be called twice."""
        self._pump.is_wanted = False  # before anything is looked at: another may just begin
        self._leave()
        self._ready = deque()  # the pump may still fill the other one
        loop, pump = self._loop, self._pump
        if loop is None:
            pump.is_over = True  # it never began, and there is nothing to close
            return
        while not pump.is_over and not background.is_here() and background.is_running(loop):
            wait(pump.gate)
            pump.hand_on()

    def discard(self) -> AbortError | None:
        """
        Take the rest without looking at it, of what its caller gave up.

        The error it ends with; None if it had come to another end before.
        """
        try:
            for _ in self:
                pass
        except AbortError as error:
            return error
        except SDKError:
            pass
        return None

    def _next(self) -> Item:
        pump, ready = self._pump, self._ready
        try:
            while True:
                is_over = pump.is_over  # looked up first: the last items come before it
                with suppress(IndexError):  # rather than look: another may take it meanwhile
                    return ready.popleft()
                if is_over:
                    break
                self._ask()
                wait(pump.gate)
                pump.hand_on()
        except BaseException:
            self._leave()
            raise
        error, pump.error = pump.error, None
        if error is None:
            raise StopIteration
        try:
            raise error
        finally:
            del error  # its traceback would hold it

    def _ask(self) -> None:
        """Begin, or go on after a pause."""
        if self._loop is None:
            loop = background.loop()
            self._loop = loop
            loop.call_soon_threadsafe(self._pump.start)
        elif not background.is_running(self._loop):
            raise ConfigurationError("this stream belongs to a process or loop that is gone")
        elif background.is_here():
            background.loop()  # raises: to wait here would be for ever
        elif self._pump.pause is not None:
            self._loop.call_soon_threadsafe(self._pump.resume)

    def _leave(self) -> None:
        """From any thread, the loop's own among them, at any time: it must not wait."""
        loop = self._loop
        if loop is not None and not self._pump.is_over and background.is_running(loop):
            with suppress(RuntimeError):  # the loop is closed, and all in it
                loop.call_soon_threadsafe(self._pump.stop)


class _Pump(Generic[Item]):
    """
    Reads in the loop what other threads take.

    It knows nothing of the iterator in front of it, which may be collected while this waits. The
    gate is opened by the loop when there may be something new, and lets one thread through: who
    passes it looks, and opens it for the next one if there is something for that one too.
    """

    def __init__(self, source: AsyncIterator[Item]) -> None:
        self.ready: deque[Item] = deque()
        self.gate = shut_gate()
        self.pause: asyncio.Future[None] | None = None
        self.error: BaseException | None = None
        self.is_over = False
        self.is_wanted = True
        self._source = source
        self._task: asyncio.Task[None] | None = None
        self._has_begun = False
        self._is_stopped = False

    def hand_on(self) -> None:
        """From a thread that has passed the gate: others may wait there."""
        if self.is_over or len(self.ready) > 1:
            open_gate(self.gate)

    def start(self) -> None:
        """In the loop; two threads may ask for it at once."""
        if self._task is not None or self._is_stopped:
            return
        if self.is_wanted:
            self._task = asyncio.ensure_future(self._run())
        else:
            self._end()

    def resume(self) -> None:
        """In the loop."""
        if self.pause is not None and not self.pause.done():
            self.pause.set_result(None)

    def stop(self) -> None:
        """In the loop, before or after `start`."""
        if self._is_stopped:  # to cancel it again would break off its closing
            return
        self._is_stopped = True
        if self._task is not None:
            self._task.cancel()
        if not self._has_begun:  # and it never will
            self._end()

    async def _run(self) -> None:
        self._has_begun = True
        try:
            await self._read()
        except asyncio.CancelledError:
            if not self._is_stopped:
                self.error = AbortError("the stream was cancelled")
        except BaseException as error:  # noqa: BLE001 -- it is raised where it is waited for
            self.error = error
        finally:
            self._end()

    async def _read(self) -> None:
        ready, gate = self.ready, self.gate
        try:
            async for item in self._source:
                ready.append(item)
                if gate.locked():
                    open_gate(gate)
                if len(ready) >= _READ_AHEAD:
                    await self._drained()
        finally:
            close = getattr(self._source, "aclose", None)
            if close is not None:
                await close()

    async def _drained(self) -> None:
        self.pause = asyncio.get_running_loop().create_future()
        if self.ready:  # the reader looks for a pause after it has taken the last item
            await self.pause
        self.pause = None

    def _end(self) -> None:
        self.is_over = True
        open_gate(self.gate)
