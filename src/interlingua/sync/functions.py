"""The blocking functions that ask models, and those that `blocking` cannot make."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, Unpack, overload

from msgspec.structs import replace

from interlingua.api.execute import execution
from interlingua.api.execute.execution import ExecuteOptions, ExecuteResult
from interlingua.api.objects import functions as objects
from interlingua.api.objects.functions import ObjectOptions
from interlingua.api.run import clients, many
from interlingua.api.run import generate as run
from interlingua.api.run.closed import NOT_ENDED
from interlingua.api.run.options import GenerateOptions, Prompt
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.stream_run import StreamRun
from interlingua.api.tools.mcp import tools as mcp
from interlingua.client import retry_policy
from interlingua.client.retry_policy import DEFAULT_POLICY, RetryPolicy
from interlingua.runtime.cancel import AbortSignal
from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.messages import AnyMessage
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import DELTAS
from interlingua.sync.blocking import blocking, blocking_context, blocking_iterator, documented_by
from interlingua.sync.blocking_iterator import AbortableIterator, BlockingIterator, ClosedByWith
from interlingua.sync.client import Client
from interlingua.sync.loop_thread import background

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")

generate: Final = blocking(run.generate, __name__)
mcp_tools: Final = blocking_context(mcp.mcp_tools, __name__)

if TYPE_CHECKING:  # the type of an overloaded function cannot be made from that of another

    @overload
    def generate_many(
        items: Iterable[many.Item] | AsyncIterable[many.Item],
        model: str | None = None,
        *,
        concurrency: int = ...,
        ordered: bool = ...,
        on_progress: many.ProgressCallback | None = ...,
        schema: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> BlockingIterator[many.ItemResult[Any]]: ...
    @overload
    def generate_many(
        items: Iterable[many.Item] | AsyncIterable[many.Item],
        model: str | None = None,
        *,
        concurrency: int = ...,
        ordered: bool = ...,
        on_progress: many.ProgressCallback | None = ...,
        schema: TypeForm[T],
        **options: Unpack[GenerateOptions],
    ) -> BlockingIterator[many.ItemResult[T]]: ...
    def generate_many(*args: Any, **options: Any) -> Any: ...
else:
    generate_many = blocking_iterator(many.generate_many, __name__)


@documented_by(run.stream)
def stream(
    model: str | None, prompt: Prompt = None, **options: Unpack[GenerateOptions]
) -> StreamResult:
    return StreamResult(StreamRun(model, prompt, options))


@documented_by(retry_policy.retry)
def retry(call: Callable[[], T], policy: RetryPolicy = DEFAULT_POLICY) -> T:
    retry_policy.check_callable(call)
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
    """
    The events of one run, which can be read once.

    `text_stream` has only the text. At the end, `response()` is the last answer and `result()`
    has all steps.
    """

    def __init__(self, run: StreamRun) -> None:
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
        """Return the last answer, or raise the error of a run that failed; only after the end."""
        return self._progress.response()

    def result(self) -> GenerateResult[None]:
        """Return all steps and the whole conversation; only after the end."""
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
            raise ConfigurationError(NOT_ENDED)
        return self._last


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
@documented_by(objects.generate_object)
def generate_object(
    model: str | None, prompt: Prompt = None, *, schema: Any, **options: Unpack[ObjectOptions]
) -> GenerateResult[Any]:
    return background.run(objects.generate_object(model, prompt, schema=schema, **options))


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
@documented_by(objects.stream_object)
def stream_object(
    model: str | None, prompt: Prompt = None, *, schema: Any, **options: Unpack[ObjectOptions]
) -> ObjectStream[Any]:
    stream = objects.stream_object(model, prompt, schema=schema, **options)
    return ObjectStream(stream, options.get("abort_signal"))


class ObjectStream(AbortableIterator[UncheckedJson], Generic[T]):
    """
    An iterator over partial objects; it can be read once.

        people = stream_object("openai:gpt-5.2", "Invent five people.", schema=list[Person])
        for partial in people:
            print(len(partial))
        print(people.object())

    Partials are plain JSON values, and each differs from the one before. If the model has to
    correct its answer, they start over. The last one is complete; if it is not valid,
    `NoObjectGeneratedError` is raised after it.
    """

    def __init__(self, stream: objects.ObjectStream[T], signal: AbortSignal | None = None) -> None:
        super().__init__(stream, signal)
        self._stream = stream
        self._partial: UncheckedJson = None

    def __next__(self) -> UncheckedJson:
        self._partial = super().__next__()
        return self._partial

    @property
    def partial(self) -> UncheckedJson:
        """The object as far as it was read; None before it has begun."""
        return self._partial

    def object(self) -> T:
        """Return the whole object; only after the end."""
        self._check_ended()
        return self._stream.object()

    def response(self) -> Response:
        """Return the last answer; only after the end."""
        self._check_ended()
        return self._stream.response()

    def result(self) -> GenerateResult[T]:
        """Return all steps, the whole conversation and the object; only after the end."""
        self._check_ended()
        return self._stream.result()


def execute(
    model: str | None,
    messages: Iterable[AnyMessage] | str | None = None,
    **options: Unpack[ExecuteOptions],
) -> ExecuteResult:
    """
    Ask a model, run the tools it calls, and call callbacks as the answer arrives.

        result = execute("openai:gpt-5.2", "Weather in Oslo?", on_chunk=show, tools=[look])
        print(result.text if result.error is None else result.error.message)

    Callbacks run in the thread of the background loop. Another thread can end it early with an
    `abort_signal`. Errors are not raised: they are in `result.error`, and the result has what
    arrived before. Messages may be `Message` objects, strings or plain dicts.
    """

    async def work() -> ExecuteResult:
        return await execution.execute(model, messages, **options)

    return background.run(work())


def get_default_client() -> Client:
    """
    Return the client of functions without `client=`, as a blocking client.

    It is the one that was set, or else one made from the environment on first use. The async
    functions use the same one.
    """
    return Client.wrap(clients.get_default_client())
