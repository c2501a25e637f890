"""
Middleware: an onion around every call, in both modes.

A middleware is an object with `complete(request, call_next)`, `stream(request, call_next)`, or
both. A plain coroutine function stands for the first, an async generator function for the
second; the mode it does not name passes by it.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from interlingua.client.middleware.operations import PerformMiddleware
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response

Complete: TypeAlias = Callable[[Request], Awaitable[Response]]
Stream: TypeAlias = Callable[[Request], AsyncIterator[StreamEvent]]


@runtime_checkable
class CompleteMiddleware(Protocol):
    """Wraps calls that answer whole."""

    async def complete(self, request: Request, call_next: Complete) -> Response:
        """Call `call_next` (or not), and answer."""


@runtime_checkable
class StreamMiddleware(Protocol):
    """Wraps calls that stream."""

    def stream(self, request: Request, call_next: Stream) -> AsyncIterator[StreamEvent]:
        """Yield the events of `call_next` (or others)."""


Middleware: TypeAlias = (
    CompleteMiddleware
    | StreamMiddleware
    | PerformMiddleware
    | Callable[[Request, Complete], Awaitable[Response]]
    | Callable[[Request, Stream], AsyncIterator[StreamEvent]]
)


class Onion:
    """The layers of a client: the first registered is the outermost."""

    def __init__(self, middleware: Iterable[Middleware] = ()) -> None:
        layers = [_hooks(layer) for layer in middleware]
        self._complete = [hook for hook, _ in layers if hook is not None]
        self._stream = [hook for _, hook in layers if hook is not None]

    def wrap_complete(self, call: Complete) -> Complete:
        """`call` within every layer that is about whole answers."""
        for hook in reversed(self._complete):
            call = partial(hook, call_next=call)
        return call

    def wrap_stream(self, call: Stream) -> Stream:
        """`call` within every layer that is about streams."""
        for hook in reversed(self._stream):
            call = partial(hook, call_next=call)
        return call


def _hooks(layer: Any) -> tuple[Any, Any]:
    if inspect.isasyncgenfunction(layer):
        return None, _positional(layer)
    if inspect.iscoroutinefunction(layer):
        return _positional(layer), None
    complete = layer.complete if isinstance(layer, CompleteMiddleware) else None
    stream = layer.stream if isinstance(layer, StreamMiddleware) else None
    if complete is None and stream is None and not isinstance(layer, PerformMiddleware):
        raise ConfigurationError(
            f"{layer!r} is no middleware: it needs `complete(request, call_next)`, "
            "`stream(request, call_next)` or `perform(operation, value, call_next)`"
        )
    return (
        _positional(complete) if complete is not None else None,
        _positional(stream) if stream is not None else None,
    )


def _positional(hook: Any) -> Any:
    """The hook by keyword, whatever its own parameters are called."""

    def call(request: Request, call_next: Any) -> Any:
        return hook(request, call_next)

    return cast(Any, call)
