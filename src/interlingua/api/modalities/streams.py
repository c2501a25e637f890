"""`ItemStream`: what the streamed media functions return."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Generic, Self, TypeVar

from interlingua.api.run.closed import NOT_ENDED, ClosedByAsyncWith
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.operations import OperationResult

Item = TypeVar("Item")
End = TypeVar("End", bound=OperationResult)


class ItemStream(ClosedByAsyncWith, Generic[Item, End]):
    """
    The items of a streamed operation, which can be read once.

    The last item is the result of the operation. It is not among the items that a reader gets: at
    the end, `result()` returns it.
    """

    def __init__(self, items: AsyncGenerator[Any, None]) -> None:
        self._items = items
        self._end: End | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        async for item in self._items:
            if not isinstance(item, OperationResult):
                value: Item = item
                return value
            self._end = self._finish(item)
        raise StopAsyncIteration

    def _finish(self, end: Any) -> End:
        """The result, from the last item."""
        result: End = end
        return result

    def result(self) -> End:
        """The result with its usage and cost; only after the stream was read."""
        if self._end is None:
            raise ConfigurationError(NOT_ENDED)
        return self._end

    async def aclose(self) -> None:
        """Stop it and close the connection."""
        await self._items.aclose()
