"""The callbacks of an execution, sync or async, called in order."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, assert_never

from interlingua.spec.content import Json, ToolCall, ToolResult
from interlingua.spec.errors import SDKError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepStart,
    StreamEvent,
    StreamRestart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResultEvent,
)


class TextChunk(TypedDict):
    """A piece of text."""

    type: Literal["text-delta"]
    text: str


class ToolChunk(TypedDict):
    """A tool call, its result, or its error."""

    type: Literal["tool-call", "tool-result", "tool-error"]
    name: str
    args: NotRequired[dict[str, Json]]
    result: NotRequired[Any]
    error: NotRequired[Exception]


Chunk: TypeAlias = TextChunk | ToolChunk
"""A piece of an answer, the argument of `on_chunk`: text, or a tool call."""


class Callbacks(TypedDict, total=False):
    """
    The callbacks of an execution, sync or async, called one after another.

    They run in the event loop, so a sync callback must not block. If one raises, the execution is
    stopped and its error has the code `callback_failed`.
    """

    on_chunk: Callable[[Chunk], object] | None
    """Gets each piece of the answer."""
    on_reasoning: Callable[[str], object] | None
    """Gets each piece of the visible thinking, which it asks for: see `include_thinking`."""
    on_tool_start: Callable[[str, dict[str, Json]], object] | None
    """Gets the name and the arguments of a tool before it runs."""
    on_tool_end: Callable[[str, Any], object] | None
    """Gets the name and the result of a tool that has run."""
    on_tool_error: Callable[[str, Exception], object] | None
    """Gets the name of a tool that failed, and the exception."""


SEPARATOR = "\n\n"
"""What is between the texts of two answers."""


class _Joined:
    """The texts of several answers, piece by piece, with a separator between answers."""

    def __init__(self) -> None:
        self._has_text = False
        self._is_due = False

    def add(self, piece: str) -> str:
        """The piece; the first one of a later answer begins with the separator."""
        if not piece:
            return piece
        if self._is_due:
            piece = SEPARATOR + piece
        self._has_text, self._is_due = True, False
        return piece

    def end_answer(self) -> None:
        """What follows belongs to another answer."""
        self._is_due, self._has_text = self._is_due or self._has_text, False


class Notifier:
    """
    Calls the callbacks; also the tool observer of the run.

    `settle` waits for all callbacks. `on_failure` is called if a callback raises. No callback is
    called after a failure or after `stop`.
    """

    def __init__(self, callbacks: Callbacks, on_failure: Callable[[], object]) -> None:
        self._chunk = callbacks.get("on_chunk")
        self._reasoning = callbacks.get("on_reasoning")
        self._tool_start = callbacks.get("on_tool_start")
        self._tool_end = callbacks.get("on_tool_end")
        self._tool_error = callbacks.get("on_tool_error")
        self._on_failure = on_failure
        self._text, self._thoughts = _Joined(), _Joined()
        self._last: asyncio.Task[None] | None = None
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: Exception | None = None
        """The exception of a callback."""

    def notify(self, event: StreamEvent) -> None:
        """Call the callbacks for an event of the model."""
        match event:
            case TextDelta(delta=text):
                chunk = TextChunk(type="text-delta", text=self._text.add(text))
                self._call(self._chunk, chunk)
            case ReasoningDelta(delta=text):
                self._call(self._reasoning, self._thoughts.add(text))
            case ToolCallEnd(tool_call=call):
                self._call(
                    self._chunk,
                    ToolChunk(type="tool-call", name=call.name, args=deepcopy(call.arguments)),
                )
            case TextStart() | TextEnd() | ReasoningStart() | ReasoningEnd():
                pass
            case ToolCallStart() | ToolCallDelta() | ToolResultEvent() | ProviderEvent():
                pass  # the tool runner calls `on_tool_end` with the result
            case StreamStart() | StreamRestart() | StepStart() | StepFinish():
                pass
            case ErrorEvent() | Finish():
                pass
            case _:
                assert_never(event)

    def end_answer(self) -> None:
        """An answer is complete; the text of the next one is separated from it."""
        self._text.end_answer()
        self._thoughts.end_answer()

    def on_tool_start(self, call: ToolCall) -> None:
        """A tool call begins."""
        self._call(self._tool_start, call.name, deepcopy(call.arguments))

    def on_tool_end(self, call: ToolCall, result: ToolResult) -> None:
        """A tool call returned a result, which may be an error."""
        if result.is_error:
            content = result.content
            message = content if isinstance(content, str) else repr(content)
            return self.on_tool_error(call, SDKError(message))
        self._call(self._tool_end, call.name, result.content)
        chunk = ToolChunk(type="tool-result", name=call.name, result=result.content)
        return self._call(self._chunk, chunk)

    def on_tool_error(self, call: ToolCall, error: Exception) -> None:
        """A tool call failed."""
        self._call(self._tool_error, call.name, error)
        self._call(self._chunk, ToolChunk(type="tool-error", name=call.name, error=error))

    @property
    def is_settled(self) -> bool:
        """Whether all callbacks have returned."""
        return self._last is None or self._last.done()

    async def settle(self) -> None:
        """Wait until all callbacks have returned, or until `stop`."""
        while self._last is not None and not self._last.done() and not self._stopped.done():
            # Also waits for `stop`, because a callback may ignore its cancellation.
            waited: set[asyncio.Future[None]] = {self._last, self._stopped}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)

    def stop(self) -> None:
        """Call no more callbacks and cancel a running one; idempotent."""
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
        except Exception as error:  # noqa: BLE001 -- the execution returns it
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
