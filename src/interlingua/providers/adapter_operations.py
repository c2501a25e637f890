"""The operations of `HttpAdapter` other than generation: counting tokens, listing models, files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from interlingua.prepare.behaviour import behave
from interlingua.prepare.media import rough_size
from interlingua.providers.cancel import CancelScope, Scopes
from interlingua.providers.http_requests import operation_request
from interlingua.providers.operations import (
    exchange,
    find_operation,
    name_models,
    perform_pages,
    stream_items,
)
from interlingua.providers.provider import Provider
from interlingua.providers.reading import LARGE
from interlingua.providers.ulid import new_ulid
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.contracts import (
    Dialect,
    HttpReply,
    HttpRequest,
    Limits,
    Profile,
    Timeouts,
    Transport,
    WireCall,
)
from interlingua.spec.errors import SDKError
from interlingua.spec.operations import ItemDecoder, Operation, ServedModel
from interlingua.spec.request import Request


class OperationCalls:
    """The half of `HttpAdapter` that performs operations; the other half is in `adapter.py`."""

    name: str
    provider: Provider
    behaviour: Behaviour | None
    _dialect: Dialect
    _headers: Mapping[str, str]
    _limits: Limits | None
    _scopes: Scopes
    _signature: Mapping[str, str]
    _timeouts: Timeouts | None
    _transport: Transport

    if TYPE_CHECKING:  # methods of the other half

        def profile_for(self, model: str) -> Profile: ...
        def _check_key(self) -> None: ...
        async def _gather(self, request: Request) -> Request: ...
        def _label_error(
            self, error: SDKError, request_id: str | None, model: str | None
        ) -> None: ...
        async def _start_server(self, model: str) -> str: ...
        def _with_options(
            self, request: Request, profile: Profile
        ) -> tuple[Request, dict[str, str]]: ...

    async def perform(
        self, operation: str | Operation, value: Any = None, *, request_id: str | None = None
    ) -> Any:
        """
        Perform an operation other than generation, such as counting tokens or listing models.

        A string names an operation of the dialect. Raises `AbortError` if it is cancelled.
        """
        operation = find_operation(operation, self._dialect)
        request_id = request_id or getattr(value, "request_id", None) or new_ulid()
        if operation.stream_decoder is not None:
            scope, decoder = CancelScope(), operation.stream_decoder()
            items = self._stream_items(operation, decoder, value, request_id, scope)
            await scope.wait(anext(items))  # wait until the reply has begun
            return items
        try:
            return await self._scopes.wait(request_id, self._perform(operation, value))
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

    async def _perform(self, operation: Operation, value: Any) -> Any:
        call, base_url, is_large = await self._encode_operation(operation, value)

        async def send(page: WireCall) -> tuple[HttpReply, bytes]:
            request = await self._addressed(page, base_url, is_large)
            return await exchange(request, self._transport, self._dialect)

        return await perform_pages(operation, call, send)

    async def _stream_items(
        self,
        operation: Operation,
        decoder: ItemDecoder,
        value: Any,
        request_id: str,
        scope: CancelScope,
    ) -> AsyncGenerator[Any, None]:
        """None when the reply has begun, then its items as they arrive."""
        self._scopes.add(request_id, scope)
        try:
            request = await self._addressed(*await self._encode_operation(operation, value))
            items = stream_items(request, self._transport, self._dialect, decoder, scope)
            async with aclosing(items):
                async for item in items:
                    yield item
        except SDKError as error:
            self._label_error(error, request_id, None)
            raise
        finally:
            self._scopes.remove(request_id, scope)

    async def _addressed(self, call: WireCall, base_url: str, is_large: bool) -> HttpRequest:
        make = partial(
            operation_request,
            call,
            base_url,
            self._headers,
            self._signature,
            self._timeouts,
            limits=self._limits,
            keep_alive=self.provider.keep_alive,
        )
        return await asyncio.to_thread(make) if is_large else make()

    async def _encode_operation(
        self, operation: Operation, value: Any
    ) -> tuple[WireCall, str, bool]:
        """
        The call of an operation, with the provider's own path for it, and its base URL.

        The last value says whether it is so large that it is coded in a thread.
        """
        is_large = False
        model = getattr(value, "model", None)
        model = model if isinstance(model, str) else ""
        profile = self.profile_for(model)
        headers: dict[str, str] = {}
        if isinstance(value, Request):
            value = await self._gather(value)
            if self.behaviour is not None:
                value = behave(value, self.behaviour, profile).request
            value, headers = self._with_options(value, profile)
            is_large = rough_size(value.messages) > LARGE
        else:
            self._check_key()
        base_url = await self._start_server(model)
        if is_large:
            call = await asyncio.to_thread(operation.encode, value, profile)
        else:
            call = operation.encode(value, profile)
        path = self.provider.operation_paths.get(operation.name, call.path)
        return replace(call, path=path, headers={**call.headers, **headers}), base_url, is_large
