"""Runs the tool calls of one response concurrently, with timeouts; a failed call is a result."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, Self, TypeAlias

import msgspec

from interlingua.api.tools.check import ReadyCall
from interlingua.api.tools.context import Retry, ToolContext
from interlingua.api.tools.limits import (
    MAX_CONCURRENT,
    MAX_OUTPUT,
    enter_thread,
    limit_output,
    thread_slots,
)
from interlingua.api.types.shapes import to_json
from interlingua.client.middleware.contract import ToolMiddleware
from interlingua.runtime.callbacks import settle
from interlingua.runtime.cancel import AbortController, AbortSignal, call_in_loop
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Opaque,
    Part,
    Text,
    ToolCall,
    ToolResult,
    UncheckedJson,
)
from interlingua.spec.errors import (
    ConfigurationError,
    InvalidToolCallError,
    RequestTimeoutError,
    SDKError,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.wire.json_text import dump_text
from interlingua.wire.media import sniff

_LOG = logging.getLogger("interlingua")
_RUN_CANCELLED = "the run was cancelled"
_INTERRUPTED = (
    "The run ended while this tool was running. It is not known whether it took effect; "
    "it was not run again."
)
_PARTS = (Text, Image, Audio, Document, Opaque)
_BYTES = (bytes, bytearray, memoryview)


class ToolObserver(Protocol):
    """Callbacks for each tool call, sync or async."""

    def on_tool_start(self, call: ToolCall) -> object:
        """Called before the tool runs."""

    def on_tool_end(self, call: ToolCall, result: ToolResult) -> object:
        """Called with the result of the tool."""

    def on_tool_error(self, call: ToolCall, error: Exception) -> object:
        """Called if the tool failed; the model is sent the error."""


ToolErrorText: TypeAlias = Callable[[ToolCall, Exception], Any]
"""
Makes what the model is sent for a tool call that failed; sync or async.

It may return whatever a tool may return; None stands for the class and message of the error.
"""


class ToolRound:
    """The calls of one answer, and their results as far as there are any."""

    def __init__(self, ready: Sequence[ReadyCall], messages: tuple[Message, ...]) -> None:
        self.ready: tuple[ReadyCall, ...] = tuple(ready)
        self.messages: tuple[Message, ...] = messages
        self.started: set[int] = set()
        self.results: dict[int, ToolResult] = {}
        """By the position of the tool call."""
        self.errors: dict[str, Exception] = {}
        """Why calls failed, by their id."""

    def outcome(self) -> tuple[tuple[ToolResult, ...], dict[str, Exception]]:
        """The results, and why calls failed."""
        return self.settled(), self.errors

    def settled(self) -> tuple[ToolResult, ...]:
        """
        The results in the order of the calls, also of a round that was cut short.

        A call that had begun gets an error result, so that it is not run again: its tool may have
        taken effect. A call that had not begun has no result.
        """
        return tuple(
            self.results.get(index) or _error_result(self.ready[index].call, _INTERRUPTED)
            for index in sorted(self.started)
        )


class ToolRunner(msgspec.Struct, frozen=True, kw_only=True):
    """Runs tool calls."""

    timeout: float | None = None
    """The default timeout in seconds, for tools without one."""
    max_concurrent: int | None = None
    """The maximum number of tools that run at the same time. None: as `limits.py` says."""
    max_output: int | None = MAX_OUTPUT
    """The maximum output of a tool in characters; None is unlimited."""
    observer: ToolObserver | None = None
    tool_error: ToolErrorText | None = None
    deps: Any = None
    """The `deps` of each `ToolContext`."""
    layers: tuple[ToolMiddleware, ...] = ()
    """The middleware around each call; the first is the outermost."""
    request: Request = Request()
    """The first request of the run."""

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise ConfigurationError("`tool_timeout` must be greater than 0.")
        if self.max_concurrent is not None and self.max_concurrent < 1:
            raise ConfigurationError("`max_concurrent_tools` must be at least 1.")
        if self.max_output is not None and self.max_output < 1:
            raise ConfigurationError("`max_tool_output` must be at least 1.")

    @classmethod
    def of(
        cls, options: Mapping[str, Any], layers: tuple[ToolMiddleware, ...], request: Request
    ) -> Self:
        """As the options of a run and the middleware of its client say."""
        return cls(
            timeout=options.get("tool_timeout"),
            max_concurrent=options.get("max_concurrent_tools"),
            max_output=options.get("max_tool_output", MAX_OUTPUT),
            observer=options.get("tool_observer"),
            tool_error=options.get("tool_error"),
            deps=options.get("deps"),
            layers=layers,
            request=request,
        )

    async def run(
        self, calls: ToolRound, signal: AbortSignal | None = None
    ) -> AsyncGenerator[ToolResult, None]:
        """
        Run the calls; yields one result for each as it ends, also for those that failed.

        Each tool gets its own abort signal, which is set by `signal` and by its timeout.
        """
        slots = asyncio.Semaphore(self.max_concurrent or MAX_CONCURRENT)
        ended: asyncio.Queue[asyncio.Future[ToolResult]] = asyncio.Queue()

        async def run_one(index: int) -> ToolResult:
            async with slots:
                return await self._run(index, calls, signal)

        tasks = [asyncio.ensure_future(run_one(index)) for index in range(len(calls.ready))]
        for task in tasks:
            task.add_done_callback(ended.put_nowait)
        try:
            for _ in tasks:
                yield (await ended.get()).result()
        finally:
            running = [task for task in tasks if not task.done()]
            for task in running:  # if the run was cancelled, some are still running
                task.cancel()
            if running:
                await asyncio.wait(running)

    async def _run(self, index: int, calls: ToolRound, signal: AbortSignal | None) -> ToolResult:
        ready, observer = calls.ready[index], self.observer
        call = ready.call
        calls.started.add(index)
        if observer is not None:
            await settle(observer.on_tool_start(call))
        try:
            execute = partial(self._execute, ready, calls.messages, signal)
            for layer in reversed(self.layers):
                execute = partial(layer.run_tool, call, self.request, execute)
            result = await execute()
            result = limit_output(result, call, self.max_output)
        except Exception as error:  # noqa: BLE001 -- any error of a handler is sent to the model
            if ready.error is None and not isinstance(error, Retry):
                _LOG.warning("The tool %r failed.", call.name, exc_info=error)
            calls.errors[call.id] = error
            result = calls.results[index] = await self._failure(call, error)
            if observer is not None:
                await settle(observer.on_tool_error(call, error))
            return result
        calls.results[index] = result
        if observer is not None:
            await settle(observer.on_tool_end(call, result))
        return result

    async def _execute(
        self, ready: ReadyCall, messages: tuple[Message, ...], signal: AbortSignal | None
    ) -> ToolResult:
        call, tool = ready.call, ready.tool
        if ready.error is not None:
            raise ready.error
        if ready.waits or tool is None or tool.execute is None:
            raise InvalidToolCallError("The tool call has not been approved.")
        controller = AbortController()
        unlink = _link(signal, controller)
        context = ToolContext(
            tool_call_id=call.id,
            tool_name=call.name,
            messages=messages,
            abort_signal=controller.signal,
            deps=self.deps,
        )
        try:
            args, kwargs = tool.bind(call.arguments, context, ready.values)
            handler = partial(tool.execute, *args, **kwargs)
            limit = self.max_concurrent
            threads = thread_slots() if limit is None else asyncio.Semaphore(limit)
            work = _call(handler, threads, inline=tool.inline)
            seconds = self.timeout if tool.timeout is None else tool.timeout
            value = await _within(work, seconds, tool.name, controller)
        finally:
            unlink()
        if isinstance(value, ToolResult):
            return msgspec.structs.replace(value, tool_call_id=call.id)
        return ToolResult(tool_call_id=call.id, name=call.name, content=to_result_content(value))

    async def _failure(self, call: ToolCall, error: Exception) -> ToolResult:
        """The result of a tool call that failed, as `tool_error` says."""
        content: object = None
        if self.tool_error is not None:
            try:
                content = self.tool_error(call, error)
                content = await content if inspect.isawaitable(content) else content
                content = None if content is None else to_result_content(content)
            except Exception:  # noqa: BLE001 -- logged for the programmer; the model cannot fix it
                _LOG.warning("tool_error failed for a call of %r", call.name, exc_info=True)
                content = None
        return _error_result(call, _describe(error) if content is None else content)


def _link(signal: AbortSignal | None, controller: AbortController) -> Callable[[], None]:
    if signal is None:
        return lambda: None
    return signal.add_callback(lambda: controller.abort(signal.reason or _RUN_CANCELLED))


def _describe(error: Exception) -> str:
    message = str(error)
    if not isinstance(error, (SDKError, Retry)):  # the message of a KeyError, say, is only the key
        message = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return message or type(error).__name__


def _error_result(call: ToolCall, content: object) -> ToolResult:
    return ToolResult(tool_call_id=call.id, name=call.name, content=content, is_error=True)


async def _call(handler: partial[Any], threads: asyncio.Semaphore, *, inline: bool) -> Any:
    try:
        if inspect.iscoroutinefunction(handler):
            return await handler()
        value = handler() if inline else await _in_thread(handler, threads)
        return await value if inspect.isawaitable(value) else value
    except StopIteration as error:  # a coroutine must not raise it
        raise SDKError(f"StopIteration: {error}") from error
    except SystemExit as error:  # argparse raises it; it would end the event loop
        raise SDKError(f"The tool called sys.exit({error.code!r}).") from error
    except (Exception, asyncio.CancelledError, KeyboardInterrupt):  # the last may be Ctrl-C
        raise
    except BaseException as error:
        raise SDKError(f"{type(error).__name__}: {error}") from error


async def _within(
    work: Awaitable[object], limit: float | None, name: str, controller: AbortController
) -> Any:
    """Wait for the work up to `limit` seconds, even if it ignores its cancellation."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=limit)
    except asyncio.CancelledError:
        _abandon(task, controller, _RUN_CANCELLED)
        raise
    if not done:
        message = f"The tool {name} timed out after {limit:g} s."
        _abandon(task, controller, message)
        raise RequestTimeoutError(message, retryable=False)  # the tool may have run
    if task.cancelled():  # the tool cancelled itself, which must not cancel the run
        raise SDKError(f"The tool {name} cancelled itself.")
    return task.result()


def _abandon(task: asyncio.Future[Any], controller: AbortController, reason: str) -> None:
    """Cancel a task without waiting for it."""
    # Retrieves the exception, so that asyncio does not log it.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    task.cancel()
    try:
        controller.abort(reason)
    except Exception:  # noqa: BLE001 -- a callback of the tool
        _LOG.warning("an abort callback of a tool raised an error", exc_info=True)


async def _in_thread(handler: partial[Any], threads: asyncio.Semaphore) -> Any:
    # A daemon thread, not an executor: asyncio waits for executor threads at exit, so a handler
    # that hangs would hang the program.
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()
    context.run(enter_thread)
    await threads.acquire()

    def settle(value: object, error: BaseException | None) -> None:
        threads.release()  # here: the thread of an abandoned tool counts to its end
        if future.done():
            if inspect.iscoroutine(value):
                value.close()  # else Python warns that it was never awaited
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value: object = None
        error: BaseException | None = None
        try:
            value = context.run(handler)
        except (StopIteration, KeyboardInterrupt) as failure:
            # A future does not accept the first; the second, in a thread, is not Ctrl-C.
            error = SDKError(f"{type(failure).__name__}: {failure}", cause=failure)
        except BaseException as failure:  # noqa: BLE001 -- passed on to the event loop
            error = failure
        call_in_loop(loop, partial(settle, value, error))

    thread = threading.Thread(target=work, name=f"tool-{handler.func!r:.40}", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # the system has no more threads
        settle(None, SDKError("No thread could be started for the tool.", cause=error))
    return await future


# What a function returns, as the content of a tool result.


def to_result_content(value: object) -> str | UncheckedJson | tuple[Part, ...]:
    """
    Convert a value to text, JSON or parts; a `ToolResult` is returned unchanged.

    Bytes become an image, audio, document or text part, depending on their first bytes. If a list
    or tuple contains a part or bytes, its other items become text parts.
    """
    if isinstance(value, (str, ToolResult)):
        return value
    if isinstance(value, (*_PARTS, *_BYTES)):
        part = _part(value)
        return part.text if isinstance(part, Text) and part is not value else (part,)
    if isinstance(value, (list, tuple)) and any(
        isinstance(item, (*_PARTS, *_BYTES)) for item in value
    ):
        return tuple(_part(item) for item in value)
    return _json(value)


def _part(item: object) -> Part:
    if isinstance(item, _PARTS):
        return item
    if isinstance(item, _BYTES):
        return _from_bytes(bytes(item))
    return Text(text=item if isinstance(item, str) else dump_text(_json(item)))


def _from_bytes(data: bytes) -> Part:
    media_type = sniff(data)
    if media_type is not None:
        kinds: dict[str, type[Image | Audio]] = {"image": Image, "audio": Audio}
        kind = kinds.get(media_type.partition("/")[0], Document)
        return kind(data=data, media_type=media_type)
    try:
        return Text(text=data.decode())
    except UnicodeDecodeError:
        raise ConfigurationError(
            "The tool returned bytes of an unknown media type. Return text or "
            "Document(data=..., media_type=...)."
        ) from None


def _json(value: object) -> UncheckedJson:
    try:
        builtins = to_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"The tool returned a {type(value).__name__}, which cannot be converted to JSON: "
            f"{error}"
        ) from error
    return list(builtins) if isinstance(builtins, tuple) else builtins
