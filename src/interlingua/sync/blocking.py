"""`blocking` makes a blocking function of an async one, and its docstring."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import AsyncIterable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import Any, ParamSpec, TypeVar

from interlingua.runtime.cancel import AbortSignal
from interlingua.sync.blocking_iterator import BlockingIterator
from interlingua.sync.loop_thread import background

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Stream = TypeVar("Stream")
Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[..., Any])

_CODE = re.compile(r"^    .*$", re.MULTILINE)
_AWAITED = re.compile(r"\(await ([\w.]+\([^()]*\))\)(?=\.)")
_ASYNC = re.compile(r"\b(?:await|async) ")


def blocking(
    function: Callable[Parameters, Coroutine[Any, Any, Result]],
    module: str,
    name: str | None = None,
) -> Callable[Parameters, Result]:
    """
    The blocking form of a coroutine function: the same parameters, result and docstring.

        embed: Final = blocking(embeddings.embed, __name__)

    `module` and `name` say where it can be imported from, for `help` and `pickle`. The name is by
    default that of the function.
    """

    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return background.run(function(*args, **kwargs))

    return _describe(call, function, module, name)


def blocking_iterator(
    function: Callable[Parameters, AsyncIterable[Item]], module: str
) -> Callable[Parameters, BlockingIterator[Item]]:
    """The blocking form of a function that returns results to iterate over."""

    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> BlockingIterator[Item]:
        return BlockingIterator(aiter(function(*args, **kwargs)))

    return _describe(call, function, module, returns=BlockingIterator)


def blocking_stream(
    function: Callable[Parameters, Stream],
    kind: Callable[[Stream, AbortSignal | None], Result],
    module: str,
) -> Callable[Parameters, Result]:
    """
    The blocking form of a function that returns a stream.

    `kind` is the class of the blocking stream, which is made from the async one and the
    `abort_signal=` of the call.
    """

    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        signal: Any = kwargs.get("abort_signal")
        return kind(function(*args, **kwargs), signal)

    return _describe(call, function, module, returns=kind)


def blocking_context(
    function: Callable[Parameters, AbstractAsyncContextManager[Result]], module: str
) -> Callable[Parameters, AbstractContextManager[Result]]:
    """The blocking form of a function that returns an async context manager."""

    @contextmanager
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Iterator[Result]:
        context = function(*args, **kwargs)
        value = background.run(_enter(context))
        try:
            yield value
        finally:
            background.run(_exit(context))

    return _describe(call, function, module, returns=AbstractContextManager)


async def _enter(context: AbstractAsyncContextManager[Result]) -> Result:
    return await context.__aenter__()


async def _exit(context: AbstractAsyncContextManager[Any]) -> None:
    await context.__aexit__(None, None, None)


def documented_by(twin: Callable[..., object]) -> Callable[[Function], Function]:
    """Decorate a blocking function with the docstring of its async twin, in blocking form."""

    def decorate(function: Function) -> Function:
        function.__doc__ = blocking_docstring(twin.__doc__ or "")
        return function

    return decorate


def blocking_docstring(text: str) -> str:
    """A docstring, without `await` and `async` in its examples."""
    # The line break before the text shows `help` that the text is not indented, only the examples.
    lines = inspect.cleandoc(f"\n{text}")
    return f"\n{_CODE.sub(_blocking_line, lines)}\n" if "\n" in lines else lines


def _blocking_line(line: re.Match[str]) -> str:
    return _ASYNC.sub("", _AWAITED.sub(r"\1", line[0]))


def _describe(
    call: Callable[Parameters, Result],
    function: Callable[Parameters, object],
    module: str,
    name: str | None = None,
    returns: object = None,
) -> Callable[Parameters, Result]:
    """The call with the signature of the function, and a name and docstring of its own."""
    functools.update_wrapper(call, function)
    call.__module__ = module
    call.__name__ = call.__qualname__ = name or call.__name__
    call.__doc__ = blocking_docstring(function.__doc__ or "")
    if returns is not None:
        call.__annotations__ = {**function.__annotations__, "return": returns}
        signature = inspect.signature(function)
        vars(call)["__signature__"] = signature.replace(return_annotation=returns)
    return call
