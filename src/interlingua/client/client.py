"""Pick the adapter, run the middleware, tell who listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from inspect import signature
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from interlingua.client.attempts import Calls
from interlingua.client.call_events import Subscriber
from interlingua.client.config import adapters_from_env, read_registry
from interlingua.client.explain import Explanation, explain
from interlingua.client.middleware.layers import Middleware, Onion, is_per_attempt
from interlingua.client.middleware.operations import OperationCall, OperationLayers
from interlingua.client.registry import Registry, Route, check_configured, resolve
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.call import logger
from interlingua.providers.cancel import CancelScope
from interlingua.providers.operations import find_performer, name_models
from interlingua.providers.ulid import new_ulid
from interlingua.spec.contracts import NEUTRAL_PROFILE, Adapter, Profile
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.events import StreamEvent
from interlingua.spec.operations import Operation, ServedModel
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.response import Response

ROUTES = 256
"""How many names of models a client remembers the way to."""


class Client:
    """
    Any model of any provider, by name.

        async with Client.from_env() as client:
            response = await client.complete(Request(model="openai:gpt-5.2", messages="Hello"))

    It holds no state between requests and may be used by many tasks, threads and event loops
    at once. `on_loss` says which losses raise `UnsupportedError` before anything is sent (see
    `Request.on_loss`, which wins); `strict` is short for `on_loss="strict"`.
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
    ) -> None:
        if default_provider is not None and default_provider not in providers:
            there = ", ".join(providers) or "none"
            raise ConfigurationError(
                f"the default provider {default_provider!r} is not among the providers ({there})"
            )
        if strict:
            _check_strict(providers)
        self._adapters = dict(providers)
        self._default = default_provider
        self._registry = registry or Registry()
        self._route = lru_cache(ROUTES)(self._find_route)
        self._on_loss: OnLoss | None = "strict" if strict else on_loss
        layers = tuple(middleware)
        outer = [layer for layer in layers if not is_per_attempt(layer)]
        inner = [layer for layer in layers if is_per_attempt(layer)]
        self._outer_operations = OperationLayers(outer)
        self._inner_operations = OperationLayers(inner)
        self.calls: Calls = Calls(
            self._adapters,
            self._address,
            self._resolve_again,
            outer=Onion(outer),
            inner=Onion(inner),
            settings={"strict": True} if strict else {},
        )
        """The calls under way; a run makes its own here, in its scope."""

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        middleware: Iterable[Middleware] = (),
        strict: bool = False,
        on_loss: OnLoss | None = None,
    ) -> Self:
        """
        Every provider the environment has a key for; the first is the default.

        The model on this machine is none unless it is asked for by name.
        """
        adapters = adapters_from_env(environ)
        named = (name for name, adapter in adapters.items() if adapter.server is None)
        return cls(
            adapters,
            default_provider=next(named, None),
            middleware=middleware,
            strict=strict,
            on_loss=on_loss,
        )

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        environ: Mapping[str, str] | None = None,
        *,
        middleware: Iterable[Middleware] = (),
        strict: bool = False,
        on_loss: OnLoss | None = None,
    ) -> Self:
        """The adapters and models of a registry file (YAML)."""
        adapters, registry, default = read_registry(path, environ)
        return cls(
            adapters,
            default_provider=default,
            middleware=middleware,
            registry=registry,
            strict=strict,
            on_loss=on_loss,
        )

    def __repr__(self) -> str:
        return f"Client({', '.join(self._adapters)})"

    @property
    def registry(self) -> Registry:
        """The models of its file: their tiers, their other names, which may be delegated to."""
        return self._registry

    # Calls.

    async def complete(self, request: Request, *, retry: RetryPolicy | None = None) -> Response:
        """The whole answer. It is not retried, unless `retry` says so or its adapter is set to."""
        scope, attempts = CancelScope(), self.calls.open(request, retry)
        work = attempts.answer(scope)
        return await self.calls.scopes.wait(attempts.request.request_id or "", work, scope)

    def stream(
        self, request: Request, *, retry: RetryPolicy | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        """The answer as it comes; the last event, `Finish`, has the whole response."""
        return self.calls.stream(request, None, retry)

    async def cancel(self, request_id: str) -> bool:
        """
        Stop the run or call of this id; False if there is none under way. May be asked twice.

        A tool, a wait for the next attempt and a queue are ended too.
        """
        stopped = self.calls.scopes.cancel(request_id)
        for adapter in self._adapters.values():
            cancel = getattr(adapter, "cancel", None)
            if cancel is not None and await cancel(request_id):
                stopped = True
        return stopped

    def profile_for(self, request: Request) -> Profile:
        """What is known of the model that would answer; the neutral profile if nothing is."""
        request = self._address(request)
        known = getattr(self._adapters[request.provider or ""], "profile_for", None)
        return NEUTRAL_PROFILE if known is None else known(request.model)

    def explain(self, request: Request, *, stream: bool = False) -> Explanation:
        """
        The exact wire request and every change, without key or network.

        Files that it names are read. URLs whose bytes the target wants are not fetched: `fetches`
        says where they stand.
        """
        request = self._address(request)
        return explain(self._http(request.provider or ""), request, stream=stream)

    def estimate_input_tokens(self, request: Request) -> int:
        """About how many tokens the request has; nothing is sent."""
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
        Do what is no answer: an operation of the provider's dialect by name, or one of your own.

        It goes through the attempts and the call events as answers do, and through each
        middleware that has `perform`.
        """
        adapter = self._adapters[check_configured(provider, self._adapters)]
        name = operation if isinstance(operation, str) else operation.name
        request_id = getattr(value, "request_id", None) or new_ulid()
        call = OperationCall(name=name, provider=provider, request_id=request_id)
        perform = self._inner_operations.wrap(call, find_performer(adapter, operation, request_id))

        def send(value: Any) -> Awaitable[Any]:
            model = getattr(value, "model", None) or ""
            about = Request(provider=provider, model=model, request_id=request_id)
            return self.calls.perform(about, lambda: perform(value), retry)

        work = self._outer_operations.wrap(call, send)(value)
        return await self.calls.scopes.wait(request_id, work)

    async def count_tokens(self, request: Request) -> int:
        """How many tokens the request has, as its provider counts them, asked live."""
        request = self._address(request)
        tokens: int = await self.perform(request.provider or "", "count_tokens", request)
        return tokens

    async def list_models(self, provider: str | None = None) -> list[ServedModel]:
        """
        The models a provider (or each one configured) serves now, asked live.

        Of several, those that fail are logged and left out; if all do, the first error is raised.
        """
        if provider is not None:
            return name_models(await self.perform(provider, "list_models"), provider)
        names = [
            name
            for name, adapter in self._adapters.items()
            if hasattr(adapter, "perform") or hasattr(adapter, "list_models")
        ]
        lists = await asyncio.gather(*map(self.list_models, names), return_exceptions=True)
        models: list[ServedModel] = []
        failures: list[BaseException] = []
        for name, listed in zip(names, lists, strict=True):
            if isinstance(listed, SDKError):
                logger.warning("the models of %s cannot be listed: %s", name, listed)
                failures.append(listed)
            elif isinstance(listed, BaseException):
                raise listed
            else:
                models += listed
        if failures and len(failures) == len(names):
            raise failures[0]
        return models

    # Who listens.

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with each call event; the function returned ends that."""
        self.calls.subscribers = (*self.calls.subscribers, subscriber)

        def unsubscribe() -> None:
            others = (known for known in self.calls.subscribers if known is not subscriber)
            self.calls.subscribers = tuple(others)

        return unsubscribe

    # Life.

    async def close(self) -> None:
        """Stop what is under way, the waits between attempts too, and release every connection."""
        self.calls.scopes.cancel_all()
        closing = (adapter.close() for adapter in self._adapters.values())
        for failure in await asyncio.gather(*closing, return_exceptions=True):
            if failure is not None:
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

    # The steps.

    def _address(self, request: Request) -> Request:
        """The request with its provider, the model's name there, and an id."""
        route = self._route(request.provider, request.model)
        return replace(
            request,
            provider=route.provider,
            model=route.model,
            request_id=request.request_id or new_ulid(),
            on_loss=request.on_loss or self._on_loss,
        )

    def _find_route(self, provider: str | None, model: str) -> Route:
        named = Request(provider=provider, model=model)
        return resolve(named, self._adapters, self._registry, self._default)

    def _resolve_again(self, request: Request) -> Request:
        """The request of a middleware that named another provider or model."""
        # a name that an entry is served by is not looked up again: it may be another's id
        is_served = self._registry.serves(request.provider, request.model)
        if is_served and request.provider in self._adapters:
            return request
        return self._address(request)

    def _http(self, name: str) -> HttpAdapter:
        adapter = self._adapters[check_configured(name, self._adapters)]
        if not isinstance(adapter, HttpAdapter):
            raise ConfigurationError(f"the adapter {name!r} cannot tell: it is no HttpAdapter")
        return adapter


def _check_strict(adapters: Mapping[str, Adapter]) -> None:
    """Adapters of one's own need not know strictness; a strict client cannot use those."""
    for name, adapter in adapters.items():
        for way in ("complete", "stream"):
            parameters = signature(getattr(adapter, way)).parameters
            is_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
            if "strict" not in parameters and not is_any:
                raise ConfigurationError(
                    f"a strict client needs adapters whose `{way}` takes `strict`; "
                    f"that of {name!r} does not"
                )
