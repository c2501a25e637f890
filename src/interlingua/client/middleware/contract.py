"""
What a middleware is: the forms that it may have, and what it is given.

A middleware wraps every call, whole or streamed. Each of three forms works in both modes:

- an object with `complete(request, call_next)` and `stream(request, call_next)`; with only one of
  them, it works as one of the following;
- an async generator function that receives and yields events. A whole answer is replayed through
  it as events;
- a coroutine function `async def layer(request, call_next) -> Response`. In a stream, `call_next`
  returns the response at the end of the stream, and the events pass by meanwhile (`hold = True`
  withholds them until the function returns).

Each of these functions may have a third parameter, `call`: it gets the `Call`.

The first registered middleware is the outermost. It runs once per request, or once per attempt if
it is marked with `per_attempt`.

A middleware with `perform(operation, value, call_next)` also wraps operations, such as counting
tokens or listing models; any other does not see them. A middleware with `guard = True` must see
everything: a client with a guard that has no `perform` refuses operations. A middleware with
`run_tool(call, request, call_next)` wraps each tool that a run of the client calls.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from interlingua.providers.tariffs import Tariffs
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.contracts import Adapter
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Attempt, Cost, Response, Usage

CompleteNext: TypeAlias = Callable[[Request], Awaitable[Response]]
"""The next layer of a call with a whole answer."""
StreamNext: TypeAlias = Callable[[Request], AsyncIterator[StreamEvent]]
"""The next layer of a streaming call."""
PerformNext: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Calls the next layer with a value; returns the result of the operation."""
ToolNext: TypeAlias = Callable[[], Awaitable[ToolResult]]
"""Runs the tool; raises what the tool raises."""

GENERATE = "generate"
"""The name of calls that are answered by a model."""
Marked = TypeVar("Marked")


class Progress(msgspec.Struct, gc=False):
    """
    How far an attempt has come.

    A layer that is cancelled, or that fails, hides from the layers outside of it what the
    provider has answered by then.
    """

    is_stream: bool = False
    """Whether the answer is streamed."""
    earlier: int = 0
    """How many attempts of the call had ended when this one began."""
    is_sent: bool = False
    """Whether the request was given to the adapter, and is not waiting for a connection."""
    usage: Usage | None = None
    """What the provider has reported at the end of its answer."""
    cost: Cost | None = None
    """What that cost; None if the price is unknown."""
    lost: int = 0
    """How many attempts of an operation were cancelled or timed out after they were sent."""

    def connect(self, is_connecting: bool) -> None:
        """Note that a connection is being opened, or is open."""
        self.is_sent = not is_connecting

    def answer(self, usage: Usage, cost: Cost | None) -> None:
        """Note the end of an answer; a layer may ask several times in one attempt."""
        if self.usage is not None:
            usage += self.usage
            cost = None if cost is None or self.cost is None else cost + self.cost
        self.usage, self.cost = usage, cost


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a model, or of an operation: what a middleware may know about it."""

    name: str = GENERATE
    """The operation, such as `embed`; `generate` for answers and streams."""
    provider: str = ""
    """The adapter that the call is for; a middleware may have sent the request to another."""
    model: str = ""
    """The model that the call is for; empty for an operation without one."""
    request_id: str = ""
    """The id for `client.cancel`, events and logs."""
    step: int = 0
    """The step of the run."""
    attempt: int | None = None
    """The number of the attempt, in a layer that runs once per attempt."""
    adapters: Mapping[str, Adapter] = {}
    """The adapters of the client, by provider."""
    tariffs: Tariffs | None = None
    """The prices of the client; None: those of the catalog."""
    attempts: Callable[[], tuple[Attempt, ...]] = tuple
    """Returns the attempts of the call that have ended by now."""
    progress: Progress = msgspec.field(default_factory=Progress)
    """How far the attempt has come; that of an operation is about all of its attempts."""

    @property
    def adapter(self) -> Adapter | None:
        """The adapter that the call is for."""
        return self.adapters.get(self.provider)


NO_CALL = Call()
"""A call of which nothing is known."""


@runtime_checkable
class CompleteMiddleware(Protocol):
    """Wraps calls with a whole answer."""

    async def complete(self, request: Request, call_next: CompleteNext, /) -> Response:
        """Return an answer; usually that of `call_next`."""


@runtime_checkable
class StreamMiddleware(Protocol):
    """Wraps streaming calls."""

    def stream(self, request: Request, call_next: StreamNext, /) -> AsyncIterator[StreamEvent]:
        """Yield events; usually those of `call_next`."""


@runtime_checkable
class CompleteMiddlewareWithCall(Protocol):
    """Wraps calls with a whole answer, and takes the call."""

    async def complete(self, request: Request, call_next: CompleteNext, call: Call) -> Response:
        """Return an answer; usually that of `call_next`."""


@runtime_checkable
class StreamMiddlewareWithCall(Protocol):
    """Wraps streaming calls, and takes the call."""

    def stream(
        self, request: Request, call_next: StreamNext, call: Call
    ) -> AsyncIterator[StreamEvent]:
        """Yield events; usually those of `call_next`."""


@runtime_checkable
class PerformMiddleware(Protocol):
    """Wraps operations."""

    async def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Any:
        """Return a result; usually that of `call_next(value)`."""


@runtime_checkable
class ToolMiddleware(Protocol):
    """Wraps the tools that a run calls."""

    async def run_tool(
        self, call: ToolCall, request: Request, call_next: ToolNext, /
    ) -> ToolResult:
        """Return a result; usually that of `call_next()`. The request is the first of the run."""


Middleware: TypeAlias = (
    CompleteMiddleware
    | StreamMiddleware
    | CompleteMiddlewareWithCall
    | StreamMiddlewareWithCall
    | PerformMiddleware
    | ToolMiddleware
    | Callable[[Request, CompleteNext], Awaitable[Response]]
    | Callable[[Request, StreamNext], AsyncIterator[StreamEvent]]
    | Callable[[Request, CompleteNext, Call], Awaitable[Response]]
    | Callable[[Request, StreamNext, Call], AsyncIterator[StreamEvent]]
)
"""All forms of middleware: objects with `complete`, `stream`, `perform` or tools, and functions."""


def per_attempt(layer: Marked) -> Marked:
    """Run this middleware once per attempt, inside the retry loop, not once per request."""
    layer.per_attempt = True  # type: ignore[attr-defined]
    return layer
