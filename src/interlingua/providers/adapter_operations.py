"""The operations of `HttpAdapter` other than generation: counting tokens, listing models, files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from interlingua.prepare.behaviour import behave
from interlingua.prepare.history import HistoryScan
from interlingua.providers.adapter_options import join_options
from interlingua.providers.batches import TURN, BatchRequests
from interlingua.providers.configured_adapter import ConfiguredAdapter
from interlingua.providers.downloads import download_items
from interlingua.providers.http_requests import Ready, operation_request
from interlingua.providers.media import gather_parts
from interlingua.providers.operations import (
    ResultFacts,
    check_operation_losses,
    complete_result,
    exchange,
    find_operation,
    make_decoder,
    model_of,
    name_models,
    perform_pages,
    perform_script,
    provider_request_id,
    rough_form_size,
    rough_json_size,
    stream_items,
)
from interlingua.providers.reading import LARGE
from interlingua.providers.tariffs import Tariffs, price_answer
from interlingua.providers.uploads import check_body_size, check_value_size
from interlingua.runtime.cancel import CancelScope
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.content import Json
from interlingua.spec.contracts import (
    HttpRequest,
    Profile,
    WireCall,
)
from interlingua.spec.errors import ConfigurationError, SDKError
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
    ServedModel,
)
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning, label_message
from interlingua.wire.json_text import dumps

EMBED = "embed"
"""The operation for which the local server runs in another mode."""
_CATALOG = Tariffs()
"""The prices of operations of adapters that are used without a client."""


class OperationCalls(ConfiguredAdapter):
    """The part of `HttpAdapter` that performs operations; that which answers is in `adapter.py`."""

    performs_with_tariffs: ClassVar[bool] = True
    """Whether `perform` takes `tariffs`."""

    if TYPE_CHECKING:  # methods of `HttpAdapter`

        def _decode(self, body: Json, ready: Ready, headers: Mapping[str, str]) -> Response: ...
        async def _gather(self, request: Request) -> Request: ...
        async def ready(self, request: Request, *, logged: set[str] | None = None) -> Ready: ...
        def _with_options(
            self, request: Request, profile: Profile
        ) -> tuple[Request, dict[str, str]]: ...

    async def perform(
        self,
        operation: str | Operation,
        value: Any = None,
        *,
        request_id: str | None = None,
        tariffs: Tariffs | None = None,
    ) -> Any:
        """
        Perform an operation other than generation, such as counting tokens or listing models.

        A string names an operation of the provider. Raises `AbortError` if it is cancelled. The
        prices are those of `tariffs`, or of the catalog.
        """
        operation = find_operation(operation, self._dialect, self.provider)
        request_id = request_id or getattr(value, "request_id", None) or new_ulid()
        tariffs = _CATALOG if tariffs is None else tariffs
        if operation.stream_decoder is not None:
            scope = CancelScope()
            items = self._stream_items(operation, value, request_id, tariffs, scope)
            await scope.wait(anext(items))  # wait until the reply has begun
            return items
        work = self._perform(operation, value, request_id, tariffs)
        try:
            return await self._scopes.wait(request_id, work)
        except SDKError as error:
            self._label_error(error, request_id, getattr(value, "model", None))
            raise

    async def list_models(self) -> list[ServedModel]:
        """The models that the provider serves now (a request is sent)."""
        return name_models(await self.perform("list_models"), self.name)

    async def count_tokens(self, request: Request) -> int:
        """The number of input tokens as the provider counts them (a request is sent)."""
        tokens: int = await self.perform("count_tokens", request)
        return tokens

    async def _perform(
        self, operation: Operation, value: Any, request_id: str, tariffs: Tariffs
    ) -> Any:
        value, headers = await self._prepare_value(value)
        warnings: list[Warning] = []
        if operation.formats:
            value, losses = await self._spool(operation, value)
            warnings += losses
        model = model_of(value)
        profile = self.profile_for(model)
        base_url = await self._start_server(model, embeddings=operation.name == EMBED)
        provider_ids: list[str | None] = []

        async def send(call: WireCall) -> OperationReply:
            if call.warnings:
                check_operation_losses(call.warnings, value, self.on_loss)
                warnings.extend(call.warnings)
            request = await self._addressed(call, base_url, headers, operation, model)
            reply = await exchange(
                request,
                self._transport,
                self._dialect,
                starts_job=call.starts_job,
                error_is_data=operation.error_is_data,
            )
            provider_ids.append(provider_request_id(reply.headers))
            return reply

        if operation.script is not None:
            is_large = isinstance(value, OperationInput) and value.rough_size > LARGE
            script = operation.script(value, profile)
            result = await perform_script(script, send, is_large=is_large)
        else:
            call = await self._encode_operation(operation, value, profile)
            limit = value.limit if isinstance(value, BatchQuery) else None
            result = await perform_pages(operation, call, send, limit)
        provider_id = next(filter(None, reversed(provider_ids)), None)
        facts = ResultFacts(self.name, request_id, provider_id, tuple(warnings), self._family)
        return complete_result(result, facts, self.seller, tariffs, value)

    async def _stream_items(
        self,
        operation: Operation,
        value: Any,
        request_id: str,
        tariffs: Tariffs,
        scope: CancelScope,
    ) -> AsyncGenerator[Any, None]:
        """None when the reply has begun, then its items as they arrive."""
        self._scopes.add(request_id, scope)
        try:
            value, headers = await self._prepare_value(value)
            model = model_of(value)
            profile, base_url = self.profile_for(model), await self._start_server(model)
            call = await self._encode_operation(operation, value, profile)
            check_operation_losses(call.warnings, value, self.on_loss)
            facts = ResultFacts(self.name, request_id, None, call.warnings)
            decoder = make_decoder(operation, value)
            if operation.is_download:
                items = self._download(call, base_url, headers, operation, decoder, scope)
            else:
                request = await self._addressed(call, base_url, headers, operation, model)
                items = stream_items(request, self._transport, self._dialect, decoder, scope)
            async with aclosing(items):
                count = 0
                async for item in items:
                    if isinstance(item, BatchReply):
                        count += 1
                        if count % TURN == 0:  # a chunk may have hundreds of them
                            await asyncio.sleep(0)
                        yield self._decode_reply(item, value, tariffs)
                    else:
                        yield complete_result(item, facts, self.seller, tariffs, value)
        except SDKError as error:
            self._label_error(error, request_id, None)
            raise
        finally:
            self._scopes.remove(request_id, scope)

    async def _spool(
        self, operation: Operation, value: BatchInput
    ) -> tuple[BatchInput, tuple[Warning, ...]]:
        """The value with its requests encoded as calls are, and the warnings about them."""
        make_ready = partial(self.ready, logged=set())
        own_headers = frozenset(name.lower() for name in (*self._headers, *self._signature))
        requests: BatchRequests = value.requests
        spooled = await requests.spool(make_ready, operation.formats, value, own_headers)
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
        given = value.requests.get(reply.id) or Request(model=value.model)
        model = given.model or value.model
        request = replace(given, request_id=reply.id, model=model, keep_raw=False)
        try:
            response = self._decode_answer(reply, request, tariffs)
        except SDKError as error:
            error.add_facts(provider_request_id=reply.provider_request_id)
            self._label_error(error, reply.id, request.model or None)
            return BatchResult(id=reply.id, error=error, raw=reply.raw)
        return BatchResult(id=reply.id, response=response, raw=reply.raw)

    def _decode_answer(self, reply: BatchReply, request: Request, tariffs: Tariffs) -> Response:
        if reply.error is not None:
            raise reply.error
        if reply.status >= 300:
            raise self._dialect.decode_error(reply.status, {}, dumps(reply.body))
        ready = Ready(
            request=request,
            profile=self.profile_for(request.model),
            http=HttpRequest(url=""),
            tariffs=tariffs,
        )
        response = self._decode(reply.body, ready, {})
        response = replace(
            response,
            provider=self.name,
            request_id=reply.id,
            usage=replace(response.usage, service_tier=BATCH_TIER),
        )
        response = price_answer(response, tariffs, self.seller, response.model, request.model)
        message = label_message(response, reply.id, self.name, request.model)
        return replace(response, message=message)

    def _download(
        self,
        call: WireCall,
        base_url: str,
        headers: Mapping[str, str],
        operation: Operation,
        decoder: ItemDecoder,
        scope: CancelScope,
    ) -> AsyncGenerator[Any, None]:
        """As `stream_items`, for a file that may be at another host."""

        async def send(url: str) -> HttpRequest:
            moved = replace(call, path=url, query={}) if url else call
            return await self._addressed(moved, base_url, headers, operation)

        return download_items(
            call.path, base_url, send, self._transport, self._dialect, decoder, scope
        )

    async def _addressed(
        self,
        call: WireCall,
        base_url: str,
        headers: Mapping[str, str],
        operation: Operation,
        model: str = "",
    ) -> HttpRequest:
        """The HTTP request of a call; its path may be the provider's own path of the operation."""
        if operation.name in self.provider.operation_paths:
            call = replace(call, path=self.provider.operation_paths[operation.name])
        if self._endpoint is not None:
            name, version = operation.name, self._api_version
            call = self._endpoint.address_operation(call, name, model, version)
        if headers:
            call = replace(call, headers={**call.headers, **headers})
        make = partial(
            operation_request,
            call,
            base_url,
            self._headers,
            self._signature,
            self._timeouts,
            limits=self._limits,
            # A job is requested on a new connection, which cannot be stale.
            keep_alive=self.provider.keep_alive and not call.starts_job,
            may_resend=not call.starts_job,
        )
        size = rough_form_size(call.form) or rough_json_size(call.body)
        request = await asyncio.to_thread(make) if size > LARGE else make()
        if call.body is not None and isinstance(request.body, bytes) and self.on_loss != "warn":
            check_body_size(len(request.body), self.provider)
        return request

    async def _prepare_value(self, value: Any) -> tuple[Any, dict[str, str]]:
        """The value with the bytes of its files and with the adapter's options; and its headers."""
        self._check_key()
        if isinstance(value, Request):
            value = await self._gather(value)
            profile = self.profile_for(value.model)
            if self.behaviour is not None:
                value = behave(value, self.behaviour, profile).request
            return self._with_options(value, profile)
        if not isinstance(value, OperationInput):
            return value, {}
        value = await gather_parts(
            value,
            self._dialect_name,
            (self.name, self.provider.name),
            reads_files=self.reads_files,
        )
        check_value_size(value, self.provider)
        names = (self.name, value.provider)
        return join_options(value, {}, self.provider, self._dialect_name, names)

    async def _encode_operation(
        self, operation: Operation, value: Any, profile: Profile
    ) -> WireCall:
        if operation.encode is None:
            raise ConfigurationError(f"the operation {operation.name!r} has no `encode`")
        is_large = isinstance(value, Request) and HistoryScan(value.messages).rough_size > LARGE
        if is_large or (isinstance(value, OperationInput) and value.rough_size > LARGE):
            return await asyncio.to_thread(operation.encode, value, profile)
        return operation.encode(value, profile)
