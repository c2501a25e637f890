"""Runs the calls of one answer: all at once, each within its time, none able to stop the others."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, Self

import msgspec

from interlingua.api.tools.check import ReadyCall
from interlingua.api.tools.result_content import to_result_content
from interlingua.api.tools.tool import Tool
from interlingua.providers.cancel import AbortController, AbortSignal
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.errors import (
    ConfigurationError,
    InvalidToolCallError,
    RequestTimeoutError,
    SDKError,
)
from interlingua.spec.messages import Message

_LOG = logging.getLogger("interlingua")


class ToolObserver(Protocol):
    """Is told of each tool that runs."""

    def on_tool_start(self, call: ToolCall) -> object:
        """It begins."""

    def on_tool_end(self, call: ToolCall, result: ToolResult) -> object:
        """It gave a result."""

    def on_tool_error(self, call: ToolCall, error: Exception) -> object:
        """It failed; the model is told."""


class ToolRunner(msgspec.Struct, frozen=True, kw_only=True):
    """How calls are run."""

    timeout: float | None = None
    """Seconds for a tool that has none of its own."""
    max_concurrent: int | None = None
    """The most tools that run at one time."""
    observer: ToolObserver | None = None

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise ConfigurationError("tool_timeout must be above 0")
        if self.max_concurrent is not None and self.max_concurrent < 1:
            raise ConfigurationError("max_concurrent_tools counts from 1 up")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """As the options of a run say."""
        return cls(
            timeout=options.get("tool_timeout"),
            max_concurrent=options.get("max_concurrent_tools"),
            observer=options.get("tool_observer"),
        )

    async def run(
        self,
        ready: Sequence[ReadyCall],
        messages: tuple[Message, ...],
        signal: AbortSignal | None = None,
    ) -> tuple[ToolResult, ...]:
        """
        One result for each call, in the order of the calls; a failure is a result too.

        Each tool is given a signal of its own, which fires with `signal` and at its time limit.
        """
        room = asyncio.Semaphore(self.max_concurrent or len(ready) or 1)

        async def run_one(item: ReadyCall) -> ToolResult:
            async with room:
                return await self._run(item, messages, signal)

        tasks = [asyncio.ensure_future(run_one(item)) for item in ready]
        try:
            return tuple(await asyncio.gather(*tasks))
        finally:
            for task in tasks:  # of those still running, when the whole was given up
                task.cancel()

    async def _run(
        self, ready: ReadyCall, messages: tuple[Message, ...], signal: AbortSignal | None
    ) -> ToolResult:
        call, observer = ready.call, self.observer
        if observer is not None:
            observer.on_tool_start(call)
        try:
            result = await self._execute(ready, messages, signal)
        except Exception as error:  # noqa: BLE001 -- whatever a handler raises, the model is told
            if observer is not None:
                observer.on_tool_error(call, error)
            return _failure(call, error)
        if observer is not None:
            observer.on_tool_end(call, result)
        return result

    async def _execute(
        self, ready: ReadyCall, messages: tuple[Message, ...], signal: AbortSignal | None
    ) -> ToolResult:
        call, tool = ready.call, ready.tool
        if ready.error is not None:
            raise ready.error
        if ready.waits or tool is None:
            raise InvalidToolCallError("the call was not allowed yet")
        controller = AbortController()
        unlink = _link(signal, controller)
        try:
            value = await self._give(ready, tool, messages, controller)
        finally:
            unlink()
        if isinstance(value, ToolResult):
            return msgspec.structs.replace(value, tool_call_id=call.id)
        return ToolResult(tool_call_id=call.id, name=call.name, content=to_result_content(value))

    async def _give(
        self,
        ready: ReadyCall,
        tool: Tool,
        messages: tuple[Message, ...],
        controller: AbortController,
    ) -> Any:
        call = ready.call
        context = {
            "messages": messages,
            "abort_signal": controller.signal,
            "tool_call_id": call.id,
        }
        args, kwargs = tool.bind(call.arguments, context, ready.values)
        limit = self.timeout if tool.timeout is None else tool.timeout
        run = _on_loop if tool.inline else _in_thread
        work = _call(run, tool.execute, args, kwargs)  # type: ignore[arg-type] # who is ready has it
        return await _within(work, limit, tool.name, controller)


def _link(signal: AbortSignal | None, controller: AbortController) -> Callable[[], None]:
    if signal is None:
        return lambda: None
    return signal.add_callback(lambda: controller.abort(signal.reason or "the run was given up"))


def _failure(call: ToolCall, error: Exception) -> ToolResult:
    said = str(error)
    if not isinstance(error, SDKError):  # of a KeyError the words alone say nothing
        said = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return ToolResult(
        tool_call_id=call.id,
        name=call.name,
        content=said or type(error).__name__,
        is_error=True,
    )


_Run = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any]], Awaitable[Any]]


async def _call(
    run: _Run, handler: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    try:
        if inspect.iscoroutinefunction(handler):
            return await handler(*args, **kwargs)
        value = await run(handler, args, kwargs)
        return await value if inspect.isawaitable(value) else value
    except SystemExit as error:  # a parser of command lines does it; it would end the event loop
        raise SDKError(f"it wanted to exit with {error.code}") from error


async def _within(
    work: Awaitable[Any], limit: float | None, name: str, controller: AbortController
) -> Any:
    """What the work gives; not waited for beyond its time, even if it does not stop."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=limit)
    except asyncio.CancelledError:
        _leave(task, controller, "the run was given up")
        raise
    if not done:
        late = f"the tool {name} took longer than {limit:g} s"
        _leave(task, controller, late)
        raise RequestTimeoutError(late, retryable=False)
    if task.cancelled():  # by itself: it is no reason to cancel the run
        raise SDKError(f"the tool {name} cancelled itself")
    return task.result()


def _leave(task: asyncio.Future[Any], controller: AbortController, why: str) -> None:
    """Stop a task that nobody waits for any more, whatever it does about it."""
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # looked at once
    task.cancel()
    try:
        controller.abort(why)
    except Exception:  # noqa: BLE001 -- of a callback of the tool's own
        _LOG.warning("a tool failed on being told to stop", exc_info=True)


async def _on_loop(
    handler: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    try:
        return handler(*args, **kwargs)
    except StopIteration as error:  # which no coroutine may raise
        raise SDKError(f"StopIteration: {error}") from error


async def _in_thread(
    handler: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    # Daemon threads of our own: an executor's are waited for when the loop ends, so that a
    # handler which hangs would hang the program.
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            if inspect.iscoroutine(value):
                value.close()  # else Python complains that it was never awaited
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(handler, *args, **kwargs)
        except StopIteration as failure:  # which no future takes
            error = SDKError(f"StopIteration: {failure}")
        except BaseException as failure:  # noqa: BLE001 -- it is handed over
            error = failure
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, name=f"tool-{handler!r:.40}", daemon=True).start()
    return await future
