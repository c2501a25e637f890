"""Pick the adapter, run the middleware, tell who listens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from interlingua.client.calls import Calls, policy_of
from interlingua.client.config import adapters_from_env, read_registry
from interlingua.client.events import Subscriber
from interlingua.client.explain import Explanation, explain
from interlingua.client.middleware import Middleware, Onion
from interlingua.client.registry import Registry, Route, resolve
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.ids import new_ulid
from interlingua.providers.models import ServedModel
from interlingua.spec.contracts import DEFAULT, Adapter, Profile
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response

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
        self._adapters = dict(providers)
        self._default = default_provider
        self._registry = registry or Registry()
        self._route = lru_cache(ROUTES)(self._find_route)
        self._calls = Calls(strict=strict)
        onion = Onion(middleware)
        self._complete = onion.wrap_complete(self._complete_inner)
        self._stream = onion.wrap_stream(self._stream_inner)

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        middleware: Iterable[Middleware] = (),
        strict: bool = False,
    ) -> Self:
        """Every provider the environment has a key for; the first is the default."""
        adapters = adapters_from_env(environ)
        return cls(
            adapters,
            default_provider=next(iter(adapters), None),
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

    # Calls.

    async def complete(self, request: Request) -> Response:
        """The whole answer. It is not tried again unless its adapter is set to."""
        return await self._complete(self._address(request))

    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """The answer as it comes; the last event, `Finish`, has the whole response."""
        return self._stream(self._address(request))

    async def cancel(self, request_id: str) -> bool:
        """Stop the call of this id; False if there is none under way. May be asked twice."""
        stopped = self._calls.cancel(request_id)
        for adapter in self._adapters.values():
            cancel = getattr(adapter, "cancel", None)
            if cancel is not None and await cancel(request_id):
                stopped = True
        return stopped

    def retries_itself(self, request: Request) -> bool:
        """Whether the adapter of this request is set to try again: nobody else should then."""
        adapter = self._adapters.get(self._address(request).provider or "")
        return policy_of(adapter) is not None

    def profile_for(self, request: Request) -> Profile:
        """What is known of the model that would answer; the neutral profile if nothing is."""
        request = self._address(request)
        known = getattr(self._adapters[request.provider or ""], "profile_for", None)
        return DEFAULT if known is None else known(request.model)

    def explain(self, request: Request, *, stream: bool = False) -> Explanation:
        """The exact wire request and every change, without key or network."""
        request = self._address(request)
        return explain(self._http(request.provider or ""), request, stream=stream)

    def estimate_input_tokens(self, request: Request) -> int:
        """About how many tokens the request has; nothing is sent."""
        request = self._address(request)
        return self._http(request.provider or "").estimate_input_tokens(request)

    async def count_tokens(self, request: Request) -> int:
        """How many tokens the request has, as its provider counts them, asked live."""
        request = self._address(request)
        return await self._http(request.provider or "").count_tokens(request)

    async def list_models(self, provider: str | None = None) -> list[ServedModel]:
        """The models a provider (or each one configured) serves now, asked live."""
        names = [provider] if provider is not None else list(self._adapters)
        found: list[ServedModel] = []
        for name in names:
            found += await self._http(name).list_models()
        return found

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
        """Stop what is under way and release every connection."""
        for adapter in self._adapters.values():
            await adapter.close()

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

    def _complete_inner(self, request: Request) -> Awaitable[Response]:
        return self._calls.complete(self._adapter(request), request)

    def _stream_inner(self, request: Request) -> AsyncIterator[StreamEvent]:
        return self._calls.stream(self._adapter(request), request)

    def _adapter(self, request: Request) -> Adapter:
        """Who answers; a middleware may have changed it."""
        adapter = self._adapters.get(request.provider or "")
        if adapter is None:
            adapter = self._adapters[self._address(request).provider or ""]
        return adapter

    def _http(self, name: str) -> HttpAdapter:
        adapter = self._adapters.get(name)
        if not isinstance(adapter, HttpAdapter):
            raise ConfigurationError(f"the adapter {name!r} cannot tell: it is no HttpAdapter")
        return adapter
