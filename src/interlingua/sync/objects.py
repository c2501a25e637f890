"""`generate_object` and `stream_object`, blocking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from interlingua.api.objects import functions as objects
from interlingua.api.objects.options import ObjectOptions
from interlingua.api.run.options import Prompt
from interlingua.api.run.results import GenerateResult
from interlingua.runtime.cancel import AbortSignal
from interlingua.spec.content import UncheckedJson
from interlingua.spec.response import Response
from interlingua.sync.blocking import documented_by
from interlingua.sync.blocking_iterator import AbortableIterator
from interlingua.sync.loop_thread import background

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")


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
