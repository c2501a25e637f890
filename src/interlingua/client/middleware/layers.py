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
everything: a client with a guard that has no `perform` refuses operations. A middleware with
`run_tool(call, request, call_next)` wraps each tool that a run of the client calls.

A layer with `transparent = True` calls `call_next` once, returns what it returned, and yields its
events as they are; it is not checked for changes, which saves time.

An object with `takes_call = True` has `complete` and `stream`, and gets one more argument,
`call: CallInfo`.

The layers that only count (`RateLimit`, `Budget`) have a shape of their own: `begin_end.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from functools import partial
from itertools import groupby
from types import CoroutineType, MethodType
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import msgspec
from msgspec.structs import replace

from interlingua.client.middleware.begin_end import BeginEnd, BeginEndGroup
from interlingua.client.middleware.handover import Handover, check_returned, without_raw
from interlingua.providers.tariffs import Tariffs
from interlingua.runtime.callbacks import settle
from interlingua.runtime.fold import close_stream
from interlingua.spec.content import Part, ToolCall, ToolResult
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import ConfigurationError, SDKError, StreamError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Attempt, Response
from interlingua.spec.warnings import make_warning
from interlingua.streams.accumulate import StreamAccumulator, events_from_response
from interlingua.streams.grammar import ENDS

CompleteNext: TypeAlias = Callable[[Request], Awaitable[Response]]
"""The next layer of a call with a whole answer."""
StreamNext: TypeAlias = Callable[[Request], AsyncIterator[StreamEvent]]
"""The next layer of a streaming call."""

Resolve: TypeAlias = Callable[[Request], Request]
"""Looks up the provider and the model of a request again, if a layer has changed them."""

PerformNext: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Calls the next layer with a value; returns the result of the operation."""

ToolNext: TypeAlias = Callable[[], Awaitable[ToolResult]]
"""Runs the tool; raises what the tool raises."""

Layer = TypeVar("Layer")
REPLACED = "answer_replaced"
"""The code of the warning that a response differs from the events that were delivered."""


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


class CallInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a middleware with `takes_call = True` is told about the call."""

    step: int = 0
    """The step of the run."""
    attempt: int | None = None
    """The number of the attempt, of a layer that runs once per attempt."""
    adapters: Mapping[str, Adapter] = {}
    """The adapters of the client, by provider."""
    attempts: Callable[[], tuple[Attempt, ...]] = tuple
    """The attempts of the call that have ended by now."""
    tariffs: Tariffs | None = None
    """The prices of the client; None: those of the catalog."""


NO_CALL = CallInfo()
"""Nothing is known about the call, or no layer asks."""


class OperationCall(msgspec.Struct, frozen=True, kw_only=True):
    """The operation to perform, and its provider."""

    name: str
    """The operation, such as `embed`."""
    provider: str
    """The adapter that is called."""
    request_id: str
    """The id for `client.cancel`, events and logs."""
    adapter: Adapter | None = None
    """The adapter itself."""
    tariffs: Tariffs | None = None
    """The prices of the client."""


@runtime_checkable
class PerformMiddleware(Protocol):
    """Wraps operations."""

    async def perform(self, operation: OperationCall, value: Any, call_next: PerformNext) -> Any:
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
    | PerformMiddleware
    | ToolMiddleware
    | Callable[[Request, CompleteNext], Awaitable[Response]]
    | Callable[[Request, StreamNext], AsyncIterator[StreamEvent]]
)
"""All forms of middleware: objects with `complete`, `stream`, `perform` or tools, and functions."""


def per_attempt(layer: Layer) -> Layer:
    """Run this middleware once per attempt, inside the retry loop, not once per request."""
    layer.per_attempt = True  # type: ignore[attr-defined]
    return layer


class CallLayers:
    """The layers around calls; the first is the outermost."""

    __slots__ = (
        "_layers",
        "group",
        "has_other_models",
        "is_empty",
        "is_transparent",
        "sees_answers",
        "takes_call",
    )

    def __init__(self, middleware: Iterable[Middleware | BeginEnd[Any]] = ()) -> None:
        layers = tuple(middleware)
        # The innermost is first, as they are wrapped.
        self._layers = tuple(_wrappers(reversed(layers)))
        self.is_empty: bool = not self._layers
        self.sees_answers: bool = any(each.group is None for each in self._layers)
        """Whether a layer gets the answer or its events."""
        self.is_transparent: bool = all(each.is_transparent for each in self._layers)
        """Whether all layers return what the last of them gets."""
        self.takes_call: bool = any(getattr(layer, "takes_call", False) for layer in layers)
        """Whether a layer is told about the call."""
        self.has_other_models: bool = any(
            getattr(layer, "has_other_models", False) for layer in layers
        )
        """Whether a layer asks another model after a failure."""
        only_counts = not (self.sees_answers or self.is_empty)
        self.group: BeginEndGroup | None = self._layers[0].group if only_counts else None
        """All of them, if they only count."""

    def complete(
        self, call: CompleteNext, info: CallInfo, resolve: Resolve, request: Request
    ) -> Awaitable[Response]:
        """The whole answer of the call, through every layer; `resolve` is as for `wrap_stream`."""
        is_inside = False
        # A bound method is made and called faster than a `partial`.
        for layer in self._layers:
            if is_inside and not layer.is_transparent:
                call = partial(_resolve_first, resolve, call)
            is_inside = True
            if layer.group is not None:
                call = partial(layer.complete, call, info)
            elif layer.is_told:
                call = MethodType(layer.complete, (call, info))
            elif layer.taker is None:
                call = MethodType(layer.complete, call)
            else:
                call = MethodType(_hooks_with_call(layer.taker, info)[0], call)
        return call(request)

    def wrap_stream(
        self,
        call: StreamNext,
        shown: Shown | None,
        info: CallInfo,
        resolve: Resolve,
        *,
        is_first: bool = False,
    ) -> StreamNext:
        """
        The streaming call, wrapped in every layer; each one gets a `Finish` with the response.

        With `is_first`, the call is an attempt. Its `Finish` gets the response even if there is no
        layer. `shown` is None if no layer sees the events. A request that a layer passes on to
        another is resolved before, so that each of them sees a provider and its model.
        """
        is_inside = False
        for layer in self._layers:
            if is_inside and not layer.is_transparent:
                call = partial(_resolve_first_of_stream, resolve, call)
            is_inside = True
            stream = layer.stream
            if layer.group is not None or shown is None:
                call = partial(stream, call, info)
                continue
            if layer.taker is not None:
                stream = _hooks_with_call(layer.taker, info)[1]
            call = partial(stream, shown, partial(_attached, call, shown, is_first))
            is_first = False
        if is_first and shown is not None:
            call = partial(_attached, call, shown, is_first)
        return call


def _resolve_first(
    resolve: Resolve, call_next: CompleteNext, request: Request
) -> Awaitable[Response]:
    return call_next(resolve(request))


def _resolve_first_of_stream(
    resolve: Resolve, call_next: StreamNext, request: Request
) -> AsyncIterator[StreamEvent]:
    try:
        request = resolve(request)
    except SDKError as error:
        return _fail(error)
    return call_next(request)


async def _fail(error: SDKError) -> AsyncGenerator[StreamEvent, None]:
    """A stream that fails when it is read, as those of adapters do."""
    raise error
    yield  # type: ignore[unreachable] # makes it a generator


class _Wrapper(msgspec.Struct, frozen=True):
    """Wraps calls in one layer, or in neighbouring layers that only count."""

    complete: Callable[..., Any]
    stream: Callable[..., Any]
    is_transparent: bool
    taker: Any = None
    """An object whose functions are made for each call."""
    is_told: bool = False
    """Whether `complete` gets the next layer and the call as a pair."""
    group: BeginEndGroup | None = None
    """The layers that only count."""


def _wrappers(layers: Iterable[Any]) -> Iterator[_Wrapper]:
    """Of these layers, the innermost first."""
    for only_counts, each in groupby(layers, lambda layer: isinstance(layer, BeginEnd)):
        if only_counts:
            group = BeginEndGroup(reversed([*each]))
            yield _Wrapper(group.complete, group.stream, is_transparent=True, group=group)
            continue
        for layer in each:
            hooks = _hooks(layer)
            if hooks is not None:
                is_transparent = bool(getattr(layer, "transparent", False))
                taker = layer if getattr(layer, "takes_call", False) else None
                is_told = is_transparent and taker is not None
                yield _Wrapper(*hooks, is_transparent, taker, is_told)


class Shown:
    """
    The events of a stream as the last layer saw them, to notice what the next layer changes.

    A provider may end its stream with a whole response that says more than the events. That
    response is used unless a middleware changed the events: then the events count.
    """

    __slots__ = ("_changed", "_ends", "_settled")

    def __init__(self) -> None:
        self._settled: list[tuple[Response, tuple[Part, ...] | None]] = []
        self._ends: dict[str, tuple[StreamEvent, str, StreamEvent]] = {}
        self._changed: set[int] = set()  # the indexes of the parts with another text

    async def attach(
        self, events: AsyncIterator[StreamEvent], *, is_first: bool = False
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events; `Finish` gets the response that they add up to."""
        accumulator = StreamAccumulator()
        try:
            async for event in events:
                if type(event) in ENDS:
                    event = self.revise(event, accumulator, is_first=is_first)  # noqa: PLW2901
                elif type(event) is Finish and event.logprobs:
                    event = self._without_old_tokens(event)  # noqa: PLW2901
                accumulator.feed(event)
                if type(event) is Finish:
                    response = self.settle(event, accumulator, is_first=is_first)
                    event = replace(event, response=response)  # noqa: PLW2901
                yield event
        finally:
            await close_stream(events)

    def revise(
        self, event: StreamEvent, accumulator: StreamAccumulator, *, is_first: bool = False
    ) -> StreamEvent:
        """The end of a segment; if a layer changed only its start or deltas, made from those."""
        segment = accumulator.open.get(event.id)  # type: ignore[union-attr]
        if segment is None:
            return event  # the accumulator refuses it
        start, text = segment.start(), "".join(segment.pieces)
        before = None if is_first else self._ends.get(segment.id)
        if before is not None and before[1] != text:
            self._changed.add(segment.index)
        if before is not None and before[2] == event and before[:2] != (start, text):
            event = segment.end()
        self._ends[segment.id] = (start, text, event)
        return event

    def _without_old_tokens(self, finish: Finish) -> Finish:
        """The end of a stream without the tokens of texts that a layer changed."""
        tokens = {
            index: tokens for index, tokens in finish.logprobs.items() if index not in self._changed
        }
        return finish if len(tokens) == len(finish.logprobs) else replace(finish, logprobs=tokens)

    def settle(
        self, finish: Finish, accumulator: StreamAccumulator, *, is_first: bool = False
    ) -> Response:
        """The response of a finished stream."""
        response, content = accumulator.response(), accumulator.content()
        expected = content if is_first else self._find(finish.response)[1]
        if expected is not None and expected != content:
            response = replace(
                response,
                message=replace(response.message, content=content, extra={}),
                finish_reason=finish.finish_reason,
                usage=finish.usage,
                raw=None,
            )
        is_replaced = expected is None and bool(self._settled)
        self._settled.append((response, None if is_replaced else content))
        return response

    def replace(self, response: Response) -> Response:
        """The response, marked as one that counts although other events were delivered."""
        warning = make_warning(REPLACED)
        if warning not in response.warnings:
            response = replace(response, warnings=(*response.warnings, warning))
        self._settled.append((response, None))
        return response

    def find_replaced(self, response: Response | None) -> Response | None:
        """The response that replaced another at the last layer, if this one is based on it."""
        known, content = self._find(response)
        return known if content is None else None

    def _find(self, response: Response | None) -> tuple[Response | None, tuple[Part, ...] | None]:
        """The settled response that is this one, else the last; and the content of its events."""
        for entry in reversed(self._settled):
            if entry[0] is response:
                return entry
        return self._settled[-1] if self._settled else (None, None)


def is_per_attempt(layer: Middleware) -> bool:
    """Whether it is marked with `per_attempt`."""
    return bool(getattr(layer, "per_attempt", False))


def _attached(
    call: StreamNext, shown: Shown, is_first: bool, request: Request
) -> AsyncIterator[StreamEvent]:
    return shown.attach(call(request), is_first=is_first)


# Each shape in both modes.


def _hooks(layer: Any) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """Functions that wrap a whole call and a stream."""
    complete: Any = getattr(layer, "complete", None)
    stream: Any = getattr(layer, "stream", None)
    if complete is None and stream is None:
        if inspect.isasyncgenfunction(layer) or inspect.isasyncgenfunction(_call_of(layer)):
            stream = layer
        elif inspect.iscoroutinefunction(layer) or inspect.iscoroutinefunction(_call_of(layer)):
            complete = layer
        elif isinstance(layer, (PerformMiddleware, ToolMiddleware)):
            return None
        else:
            raise ConfigurationError(
                f"{layer!r} is not a middleware: it needs `complete(request, next)`, "
                "`stream(request, next)` or `perform(operation, value, next)`, or must be an "
                "async function."
            )
    if inspect.iscoroutinefunction(stream):
        raise ConfigurationError(
            f"`stream` of the middleware {layer!r} is a coroutine function. Make it an async "
            "generator (with `yield`), or a plain function that returns `next(request)`."
        )
    if getattr(layer, "transparent", False):
        wrap = _telling if getattr(layer, "takes_call", False) else _passing
        return wrap(complete), partial(_pass_on_events, stream)
    hold = bool(getattr(layer, "hold", False))
    whole = partial(_replay, stream) if complete is None else partial(_complete, complete)
    if stream is None:
        return whole, partial(_stream_by_complete, complete, hold)
    return whole, partial(_stream, stream, whole)


def _hooks_with_call(layer: Any, info: CallInfo) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The hooks of an object that takes the call as an argument."""
    if getattr(layer, "transparent", False):
        stream = partial(layer.stream, call=info)
        return layer.complete, partial(_pass_on_events, stream)
    whole = partial(_complete, partial(layer.complete, call=info))
    return whole, partial(_stream, partial(layer.stream, call=info), whole)


def _call_of(layer: Any) -> Any:
    return getattr(type(layer), "__call__", None)  # noqa: B004 -- its kind is checked by the caller


def _passing(hook: Callable[..., Awaitable[Response]]) -> Callable[..., Awaitable[Response]]:
    """Passes a whole answer through a transparent layer."""

    def pass_on(call_next: CompleteNext, request: Request) -> Awaitable[Response]:
        return hook(request, call_next)

    return pass_on


def _telling(hook: Callable[..., Awaitable[Response]]) -> Callable[..., Awaitable[Response]]:
    """The same for one that is told about the call."""

    def pass_on(following: tuple[CompleteNext, CallInfo], request: Request) -> Awaitable[Response]:
        return hook(request, following[0], call=following[1])

    return pass_on


def _pass_on_events(
    hook: Callable[..., AsyncIterator[StreamEvent]],
    _: Shown,
    call_next: StreamNext,
    request: Request,
) -> AsyncIterator[StreamEvent]:
    """Pass a stream through a transparent layer."""
    return hook(request, call_next)


async def _complete(
    hook: Callable[..., Awaitable[Response]], call_next: CompleteNext, request: Request
) -> Response:
    """Pass a whole answer through a layer of the coroutine shape."""
    answer: Response | None = None

    async def following(request: Request) -> Response:
        nonlocal answer
        answer = response = await call_next(request)
        return response

    work = hook(request, following)
    response = await (work if type(work) is CoroutineType else settle(work))
    if response is answer and response is not None:
        return response  # nothing has changed
    response = check_returned(response, hook)
    return response if answer is None else without_raw(response, answer)


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

    shown = Shown()
    response: Response | None = None
    passed = _events(hook, request, lambda request: shown.attach(replayed(request), is_first=True))
    async for event in shown.attach(passed):
        if type(event) is Finish and response is None:
            response = event.response
    if response is None:
        raise StreamError("The stream ended without a finish event.")
    if answer is None:
        return response
    response = replace(response, raw=answer.raw, cost=answer.cost, attempts=answer.attempts)
    return without_raw(response, answer)


async def _stream(
    hook: Callable[..., AsyncIterator[StreamEvent]],
    whole: Callable[..., Awaitable[Response]],
    shown: Shown,
    call_next: StreamNext,
    request: Request,
) -> AsyncGenerator[StreamEvent, None]:
    """
    Pass a stream through a layer of the stream shape.

    If a layer inside replaced the answer after a part of it was delivered, this layer has not seen
    the new answer in its events. It is then called once more with the new answer as a whole.
    """
    events = _events(hook, request, call_next)
    try:
        async for event in events:
            if type(event) is Finish:
                replaced = shown.find_replaced(event.response)
                if replaced is not None:
                    response = shown.replace(await whole(partial(_return, replaced), request))
                    event = replace(event, response=response)  # noqa: PLW2901
            yield event
    finally:
        await close_stream(events)


def _events(
    hook: Callable[..., AsyncIterator[StreamEvent]], request: Request, call_next: StreamNext
) -> AsyncIterator[StreamEvent]:
    events: Any = hook(request, call_next)
    if hasattr(events, "__aiter__"):
        return cast(AsyncIterator[StreamEvent], events)
    raise ConfigurationError(
        f"The middleware {hook!r} returned {type(events).__name__}, not an async iterator of "
        "events. Make it an async generator (with `yield`), or return `next(request)`."
    )


async def _return(response: Response, _: Request) -> Response:
    return response


async def _stream_by_complete(
    hook: Callable[..., Coroutine[Any, Any, Response]],
    hold: bool,
    shown: Shown,
    call_next: StreamNext,
    request: Request,
) -> AsyncGenerator[StreamEvent, None]:
    """Pass a stream through a layer of the coroutine shape."""
    handover = Handover(call_next, hold=hold)
    work: Any = hook(request, handover.next)
    handover.start(work if inspect.iscoroutine(work) else settle(work), hook)
    try:
        async for event in handover.events():
            yield event
        for event in handover.end(shown.replace):
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
