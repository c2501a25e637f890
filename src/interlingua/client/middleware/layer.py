"""
A layer of a client: a middleware of any form, behind one contract.

What programs write (`contract.py`) is adapted once, by its signature, when a client is made. After
that each layer is called in one way: `complete(request, call_next, call)`,
`stream(request, call_next, call)` and `perform(operation, value, call_next)`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeAlias

from msgspec.structs import replace

from interlingua.client.middleware.contract import (
    Call,
    CompleteNext,
    PerformNext,
    Progress,
    StreamNext,
    ToolMiddleware,
)
from interlingua.client.middleware.handover import Handover, check_returned
from interlingua.client.middleware.layers import Resolve
from interlingua.client.middleware.shown import Shown, is_replaced, without_raw
from interlingua.runtime.callbacks import settle, signature_of
from interlingua.runtime.fold import in_steps
from interlingua.spec.check import describe
from interlingua.spec.defaults import MANY_PARTS
from interlingua.spec.errors import ConfigurationError, StreamError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.accumulate import events_from_response

CompleteHook: TypeAlias = Callable[[Request, CompleteNext, Call], Awaitable[Any]]
StreamHook: TypeAlias = Callable[[Request, StreamNext, Call], AsyncIterator[StreamEvent]]
PerformHook: TypeAlias = Callable[[Call, Any, PerformNext], Awaitable[Any]]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REQUIRED = inspect.Parameter.empty


class Hooks(NamedTuple):
    """The functions of one middleware; those for calls take the call, whatever it takes itself."""

    complete: CompleteHook | None
    stream: StreamHook | None
    perform: PerformHook | None


def find_hooks(middleware: Any) -> Hooks:
    """The functions of a middleware; `ConfigurationError` if it is none."""
    if isinstance(middleware, type):
        name = middleware.__name__
        raise ConfigurationError(
            f"The class {name} is not a middleware: pass an instance, such as {name}(…)."
        )
    complete = getattr(middleware, "complete", None)
    stream = getattr(middleware, "stream", None)
    perform = getattr(middleware, "perform", None)
    if complete is None and stream is None:
        if _is_kind(inspect.isasyncgenfunction, middleware):
            stream = middleware
        elif _is_kind(inspect.iscoroutinefunction, middleware):
            complete = middleware
        elif perform is None and not isinstance(middleware, ToolMiddleware):
            _refuse(middleware)
    if inspect.iscoroutinefunction(stream):
        raise ConfigurationError(
            f"`stream` of the middleware {describe(middleware)} is a coroutine function. Make it "
            "an async generator (with `yield`), or a plain function that returns "
            "`call_next(request)`."
        )
    adapted = _taking_call(complete, middleware)
    is_plain = complete is not None and not _is_kind(inspect.iscoroutinefunction, complete)
    whole = _settling(adapted) if is_plain else adapted
    return Hooks(whole, _taking_call(stream, middleware), perform)


def _is_kind(is_kind: Callable[[Any], bool], middleware: Any) -> bool:
    """Whether a function, or the `__call__` of an object, is of this kind."""
    return is_kind(middleware) or is_kind(getattr(type(middleware), "__call__", None))  # noqa: B004


def _taking_call(function: Any, middleware: Any) -> Any:
    """The function as one that takes a request, the next layer and the call, in this order."""
    if function is None:
        return None
    parameters: Mapping[str, inspect.Parameter] = {}
    with suppress(TypeError, ValueError):  # some functions that are not in Python have no signature
        parameters = signature_of(function).parameters
    positional = [each for each in parameters.values() if each.kind in _POSITIONAL]
    takes_any = any(each.kind is each.VAR_POSITIONAL for each in parameters.values())
    if parameters and not takes_any:
        _check_parameters(positional, function, middleware)
    third = positional[2] if len(positional) > 2 else None
    if third is not None and (third.name == "call" or third.default is _REQUIRED):
        return function
    first_two = {each.name for each in positional[:2]}  # the next layer may have this name
    if "call" in parameters.keys() - first_two:
        return lambda request, call_next, call: function(request, call_next, call=call)
    return lambda request, call_next, _: function(request, call_next)


def _settling(function: Callable[..., Any]) -> CompleteHook:
    """A plain function as a coroutine; it may return a response, or what `call_next` returned."""

    async def complete(request: Request, call_next: CompleteNext, call: Call) -> Any:
        return await settle(function(request, call_next, call))

    return complete


def _check_parameters(positional: list[inspect.Parameter], function: Any, middleware: Any) -> None:
    """Refuse a function that does not take the next layer, such as `complete` of an adapter."""
    if len(positional) > 1 and positional[1].default is _REQUIRED:
        return
    name = type(middleware).__name__
    key = getattr(middleware, "name", None)
    if isinstance(key, str):
        raise ConfigurationError(
            f"`{name}` is an adapter, which is not a middleware: pass it as "
            f"Client({{{key!r}: {name}(…)}})."
        )
    raise ConfigurationError(
        f"{describe(middleware)} is not a middleware: its function "
        f"`{getattr(function, '__name__', name)}` must take (request, call_next), or "
        "(request, call_next, call)."
    )


def _refuse(middleware: Any) -> NoReturn:
    """Say what to do instead of passing this as a middleware."""
    name = getattr(middleware, "__name__", type(middleware).__name__)
    if callable(middleware):
        raise ConfigurationError(
            f"`{name}` is not a middleware, because it is not an async function: write "
            f"`async def {name}(request, call_next)`."
        )
    if hasattr(middleware, "reserve") and hasattr(middleware, "settle"):
        raise ConfigurationError(
            f"`{name}` is a store, which is not a middleware: pass it to one, such as "
            f"Budget(usd=20, store={name}(…))."
        )
    raise ConfigurationError(
        f"{describe(middleware)} is not a middleware: it needs `complete(request, call_next)`, "
        "`stream(request, call_next)` or `perform(operation, value, call_next)`, or must be an "
        "async function."
    )


class LayerTraits(NamedTuple):
    """What a middleware says about itself."""

    per_attempt: bool = False
    """It runs once per attempt, not once per request."""
    hold: bool = False
    """A coroutine function whose events are withheld until it returns."""
    guard: bool = False
    """It must see every call, operations too."""
    has_other_models: bool = False
    """It asks another model after a failure."""
    only_counts: bool = False
    """It passes on every answer and every error as they are."""
    attempt_layer: Any = None
    """A second middleware, which runs once per attempt."""

    @classmethod
    def of(cls, middleware: Any) -> LayerTraits:
        """The traits of a middleware, from its attributes of these names."""
        flags = {
            name: bool(getattr(middleware, name, False))
            for name in cls._fields
            if name != "attempt_layer"
        }
        return cls(**flags, attempt_layer=getattr(middleware, "attempt_layer", None))


class Layer:
    """A middleware of any form, with the contract that all layers have."""

    __slots__ = ("_hooks", "_middleware", "traits")

    def __init__(self, middleware: Any) -> None:
        self._hooks: Hooks = find_hooks(middleware)
        self._middleware = middleware
        self.traits: LayerTraits = LayerTraits.of(middleware)

    def __repr__(self) -> str:
        return repr(self._middleware)

    @property
    def wraps_calls(self) -> bool:
        """Whether it wraps answers and streams."""
        return self._hooks.complete is not None or self._hooks.stream is not None

    @property
    def wraps_streams_late(self) -> bool:
        """Whether it gets the whole response at the end of a stream, not the events."""
        return self._hooks.stream is None

    @property
    def wraps_operations(self) -> bool:
        """Whether it wraps operations."""
        return self._hooks.perform is not None

    async def complete(self, request: Request, call_next: CompleteNext, call: Call) -> Response:
        """The answer; without the raw body of the provider if the middleware has changed it."""
        hook = self._hooks.complete
        if hook is None:
            return await self._replay(request, call_next, call)
        answer: Response | None = None

        async def following(request: Request) -> Response:
            nonlocal answer
            answer = response = await call_next(request)
            return response

        response = check_returned(await hook(request, following, call), self)
        if response is answer or answer is None:
            return response
        return without_raw(response, answer)

    def stream(
        self, request: Request, call_next: StreamNext, call: Call
    ) -> AsyncIterator[StreamEvent]:
        """The events of the answer."""
        hook = self._hooks.stream
        if hook is None:
            return self._hand_over(request, call_next, call)
        events = hook(request, call_next, call)
        if hasattr(events, "__aiter__"):
            return events
        raise ConfigurationError(
            f"The middleware {self!r} returned {type(events).__name__}, not an async iterator of "
            "events. Make it an async generator (with `yield`), or return `call_next(request)`."
        )

    def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Awaitable[Any]:
        """The result of the operation."""
        hook = self._hooks.perform
        return call_next(value) if hook is None else hook(operation, value, call_next)

    async def _replay(self, request: Request, call_next: CompleteNext, call: Call) -> Response:
        """Pass a whole answer through a middleware that has only `stream`, as events."""
        answer: Response | None = None

        async def replayed(request: Request) -> AsyncGenerator[StreamEvent, None]:
            nonlocal answer
            answer = await call_next(request)
            is_large = len(answer.message.content) > MANY_PARTS
            replay = partial(events_from_response, answer)
            *events, finish = await asyncio.to_thread(replay) if is_large else replay()
            async for event in in_steps(events):
                yield event
            yield replace(finish, response=answer)

        shown = Shown()
        response: Response | None = None

        def following(request: Request) -> AsyncIterator[StreamEvent]:
            return shown.attach(partial(replayed, request), progress=Progress())

        async for event in shown.attach(partial(self.stream, request, following, call)):
            if type(event) is Finish and response is None:
                response = event.response
        if response is None:
            raise StreamError("The stream ended without a finish event.")
        if answer is None:
            return response
        response = replace(response, raw=answer.raw, cost=answer.cost, attempts=answer.attempts)
        return without_raw(response, answer)

    async def _hand_over(
        self, request: Request, call_next: StreamNext, call: Call
    ) -> AsyncGenerator[StreamEvent, None]:
        """Pass a stream by a middleware that has only `complete`."""
        hook: Any = self._hooks.complete
        handover = Handover(call_next, hold=self.traits.hold)
        handover.start(hook(request, handover.next, call), self)
        try:
            async for event in handover.events():
                yield event
            is_large = handover.is_large
            rest = await asyncio.to_thread(handover.end) if is_large else handover.end()
            async for event in in_steps(rest):
                yield event
        finally:
            await handover.close()

    # As a part of what calls it.

    def around_answer(self, call_next: CompleteNext, call: Call, resolve: Resolve) -> CompleteNext:
        """What the layer outside of this one calls for a whole answer."""

        def complete(request: Request) -> Awaitable[Response]:
            return self.complete(resolve(request), call_next, call)

        return complete

    def around_stream(
        self, call_next: StreamNext, call: Call, resolve: Resolve, shown: Shown
    ) -> StreamNext:
        """The same for a stream."""

        def stream(request: Request) -> AsyncIterator[StreamEvent]:
            def open_events() -> AsyncIterator[StreamEvent]:
                return self.stream(resolve(request), call_next, call)

            def find_late(response: Response) -> Awaitable[Response]:
                return _find_late_answer(self, resolve(request), response, call, shown)

            return shown.attach(open_events, find_late=find_late)

        return stream

    def around_operation(self, operation: Call, call_next: PerformNext) -> PerformNext:
        """The same for an operation."""

        def perform(value: Any) -> Awaitable[Any]:
            return self.perform(operation, value, call_next)

        return perform


async def _find_late_answer(
    layer: Layer, request: Request, response: Response, call: Call, shown: Shown
) -> Response:
    """
    The response at the end of a stream, or the one that has replaced it.

    If a layer inside replaced the answer after a part of it was delivered, a layer that reads the
    events has not seen the new answer. It is then called once more with the new answer as a whole.
    """
    if layer.wraps_streams_late:
        return shown.add_replaced(response) if is_replaced(response) else response
    replaced = shown.find_replaced(response)
    if replaced is None:
        return response

    async def known(_: Request) -> Response:
        return replaced

    return shown.add_replaced(await layer.complete(request, known, call))
