"""Calls the callbacks of an execution, in order, whether they are async or not."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from interlingua.spec.content import Json, ToolCall, ToolResult
from interlingua.spec.errors import SDKError
from interlingua.spec.events import ReasoningDelta, StreamEvent, TextDelta, ToolCallEnd


class TextChunk(TypedDict):
    """More text."""

    type: Literal["text-delta"]
    text: str


class ToolChunk(TypedDict):
    """A tool is called, has answered, or has failed."""

    type: Literal["tool-call", "tool-result", "tool-error"]
    name: str
    args: NotRequired[dict[str, Json]]
    result: NotRequired[Any]
    error: NotRequired[Exception]


Chunk: TypeAlias = TextChunk | ToolChunk


class Callbacks(TypedDict, total=False):
    """
    Who is told of what. Each may be async; they are called one after another.

    They run in the event loop, so one that is not async must not block. If one raises, the
    execution is stopped, and its error has the code `callback_failed`.
    """

    on_chunk: Callable[[Chunk], object] | None
    on_reasoning: Callable[[str], object] | None
    on_tool_start: Callable[[str, dict[str, Json]], object] | None
    on_tool_end: Callable[[str, Any], object] | None
    on_tool_error: Callable[[str, Exception], object] | None


class Teller:
    """
    Tells the callbacks what happens; it is the tool observer of the run.

    `settle` waits until they all have been told; `on_failure` is called if one of them raises,
    and after that nobody is told any more. Nor is anyone waited for or told after `stop`.
    """

    def __init__(self, callbacks: Callbacks, on_failure: Callable[[], object]) -> None:
        self._chunk = callbacks.get("on_chunk")
        self._reasoning = callbacks.get("on_reasoning")
        self._tool_start = callbacks.get("on_tool_start")
        self._tool_end = callbacks.get("on_tool_end")
        self._tool_error = callbacks.get("on_tool_error")
        self._on_failure = on_failure
        self._last: asyncio.Task[None] | None = None
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: Exception | None = None
        """What a callback raised."""

    def tell(self, event: StreamEvent) -> None:
        """What the model said."""
        if type(event) is TextDelta:
            self._call(self._chunk, TextChunk(type="text-delta", text=event.delta))
        elif type(event) is ReasoningDelta:
            self._call(self._reasoning, event.delta)
        elif type(event) is ToolCallEnd:
            call = event.tool_call
            chunk = ToolChunk(type="tool-call", name=call.name, args=deepcopy(call.arguments))
            self._call(self._chunk, chunk)

    def on_tool_start(self, call: ToolCall) -> None:
        """It begins."""
        self._call(self._tool_start, call.name, deepcopy(call.arguments))

    def on_tool_end(self, call: ToolCall, result: ToolResult) -> None:
        """It gave a result, which may say that it failed."""
        if result.is_error:
            said = result.content
            return self.on_tool_error(call, SDKError(said if isinstance(said, str) else repr(said)))
        self._call(self._tool_end, call.name, result.content)
        chunk = ToolChunk(type="tool-result", name=call.name, result=result.content)
        return self._call(self._chunk, chunk)

    def on_tool_error(self, call: ToolCall, error: Exception) -> None:
        """It failed."""
        self._call(self._tool_error, call.name, error)
        self._call(self._chunk, ToolChunk(type="tool-error", name=call.name, error=error))

    @property
    def is_settled(self) -> bool:
        """Whether everyone has been told."""
        return self._last is None or self._last.done()

    async def settle(self) -> None:
        """Wait until everyone has been told, or until it is stopped."""
        while self._last is not None and not self._last.done() and not self._stopped.done():
            # a callback may take no notice of being cancelled
            waited: set[asyncio.Future[None]] = {self._last, self._stopped}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)

    def stop(self) -> None:
        """Tell nobody any more, and cancel what is under way; asked twice it does nothing more."""
        if self._stopped.done():
            return
        self._stopped.set_result(None)
        if self._last is not None:
            self._last.cancel()

    def _call(self, callback: Callable[..., object] | None, *args: Any) -> None:
        if callback is None or self.error is not None or self._stopped.done():
            return
        if not self.is_settled:
            self._last = asyncio.ensure_future(self._later(self._last, callback, args))
            return
        try:
            outcome = callback(*args)
        except Exception as error:  # noqa: BLE001 -- it ends the execution, which returns it
            self._fail(error)
            return
        if inspect.isawaitable(outcome):
            self._last = asyncio.ensure_future(self._await(outcome))

    async def _later(
        self, previous: asyncio.Task[None] | None, callback: Callable[..., object], args: Any
    ) -> None:
        if previous is not None:
            await previous
        if self.error is not None:
            return
        try:
            outcome = callback(*args)
            if inspect.isawaitable(outcome):
                await outcome
        except Exception as error:  # noqa: BLE001 -- as above
            self._fail(error)

    async def _await(self, outcome: Awaitable[object]) -> None:
        try:
            await outcome
        except Exception as error:  # noqa: BLE001 -- as above
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self.error is None:
            self.error = error
            self._on_failure()
