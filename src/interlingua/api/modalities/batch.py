"""
Batches: submit, status, wait, results, cancel, list, delete.

What the caller gives becomes requests with ids, one at a time: `BatchItems`.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import aclosing
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeAlias, Unpack

from msgspec.structs import replace

from interlingua.api.modalities.perform import MediaCall, MediaOptions
from interlingua.api.modalities.polling import check_interval, poll
from interlingua.api.modalities.references import find_stored
from interlingua.api.run.clients import BlockingClient
from interlingua.api.run.closed import ClosedByAsyncWith
from interlingua.api.run.options import (
    RequestOptions,
    check_options,
    make_messages,
    make_request,
)
from interlingua.api.tools.tool import read_tools
from interlingua.client.client import Client
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.batches import BatchRequests
from interlingua.runtime.cancel import AbortSignal
from interlingua.runtime.log import logger
from interlingua.spec.check import advice, describe
from interlingua.spec.errors import ConfigurationError, InvalidRequestError, SDKError, ServerError
from interlingua.spec.modalities.batch import Batch, BatchInput, BatchQuery, BatchResult
from interlingua.spec.request import Request
from interlingua.spec.request_check import check_request
from interlingua.spec.warnings import make_warning

BatchItem: TypeAlias = Any
"""A `Request`, a prompt, or a dict: `{"id": …, "prompt": …, "temperature": …}`."""
BatchItems: TypeAlias = Mapping[str, BatchItem] | Iterable[BatchItem] | AsyncIterable[BatchItem]
"""Items in their order, or by their ids."""

_OWN = frozenset(("id", "prompt", "model"))


class ItemReader:
    """
    Reads items as they are needed, and makes a request of each.

    All requests must be for one provider: `provider`, once the first item was read. With
    `needs_model=False`, a request without a model is left as it is.
    """

    def __init__(
        self,
        items: BatchItems,
        client: Client,
        model: str | None = None,
        defaults: Mapping[str, Any] = MappingProxyType({}),
        *,
        needs_model: bool = True,
    ) -> None:
        given: object = items  # a caller without a type checker may pass anything
        is_text = isinstance(given, (str, bytes, Request))
        if is_text or not isinstance(given, (Iterable, AsyncIterable)):
            raise ConfigurationError(
                f"The items of a batch must be a list, a dict by id, or another iterable, not "
                f"{describe(items)}."
            )
        _check_names(defaults)
        check_options(defaults)
        self.provider: str | None = None
        self._client = client
        self._model = model
        self._defaults = dict(defaults)
        self._items = items
        self._needs_model = needs_model

    async def read(self) -> AsyncGenerator[tuple[str, Request], None]:
        """The ids and requests; an error names its request."""
        number = 0
        async for item_id, item in _pairs(self._items):
            name = item_id or _id_of(item) or f"request-{number}"
            try:
                request = self._address(self._make(name, item))
            except SDKError as error:
                error.prefix(f"Request {name!r} of the batch")
                raise
            number += 1
            yield name, request

    def _make(self, item_id: str, item: Any) -> Request:
        if isinstance(item, Request):
            others = self._defaults.keys() - {"provider", "on_loss"}
            if others:
                raise ConfigurationError(
                    f"{', '.join(sorted(others))} cannot be set for a Request, which has its own "
                    "fields. Set it there, or pass prompts."
                )
            request = check_request(item)
            provider = request.provider or self._defaults.get("provider")
            model = request.model or self._model or ""
            on_loss = request.on_loss or self._defaults.get("on_loss")
            return replace(
                request, request_id=item_id, model=model, provider=provider, on_loss=on_loss
            )
        arguments = self._defaults
        prompt = item
        if isinstance(item, Mapping) and "role" not in item:  # a dict with a role is a message
            _check_names(item)
            arguments = {**self._defaults, **item}
            arguments.pop("id", None)
            prompt = arguments.pop("prompt", None)
            check_options({key: each for key, each in arguments.items() if key not in _OWN})
        system = arguments.get("system")
        if callable(system):
            raise ConfigurationError("`system` must be a text: a batch has no run that calls it.")
        tools = read_tools(arguments["tools"]) if "tools" in arguments else ()
        messages = make_messages(prompt, arguments.get("messages"), system)
        fields = {key: each for key, each in arguments.items() if key not in _OWN}
        fields["request_id"] = item_id
        return make_request(arguments.get("model", self._model), messages, tools, fields)

    def _address(self, request: Request) -> Request:
        if not request.model and not self._needs_model:
            return request
        request = self._client.address(request)
        if self.provider is None:
            self.provider = request.provider
        if request.provider != self.provider:
            raise ConfigurationError(
                f"It is for {request.provider}, and the first request for {self.provider}. A batch "
                "is at one provider: submit one for each."
            )
        return request


def _check_names(arguments: Mapping[str, object]) -> None:
    known = RequestOptions.__annotations__.keys() | _OWN
    for name in arguments:
        if name not in known:
            raise ConfigurationError(f"Unknown option {name!r}. {advice(name, known)}")


def _id_of(item: object) -> str | None:
    given: object = item.request_id if isinstance(item, Request) else None
    if isinstance(item, Mapping) and "role" not in item:
        given = item.get("id")
    if given is not None and (not isinstance(given, str) or not given):
        raise ConfigurationError(f"The id of a request must be a text, not {describe(given)}.")
    return None if given is None else str(given)


async def _pairs(items: BatchItems) -> AsyncGenerator[tuple[str | None, Any], None]:
    """The items with their ids, where they are given by id."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield None, item
        return
    pairs: Iterator[tuple[Any, Any]] = (
        iter(items.items()) if isinstance(items, Mapping) else ((None, item) for item in items)
    )
    for item_id, item in pairs:
        if item_id is not None and (not isinstance(item_id, str) or not item_id):
            raise ConfigurationError(
                f"The id of a request must be a text, not {describe(item_id)}."
            )
        yield item_id, item


BatchName: TypeAlias = Batch | str
"""A batch, its `reference` (`openai:batch_…`), or its id together with `provider=`."""
INTERVAL = 10.0
"""Seconds before a batch is asked for a second time; the delay grows to ten times that."""


class SubmitOptions(RequestOptions, total=False):
    """The options of `submit`: those of every request, and those of the call."""

    name: str
    """A name for the batch, which `list` shows. A warning says if the provider keeps none."""
    batch_options: Mapping[str, Mapping[str, Any]]
    """
    More fields of the call that creates the batch, by provider or dialect.

    `provider_options` are for each request.
    """
    max_retries: int
    """How often a call is retried, if that cannot create a second batch. Defaults to 2."""
    retry_policy: RetryPolicy | None
    """The retry policy; replaces `max_retries`."""
    timeout: float | None
    """Seconds for the whole function, with its retries."""
    abort_signal: AbortSignal | None
    """The signal of an `AbortController`, which aborts the call."""
    api_key: str | None
    """The API key for this call."""
    base_url: str | None
    """The address of the provider for this call."""
    headers: Mapping[str, str] | None
    """More headers for this call."""
    client: Client | BlockingClient | None
    """The client to use, async or blocking. Defaults to the module-level client."""


_OF_CALL = frozenset(
    (
        *("client", "max_retries", "retry_policy", "timeout", "abort_signal"),
        *("api_key", "base_url", "headers", "request_id", "provider", "on_loss"),
    )
)
_SHOWN = 20
"""Ids in a log record."""
_OF_BATCH = (_OF_CALL - {"provider", "on_loss"}) | {"name", "batch_options"}
"""The options that are not those of each request."""


async def submit(
    items: BatchItems, model: str | None = None, **options: Unpack[SubmitOptions]
) -> Batch:
    """
    Send many requests at once, which the provider answers within a day, at a lower price.

        prompts = {"de": "Translate 'sea' into German.", "fr": "Translate 'sea' into French."}
        batch = await submit(prompts, "openai:gpt-5.2", max_tokens=100)
        save(batch.reference)  # such as "openai:batch_68f1…"

    Items are prompts, dicts with the arguments of one request, or `Request`s. Their ids are the
    keys of a dict, `id` in a dict, or `request_id` in a `Request`; others are `request-0`,
    `request-1` and so on. Items may be any iterable, also an async one: they are read one at a
    time and written to a temporary file. Each is prepared as a call is, so files are read, and an
    error names the request. Nothing is sent before all are encoded.
    """
    calling = {name: value for name, value in options.items() if name in _OF_CALL}
    call = MediaCall(model or "", calling)
    given = options.get("batch_options")
    own = {"name": options.get("name") or "", "provider_options": given or {}}
    fields = {
        name: value
        for name, value in options.items()
        if name not in _OF_BATCH and value is not None
    }
    reader = ItemReader(items, call.client, model, fields)
    result: Batch = await call.run(_submit(call, reader, own))
    return result


async def _submit(call: MediaCall, reader: ItemReader, own: Mapping[str, Any]) -> Batch:
    async with aclosing(reader.read()) as items:
        first = await anext(items, None)
        if first is None or reader.provider is None:
            raise ConfigurationError("The batch has no requests.")
        requests = BatchRequests(_rest(first, items))
        value = BatchInput(
            requests=requests, provider=reader.provider, request_id=call.request_id, **own
        )
        try:
            batch: Batch = await call.perform("submit_batch", value)
        finally:
            requests.close()
    if value.name and batch.name != value.name:
        facts = {"target": batch.provider, "setting": "name", "when": ""}
        return replace(
            batch, warnings=(*batch.warnings, make_warning("setting_dropped", "name", **facts))
        )
    return batch


async def _rest(
    first: tuple[str, Request], items: AsyncIterator[tuple[str, Request]]
) -> AsyncGenerator[tuple[str, Request], None]:
    yield first
    async for item in items:
        yield item


async def status(batch: BatchName, **options: Unpack[MediaOptions]) -> Batch:
    """
    Ask the provider about a batch, in any process that knows its reference.

        print((await status("openai:batch_68f1…")).counts)
    """
    call, query = _find(batch, options)
    found: Batch = await call.run(call.perform("retrieve_batch", query))
    return found


async def wait(
    batch: BatchName,
    *,
    poll_interval: float = INTERVAL,
    on_progress: Callable[[Batch], object] | None = None,
    **options: Unpack[MediaOptions],
) -> Batch:
    """
    Wait until a batch has ended, and return it.

    The provider is asked now, after `poll_interval` seconds, and then less and less often.
    `on_progress`, sync or async, is called with each answer. `timeout` limits the wait, which can
    be taken up again at any time.
    """
    check_interval(poll_interval)
    call, query = _find(batch, options)

    async def ask() -> Batch:
        found: Batch = await call.perform("retrieve_batch", query)
        return found

    work = poll(ask, _is_ended, interval=poll_interval, on_progress=on_progress)
    return await call.run(work)


def _is_ended(batch: Batch) -> bool:
    return batch.is_ended


def results(
    batch: BatchName, *, requests: BatchItems | None = None, **options: Unpack[MediaOptions]
) -> BatchResults:
    """
    Return the results of a batch that has ended, as they arrive; in any order.

        async for result in results("openai:batch_68f1…"):
            print(result.id, result.error or result.response.text)

    A request that failed, expired or was cancelled has an `error`. With the `requests` as they
    were submitted, a request that never came back has an error too; all requests are kept in
    memory then.
    """
    call, query = _find(batch, options)
    known = batch if isinstance(batch, Batch) and batch.is_ended else None
    return BatchResults(call, query, known, requests)


class BatchResults(ClosedByAsyncWith):
    """The results of a batch: an async iterator, which can be read once."""

    def __init__(
        self, call: MediaCall, query: BatchQuery, known: Batch | None, requests: BatchItems | None
    ) -> None:
        self._call = call
        self._query = query
        self._known = known
        self._requests = requests
        self._items = self._read()

    def __aiter__(self) -> AsyncIterator[BatchResult]:
        return self._items

    async def aclose(self) -> None:
        """Stop reading and close the connection."""
        await self._items.aclose()

    async def _read(self) -> AsyncGenerator[BatchResult, None]:
        call, query = self._call, self._query
        batch = self._known or await self._ask()
        _check_ended(batch)
        missing = await self._by_id()
        fields = {"model": batch.model, "requests": dict(missing)}
        counted = _Counted()
        for output in batch.outputs:
            one = replace(query, output=output, **fields)
            async with aclosing(call.stream("batch_results", one)) as items:
                async for item in items:
                    missing.pop(item.id, None)
                    yield counted.add(item)
        for item_id, request in missing.items():
            yield BatchResult(id=item_id, error=_missing(batch, request))
        counted.check(batch, has_requests=self._requests is not None)

    async def _ask(self) -> Batch:
        found: Batch = await self._call.run(self._call.perform("retrieve_batch", self._query))
        return found

    async def _by_id(self) -> dict[str, Request]:
        if self._requests is None:
            return {}
        reader = ItemReader(self._requests, self._call.client, needs_model=False)
        return {item_id: request async for item_id, request in reader.read()}


def _check_ended(batch: Batch) -> None:
    if not batch.is_ended:
        raise ConfigurationError(
            f"The batch {batch.reference} has not ended: its state is {batch.state!r}. Use `wait`."
        )
    if batch.state == "failed" and not batch.outputs:
        reasons = "; ".join(_describe(fault) for fault in batch.faults[:5])
        raise InvalidRequestError(
            f"The batch {batch.id} has failed: {reasons or 'the provider gives no reason'}",
            provider=batch.provider,
            raw=batch.raw,
        )


class _Counted:
    """Counts the results of a batch, to tell which are repeated or missing."""

    def __init__(self) -> None:
        self._count = 0
        self._ids: set[str] = set()
        self._repeated: dict[str, None] = {}

    def add(self, item: BatchResult) -> BatchResult:
        """The result; with a warning if it is not the first: all are given, they may be paid."""
        if not item.id or item.id not in self._ids:  # a line that cannot be read has no id
            self._count += 1
            self._ids.add(item.id)
            return item
        self._repeated[item.id] = None
        if item.response is None:
            return item
        warning = make_warning("batch_result_repeated", request=item.id)
        warnings = (*item.response.warnings, warning)
        return replace(item, response=replace(item.response, warnings=warnings))

    def check(self, batch: Batch, *, has_requests: bool) -> None:
        """
        Log what is repeated or missing; raise `ServerError` if all is missing.

        With the requests at hand, each that is missing has an error of its own.
        """
        if self._repeated:
            ids = ", ".join(map(repr, islice(self._repeated, _SHOWN)))
            text = "%s has several results for %d of its requests: %s"
            logger.warning(text, batch.reference, len(self._repeated), ids)
        expected = (batch.counts.succeeded or 0) + (batch.counts.failed or 0)
        if has_requests or self._count >= expected:
            return
        text = f"The batch {batch.id} has {expected} results by its counts, but {self._count} came."
        if self._count:
            logger.warning("%s: %s", batch.reference, text)
            return
        raise ServerError(
            f"{text} Read them again later.", provider=batch.provider, model=batch.model or None
        )


def _describe(fault: Any) -> str:
    place = "" if fault.line is None else f"line {fault.line}: "
    return f"{place}{fault.message or fault.code}"


def _missing(batch: Batch, request: Request) -> ServerError:
    return ServerError(
        f"The batch {batch.id} has ended without a result for this request.",
        provider=batch.provider,
        model=request.model or None,
        request_id=request.request_id,
    )


async def cancel(batch: BatchName, **options: Unpack[MediaOptions]) -> Batch:
    """
    Ask the provider to cancel a batch; `wait` for its end.

    What is answered by then has results, and is paid for.
    """
    call, query = _find(batch, options)
    found: Batch = await call.run(call.perform("cancel_batch", query))
    return found


async def list_batches(
    target: str, *, limit: int | None = None, **options: Unpack[MediaOptions]
) -> list[Batch]:
    """List the batches of a provider, newest first; by default all of them."""
    given: object = limit  # a caller without a type checker may pass anything
    if given is not None and (type(given) is not int or given < 1):
        raise ConfigurationError(f"`limit` must be an integer of 1 or more, not {describe(limit)}.")
    call = MediaCall("", {**options, "provider": target})
    query = BatchQuery(limit=limit, **call.fields())
    batches: list[Batch] = await call.run(call.perform("list_batches", query))
    return batches[:limit]


async def delete(batch: BatchName, **options: Unpack[MediaOptions]) -> None:
    """
    Delete what a batch has left at the provider: its files, and the batch where that is possible.

    The batch must have ended.
    """
    call, query = _find(batch, options)

    async def work() -> None:
        known = batch if isinstance(batch, Batch) and batch.is_ended else None
        if known is None:
            known = await call.perform("retrieve_batch", query)
        if not known.is_ended:
            raise ConfigurationError(
                f"The batch {known.reference} has not ended: its state is {known.state!r}. Use "
                "`cancel` and `wait` first."
            )
        await call.perform("delete_batch", replace(query, batch=known))

    await call.run(work())


def _find(batch: object, options: MediaOptions) -> tuple[MediaCall, BatchQuery]:
    """The call at the provider of a batch, and the query for it."""
    call, batch_id = find_stored(batch, Batch, options, word="batch", example="openai:batch_abc")
    return call, BatchQuery(id=batch_id, **call.fields())
