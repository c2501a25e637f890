"""How media functions call operations: client, route, retries, timeout, cancelling."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypedDict, TypeVar

from msgspec.structs import replace

from interlingua.api.run.clients import (
    CLIENT_OPTIONS,
    BlockingClient,
    adapt_client,
    find_client,
)
from interlingua.api.run.options import check_options, policy_of
from interlingua.client.client import Client
from interlingua.client.middleware.usage_reports import UsageCallback
from interlingua.client.operation_attempts import OperationAttempts
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.catalog.search import short_name_notice
from interlingua.providers.keys import Key
from interlingua.providers.tariffs import Prices
from interlingua.runtime.cancel import AbortSignal, CancelScope
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.check import advice, refuse
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.operations import OperationInput, OperationResult
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.response import Warning

Result = TypeVar("Result")
_END = object()


class MediaOptions(TypedDict, total=False):
    """The options that all media functions take."""

    provider: str | None
    """The provider, if the model does not name it."""
    provider_options: Mapping[str, Mapping[str, Any]]
    """More fields of the body, by provider or dialect; they replace the encoded ones."""
    on_loss: OnLoss | None
    """What to do about losses, as in `generate`."""
    request_id: str | None
    """The id for `client.cancel`, events and logs."""
    max_retries: int
    """How often each call is retried. Defaults to 2."""
    retry_policy: RetryPolicy | None
    """The retry policy; replaces `max_retries`."""
    timeout: float | None
    """Seconds for the whole function, with its retries."""
    abort_signal: AbortSignal | None
    """The signal of an `AbortController`, which aborts the call."""
    api_key: Key | None
    """The API key for this call."""
    base_url: str | None
    """The address of the provider for this call."""
    headers: Mapping[str, str] | None
    """More headers for this call."""
    prices: Prices | None
    """Rates by model for this call, over those of the client and of the catalog."""
    on_usage: UsageCallback | None
    """Called with a `UsageReport` for each operation that reports its usage."""
    caller_id: str | None
    """An id of the program for the reports, such as that of a user."""
    client: Client | BlockingClient | None
    """The client to use, async or blocking. Defaults to the module-level client."""


def _add_notice(result: Any, notice: Warning) -> Any:
    if not isinstance(result, OperationResult):
        return result
    return replace(result, warnings=(notice, *result.warnings))


class MediaCall:
    """
    One call of a function: it may perform several operations, in one scope with one id.

        call = MediaCall(model, options)
        return await call.run(work(call))  # `work` awaits `call.perform(...)`
    """

    def __init__(self, model: str, options: Mapping[str, Any]) -> None:
        for name in options:
            if name not in MediaOptions.__annotations__:
                known = MediaOptions.__annotations__
                raise ConfigurationError(f"Unknown option {name!r}. {advice(name, known)}")
        check_options(options)
        given: Any = model  # a caller without a type checker may pass anything
        if not isinstance(given, str):
            refuse("model", "the name of a model", model)
        self.client: Client = find_client(options.get("client"))
        if not CLIENT_OPTIONS.isdisjoint(options):
            self.client = adapt_client(self.client, model, options)
        self.request_id: str = options.get("request_id") or new_ulid()
        self._model = model
        self._options = options
        self._policy = policy_of(options)
        self._scope: CancelScope | None = None

    def fields(self) -> dict[str, Any]:
        """The fields that every value has: `EmbedInput(inputs=…, **call.fields())`."""
        return {
            "model": self._model,
            "provider": self._options.get("provider"),
            "provider_options": self._options.get("provider_options") or {},
            "on_loss": self._options.get("on_loss"),
            "request_id": self.request_id,
        }

    async def perform(self, operation: str, value: OperationInput | Request) -> Any:
        """The result of one operation, at the provider of the value or of its model."""
        routing = self.client.calls.routing
        if not value.model and value.provider:
            key = routing.find_key(value.provider)
        elif isinstance(value, Request):
            value = routing.address(value)
            key = value.provider or ""
        else:
            route = routing.place(value.provider, value.model)
            key, value = route.provider, replace(value, provider=route.provider, model=route.model)
            if route.short_name is not None:
                result = await self._attempt(key, operation, value)
                return _add_notice(result, short_name_notice(route.short_name, key, route.model))
        return await self._attempt(key, operation, value)

    async def perform_at(self, operation: str, value: OperationInput) -> Any:
        """As `perform`, at the provider that the value names, for what exists there already."""
        key = self.client.calls.routing.find_key(value.provider or "")
        return await self._attempt(key, operation, value)

    def _attempt(self, key: str, operation: str, value: OperationInput | Request) -> Awaitable[Any]:
        attempts = OperationAttempts(self.client.calls, key, operation, value, self._policy)
        scope, timeout = self._scope, self._options.get("timeout")
        if scope is None:  # the only operation of the function
            scope = self._open()
            if timeout is not None:
                scope.limit_total(timeout)
        return attempts.perform(scope)

    def run(self, work: Awaitable[Result]) -> Awaitable[Result]:
        """The result of the whole function; the signal, the timeout and `cancel` end it."""
        self._scope = self._open()
        if self._options.get("timeout") is not None:
            work = self._timed(work, self._scope)
        return self.client.calls.scopes.wait(self.request_id, work, self._scope)

    async def _timed(self, work: Awaitable[Result], scope: CancelScope) -> Result:
        """Start the clock after what only a first call needs is loaded."""
        try:
            await self._start_clock(scope)
        except BaseException:
            getattr(work, "close", bool)()  # a coroutine that is never awaited
            raise
        return await work

    async def _start_clock(self, scope: CancelScope) -> None:
        timeout, calls = self._options.get("timeout"), self.client.calls
        if timeout is not None:
            provider, routing = self._options.get("provider"), calls.routing
            with suppress(SDKError):  # the operation itself raises it
                named = provider and not self._model
                key = routing.find_key(provider or "") if named else ""
                await calls.load(key or routing.place(provider, self._model).provider)
            scope.limit_total(timeout)

    async def stream(self, operation: str, value: OperationInput) -> AsyncGenerator[Any, None]:
        """The items of a streamed operation, as they arrive."""
        scope = self._scope = self._open()
        self.client.calls.scopes.add(self.request_id, scope)
        try:
            await scope.wait(self._start_clock(scope))
            items = await scope.wait(self.perform(operation, value))
            async with aclosing(items):
                while (item := await scope.wait(anext(items, _END))) is not _END:
                    yield item
        finally:
            self.client.calls.scopes.remove(self.request_id, scope)
            scope.close()

    def _open(self) -> CancelScope:
        scope = CancelScope()
        signal = self._options.get("abort_signal")
        if signal is not None:
            scope.link(signal)
        return scope
