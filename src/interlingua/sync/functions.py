"""The blocking functions. Each has the parameters and results of the async function it names."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, Self, TextIO, TypeVar, Unpack, overload

from msgspec.structs import replace

from interlingua.api import execute as async_execute
from interlingua.api.execute import AnyMessage, ExecuteResult, ExecuteSettings
from interlingua.api.objects import functions as async_objects
from interlingua.api.run import clients as default
from interlingua.api.run import generate as async_run
from interlingua.api.run import many as async_many
from interlingua.api.run.help import list_options
from interlingua.api.run.many import CONCURRENCY, Item, ItemResult, ProgressCallback
from interlingua.api.run.options import Prompt
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.run import Run
from interlingua.api.tools import mcp as async_mcp
from interlingua.api.tools.mcp import MCPServer, MCPTools
from interlingua.client.client import Client as AsyncClient
from interlingua.client.retry_policy import DEFAULT_POLICY, RetryPolicy
from interlingua.runtime.cancel import ABORTED, AbortSignal
from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import AbortError, ConfigurationError, SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import DELTAS
from interlingua.sync.blocking_iterator import BlockingIterator, ClosedByWith
from interlingua.sync.client import Client, GenerateOptions, unwrap
from interlingua.sync.loop_thread import background

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")
_NOT_ENDED = "The stream has not ended. Read it to its end first."


@list_options
def generate(
    model: str | None, prompt: Prompt = None, **options: Unpack[GenerateOptions]
) -> GenerateResult[None]:
    """Like `interlingua.generate`, blocking."""
    return background.run(async_run.generate(model, prompt, **unwrap(options)))


@list_options
def stream(
    model: str | None, prompt: Prompt = None, **options: Unpack[GenerateOptions]
) -> StreamResult:
    """
    Like `interlingua.stream`, blocking.

        for event in stream("anthropic:claude-haiku-4-5", "Write a haiku."):
            if event.type == "text_delta":
                print(event.delta, end="")
    """
    return StreamResult(Run(model, prompt, unwrap(options)))


def generate_many(
    items: Iterable[Item],
    model: str | None = None,
    *,
    concurrency: int = CONCURRENCY,
    ordered: bool = True,
    on_progress: ProgressCallback | None = None,
    schema: Any = None,
    **options: Unpack[GenerateOptions],
) -> BlockingIterator[ItemResult]:
    """
    Like `interlingua.generate_many`, as a blocking iterator.

        for item in generate_many(prompts, "openai:gpt-5.2"):
            print(item.error or item.result.text)
    """
    results = async_many.generate_many(
        items,
        model,
        concurrency=concurrency,
        ordered=ordered,
        on_progress=on_progress,
        schema=schema,
        **unwrap(options),
    )
    return BlockingIterator(aiter(results))


def retry(call: Callable[[], T], policy: RetryPolicy = DEFAULT_POLICY) -> T:
    """Like `interlingua.retry`, for a blocking function."""
    for attempt in count():
        try:
            return call()
        except SDKError as error:
            delay = policy.delay(error, attempt)
            if delay is None:
                raise
            background.run(policy.notify(error, attempt, delay))
        time.sleep(delay)
    raise AssertionError("unreachable")


class StreamResult(ClosedByWith):
    """Like `interlingua.StreamResult`, blocking."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._events = BlockingIterator(
            run.stream(), lambda event: type(event) in DELTAS and run.is_cancelled
        )
        self._progress = Progress()
        self._end: Iterator[StreamEvent] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamEvent:
        if self._run.is_aborted and self._end is None and not self._progress.is_over:
            error = self._events.discard() or self._run.abort_error()
            self._end = self._progress.abort(error)
        if self._end is not None:
            return next(self._end)
        try:
            event = next(self._events)
        except SDKError as error:
            self._progress.fail(error)
            raise
        self._progress.feed(event)
        return event

    def close(self) -> None:
        """Stop the run and close the connection."""
        self._events.close()

    @property
    def text_stream(self) -> Iterator[str]:
        """Only the text, as it arrives."""
        return (event.delta for event in self if event.type == "text_delta")

    @property
    def partial_response(self) -> Response | None:
        """The answer as far as it was read; None before it has begun."""
        partial = self._progress.partial()
        return None if partial is None else self._run.label(partial)

    def response(self) -> Response:
        """The last answer; raises the run's error if it failed. Only after the end."""
        return self._progress.response()

    def result(self) -> GenerateResult[None]:
        """All steps and the whole conversation; only after the end."""
        self.response()
        return self._run.result()


class Progress:
    """What the reader of a blocking stream has read; the loop's thread may be ahead of it."""

    def __init__(self) -> None:
        self._accumulator = StreamAccumulator()
        self._last: Response | None = None
        self._error: Exception | None = None

    def feed(self, event: StreamEvent) -> None:
        """Add an event that was read."""
        self._accumulator.feed(event)
        if type(event) is Finish:
            self._last = event.response

    def fail(self, error: Exception) -> None:
        """The stream raised this error."""
        self._error = error

    @property
    def is_over(self) -> bool:
        """Whether the last event or an error was read."""
        return self._last is not None or self._error is not None

    def abort(self, error: SDKError) -> Iterator[StreamEvent]:
        """The closing events for a reader that aborted; then the error is raised."""
        if self._accumulator.has_begun:
            yield from self._accumulator.end_segments()
            reason = FinishReason(reason="cancelled")
            response = replace(error.partial or self._accumulator.partial(), finish_reason=reason)
            yield Finish(finish_reason=reason, usage=response.usage, response=response)
        self.fail(error)
        raise error

    def partial(self) -> Response | None:
        """The answer as far as it was read; None before it has begun."""
        return self._accumulator.partial() if self._accumulator.has_begun else None

    def response(self) -> Response:
        """The last answer; raises the stream's error if it failed."""
        if self._error is not None:
            raise self._error
        if self._last is None:
            raise ConfigurationError(_NOT_ENDED)
        return self._last


class ObjectOptions(GenerateOptions, total=False):
    """The options of `generate`, except `response_format`."""


@overload
def generate_object(
    model: str | None,
    prompt: Prompt = None,
    *,
    schema: TypeForm[T],
    **options: Unpack[ObjectOptions],
) -> GenerateResult[T]: ...
@overload
def generate_object(
    model: str | None,
    prompt: Prompt = None,
    *,
    schema: Mapping[str, Any],
    **options: Unpack[ObjectOptions],
) -> GenerateResult[Any]: ...
@list_options
def generate_object(
    model: str | None,
    prompt: Prompt = None,
    *,
    schema: Any,
    **options: Unpack[ObjectOptions],
) -> GenerateResult[Any]:
    """Like `interlingua.generate_object`, blocking."""
    work = async_objects.generate_object(model, prompt, schema=schema, **unwrap(options))
    return background.run(work)


@overload
def stream_object(
    model: str | None,
    prompt: Prompt = None,
    *,
    schema: TypeForm[T],
    **options: Unpack[ObjectOptions],
) -> ObjectStream[T]: ...
@overload
def stream_object(
    model: str | None,
    prompt: Prompt = None,
    *,
    schema: Mapping[str, Any],
    **options: Unpack[ObjectOptions],
) -> ObjectStream[Any]: ...
@list_options
def stream_object(
    model: str | None,
    prompt: Prompt = None,
    *,
    schema: Any,
    **options: Unpack[ObjectOptions],
) -> ObjectStream[Any]:
    """
    Like `interlingua.stream_object`, blocking.

        stream = stream_object("anthropic:claude-haiku-4-5", "Five recipes.", schema=list[Recipe])
        for partial in stream:
            print(f"{len(partial)} so far")
        recipes = stream.object()
    """
    stream = async_objects.stream_object(model, prompt, schema=schema, **unwrap(options))
    return ObjectStream(stream, options.get("abort_signal"))


class ObjectStream(ClosedByWith, Generic[T]):
    """Like `interlingua.ObjectStream`, blocking."""

    def __init__(
        self, stream: async_objects.ObjectStream[T], signal: AbortSignal | None = None
    ) -> None:
        self._stream = stream
        self._signal = signal
        self._partials: BlockingIterator[UncheckedJson] = BlockingIterator(stream)
        self._partial: UncheckedJson = None
        self._is_over = False  # for the reader; the async stream may be ahead

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> UncheckedJson:
        signal = self._signal
        if signal is not None and signal.aborted and not self._is_over:
            self._is_over = True
            raise self._partials.discard() or AbortError(signal.reason or ABORTED)
        try:
            self._partial = next(self._partials)
        except BaseException:
            self._is_over = True
            raise
        return self._partial

    def close(self) -> None:
        """Stop the run and close the connection."""
        self._partials.close()

    @property
    def partial(self) -> UncheckedJson:
        """The object as far as it was read; None before it has begun."""
        return self._partial

    def object(self) -> T:
        """The whole object; only after the end."""
        return self._ended().object()

    def response(self) -> Response:
        """The last answer; only after the end."""
        return self._ended().response()

    def result(self) -> GenerateResult[T]:
        """All steps, the whole conversation and the object; only after the end."""
        return self._ended().result()

    def _ended(self) -> async_objects.ObjectStream[T]:
        if not self._is_over:
            raise ConfigurationError(_NOT_ENDED)
        return self._stream


class ExecuteOptions(ExecuteSettings, total=False):
    """The options of `interlingua.execute`; the client may be blocking or async."""

    client: Client | AsyncClient | None


def execute(
    model: str | None,
    messages: Iterable[AnyMessage] | str | None = None,
    **options: Unpack[ExecuteOptions],
) -> ExecuteResult:
    """
    Like `interlingua.execute`, blocking.

    Callbacks run in the thread of the background loop. Another thread can end it early with an
    `abort_signal`.
    """

    async def work() -> ExecuteResult:
        plain: async_execute.ExecuteOptions = unwrap(options)
        return await async_execute.execute(model, messages, **plain)

    return background.run(work())


@contextmanager
def mcp_tools(
    server: MCPServer | Mapping[str, MCPServer],
    *,
    prefix: str = "",
    only: Collection[str] | None = None,
    connect_timeout: float | None = 30.0,
    timeout: float | None = 60.0,
    errlog: TextIO | None = None,
) -> Iterator[MCPTools]:
    """
    Like `interlingua.mcp.mcp_tools`, blocking.

        with mcp_tools(MCPStdioServer(command="uvx", args=["mcp-server-git"])) as tools:
            result = generate(model, prompt, tools=tools)
    """
    context = async_mcp.mcp_tools(
        server,
        prefix=prefix,
        only=only,
        connect_timeout=connect_timeout,
        timeout=timeout,
        errlog=errlog,
    )
    tools = background.run(_enter(context))
    try:
        yield tools
    finally:
        background.run(_exit(context))


async def _enter(context: AbstractAsyncContextManager[MCPTools]) -> MCPTools:
    return await context.__aenter__()


async def _exit(context: AbstractAsyncContextManager[MCPTools]) -> None:
    await context.__aexit__(None, None, None)


def get_default_client() -> Client:
    """Like `interlingua.get_default_client`, as a blocking client."""
    return Client.wrap(default.get_default_client())


def set_default_client(client: Client | AsyncClient | None) -> None:
    """Like `interlingua.set_default_client`; both modules use the same client."""
    default.set_default_client(client.asynchronous if isinstance(client, Client) else client)
