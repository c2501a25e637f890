"""Calls of operations other than generation: counting tokens, listing models, files, batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urljoin

from msgspec.structs import replace

from interlingua.prepare.behaviour import behave
from interlingua.prepare.history.scan import HistoryScan
from interlingua.providers.adapter.configuration import Configuration
from interlingua.providers.adapter.generation import Generation
from interlingua.providers.adapter_options import join_options
from interlingua.providers.batches import TURN, BatchRequests
from interlingua.providers.media import gather_parts
from interlingua.providers.operation_check import check_operation
from interlingua.providers.operation_requests import operation_request
from interlingua.providers.operations import (
    ResultFacts,
    check_operation_losses,
    complete_result,
    exchange,
    find_operation,
    make_decoder,
    model_of,
    perform_pages,
    perform_script,
    rough_form_size,
    rough_json_size,
    stream_items,
)
from interlingua.providers.profile_check import check_places
from interlingua.providers.provider import is_at_loopback, is_own, join_url
from interlingua.providers.replies import LARGE, find_request_id, read_error
from interlingua.providers.tariffs import Tariffs, price_answer
from interlingua.providers.uploads import Place, Uploads, check_body_size, check_value_size
from interlingua.runtime.cancel import CancelScope, Scopes
from interlingua.runtime.items import perform_in
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.contracts import (
    Dialect,
    HttpRequest,
    Profile,
    Transport,
    WireCall,
)
from interlingua.spec.errors import ConfigurationError, DecodeError, SDKError
from interlingua.spec.modalities.batch import (
    BATCH_TIER,
    BatchInput,
    BatchQuery,
    BatchReply,
    BatchResult,
)
from interlingua.spec.operations import (
    ItemDecoder,
    Operation,
    OperationInput,
    OperationReply,
)
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning, label_message
from interlingua.transport.media import MAX_REDIRECTS, fetch_chunks, is_public
from interlingua.wire.json_text import dumps

EMBED = "embed"
"""The operation for which the local server runs in another mode."""
_CATALOG = Tariffs()
"""The prices of operations of adapters that are used without a client."""


class Operations:
    """The calls of operations other than generation, and the batches of calls of a model."""

    def __init__(
        self, configuration: Configuration, generation: Generation, scopes: Scopes
    ) -> None:
        self._configuration = configuration
        self._generation = generation
        self._scopes = scopes

    async def perform(
        self,
        operation: str | Operation,
        value: Any = None,
        *,
        request_id: str | None = None,
        tariffs: Tariffs | None = None,
    ) -> Any:
        """Perform an operation in a scope of its own; see `HttpAdapter.perform`."""
        request_id = request_id or getattr(value, "request_id", None) or new_ulid()
        scope = CancelScope()
        work = self.run(operation, value, request_id, tariffs or _CATALOG, scope)
        return await perform_in(self._scopes, request_id, work, scope)

    def run(
        self,
        operation: str | Operation,
        value: Any,
        request_id: str,
        tariffs: Tariffs,
        scope: CancelScope,
    ) -> Awaitable[Any]:
        """
        Perform an operation in the scope of its caller: a client calls this.

        The items of a streamed operation are returned when the reply has begun.
        """
        own = self._configuration
        operation = find_operation(operation, own.dialect, own.provider)
        if operation.stream_decoder is None:
            return self._perform(operation, value, request_id, tariffs)
        return self._begin_stream(operation, value, request_id, tariffs, scope)

    async def _begin_stream(
        self,
        operation: Operation,
        value: Any,
        request_id: str,
        tariffs: Tariffs,
        scope: CancelScope,
    ) -> AsyncGenerator[Any, None]:
        items = self._stream_items(operation, value, request_id, tariffs, scope)
        await anext(items)  # wait until the reply has begun
        return items

    async def store_files(self, request: Request, uploads: Uploads) -> Request:
        """The request with its large files stored at the provider; `uploads` deletes them."""
        own = self._configuration
        if not HistoryScan(request.messages).holds_media:
            return request
        facts = own.dialect.FACTS
        place = Place(own.name, own.provider, facts, self.perform, own.reads_files)
        try:
            own.check_key()
            return await uploads.place(request, place)
        except SDKError as error:
            own.label_error(error, request.request_id, request.model)
            raise

    async def _perform(
        self, operation: Operation, value: Any, request_id: str, tariffs: Tariffs
    ) -> Any:
        """The result of an operation; its errors are labelled."""
        own = self._configuration
        try:
            value, headers, lost = await self._prepare_value(value)
            losses = tuple(lost)
            if operation.formats:
                value, found = await self._spool(operation, value)
                losses += found
            model = model_of(value)
            profile = own.profiles.get(model) or own.profile_for(model)
            check_operation(operation, value, profile, own.provider.name, own.on_loss)
            if own.provider.url_env:
                check_places(model, own.provider, own.places)
            base_url = own.base_url
            if own.starts_server:
                base_url = await own.start_server(model, embeddings=operation.name == EMBED)
            exchanges = _Exchanges(own, operation, value, model, base_url, headers, losses)
            if operation.script is not None:
                is_large = isinstance(value, OperationInput) and value.rough_size > LARGE
                script = operation.script(value, profile)
                result = await perform_script(script, exchanges.send, is_large=is_large)
            else:
                call = await self._encode_operation(operation, value, profile)
                limit = value.limit if isinstance(value, BatchQuery) else None
                result = await perform_pages(operation, call, exchanges.send, limit)
            facts = exchanges.facts(request_id)
            return complete_result(result, facts, own.seller, tariffs, value)
        except SDKError as error:
            own.label_error(error, request_id, getattr(value, "model", None))
            raise

    async def _stream_items(
        self,
        operation: Operation,
        value: Any,
        request_id: str,
        tariffs: Tariffs,
        scope: CancelScope,
    ) -> AsyncGenerator[Any, None]:
        """None when the reply has begun, then its items as they arrive."""
        own = self._configuration
        try:
            value, headers, lost = await self._prepare_value(value)
            model = model_of(value)
            profile = own.profile_for(model)
            check_operation(operation, value, profile, own.provider.name, own.on_loss)
            base_url = await own.start_server(model)
            call = await self._encode_operation(operation, value, profile)
            check_operation_losses(call.warnings, value, own.on_loss)
            losses = (*lost, *call.warnings)
            facts = ResultFacts(own.name, request_id, None, losses, requested=model)
            sent = _Streamed(operation, value, model, base_url, headers, scope)
            async with aclosing(self._page_items(call, sent)) as items:
                count = 0
                async for item in items:
                    if isinstance(item, BatchReply):
                        count += 1
                        if count % TURN == 0:  # a chunk may have hundreds of them
                            await asyncio.sleep(0)
                        yield self._decode_reply(item, value, tariffs)
                    else:
                        yield complete_result(item, facts, own.seller, tariffs, value)
        except SDKError as error:
            own.label_error(error, request_id, None)
            raise

    async def _spool(
        self, operation: Operation, value: BatchInput
    ) -> tuple[BatchInput, tuple[Warning, ...]]:
        """The value with its requests encoded as calls are, and the warnings about them."""
        own = self._configuration
        encode = partial(self._generation.encode, in_batch=True, logged=set())
        own_headers = frozenset(name.lower() for name in (*own.headers, *own.signature))
        requests: BatchRequests = value.requests
        spooled = await requests.spool(encode, operation.formats, value, own_headers)
        value = replace(
            value,
            model=spooled.model,
            format=spooled.format,
            content=spooled.content,
            headers=spooled.headers,
        )
        return value, spooled.warnings

    def _decode_reply(self, reply: BatchReply, value: BatchQuery, tariffs: Tariffs) -> BatchResult:
        """The result of one request of a batch: its answer is decoded and priced as a call's."""
        own = self._configuration
        given = value.requests.get(reply.id) or Request(model=value.model)
        model = given.model or value.model
        request = replace(given, request_id=reply.id, model=model, keep_raw=False)
        try:
            response = self._decode_answer(reply, request, tariffs)
        except SDKError as error:
            error.add_facts(provider_request_id=reply.provider_request_id)
            own.label_error(error, reply.id, request.model or None)
            return BatchResult(id=reply.id, error=error, raw=reply.raw)
        return BatchResult(id=reply.id, response=response, raw=reply.raw)

    def _decode_answer(self, reply: BatchReply, request: Request, tariffs: Tariffs) -> Response:
        own = self._configuration
        if reply.error is not None:
            raise reply.error
        if reply.status >= 300:
            raise own.dialect.decode_error(reply.status, {}, dumps(reply.body))
        profile = own.profile_for(request.model)
        response = self._generation.decode(reply.body, request, profile, {})
        response = replace(
            response,
            provider=own.name,
            request_id=reply.id,
            usage=replace(response.usage, service_tier=BATCH_TIER),
        )
        response = price_answer(response, tariffs, own.seller, response.model, request.model)
        message = label_message(response, reply.id, own.name, request.model)
        return replace(response, message=message)

    async def _page_items(self, call: WireCall, sent: _Streamed) -> AsyncGenerator[Any, None]:
        """
        None when the reply has begun, then its items; of a reply with pages, those of all.

        Paging stops at a page that was already read, as in `perform_pages`.
        """
        pages: list[tuple[str, Mapping[str, str]]] = []
        page: WireCall | None = call
        while page is not None and (page.path, page.query) not in pages:
            decoder = make_decoder(sent.operation, sent.value)
            async with aclosing(await self._begin_page(page, sent, decoder)) as items:
                begun = await anext(items)
                if not pages:
                    yield begun
                async for item in items:
                    yield item
            pages.append((page.path, page.query))
            next_page = getattr(decoder, "next_page", None)
            page = None if next_page is None else next_page(page)

    async def _begin_page(
        self, call: WireCall, sent: _Streamed, decoder: ItemDecoder
    ) -> AsyncGenerator[Any, None]:
        """As `stream_items`; for a download, which may be at another host, `download_items`."""
        own = self._configuration
        transport, dialect = own.transport, own.dialect

        async def address(url: str, model: str = "") -> HttpRequest:
            moved = replace(call, path=url, query={}) if url else call
            return await _address(own, moved, sent.base_url, sent.headers, sent.operation, model)

        if sent.operation.is_download:
            return download_items(
                call.path, sent.base_url, address, transport, dialect, decoder, sent.scope
            )
        request = await address("", sent.model)
        return stream_items(request, transport, dialect, decoder, sent.scope)

    async def _prepare_value(self, value: Any) -> tuple[Any, dict[str, str], list[Warning]]:
        """The value with the bytes of its files and the options; its headers, and what is lost."""
        own = self._configuration
        if not own.key:
            own.check_key()
        if isinstance(value, Request):
            value = await self._generation.gather(value)
            profile = own.profile_for(value.model)
            if own.behaviour is not None:
                value = behave(value, own.behaviour, profile).request
            value, headers, lost = own.with_options(value, profile)
        elif isinstance(value, OperationInput):
            value = await gather_parts(
                value,
                own.dialect_name,
                (own.name, own.provider.name),
                reads_files=own.reads_files,
            )
            check_value_size(value, own.provider)
            names = (own.name, value.provider)
            value, headers, lost = join_options(value, {}, own.provider, own.dialect_name, names)
        else:
            return value, {}, []
        if lost:
            check_operation_losses(tuple(lost), value, own.on_loss)
        return value, headers, lost

    async def _encode_operation(
        self, operation: Operation, value: Any, profile: Profile
    ) -> WireCall:
        if operation.encode is None:
            raise ConfigurationError(f"The operation {operation.name!r} has no `encode`.")
        is_large = isinstance(value, Request) and HistoryScan(value.messages).rough_size > LARGE
        if is_large or (isinstance(value, OperationInput) and value.rough_size > LARGE):
            return await asyncio.to_thread(operation.encode, value, profile)
        return operation.encode(value, profile)


class _Streamed(NamedTuple):
    """What the calls of one streamed operation have in common."""

    operation: Operation
    value: Any
    model: str
    base_url: str
    headers: Mapping[str, str]
    scope: CancelScope


class _Exchanges:
    """The HTTP exchanges of one operation."""

    def __init__(
        self,
        own: Configuration,
        operation: Operation,
        value: Any,
        model: str,
        base_url: str,
        headers: Mapping[str, str],
        losses: tuple[Warning, ...],
    ) -> None:
        self._own = own
        self._operation = operation
        self._value = value
        self._model = model
        self._base_url = base_url
        self._headers = headers
        self._warnings = losses
        self._provider_id: str | None = None

    async def send(self, call: WireCall) -> OperationReply:
        """The reply to one call."""
        own, operation = self._own, self._operation
        if call.warnings:
            check_operation_losses(call.warnings, self._value, own.on_loss)
            self._warnings = (*self._warnings, *call.warnings)
        request = await _address(own, call, self._base_url, self._headers, operation, self._model)
        reply = await exchange(
            request,
            own.transport,
            own.dialect,
            starts_job=call.starts_job,
            error_is_data=operation.error_is_data,
        )
        self._provider_id = find_request_id(reply.headers) or self._provider_id
        return reply

    def facts(self, request_id: str) -> ResultFacts:
        """What is known of the result besides its body."""
        own = self._own
        return ResultFacts(
            own.name,
            request_id,
            self._provider_id,
            self._warnings,
            own.dialect.FACTS.token_family,
            self._model,
        )


async def _address(
    own: Configuration,
    call: WireCall,
    base_url: str,
    headers: Mapping[str, str],
    operation: Operation,
    model: str = "",
) -> HttpRequest:
    """The HTTP request of a call; its path may be the provider's own path of the operation."""
    if operation.name in own.provider.operation_paths:
        call = replace(call, path=own.provider.operation_paths[operation.name])
    if own.endpoint is not None:
        name, version = operation.name, own.api_version
        call = own.endpoint.address_operation(call, name, model, version)
    if headers:
        call = replace(call, headers={**call.headers, **headers})
    make = partial(
        operation_request,
        call,
        base_url,
        own.headers,
        own.signature,
        own.timeouts,
        limits=own.limits,
        # A job is requested on a new connection, which cannot be stale.
        keep_alive=own.provider.keep_alive and not call.starts_job,
        may_resend=not call.starts_job,
    )
    size = rough_form_size(call.form) if call.form else rough_json_size(call.body)
    request = await asyncio.to_thread(make) if size > LARGE else make()
    if call.body is not None and isinstance(request.body, bytes) and own.on_loss != "warn":
        check_body_size(len(request.body), own.provider)
    return request


# Downloads.


_REDIRECTS = frozenset((301, 302, 303, 307, 308))


async def download_items(
    path: str,
    base_url: str,
    make_request: Callable[[str], Awaitable[HttpRequest]],
    transport: Transport,
    dialect: Dialect,
    decoder: ItemDecoder,
    scope: CancelScope,
) -> AsyncGenerator[Any, None]:
    """
    None when the file begins to arrive, then its items; `make_request` adds the key to a URL.

    The key is sent only to the host of the provider. A file at another host, which the reply of
    the provider names or redirects to, is fetched without it.
    """
    url = path if path.startswith(("http://", "https://")) else ""
    for _ in range(MAX_REDIRECTS + 1):
        if url and not is_own(base_url, url):
            items = _fetch_items(url, base_url, decoder, scope)
            async with aclosing(items):
                async for item in items:
                    yield item
            return
        request = await make_request(url)
        async with transport.send(request) as reply:
            if reply.status not in _REDIRECTS or "location" not in reply.headers:
                if reply.status >= 300:
                    raise await read_error(reply, dialect)
                scope.replies = (reply,)
                yield None
                chunks = aiter(reply.chunks())
                while chunk := await scope.wait(anext(chunks, b"")):
                    for item in decoder.feed(chunk):
                        yield item
                break
            url = urljoin(url or join_url(base_url, path), reply.headers["location"])
    else:
        raise DecodeError(f"The provider redirects a download more than {MAX_REDIRECTS} times.")
    for item in decoder.finish():
        yield item


async def _fetch_items(
    url: str, base_url: str, decoder: ItemDecoder, scope: CancelScope
) -> AsyncGenerator[Any, None]:
    """The items of a file at another host; only a provider on this machine may name local ones."""

    def allowed(address: str) -> bool:
        return is_public(address) or is_at_loopback(base_url)

    chunks = fetch_chunks(url, allowed=allowed)
    async with aclosing(chunks):
        await scope.wait(anext(chunks))
        yield None
        while chunk := await scope.wait(anext(chunks, b"")):
            for item in decoder.feed(chunk):
                yield item
    for item in decoder.finish():
        yield item
