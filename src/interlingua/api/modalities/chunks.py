"""Many inputs in several calls: split at the limits of the provider, a bounded number at once."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from functools import reduce
from itertools import count
from operator import add
from typing import Any, TypeVar

from msgspec.structs import replace

from interlingua.spec.check import refuse
from interlingua.spec.operations import InputLimits, OperationResult
from interlingua.spec.response import Cost, Usage
from interlingua.tokens.estimate import ESTIMATE_ERROR

MAX_CONCURRENCY = 10_000
"""How many calls one function may make at the same time."""
Item = TypeVar("Item")
Result = TypeVar("Result")
Joined = TypeVar("Joined", bound=OperationResult)


class Splitter:
    """
    Decides which inputs fit into one call.

    A token has at least one byte, so tokens are estimated only for a call with more bytes than
    tokens are allowed.
    """

    def __init__(
        self,
        limits: InputLimits,
        size: Callable[[Any], int],
        estimate: Callable[[Any], int],
    ) -> None:
        self._limits = limits
        self._size = size
        self._estimate = estimate
        self._items: list[Any] = []
        self._bytes = 0
        self._tokens: float | None = None

    def add(self, item: object) -> list[Any]:
        """The items of the call that is full without this item; empty if the item still fits."""
        size = self._size(item)
        if self._items and not self._fits(item, size):
            full = self._items
            self._items, self._bytes, self._tokens = [item], size, None
            return full
        self._items.append(item)
        self._bytes += size
        return []

    def rest(self) -> list[Any]:
        """The items of the last call."""
        return self._items

    def _fits(self, item: object, size: int) -> bool:
        limits, whole = self._limits, self._bytes + size
        if limits.items is not None and len(self._items) >= limits.items:
            return False
        if limits.bytes is not None and whole > limits.bytes:
            return False
        if limits.tokens is None or whole <= limits.tokens:
            return True
        if self._tokens is None:
            self._tokens = self._count(self._items)
        tokens = self._tokens + self._count([item])
        if tokens > limits.tokens:
            return False
        self._tokens = tokens
        return True

    def _count(self, items: Sequence[object]) -> float:
        return sum(map(self._estimate, items)) * (1 + ESTIMATE_ERROR)


async def split(
    items: Iterable[Item] | AsyncIterable[Item], splitter: Splitter
) -> AsyncGenerator[list[Item], None]:
    """The items of each call; they are read as calls are made."""
    async for item in _each(items):
        if chunk := splitter.add(item):
            yield chunk
    if chunk := splitter.rest():
        yield chunk


async def _each(items: Iterable[Item] | AsyncIterable[Item]) -> AsyncIterator[Item]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    for item in items:
        yield item


async def work_on_chunks(
    chunks: AsyncGenerator[Item, None],
    work: Callable[[Item], Awaitable[Result]],
    concurrency: int,
) -> list[Result]:
    """The results in the order of the chunks; the first error ends all."""
    results: dict[int, Result] = {}
    numbers, lock = count(), asyncio.Lock()

    async def worker() -> None:
        while True:
            async with lock:
                number, chunk = next(numbers), await anext(chunks, None)
            if chunk is None:
                return
            results[number] = await work(chunk)

    workers = [asyncio.create_task(worker()) for _ in range(concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await chunks.aclose()
    return [results[number] for number in sorted(results)]


def join_results(results: Sequence[Joined], /, **fields: Any) -> Joined:
    """One result of several calls: usage and cost are added up, each warning is there once."""
    first = results[0]
    if len(results) == 1:
        return replace(first, **fields) if fields else first
    costs = [result.cost for result in results if result.cost is not None]
    warnings = (warning for result in results for warning in result.warnings)
    return replace(
        first,
        usage=reduce(add, (result.usage for result in results), Usage()),
        cost=reduce(add, costs, Cost()) if len(costs) == len(results) else None,
        warnings=tuple(dict.fromkeys(warnings)),
        raw=[result.raw for result in results],
        **fields,
    )


def check_concurrency(number: object) -> None:
    """Raise `ConfigurationError` unless it is an integer from 1 to `MAX_CONCURRENCY`."""
    if type(number) is not int or not 1 <= number <= MAX_CONCURRENCY:
        refuse("concurrency", f"an integer from 1 to {MAX_CONCURRENCY}", number)
