"""
Middleware: layers around every call, in both modes.

Three shapes, and each of them works for whole answers and for streams:

- an object with `complete(request, next)` and `stream(request, next)`; with one of them only, it
  is treated as one of the following;
- an async generator function, which is given and yields events. A whole answer is replayed
  through it as events;
- a coroutine function `async def layer(request, next) -> Response`. Of a stream, `next` returns
  the response when it has ended, and the events pass meanwhile (`hold = True` withholds them
  until the function returns).

The first that is registered is the outermost. A layer runs once per request, or once per attempt
if it is marked with `per_attempt`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from msgspec.structs import replace

from interlingua.client.middleware.handover import REPLACED, Handover
from interlingua.client.middleware.operations import PerformMiddleware
from interlingua.providers.fold import close_stream
from interlingua.spec.content import Part
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.accumulate import StreamAccumulator, events_from_response

CompleteNext: TypeAlias = Callable[[Request], Awaitable[Response]]
"""The rest of a call that answers whole, as a middleware is given it."""
StreamNext: TypeAlias = Callable[[Request], AsyncIterator[StreamEvent]]
"""The rest of a call that streams, as a middleware is given it."""

Layer = TypeVar("Layer")


@runtime_checkable
class CompleteMiddleware(Protocol):
    """Wraps calls that answer whole."""

    async def complete(self, request: Request, call_next: CompleteNext, /) -> Response:
        """Call `call_next` (or not), and answer."""


@runtime_checkable
class StreamMiddleware(Protocol):
    """Wraps calls that stream."""

    def stream(self, request: Request, call_next: StreamNext, /) -> AsyncIterator[StreamEvent]:
        """Yield the events of `call_next` (or others)."""


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


class Onion:
    """Layers in their order: the first is the outermost."""

    __slots__ = ("_layers", "is_empty")

    def __init__(self, middleware: Iterable[Middleware] = ()) -> None:
        hooks = map(_hooks, middleware)
        self._layers = tuple(hook for hook in hooks if hook is not None)
        self.is_empty: bool = not self._layers

    def wrap_complete(self, call: CompleteNext) -> CompleteNext:
        """`call` within every layer."""
        for complete, _ in reversed(self._layers):
            call = partial(complete, call)
        return call

    def wrap_stream(self, call: StreamNext, shown: Shown, *, attach: bool = False) -> StreamNext:
        """
        The same for streams; each layer is given events whose `Finish` has the response.

        `attach` gives the innermost events their response also where there is no layer.
        """
        if attach and self.is_empty:
            return partial(_attached, call, shown)
        for _, stream in reversed(self._layers):
            call = partial(stream, partial(_attached, call, shown))
        return call


class Shown:
    """
    What the events of a stream said, at the place in the middleware where they were last seen.

    A wire may end with a whole response that says more than its events did. It stands, unless a
    middleware has changed the events on their way: then they are what everyone sees.
    """

    __slots__ = ("_content",)

    def __init__(self) -> None:
        self._content: tuple[Part, ...] | None = None

    async def attach(self, events: AsyncIterator[StreamEvent]) -> AsyncGenerator[StreamEvent, None]:
        """The events, with the response of those that came by in the last one."""
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
        """The response of a stream that has come to its end."""
        response, content = accumulator.response(), accumulator.content()
        before, self._content = self._content, content
        if before is None or before == content or _is_replaced(response):
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
    """How the layer wraps a whole answer, and how a stream; each is given the next one first."""
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
                f"{layer!r} is no middleware: it needs `complete(request, next)`, "
                "`stream(request, next)` or `perform(operation, value, next)`, or must be an "
                "async function"
            )
    hold = bool(getattr(layer, "hold", False))
    return (
        partial(_replay, stream) if complete is None else partial(_swap, complete),
        partial(_stream_by_complete, complete, hold) if stream is None else partial(_swap, stream),
    )


def _call_of(layer: Any) -> Any:
    return getattr(type(layer), "__call__", None)  # noqa: B004 -- its kind is looked at next


def _swap(hook: Callable[..., Any], call_next: Any, request: Request) -> Any:
    return hook(request, call_next)


async def _replay(
    hook: Callable[..., AsyncIterator[StreamEvent]], call_next: CompleteNext, request: Request
) -> Response:
    """A whole answer through a layer that is about events."""
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
        response = accumulator.response()  # raises: the layer swallowed the end
    if answer is None:
        return response
    return replace(response, raw=answer.raw, cost=answer.cost, attempts=answer.attempts)


async def _stream_by_complete(
    hook: Callable[..., Coroutine[Any, Any, Response]],
    hold: bool,
    call_next: StreamNext,
    request: Request,
) -> AsyncGenerator[StreamEvent, None]:
    """A stream through a layer that is about whole answers."""
    handover = Handover(call_next, hold=hold)
    handover.start(hook(request, handover.next))
    try:
        async for event in handover.events():
            yield event
        for event in handover.end():
            yield event
    finally:
        await handover.close()
