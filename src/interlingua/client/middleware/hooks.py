"""The functions of a middleware that calls pass through, found when a client is made."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn, TypeAlias

from interlingua.client.middleware.contract import (
    Call,
    CompleteNext,
    PerformNext,
    StreamNext,
    ToolMiddleware,
)
from interlingua.runtime.callbacks import settle, signature_of
from interlingua.spec.check import describe
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import Request

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
    if "call" in parameters:
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
