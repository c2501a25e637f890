"""`BlockingIterator`: reads an async iterator from another thread."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import copy_context
from types import TracebackType
from typing import Generic, Self, TypeVar

from interlingua.api.run.closed import NOT_ENDED
from interlingua.runtime.cancel import ABORTED, AbortSignal
from interlingua.spec.errors import AbortError, ConfigurationError, SDKError
from interlingua.sync.loop_thread import background, open_gate, shut_gate, wait

Item = TypeVar("Item")

_READ_AHEAD = 256  # items; then the loop waits for the reader


class ClosedByWith(ABC):
    """A context manager: the end of a `with` block closes it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End it."""


class BlockingIterator(ClosedByWith, Generic[Item]):
    """
    The items of an async iterator, each as soon as it arrives.

    Nothing is read before the first `next`. The source is closed by `close`, at the end of a
    `with` block, when the last reference is lost, and by Ctrl-C during a wait. Several threads may
    read it, and each item goes to one of them. If one thread closes it, it ends for all.

    `skip` says whether to leave out an item that the loop has read ahead.
    """

    def __init__(
        self, source: AsyncIterator[Item], skip: Callable[[Item], bool] | None = None
    ) -> None:
        self._pump = _Pump(source)
        self._skip = skip
        self._ready = self._pump.ready
        self._loop: asyncio.AbstractEventLoop | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        while True:
            try:
                item = self._ready.popleft()
            except IndexError:
                item = self._next()
            if self._skip is None or not self._skip(item):
                return item

    def __del__(self) -> None:
        self._leave()

    def close(self) -> None:
        """Stop reading and wait until the source is closed; idempotent."""
        self._pump.is_wanted = False  # set first: another thread may be starting it
        self._leave()
        self._ready = deque()  # the pump may still append to the old one
        loop, pump = self._loop, self._pump
        if loop is None:
            pump.is_over = True  # it never began: nothing to close
            return
        while not pump.is_over and not background.is_loop_thread() and background.is_running(loop):
            wait(pump.gate)
            pump.hand_on()

    def discard(self) -> AbortError | None:
        """
        Read and drop the rest, after the caller aborted.

        Returns the `AbortError` at the end; None if the source ended in another way before.
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
                is_over = pump.is_over  # read first: the last items are added before it is set
                with suppress(IndexError):  # not checked before: another thread may take the item
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
            del error  # avoids a reference cycle through the traceback

    def _ask(self) -> None:
        """Start the pump, or resume it after a pause."""
        if self._loop is None:
            loop = background.loop()
            self._loop = loop
            loop.call_soon_threadsafe(self._pump.start, context=copy_context())
        elif not background.is_running(self._loop):
            raise ConfigurationError(
                "This stream belongs to another process or to an event loop that was stopped."
            )
        elif background.is_loop_thread():
            background.loop()  # raises: waiting here would deadlock
        elif self._pump.pause is not None:
            self._loop.call_soon_threadsafe(self._pump.resume)

    def _leave(self) -> None:
        """Stop the pump without waiting; may be called from any thread at any time."""
        loop = self._loop
        if loop is not None and not self._pump.is_over and background.is_running(loop):
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._pump.stop)


class AbortableIterator(ClosedByWith, Generic[Item]):
    """
    The items of a stream, until the signal is aborted.

    Then it raises `AbortError` at once, although the loop may have read more items.
    """

    def __init__(self, stream: AsyncIterator[Item], signal: AbortSignal | None = None) -> None:
        self._items = BlockingIterator(stream)
        self._signal = signal
        self._is_over = False  # for the reader; the async stream may be ahead

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        signal = self._signal
        if signal is not None and signal.aborted and not self._is_over:
            self._is_over = True
            raise self._items.discard() or AbortError(signal.reason or ABORTED)
        try:
            return next(self._items)
        except BaseException:
            self._is_over = True
            raise

    def close(self) -> None:
        """Stop reading and close the connection."""
        self._items.close()

    def _check_ended(self) -> None:
        if not self._is_over:
            raise ConfigurationError(NOT_ENDED)


class _Pump(Generic[Item]):
    """
    Reads the source in the loop, for other threads to take its items.

    It has no reference to its `BlockingIterator`, which may be garbage collected meanwhile. The
    loop opens the gate when there may be new items. The gate lets one thread through, which opens
    it again if there are items for another thread.
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
        """Called by a thread that has passed the gate: open it for the next one if necessary."""
        if self.is_over or len(self.ready) > 1:
            open_gate(self.gate)

    def start(self) -> None:
        """Called in the loop; two threads may request it at once."""
        if self._task is not None or self._is_stopped:
            return
        if self.is_wanted:
            self._task = asyncio.ensure_future(self._run())
        else:
            self._end()

    def resume(self) -> None:
        """Called in the loop."""
        if self.pause is not None and not self.pause.done():
            self.pause.set_result(None)

    def stop(self) -> None:
        """Called in the loop, before or after `start`."""
        if self._is_stopped:  # a second cancellation would interrupt the closing
            return
        self._is_stopped = True
        if self._task is not None:
            self._task.cancel()
        if not self._has_begun:  # and will not begin now
            self._end()

    async def _run(self) -> None:
        self._has_begun = True
        try:
            await self._read()
        except asyncio.CancelledError:
            if not self._is_stopped:
                self.error = AbortError("The stream was cancelled.")
        except BaseException as error:  # noqa: BLE001 -- raised in the waiting thread
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
        if self.ready:  # the reader checks for a pause after taking the last item
            await self.pause
        self.pause = None

    def _end(self) -> None:
        self.is_over = True
        open_gate(self.gate)
