"""Runs the calls of one answer: all at once, each within its time, none able to stop the others."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from interlingua.api.abort import AbortSignal
from interlingua.api.tools import Tool, to_result_content
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.errors import InvalidToolCallError
from interlingua.spec.messages import Message

RepairToolCall: TypeAlias = Callable[
    [ToolCall, InvalidToolCallError], "ToolCall | Awaitable[ToolCall | None] | None"
]
"""Mends a call whose arguments do not fit; None if it cannot."""


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

    tools: Mapping[str, Tool]
    timeout: float | None = None
    """Seconds for a tool that has none of its own."""
    max_concurrent: int | None = None
    """The most tools that run at one time."""
    repair: RepairToolCall | None = None
    approvals: Mapping[str, bool] = {}
    """What was decided about calls that need approval, by their id."""
    abort_signal: AbortSignal | None = None
    observer: ToolObserver | None = None

    async def run(
        self, calls: Sequence[ToolCall], messages: tuple[Message, ...]
    ) -> tuple[ToolResult, ...]:
        """One result for each call, in the order of the calls; a failure is a result too."""
        room = asyncio.Semaphore(self.max_concurrent or len(calls) or 1)

        async def run_one(call: ToolCall) -> ToolResult:
            async with room:
                return await self._run(call, messages)

        tasks = [asyncio.ensure_future(run_one(call)) for call in calls]
        try:
            return tuple(await asyncio.gather(*tasks))
        finally:
            for task in tasks:  # of those still running, when the whole was given up
                task.cancel()

    async def _run(self, call: ToolCall, messages: tuple[Message, ...]) -> ToolResult:
        observer = self.observer
        if observer is not None:
            observer.on_tool_start(call)
        try:
            result = await self._execute(call, messages)
        except Exception as error:  # noqa: BLE001 -- whatever a handler raises, the model is told
            if observer is not None:
                observer.on_tool_error(call, error)
            return _failure(call, str(error) or type(error).__name__)
        if observer is not None:
            observer.on_tool_end(call, result)
        return result

    async def _execute(self, call: ToolCall, messages: tuple[Message, ...]) -> ToolResult:
        tool = self.tools.get(call.name)
        if tool is None or tool.execute is None:
            known = ", ".join(self.tools) or "none"
            raise InvalidToolCallError(f"unknown tool {call.name!r}; there are: {known}")
        if self.approvals.get(call.id) is False:
            raise InvalidToolCallError("the user did not allow this call")
        call = await self._checked(call, tool)
        context = {
            "messages": messages,
            "abort_signal": self.abort_signal,
            "tool_call_id": call.id,
        }
        args, kwargs = tool.bind(call.arguments, context)
        limit = self.timeout if tool.timeout is None else tool.timeout
        value = await _within(_call(tool.execute, args, kwargs), limit, tool.name)
        if isinstance(value, ToolResult):
            return msgspec.structs.replace(value, tool_call_id=call.id)
        return ToolResult(tool_call_id=call.id, name=call.name, content=to_result_content(value))

    async def _checked(self, call: ToolCall, tool: Tool) -> ToolCall:
        """The call with arguments that fit, mended if need be."""
        error = _problem(call, tool)
        if error is None:
            return call
        if self.repair is not None:
            mended = self.repair(call, error)
            if inspect.isawaitable(mended):
                mended = await mended
            if mended is not None:
                error = _problem(mended, tool)
                if error is None:
                    return msgspec.structs.replace(mended, id=call.id)
        raise error


def _problem(call: ToolCall, tool: Tool) -> InvalidToolCallError | None:
    if not call.is_valid:
        return InvalidToolCallError(
            f"the arguments are not a JSON object: {call.raw_arguments or ''}"
        )
    found = tool.problems(call.arguments)
    if not found:
        return None
    return InvalidToolCallError(f"the arguments do not fit the schema: {'; '.join(found)}")


def _failure(call: ToolCall, message: str) -> ToolResult:
    return ToolResult(tool_call_id=call.id, name=call.name, content=message, is_error=True)


async def _call(handler: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if inspect.iscoroutinefunction(inspect.unwrap(handler)):
        return await handler(*args, **kwargs)
    value = await _in_thread(handler, args, kwargs)
    return await value if inspect.isawaitable(value) else value


async def _within(work: Awaitable[Any], limit: float | None, name: str) -> Any:
    """What the work gives; not waited for beyond its time, even if it does not stop."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=limit)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        raise InvalidToolCallError(f"the tool {name} took longer than {limit:g} s")
    return task.result()


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
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value, error = None, None
        try:
            value = context.run(handler, *args, **kwargs)
        except Exception as failure:  # noqa: BLE001 -- it is handed over
            error = failure
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, name=f"tool-{handler!r:.40}", daemon=True).start()
    return await future
