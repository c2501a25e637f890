"""The items of a streamed operation: what they used, and what happens at their end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NamedTuple

from interlingua.runtime.cancel import CancelScope, Scopes
from interlingua.spec.modalities.batch import BatchResult
from interlingua.spec.operations import OperationResult
from interlingua.spec.response import Cost, Usage


class ItemsEnd(NamedTuple):
    """How the items of a streamed operation have ended."""

    result: OperationResult | None = None
    """The last item, if it is the result of the operation."""
    usage: Usage | None = None
    """What the result, or the answers of a batch together, have used; None if none shows that."""
    cost: Cost | None = None
    """What that cost; None if it is unknown."""
    error: BaseException | None = None
    """What ended the items before their end."""


class WatchedItems(AsyncGenerator[Any, None]):
    """
    The items of a streamed operation; `at_end` is called with how they ended.

    It is called once, also if the items are closed before the first one is read; a generator
    would not notice that. With a `scope`, each item is awaited in it.
    """

    def __init__(
        self,
        items: AsyncGenerator[Any, None],
        at_end: Callable[[ItemsEnd], Awaitable[object]],
        scope: CancelScope | None = None,
    ) -> None:
        self._items = items
        self._at_end: Callable[[ItemsEnd], Awaitable[object]] | None = at_end
        self._scope = scope
        self._end = ItemsEnd()

    async def asend(self, value: None) -> Any:
        """The next item."""
        following = self._items.asend(value)
        try:
            item = await (following if self._scope is None else self._scope.wait(following))
        except StopAsyncIteration:
            await self._close()
            raise
        except BaseException as error:
            await self._close(error)
            raise
        self._note(item)
        return item

    async def athrow(self, *error: Any) -> Any:
        """Raise an error where the items wait."""
        try:
            return await self._items.athrow(*error)
        except BaseException as raised:
            await self._close(raised)
            raise

    async def aclose(self) -> None:
        """End the items; if another task is reading them, it gets an `AbortError`."""
        if self._scope is not None and getattr(self._items, "ag_running", False):
            self._scope.cancel()
            return
        try:
            await self._items.aclose()
        finally:
            await self._close(None if self._end.result is not None else GeneratorExit())

    def _note(self, item: Any) -> None:
        if isinstance(item, OperationResult):
            self._end = ItemsEnd(item, item.usage, item.cost)
        elif isinstance(item, BatchResult) and item.response is not None:
            usage, cost = item.response.usage, item.response.cost
            if self._end.usage is not None:
                known = self._end.cost
                usage += self._end.usage
                cost = None if known is None or cost is None else known + cost
            self._end = ItemsEnd(None, usage, cost)
        else:
            self._end = self._end._replace(result=None)

    async def _close(self, error: BaseException | None = None) -> None:
        at_end, self._at_end = self._at_end, None
        if at_end is not None:
            await at_end(self._end._replace(error=error))


def _is_streamed(result: object) -> bool:
    return isinstance(result, AsyncGenerator)


async def perform_in(
    scopes: Scopes, request_id: str, work: Awaitable[Any], scope: CancelScope
) -> Any:
    """The result of an operation that `cancel` can end; of a streamed one, until its last item."""
    result = await scopes.wait(request_id, work, scope, goes_on=_is_streamed)
    if not _is_streamed(result):
        return result

    async def end(_: ItemsEnd) -> None:
        scopes.remove(request_id, scope)

    return WatchedItems(result, end, scope)
