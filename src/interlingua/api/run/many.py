"""`generate_many`: one run for each of many items, a bounded number of them at once."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Sized,
)
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, Unpack, overload

import msgspec

from interlingua.api.objects.functions import JsonSchema, generate_object
from interlingua.api.run.clients import OF_A_PROVIDER, BlockingClient, drop_foreign, find_client
from interlingua.api.run.closed import ClosedByAsyncWith
from interlingua.api.run.generate import generate
from interlingua.api.run.options import GenerateOptions, check_options, reusable
from interlingua.api.run.results import GenerateResult, Output
from interlingua.client.client import Client
from interlingua.runtime.callbacks import settle
from interlingua.runtime.cancel import AbortSignal, CancelScope
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.check import refuse
from interlingua.spec.errors import AbortError, ConfigurationError, SDKError
from interlingua.spec.response import Usage

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")
Item: TypeAlias = Any
"""A prompt, or the arguments of one `generate` as a dict: `{"prompt": …, "temperature": …}`."""
CONCURRENCY = 16


class ItemResult(msgspec.Struct, Generic[Output], frozen=True, kw_only=True):
    """What became of one item: a result or an error."""

    index: int
    """The place of the item, from 0."""
    item: Any
    result: GenerateResult[Output] | None = None
    error: Exception | None = None

    def unwrap(self) -> GenerateResult[Output]:
        """The result; raises the error if the item failed."""
        if self.result is None:
            raise self.error or AssertionError("An item has a result or an error.")
        return self.result


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far `generate_many` is; given to `on_progress` after each item."""

    done: int
    failed: int
    total: int | None
    """None if the items have no length."""
    usage: Usage
    """The tokens of all finished items."""
    last: ItemResult[Any]
    """The item that has just finished."""


ProgressCallback: TypeAlias = Callable[[Progress], Any]


@overload
def generate_many(
    items: Iterable[Item] | AsyncIterable[Item],
    model: str | None = None,
    *,
    concurrency: int = ...,
    ordered: bool = ...,
    on_progress: ProgressCallback | None = ...,
    schema: JsonSchema | None = None,
    **options: Unpack[GenerateOptions],
) -> ManyResults[Any]: ...
@overload
def generate_many(
    items: Iterable[Item] | AsyncIterable[Item],
    model: str | None = None,
    *,
    concurrency: int = ...,
    ordered: bool = ...,
    on_progress: ProgressCallback | None = ...,
    schema: TypeForm[T],
    **options: Unpack[GenerateOptions],
) -> ManyResults[T]: ...
def generate_many(
    items: Iterable[Item] | AsyncIterable[Item],
    model: str | None = None,
    *,
    concurrency: int = CONCURRENCY,
    ordered: bool = True,
    on_progress: ProgressCallback | None = None,
    schema: Any = None,
    **options: Unpack[GenerateOptions],
) -> ManyResults[Any]:
    """
    Run `generate` for each item, at most `concurrency` at the same time.

        results = await generate_many(prompts, "openai:gpt-5.2", concurrency=20)

        async for item in generate_many(read_rows(), "openai:gpt-5.2", ordered=False):
            print(item.index, item.error or item.result.text)

    Items are prompts, or dicts with the arguments of one run, which override `model` and the
    options. They are read as they are needed, so there may be any number of them. An item that
    fails does not end the others: its `error` says why. With `schema=`, each run is a
    `generate_object`. To end all, leave the loop, use `abort_signal=`, or call
    `client.cancel(request_id)` with the id that was given; the runs have the ids `<id>-<index>`.
    """
    count: object = concurrency  # a caller without a type checker may pass anything
    if not isinstance(count, int) or count is True or count < 1:
        refuse("concurrency", "an integer of 1 or more", count)
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, (Iterable, AsyncIterable)):
        kind = type(items).__name__
        raise ConfigurationError(f"`items` must be a list, or another iterable, not a {kind}.")
    for name in options.keys() & {"prompt", "messages", "resume", "approvals"}:
        raise ConfigurationError(f"{name} belongs to one item: write {{{name!r}: ...}} for it.")
    check_options(options)
    if on_progress is not None and not callable(on_progress):
        refuse("on_progress", "a function", on_progress)
    request_id: object = options.get("request_id")
    if request_id is not None and not isinstance(request_id, str):
        refuse("request_id", "a string", request_id)
    defaults: dict[str, Any] = {"model": model, "schema": schema, **reusable(options)}
    return ManyResults(items, defaults, concurrency, on_progress, ordered=ordered)


class ManyResults(ClosedByAsyncWith, Generic[Output]):
    """
    The results of `generate_many`: await it for a list, or iterate over it, once.

    While nobody reads, at most twice as many items as may run at once are begun.
    """

    def __init__(
        self,
        items: Iterable[object] | AsyncIterable[object],
        defaults: dict[str, Any],
        concurrency: int,
        on_progress: ProgressCallback | None,
        *,
        ordered: bool,
    ) -> None:
        self._items = items
        self._defaults = defaults
        self._concurrency = concurrency
        self._on_progress = on_progress
        self._ordered = ordered
        self._total = len(items) if isinstance(items, Sized) else None
        self._done = self._failed = 0
        self._usage = Usage()
        self._results = self._read()

    def __await__(self) -> Generator[Any, None, list[ItemResult[Output]]]:
        return self._list().__await__()

    def __aiter__(self) -> AsyncIterator[ItemResult[Output]]:
        return self._results

    async def aclose(self) -> None:
        """End all runs."""
        await self._results.aclose()

    async def _list(self) -> list[ItemResult[Output]]:
        return sorted([item async for item in self._results], key=lambda item: item.index)

    async def _read(self) -> AsyncGenerator[ItemResult[Any], None]:
        """The results, in the order of the items or as they end."""
        client = find_client(self._defaults.get("client"))
        batch_id = self._defaults.pop("request_id", None) or new_ulid()
        signal: AbortSignal | None = self._defaults.get("abort_signal")
        scope = CancelScope()
        if signal is not None:
            scope.link(signal)
        client.calls.scopes.add(batch_id, scope)
        pool = _Pool(self._items, self._concurrency, self._ordered, self._start(batch_id))
        try:
            while (result := await scope.wait(pool.next())) is not None:
                yield result
        except AbortError as error:
            error.add_facts(request_id=batch_id, total_usage=self._usage)
            raise
        finally:
            client.calls.scopes.remove(batch_id, scope)
            scope.close()
            await pool.close()

    def _start(self, batch_id: str) -> Callable[[int, Any], Any]:
        async def run(index: int, item: object) -> ItemResult[Any]:
            try:
                result = await self._run(f"{batch_id}-{index}", item)
            except Exception as error:  # noqa: BLE001 -- one item does not end the others
                outcome: ItemResult[Any] = ItemResult(index=index, item=item, error=error)
            else:
                outcome = ItemResult(index=index, item=item, result=result)
            await self._report(outcome)
            return outcome

        return run

    async def _run(self, request_id: str, item: object) -> GenerateResult[Any]:
        arguments = {"request_id": request_id, **self._defaults}
        if isinstance(item, Mapping) and "role" not in item:  # a dict with a role is a message
            arguments |= item
            client = arguments.get("client")
            is_valid = isinstance(client, Client | BlockingClient | None)
            if not OF_A_PROVIDER.isdisjoint(self._defaults) and is_valid:
                home = (self._defaults.get("provider"), self._defaults["model"])
                drop_foreign(arguments, item, home, find_client(client))
        else:
            arguments["prompt"] = item
        model, prompt = arguments.pop("model"), arguments.pop("prompt", None)
        schema = arguments.pop("schema")
        if schema is None:
            return await generate(model, prompt, **arguments)
        result: GenerateResult[Any] = await generate_object(
            model, prompt, schema=schema, **arguments
        )
        return result

    async def _report(self, outcome: ItemResult[Any]) -> None:
        self._done += 1
        self._failed += outcome.error is not None
        usage = outcome.result.total_usage if outcome.result is not None else None
        if isinstance(outcome.error, SDKError):
            usage = outcome.error.total_usage
        if usage is not None:
            self._usage += usage
        if self._on_progress is not None:
            progress = Progress(
                done=self._done,
                failed=self._failed,
                total=self._total,
                usage=self._usage,
                last=outcome,
            )
            await settle(self._on_progress(progress))


class _Pool:
    """Runs a function for each item in tasks, a bounded number at once."""

    def __init__(
        self,
        items: Iterable[Any] | AsyncIterable[Any],
        concurrency: int,
        ordered: bool,
        start: Callable[[int, Any], Any],
    ) -> None:
        self._items = items
        self._start = start
        self._ordered = ordered
        self._slots = asyncio.Semaphore(concurrency)
        self._unread = asyncio.Semaphore(2 * concurrency)  # begun, but not read
        self._ended: asyncio.Queue[asyncio.Task[ItemResult[Any]] | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[ItemResult[Any]]] = set()
        self._feeder = asyncio.ensure_future(self._feed())

    async def next(self) -> ItemResult[Any] | None:
        """The next result; None after the last one."""
        task = await self._ended.get()
        if task is None:
            await self._feeder  # raises what the items raised
            return None
        result = await asyncio.shield(task)
        self._tasks.discard(task)
        self._unread.release()
        return result

    async def close(self) -> None:
        """Cancel everything that is still running."""
        running = [task for task in (self._feeder, *self._tasks) if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def _feed(self) -> None:
        try:
            try:
                await self._begin_all()
            except Exception:  # of the items: what has begun is delivered first
                await self._wait_unordered()
                raise
            await self._wait_unordered()
        finally:
            self._ended.put_nowait(None)

    async def _begin_all(self) -> None:
        index = 0
        async for item in _each(self._items):
            await self._unread.acquire()
            await self._slots.acquire()
            self._begin(index, item)
            index += 1

    async def _wait_unordered(self) -> None:
        """Wait for what has begun, unless its order says when it is delivered."""
        if not self._ordered and self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, index: int, item: object) -> None:
        task = asyncio.ensure_future(self._start(index, item))
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._slots.release())
        if self._ordered:
            self._ended.put_nowait(task)
        else:
            task.add_done_callback(self._ended.put_nowait)


async def _each(items: Iterable[object] | AsyncIterable[object]) -> AsyncGenerator[Any, None]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
