"""An object of a schema or a type, whole, or as it comes, blocking."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack, overload

from interlingua.api.objects import functions as asynchronous
from interlingua.api.objects.functions import ObjectStream as AsyncObjectStream
from interlingua.api.run.results import GenerateResult
from interlingua.providers.cancel import AbortSignal
from interlingua.spec.content import Json
from interlingua.spec.errors import AbortError, ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.response import Response
from interlingua.sync.blocking_iterator import BlockingIterator
from interlingua.sync.client import GenerateOptions, unwrap
from interlingua.sync.loop_thread import background

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")


class ObjectOptions(GenerateOptions, total=False):
    """Those of `generate`, except `response_format`."""

    max_validation_retries: int
    """How often an answer that does not fit is sent back with what is wrong; 0 unless said."""


@overload
def generate_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: TypeForm[T],
    **options: Unpack[ObjectOptions],
) -> GenerateResult[T]: ...
@overload
def generate_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: Mapping[str, Any],
    **options: Unpack[ObjectOptions],
) -> GenerateResult[Any]: ...
def generate_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: Any,
    **options: Unpack[ObjectOptions],
) -> GenerateResult[Any]:
    """
    Ask a model for an object, and check it.

        result = generate_object("openai:gpt-5.2", "Alice is 30.", schema=Person)
        print(result.output.name)

    `schema` is a JSON Schema or a type. `NoObjectGeneratedError` if what comes does not fit.
    """
    work = asynchronous.generate_object(model, prompt, schema=schema, **unwrap(options))
    return background.run(work)


@overload
def stream_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: TypeForm[T],
    **options: Unpack[ObjectOptions],
) -> ObjectStream[T]: ...
@overload
def stream_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: Mapping[str, Any],
    **options: Unpack[ObjectOptions],
) -> ObjectStream[Any]: ...
def stream_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: Any,
    **options: Unpack[ObjectOptions],
) -> ObjectStream[Any]:
    """
    The same as it comes: each partial has more of the object than the one before.

        stream = stream_object("anthropic:claude-haiku-4-5", "Five recipes.", schema=list[Recipe])
        for partial in stream:
            print(f"{len(partial)} so far")
        recipes = stream.object()
    """
    stream = asynchronous.stream_object(model, prompt, schema=schema, **unwrap(options))
    return ObjectStream(stream, options.get("abort_signal"))


class ObjectStream(Generic[T]):
    """
    The object as it grows; it is read once.

    Partials are plain JSON values, and each differs from the one before. When it is over,
    `object()` is the whole one, and `result()` all that led to it.
    """

    def __init__(self, stream: AsyncObjectStream[T], signal: AbortSignal | None = None) -> None:
        self._stream = stream
        self._signal = signal
        self._partials: BlockingIterator[Json] = BlockingIterator(stream)
        self._partial: Json = None
        self._is_over = False  # for the reader; what it reads may be ahead

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Json:
        signal = self._signal
        if signal is not None and signal.aborted and not self._is_over:
            self._is_over = True
            raise self._partials.discard() or AbortError(signal.reason or "the caller gave up")
        try:
            self._partial = next(self._partials)
        except BaseException:
            self._is_over = True
            raise
        return self._partial

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and close the connection."""
        self._partials.close()

    @property
    def partial(self) -> Json:
        """The object as far as it was read; None before it has begun."""
        return self._partial

    def object(self) -> T:
        """The whole object, when it is over; `StreamError` before."""
        return self._finished().object()

    def response(self) -> Response:
        """The last answer, when it is over; `StreamError` before."""
        return self._finished().response()

    def result(self) -> GenerateResult[T]:
        """Every step, the whole conversation and the object, when it is over."""
        return self._finished().result()

    def _finished(self) -> AsyncObjectStream[T]:
        if not self._is_over:
            raise ConfigurationError("The stream has not ended. Read it to its end first.")
        return self._stream
