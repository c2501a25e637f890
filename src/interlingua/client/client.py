"""`Client`: finds the adapter for a model and runs calls through middleware and attempts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from copy import copy
from functools import lru_cache, partial
from inspect import isawaitable, signature
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from interlingua.client.attempts import Calls
from interlingua.client.call_events import Subscriber
from interlingua.client.config import adapters_from_env, read_registry
from interlingua.client.explain import Explanation, explain
from interlingua.client.middleware.layers import (
    CallLayers,
    Middleware,
    OperationCall,
    OperationLayers,
    ToolMiddleware,
    is_per_attempt,
)
from interlingua.client.registry import (
    Registry,
    Route,
    check_configured,
    find_adapter,
    resolve,
)
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.adapter_options import find_transport
from interlingua.providers.cancel import CancelScope, running_loop
from interlingua.providers.catalog.models import providers_of
from interlingua.providers.environment import add_environment
from interlingua.providers.log import logger
from interlingua.providers.operations import find_performer, name_models
from interlingua.providers.rows import find_provider, row_name
from interlingua.providers.ulid import new_ulid
from interlingua.spec.check import check_request, describe
from interlingua.spec.contracts import NEUTRAL_PROFILE, Adapter, Profile, Transport
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.events import StreamEvent
from interlingua.spec.operations import Operation, ServedModel
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.response import Response
from interlingua.transport.media import paths_from_urls

ROUTES = 256
"""How many model names a client caches the route of."""


class Client:
    """
    Any model of any provider, by name.

        async with Client.from_env() as client:
            response = await client.complete(Request(model="openai:gpt-5.2", messages="Hello"))

    It holds no state between requests. Many tasks, threads and event loops may use it at once.
    `on_loss` is the default for `Request.on_loss`: which losses raise `UnsupportedError` before
    anything is sent. `strict=True` means `on_loss="strict"`. `read_path_urls=True` reads a `url`
    of a part that looks like a path; use it only if the program builds all content itself.
    """

    def __init__(
        self,
        providers: Mapping[str, Adapter],
        *,
        default_provider: str | None = None,
        middleware: Iterable[Middleware] = (),
        registry: Registry | None = None,
        strict: bool = False,
        on_loss: OnLoss | None = None,
        read_path_urls: bool = False,
    ) -> None:
        _check_adapters(providers)
        if strict:
            _check_strict(providers)
        self._adapters = {key: _known_as(key, adapter) for key, adapter in providers.items()}
        self._chosen: str | None = next(iter(providers)) if len(providers) == 1 else None
        if default_provider is not None:
            self._chosen = check_configured(default_provider, providers)
        self._environ: Mapping[str, str] | None = None
        self._spare_transport: Transport | None = None  # of providers that are not configured
        self._registry = registry or Registry()
        self._route = lru_cache(ROUTES)(self._find_route)
        self._on_loss: OnLoss | None = "strict" if strict else on_loss
        self._reads_path_urls = read_path_urls
        outer, inner = self._set_middleware(tuple(middleware))
        self.calls: Calls = Calls(
            self._adapters,
            self._address,
            self._resolve_again,
            outer=outer,
            inner=inner,
            settings={"strict": True} if strict else {},
            registry_ids=self._registry.ids,
        )
        """The active calls; a run opens its own calls here, in its own scope."""

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        default_provider: str | None = None,
        middleware: Iterable[Middleware] = (),
        strict: bool = False,
        on_loss: OnLoss | None = None,
        read_path_urls: bool = False,
    ) -> Self:
        """
        A client for every provider with an API key in the environment.

        A model of a provider that is not configured is looked up in the environment again, so a
        key may be set later. Servers on this machine that need no key (`ollama`, `vllm`,
        `llamacpp`, `lmstudio`) and the local model are used only when they are named.
        """
        environ = os.environ if environ is None else environ
        client = cls(
            adapters_from_env(environ, named=row_name(default_provider or "")),
            default_provider=default_provider,
            middleware=middleware,
            strict=strict,
            on_loss=on_loss,
            read_path_urls=read_path_urls,
        )
        client._environ = environ
        if default_provider is None:
            client._chosen = None  # that only one key is set is no choice of the caller
        return client

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        environ: Mapping[str, str] | None = None,
        *,
        middleware: Iterable[Middleware] = (),
        strict: bool = False,
        on_loss: OnLoss | None = None,
        read_path_urls: bool = False,
    ) -> Self:
        """A client for the adapters and models of a registry file (YAML)."""
        adapters, registry, default = read_registry(path, environ)
        return cls(
            adapters,
            default_provider=default,
            middleware=middleware,
            registry=registry,
            strict=strict,
            on_loss=on_loss,
            read_path_urls=read_path_urls,
        )

    def __repr__(self) -> str:
        return f"Client({', '.join(self._adapters)})"

    @property
    def registry(self) -> Registry:
        """The models of the registry file, with their tiers and aliases."""
        return self._registry

    def with_access(
        self,
        model: str,
        provider: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Self:
        """
        A client with another key, address or headers at the provider of a model.

        It shares connections, middleware and active calls with this one. With a key or an
        address, a provider that is named need not be configured. Requests that a middleware sends
        to another provider have neither the key nor the headers.
        """
        key = self._find_owner(provider, model, is_given=bool(api_key or base_url))
        adapter = self._adapters.get(key)
        if adapter is None:
            adapter = self._unconfigured(key, base_url)
        rebind = _find_rebind(adapter)
        if rebind is None:
            what = "is not an HttpAdapter: it takes no api_key, base_url or headers"
            raise ConfigurationError(f"The adapter {key!r} {what}.")
        bound = rebind(key, api_key=api_key, base_url=base_url, headers=headers)
        twin = copy(self)
        twin._use({**self._adapters, key: bound})  # noqa: SLF001
        return twin

    def with_middleware(self, *middleware: Middleware) -> Self:
        """
        A client with more middleware, inside of what this one has.

        It shares adapters, connections, subscribers and active calls with this one.
        """
        twin = copy(self)
        twin._add_middleware(middleware)  # noqa: SLF001
        return twin

    def _add_middleware(self, middleware: tuple[Middleware, ...]) -> None:
        outer, inner = self._set_middleware((*self._middleware, *middleware))
        self.calls = self.calls.rebind(
            self._adapters, self._address, self._resolve_again, outer, inner
        )

    def _set_middleware(self, middleware: tuple[Middleware, ...]) -> tuple[CallLayers, CallLayers]:
        """Returns the layers of calls: those outside of the attempts, and those inside."""
        self._middleware = middleware
        outer, inner = _layers_of(middleware)
        self._outer_operations = OperationLayers(outer)
        self._inner_operations = OperationLayers(inner)
        tool_layers = [layer for layer in middleware if isinstance(layer, ToolMiddleware)]
        self.tool_layers: tuple[ToolMiddleware, ...] = tuple(tool_layers)
        """The layers around the tools of a run."""
        return CallLayers(outer), CallLayers(inner)

    def _use(self, adapters: dict[str, Adapter]) -> None:
        self._adapters = adapters
        self._route = lru_cache(ROUTES)(self._find_route)
        self.calls = self.calls.rebind(adapters, self._address, self._resolve_again)

    # Calls.

    async def complete(self, request: Request, *, retry: RetryPolicy | None = None) -> Response:
        """The whole answer. Retried only if `retry` or the `max_retries` of the adapter says so."""
        check_request(request)
        scope, attempts = CancelScope(), self.calls.open(request, retry)
        work = attempts.answer(scope)
        return await self.calls.scopes.wait(attempts.request.request_id or "", work, scope)

    def stream(
        self, request: Request, *, retry: RetryPolicy | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of the answer; the last one, `Finish`, has the whole response."""
        check_request(request)
        return self.calls.open(request, retry).fold()

    async def cancel(self, request_id: str) -> bool:
        """
        Cancel the run or call with this id; False if none is active. Idempotent.

        This also ends a running tool, a wait between attempts, and a wait in a queue.
        """
        is_cancelled = self.calls.scopes.cancel(request_id)
        for adapter in tuple(self._adapters.values()):
            cancel = getattr(adapter, "cancel", None)
            if cancel is not None and await cancel(request_id):
                is_cancelled = True
        return is_cancelled

    def profile_for(self, request: Request) -> Profile:
        """The profile of the model that would answer; the neutral profile if it is unknown."""
        request = self._address(request)
        profile_for = getattr(self._adapters[request.provider or ""], "profile_for", None)
        return NEUTRAL_PROFILE if profile_for is None else profile_for(request.model)

    def explain(self, request: Request, *, stream: bool = False) -> Explanation:
        """
        The exact wire request and every change to it, without key or network.

        The files that parts name by `path` are read. URLs that the call itself would fetch are
        not: `fetches` lists them.
        """
        check_request(request)
        request = self._address(request)
        return explain(self._http(request.provider or ""), request, stream=stream)

    def estimate_input_tokens(self, request: Request) -> int:
        """An offline estimate of the number of input tokens."""
        check_request(request)
        request = self._address(request)
        return self._http(request.provider or "").estimate_input_tokens(request)

    async def perform(
        self,
        provider: str,
        operation: str | Operation,
        value: Any = None,
        *,
        retry: RetryPolicy | None = None,
    ) -> Any:
        """
        Perform an operation other than generation, such as `list_models`.

        A string names an operation of the provider's dialect. Operations are retried and reported
        as calls are, and pass through each middleware that has `perform`.
        """
        provider = self._find_key(provider)
        adapter = self._adapters[provider]
        name = operation if isinstance(operation, str) else operation.name
        request_id = getattr(value, "request_id", None) or new_ulid()
        call = OperationCall(name=name, provider=provider, request_id=request_id, adapter=adapter)
        performer = find_performer(adapter, operation, request_id)
        settings: dict[str, Any] = {}

        async def start(value: Any) -> Any:
            await self.calls.initialization.ensure(provider)
            return await performer(value, **settings)

        perform = self._inner_operations.wrap(call, start)

        def attempt(value: Any, on_member: Callable[[str], object]) -> Awaitable[Any]:
            if hasattr(adapter, "reports_member"):
                settings["on_member"] = on_member
            return perform(value)

        def send(value: Any) -> Awaitable[Any]:
            model = getattr(value, "model", None) or ""
            request = Request(provider=provider, model=model, request_id=request_id)
            return self.calls.perform(request, partial(attempt, value), retry)

        work = self._outer_operations.wrap(call, send)(value)
        return await self.calls.scopes.wait(request_id, work)

    async def count_tokens(self, request: Request) -> int:
        """The number of input tokens as the provider counts them (a request is sent)."""
        check_request(request)
        request = self._address(request)
        tokens: int = await self.perform(request.provider or "", "count_tokens", request)
        return tokens

    async def list_models(self, provider: str | None = None) -> list[ServedModel]:
        """
        The models that a provider, or each configured provider, serves now (requests are sent).

        If one of several providers fails, that is logged; if all fail, the first error is raised.
        """
        running_loop()
        if provider is not None:
            provider = self._find_key(provider)
            return name_models(await self.perform(provider, "list_models"), provider)
        names = [
            name
            for name, adapter in tuple(self._adapters.items())
            if hasattr(adapter, "perform") or hasattr(adapter, "list_models")
        ]
        lists = await asyncio.gather(*map(self.list_models, names), return_exceptions=True)
        models: list[ServedModel] = []
        failures: list[BaseException] = []
        for name, listed in zip(names, lists, strict=True):
            if isinstance(listed, SDKError):
                logger.warning("Cannot list the models of %s: %s", name, listed)
                failures.append(listed)
            elif isinstance(listed, BaseException):
                raise listed
            else:
                models += listed
        if failures and len(failures) == len(names):
            raise failures[0]
        return models

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with each call event; returns a function that unsubscribes it."""
        self.calls.subscribers = (*self.calls.subscribers, subscriber)

        def unsubscribe() -> None:
            others = [other for other in self.calls.subscribers if other is not subscriber]
            self.calls.subscribers = tuple(others)

        return unsubscribe

    async def close(self) -> None:
        """
        Cancel all runs and calls, and close all adapters that have `close`.

        If one fails, the others are closed all the same, and its error is raised.
        """
        running_loop()
        self.calls.scopes.cancel_all()
        closing = [_close(each) for each in (*self._adapters.values(), self._spare_transport)]
        for failure in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(failure, BaseException):
                raise failure

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # Routing.

    def _address(self, request: Request) -> Request:
        """The request with its provider, the provider's name for the model, and an id."""
        if self._reads_path_urls:
            request = paths_from_urls(request)
        route = self._route(request.provider, request.model)
        return replace(
            request,
            provider=route.provider,
            model=route.model,
            request_id=request.request_id or new_ulid(),
            on_loss=request.on_loss or self._on_loss,
        )

    def _find_route(self, provider: str | None, model: str) -> Route:
        request = Request(provider=provider, model=model)
        try:
            return resolve(request, self._adapters, self._registry, self._chosen)
        except ConfigurationError:
            if not self._read_environment(provider or model.partition(":")[0]):
                raise
        return resolve(request, self._adapters, self._registry, self._chosen)

    def _find_owner(self, provider: str | None, model: str, *, is_given: bool) -> str:
        """The provider of a model; with a key or address given, also one that is not configured."""
        try:
            return self._route(provider, model).provider
        except ConfigurationError:
            row = row_name(provider or model.partition(":")[0])
            owners = providers_of(model) if provider is None and row is None else (row,)
            owner = owners[0] if len(owners) == 1 else None
            if owner is None or not is_given:
                raise
            return owner

    def _unconfigured(self, name: str, base_url: str | None) -> HttpAdapter:
        """An adapter for one run, whose provider is not configured."""
        if self._spare_transport is None:
            self._spare_transport = find_transport({})
        row, environ = find_provider(name), self._environ or {}
        settings = {"base_url": base_url, "transport": self._spare_transport}
        return HttpAdapter(row, **add_environment(row, settings, environ))

    def _find_key(self, provider: str) -> str:
        """The key of the adapter that the caller names."""
        if find_adapter(provider, self._adapters) is None:
            self._read_environment(provider)
        return check_configured(provider, self._adapters)

    def _read_environment(self, name: str) -> bool:
        """
        Add the adapters that the environment has by now; return whether there are any.

        A program may set a forgotten key later; a row without a key is added when it is named.
        """
        if self._environ is None:
            return False
        found = adapters_from_env(self._environ, named=row_name(name), known=self._adapters)
        for key, adapter in found.items():
            self._adapters.setdefault(key, adapter)
        self._route.cache_clear()
        return bool(found)

    def _resolve_again(self, request: Request) -> Request:
        """The request with its route, after a middleware changed the provider or model."""
        # A wire name of the registry is not looked up again: it may be the id of another entry.
        is_served = self._registry.serves(request.provider, request.model)
        if is_served and request.provider in self._adapters:
            return request
        return self._address(request)

    def _http(self, name: str) -> HttpAdapter:
        adapter = self._adapters[name]
        adapter = getattr(adapter, "first", adapter)  # of several keys of one provider
        if not isinstance(adapter, HttpAdapter):
            raise ConfigurationError(f"The adapter {name!r} is not an HttpAdapter.")
        return adapter


def _layers_of(
    middleware: Iterable[Middleware],
) -> tuple[list[Middleware], list[Middleware]]:
    """
    The layers outside of the attempts, and those inside.

    A middleware may have one of each: its `attempt_layer` runs inside.
    """
    outer: list[Middleware] = []
    inner: list[Middleware] = []
    for layer in middleware:
        (inner if is_per_attempt(layer) else outer).append(layer)
        second = getattr(layer, "attempt_layer", None)
        if second is not None:
            inner.append(second)
    return outer, inner


async def _close(adapter: Adapter | Transport | None) -> None:
    close = getattr(adapter, "close", None)
    result = None if close is None else close()
    if isawaitable(result):
        await result


def _known_as(key: str, adapter: Adapter) -> Adapter:
    """The adapter under its key in the client; the caller's own object is not changed."""
    rebind = _find_rebind(adapter)
    return adapter if rebind is None or adapter.name == key else rebind(key)


def _find_rebind(adapter: Any) -> Callable[..., Adapter] | None:
    """`rebind` of an `HttpAdapter`, or of a `Balance` of several."""
    if isinstance(adapter, HttpAdapter) or hasattr(adapter, "reports_member"):
        rebind: Callable[..., Adapter] = adapter.rebind
        return rebind
    return None


def _check_adapters(adapters: Any) -> None:
    """Refuse what is not a mapping of names to adapters."""
    if not isinstance(adapters, Mapping):
        raise ConfigurationError(
            "Client takes adapters by name, such as Client({'openai': OpenAIAdapter()}), "
            f"not {describe(adapters)}."
        )
    for name, adapter in adapters.items():
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"Client: the name of an adapter is {describe(name)}.")
        if not hasattr(adapter, "name") or isinstance(adapter, type):
            raise ConfigurationError(
                f"Client: {name!r} must be an adapter, with `name`, `complete` and `stream`, "
                f"not {describe(adapter)}."
            )


def _check_strict(adapters: Mapping[str, Adapter]) -> None:
    """Refuse custom adapters without a `strict` parameter, which they may leave out otherwise."""
    for name, adapter in adapters.items():
        for method in ("complete", "stream"):
            parameters = signature(getattr(adapter, method)).parameters
            takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
            if "strict" not in parameters and not takes_any:
                raise ConfigurationError(
                    f"strict=True needs adapters whose `{method}` has a parameter `strict`; "
                    f"the adapter {name!r} has none."
                )
