"""`generate_many`, blocking."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from interlingua.api.run import many
from interlingua.api.run.options import GenerateOptions
from interlingua.sync.blocking import blocking_iterator
from interlingua.sync.blocking_iterator import BlockingIterator

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")

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
