"""The layers of a client, around its calls, its attempts and the tools of its runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from interlingua.client.middleware.contract import (
    Call,
    CompleteNext,
    Middleware,
    PerformNext,
    StreamNext,
    ToolMiddleware,
)
from interlingua.spec.check import describe
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response

if TYPE_CHECKING:
    from interlingua.client.middleware.layer import Layer
    from interlingua.client.middleware.shown import Shown

Resolve: TypeAlias = Callable[[Request], Request]
"""Looks up the provider and the model of a request again, if a layer has changed them."""


class Layers:
    """The layers around a call or an attempt; the first is the outermost."""

    __slots__ = (
        "_calls",
        "_operations",
        "_uninformed",
        "has_other_models",
        "is_empty",
        "passes_operations",
        "sees_answers",
    )

    def __init__(self, layers: Iterable[Layer] = ()) -> None:
        inwards = tuple(layers)
        outwards = inwards[::-1]  # as they are wrapped, one around the other
        self._calls = [layer for layer in outwards if layer.wraps_calls]
        self._operations = [layer for layer in outwards if layer.wraps_operations]
        self._uninformed = next(
            (each for each in inwards if each.traits.guard and not each.wraps_operations), None
        )
        self.is_empty: bool = not self._calls
        """Whether no layer wraps answers and streams."""
        self.sees_answers: bool = any(not layer.traits.only_counts for layer in self._calls)
        """Whether a layer may change what an answer or an error shows."""
        self.passes_operations: bool = not self._operations and self._uninformed is None
        """Whether no layer wraps operations, or refuses them."""
        self.has_other_models: bool = any(layer.traits.has_other_models for layer in inwards)
        """Whether a layer asks another model after a failure."""

    def complete(
        self, request: Request, call_next: CompleteNext, call: Call, resolve: Resolve
    ) -> Awaitable[Response]:
        """The whole answer, through every layer; each gets a request that `resolve` returned."""
        for layer in self._calls:
            call_next = layer.around_answer(call_next, call, resolve)
        return call_next(request)

    def stream(
        self, request: Request, call_next: StreamNext, call: Call, resolve: Resolve, shown: Shown
    ) -> AsyncIterator[StreamEvent]:
        """The events, through every layer; each gets a `Finish` with the response."""
        for layer in self._calls:
            call_next = layer.around_stream(call_next, call, resolve, shown)
        return call_next(request)

    def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Awaitable[Any]:
        """The result of an operation, through every layer; an error if a guard would not see it."""
        if self._uninformed is not None:
            raise ConfigurationError(
                f"The operation {operation.name!r} is refused, because the guard "
                f"{self._uninformed!r} has no `perform(operation, value, call_next)` to check it."
            )
        for layer in self._operations:
            call_next = layer.around_operation(operation, call_next)
        return call_next(value)


class MiddlewareSet(NamedTuple):
    """The middleware of a client, where it runs."""

    outer: Layers
    """The layers around all attempts of a call."""
    inner: Layers
    """The layers around each attempt."""
    tools: tuple[ToolMiddleware, ...]
    """The layers around the tools of a run."""


_NO_MIDDLEWARE = MiddlewareSet(Layers(), Layers(), ())


def check_middleware(middleware: Any) -> tuple[Middleware, ...]:
    """The middleware that a client is given; `ConfigurationError` if it is not a list."""
    if isinstance(middleware, str) or not isinstance(middleware, Iterable):
        raise ConfigurationError(
            f"`middleware=` takes a list, such as [Logging()], not {describe(middleware)}."
        )
    return tuple(middleware)


def arrange(middleware: tuple[Middleware, ...]) -> MiddlewareSet:
    """Adapt the middleware of a client; one of them may have a layer outside and one inside."""
    if not middleware:
        return _NO_MIDDLEWARE
    from interlingua.client.middleware.layer import Layer

    outer: list[Layer] = []
    inner: list[Layer] = []
    for each in middleware:
        layer = Layer(each)
        (inner if layer.traits.per_attempt else outer).append(layer)
        if layer.traits.attempt_layer is not None:
            inner.append(Layer(layer.traits.attempt_layer))
    tools = tuple(each for each in middleware if isinstance(each, ToolMiddleware))
    return MiddlewareSet(Layers(outer), Layers(inner), tools)
