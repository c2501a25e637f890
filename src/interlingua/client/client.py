"""Pick the adapter, run the middleware, tell who listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from functools import lru_cache, partial
from inspect import signature
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from msgspec.structs import replace

from interlingua.client.attempts import Calls, policy_of
from interlingua.client.call_events import Subscriber
from interlingua.client.config import adapters_from_env, read_registry
from interlingua.client.explain import Explanation, explain
from interlingua.client.middleware.layers import Middleware, Onion
from interlingua.client.middleware.operations import OperationCall, OperationLayers
from interlingua.client.registry import Registry, Route, check_configured, resolve
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.call import logger
from interlingua.providers.operations import find_performer, name_models
from interlingua.providers.ulid import new_ulid
from interlingua.spec.contracts import NEUTRAL_PROFILE, Adapter, Profile
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.events import StreamEvent
from interlingua.spec.operations import Operation, ServedModel
from interlingua.spec.request import Request
from interlingua.spec.response import Response

Value = TypeVar("Value")

ROUTES = 256
"""How many names of models a client remembers the way to."""


class Client:
    """
    Any model of any provider, by name.

        async with Client.from_env() as client:
            response = await client.complete(Request(model="openai:gpt-5.2", messages="Hello"))

    It holds no state between requests and may be used by many tasks, threads and event loops
    at once. `strict` refuses what the target could not say in full, before it is sent.
    """

    def __init__(
        self,
        providers: Mapping[str, Adapter],
        *,
        default_provider: str | None = None,
        middleware: Iterable[Middleware] = (),
        registry: Registry | None = None,
        strict: bool = False,
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
        self._calls = calls = Calls(strict=strict)
        layers = tuple(middleware)
        onion = Onion(layers)
        self._operation_layers = OperationLayers(layers)
        send = self._send_again if layers else self._send
        self._complete = onion.wrap_complete(send(calls.complete))
        self._complete_once = onion.wrap_complete(send(partial(calls.complete, retries=False)))
        self._stream = onion.wrap_stream(send(calls.stream))
        self._stream_once = onion.wrap_stream(send(partial(calls.stream, retries=False)))

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        middleware: Iterable[Middleware] = (),
        strict: bool = False,
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
        )

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        environ: Mapping[str, str] | None = None,
        *,
        middleware: Iterable[Middleware] = (),
        strict: bool = False,
    ) -> Self:
        """The adapters and models of a registry file (YAML)."""
        adapters, registry, default = read_registry(path, environ)
        return cls(
            adapters,
            default_provider=default,
            middleware=middleware,
            registry=registry,
            strict=strict,
        )

    def __repr__(self) -> str:
        return f"Client({', '.join(self._adapters)})"

    @property
    def registry(self) -> Registry:
        """The models of its file: their tiers, their other names, which may be delegated to."""
        return self._registry

    # Calls.

    async def complete(self, request: Request, *, retries: bool = True) -> Response:
        """
        The whole answer. It is not tried again unless its adapter is set to.

        `retries=False` is for callers that try again themselves: one request, whatever is set.
        """
        complete = self._complete if retries else self._complete_once
        return await complete(self._address(request))

    def stream(
        self, request: Request, *, retries: bool = True
    ) -> AsyncGenerator[StreamEvent, None]:
        """The answer as it comes; the last event, `Finish`, has the whole response."""
        stream = self._stream if retries else self._stream_once
        # only a middleware that returns an iterator of its own making has no `aclose`
        return cast("AsyncGenerator[StreamEvent, None]", stream(self._address(request)))

    async def cancel(self, request_id: str) -> bool:
        """Stop the call of this id; False if there is none under way. May be asked twice."""
        stopped = self._calls.cancel(request_id)
        for adapter in self._adapters.values():
            cancel = getattr(adapter, "cancel", None)
            if cancel is not None and await cancel(request_id):
                stopped = True
        return stopped

    def can_cancel(self, request: Request) -> bool:
        """Whether the adapter of this request can stop a call that is under way."""
        adapter = self._adapters.get(self._address(request).provider or "")
        return hasattr(adapter, "cancel")

    def retries_itself(self, request: Request) -> bool:
        """Whether the adapter of this request is set to try again: nobody else should then."""
        adapter = self._adapters.get(self._address(request).provider or "")
        return policy_of(adapter) is not None

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
        retries: bool = True,
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

        def send(value: Any) -> Awaitable[Any]:
            about = Request(model=getattr(value, "model", None) or "", request_id=request_id)
            perform = find_performer(adapter, operation, request_id)
            return self._calls.perform(adapter, about, lambda: perform(value), retries=retries)

        return await self._operation_layers.wrap(call, send)(value)

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
        calls = self._calls
        calls.subscribers = (*calls.subscribers, subscriber)

        def unsubscribe() -> None:
            left = (known for known in calls.subscribers if known is not subscriber)
            calls.subscribers = tuple(left)

        return unsubscribe

    # Life.

    async def close(self) -> None:
        """Stop what is under way, the waits between attempts too, and release every connection."""
        self._calls.close()
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
        )

    def _find_route(self, provider: str | None, model: str) -> Route:
        named = Request(provider=provider, model=model)
        return resolve(named, self._adapters, self._registry, self._default)

    def _send(self, call: Callable[[Adapter, Request], Value]) -> Callable[[Request], Value]:
        """The innermost layer: who was found answers."""
        adapters = self._adapters
        return lambda request: call(adapters[request.provider or ""], request)

    def _send_again(self, call: Callable[[Adapter, Request], Value]) -> Callable[[Request], Value]:
        """The same behind middleware, which may have named another provider or model."""
        send = self._send(call)

        def find_and_send(request: Request) -> Value:
            # a name that an entry is served by is not looked up again: it may be another's id
            is_found = self._registry.serves(request.provider, request.model)
            if not is_found or request.provider not in self._adapters:
                request = self._address(request)
            return send(request)

        return find_and_send

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
