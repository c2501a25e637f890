"""
Middleware: layers around every call, whole or streamed, and around operations.

Each of three shapes works for whole answers and for streams:

- an object with `complete(request, next)` and `stream(request, next)`; with only one of them, it
  is treated as one of the following;
- an async generator function that receives and yields events. A whole answer is replayed through
  it as events;
- a coroutine function `async def layer(request, next) -> Response`. In a stream, `next` returns
  the response at the end of the stream, and the events pass by meanwhile (`hold = True` withholds
  them until the function returns).

The first registered layer is the outermost. A layer runs once per request, or once per attempt if
it is marked with `per_attempt`.

A middleware with `perform(operation, value, call_next)` also wraps operations, such as counting
tokens or listing models; any other does not see them. A middleware with `guard = True` must see
everything: a client with a guard that has no `perform` refuses operations.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec
from msgspec.structs import replace

from interlingua.client.middleware.handover import REPLACED, Handover
from interlingua.providers.fold import close_stream
from interlingua.spec.content import Part
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.accumulate import StreamAccumulator, events_from_response

CompleteNext: TypeAlias = Callable[[Request], Awaitable[Response]]
"""The next layer of a call with a whole answer."""
StreamNext: TypeAlias = Callable[[Request], AsyncIterator[StreamEvent]]
"""The next layer of a streaming call."""

PerformNext: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Calls the next layer with a value; returns the result of the operation."""

Layer = TypeVar("Layer")


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


class OperationCall(msgspec.Struct, frozen=True, kw_only=True):
    """The operation to perform, and its provider."""

    name: str
    provider: str
    request_id: str


@runtime_checkable
class PerformMiddleware(Protocol):
    """Wraps operations."""

    async def perform(self, operation: OperationCall, value: Any, call_next: PerformNext) -> Any:
        """Return a result; usually that of `call_next(value)`."""


Middleware: TypeAlias = (
    CompleteMiddleware
    | StreamMiddleware
    | PerformMiddleware
    | Callable[[Request, CompleteNext], Awaitable[Response]]
    | Callable[[Request, StreamNext], AsyncIterator[StreamEvent]]
)


def per_attempt(layer: Layer) -> Layer:
    """Run this middleware once per attempt, inside the retry loop, not once per request."""
    layer.per_attempt = True  # type: ignore[attr-defined]
    return layer


class CallLayers:
    """The layers around calls; the first is the outermost."""

    __slots__ = ("_layers", "is_empty")

    def __init__(self, middleware: Iterable[Middleware] = ()) -> None:
        hooks = map(_hooks, middleware)
        self._layers = tuple(hook for hook in hooks if hook is not None)
        self.is_empty: bool = not self._layers

    def wrap_complete(self, call: CompleteNext) -> CompleteNext:
        """The call, wrapped in every layer."""
        for complete, _ in reversed(self._layers):
            call = partial(complete, call)
        return call

    def wrap_stream(self, call: StreamNext, shown: Shown, *, attach: bool = False) -> StreamNext:
        """
        The streaming call, wrapped in every layer; each one gets a `Finish` with the response.

        With `attach`, `Finish` gets the response even if there is no layer.
        """
        if attach and self.is_empty:
            return partial(_attached, call, shown)
        for _, stream in reversed(self._layers):
            call = partial(stream, partial(_attached, call, shown))
        return call


class Shown:
    """
    The content of a stream's events as the last layer saw it, to notice changes.

    A provider may end its stream with a whole response that says more than the events. That
    response is used unless a middleware changed the events: then the events count.
    """

    __slots__ = ("_content",)

    def __init__(self) -> None:
        self._content: tuple[Part, ...] | None = None

    async def attach(self, events: AsyncIterator[StreamEvent]) -> AsyncGenerator[StreamEvent, None]:
        """The events; `Finish` gets the response that they add up to."""
        accumulator = StreamAccumulator()
        try:
            async for event in events:
                accumulator.feed(event)
                if type(event) is Finish:
                    event = replace(event, response=self.settle(event, accumulator))  # noqa: PLW2901
                yield event
        finally:
            await close_stream(events)

    def settle(self, finish: Finish, accumulator: StreamAccumulator) -> Response:
        """The response of a finished stream."""
        response, content = accumulator.response(), accumulator.content()
        previous, self._content = self._content, content
        if previous is None or previous == content or _is_replaced(response):
            return response
        return replace(
            response,
            message=replace(response.message, content=content),
            finish_reason=finish.finish_reason,
            usage=finish.usage,
        )


def is_per_attempt(layer: Middleware) -> bool:
    """Whether it is marked with `per_attempt`."""
    return bool(getattr(layer, "per_attempt", False))


def _is_replaced(response: Response) -> bool:
    return any(warning.code == REPLACED for warning in response.warnings)


def _attached(call: StreamNext, shown: Shown, request: Request) -> AsyncIterator[StreamEvent]:
    return shown.attach(call(request))


# Each shape in both modes.


def _hooks(layer: Any) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """Functions that wrap a whole call and a stream; both take the next layer first."""
    complete: Any = getattr(layer, "complete", None)
    stream: Any = getattr(layer, "stream", None)
    if complete is None and stream is None:
        if inspect.isasyncgenfunction(layer) or inspect.isasyncgenfunction(_call_of(layer)):
            stream = layer
        elif inspect.iscoroutinefunction(layer) or inspect.iscoroutinefunction(_call_of(layer)):
            complete = layer
        elif isinstance(layer, PerformMiddleware):
            return None
        else:
            raise ConfigurationError(
                f"{layer!r} is not a middleware: it needs `complete(request, next)`, "
                "`stream(request, next)` or `perform(operation, value, next)`, or must be an "
                "async function."
            )
    hold = bool(getattr(layer, "hold", False))
    return (
        partial(_replay, stream) if complete is None else partial(_call_hook, complete),
        partial(_stream_by_complete, complete, hold)
        if stream is None
        else partial(_call_hook, stream),
    )


def _call_of(layer: Any) -> Any:
    return getattr(type(layer), "__call__", None)  # noqa: B004 -- its kind is checked by the caller


def _call_hook(hook: Callable[..., Any], call_next: Any, request: Request) -> Any:
    return hook(request, call_next)


async def _replay(
    hook: Callable[..., AsyncIterator[StreamEvent]], call_next: CompleteNext, request: Request
) -> Response:
    """Pass a whole answer through a layer of the stream shape."""
    answer: Response | None = None

    async def replayed(request: Request) -> AsyncGenerator[StreamEvent, None]:
        nonlocal answer
        answer = await call_next(request)
        *events, finish = events_from_response(answer)
        for event in events:
            yield event
        yield replace(finish, response=answer)

    shown, accumulator = Shown(), StreamAccumulator()
    response: Response | None = None
    events = hook(request, lambda request: shown.attach(replayed(request)))
    try:
        async for event in events:
            accumulator.feed(event)
            if type(event) is Finish:
                response = shown.settle(event, accumulator)
    finally:
        await close_stream(events)
    if response is None:
        response = accumulator.response()  # raises: the layer did not yield the last event
    if answer is None:
        return response
    return replace(response, raw=answer.raw, cost=answer.cost, attempts=answer.attempts)


async def _stream_by_complete(
    hook: Callable[..., Coroutine[Any, Any, Response]],
    hold: bool,
    call_next: StreamNext,
    request: Request,
) -> AsyncGenerator[StreamEvent, None]:
    """Pass a stream through a layer of the coroutine shape."""
    handover = Handover(call_next, hold=hold)
    handover.start(hook(request, handover.next))
    try:
        async for event in handover.events():
            yield event
        for event in handover.end():
            yield event
    finally:
        await handover.close()


class OperationLayers:
    """The layers around operations; the first is the outermost."""

    def __init__(self, middleware: Iterable[object] = ()) -> None:
        layers = tuple(middleware)
        self._layers = [layer for layer in layers if isinstance(layer, PerformMiddleware)]
        self._guards = [
            layer
            for layer in layers
            if getattr(layer, "guard", False) and not isinstance(layer, PerformMiddleware)
        ]

    def wrap(self, operation: OperationCall, send: PerformNext) -> PerformNext:
        """The operation, wrapped in every layer; an error if a guard would not see it."""
        if self._guards:
            raise ConfigurationError(
                f"The operation {operation.name!r} is refused, because the guard "
                f"{self._guards[0]!r} has no `perform(operation, value, call_next)` to check it."
            )
        for layer in reversed(self._layers):
            send = _wrap_one(layer, operation, send)
        return send


def _wrap_one(
    layer: PerformMiddleware, operation: OperationCall, call_next: PerformNext
) -> PerformNext:
    return lambda value: layer.perform(operation, value, call_next)
