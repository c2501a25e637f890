"""`Client`, blocking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self, overload

from interlingua.api.run.options import RunOptions
from interlingua.client.attempts import Attempts
from interlingua.client.call_events import Subscriber
from interlingua.client.client import Addressed
from interlingua.client.client import Client as AsyncClient
from interlingua.client.explain import Explanation
from interlingua.client.middleware.contract import Middleware
from interlingua.client.provider_config import ProviderConfig
from interlingua.client.registry import Registry
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.cost import CostRange
from interlingua.providers.credentials import Key
from interlingua.providers.tariffs import Prices
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.contracts import Adapter, Profile
from interlingua.spec.events import StreamEvent
from interlingua.spec.operations import Operation, ServedModel
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.response import Response
from interlingua.streams.grammar import DELTAS
from interlingua.sync.blocking_iterator import BlockingIterator, ClosedByWith
from interlingua.sync.loop_thread import background


class Client(ClosedByWith):
    """
    Any model of any provider, by name.

        with Client.from_env() as client:
            response = client.complete(Request(model="openai:gpt-5.2", messages="Hello"))

    Only the calling thread is blocked; any number of threads may use one client. Middleware and
    subscribers are those of the async client, and run in the thread of the background loop.
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
        prices: Prices | None = None,
        behaviours: Mapping[str, Behaviour] | None = None,
    ) -> None:
        self.asynchronous: AsyncClient = AsyncClient(
            providers,
            default_provider=default_provider,
            middleware=middleware,
            registry=registry,
            strict=strict,
            on_loss=on_loss,
            read_path_urls=read_path_urls,
            prices=prices,
            behaviours=behaviours,
        )
        """The async client that does the work."""

    @classmethod
    def wrap(cls, client: AsyncClient) -> Self:
        """A blocking client around an existing async client."""
        wrapper = cls.__new__(cls)
        wrapper.asynchronous = client
        return wrapper

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
        prices: Prices | None = None,
        behaviours: Mapping[str, Behaviour] | None = None,
    ) -> Self:
        """Like `interlingua.Client.from_env`."""
        return cls.wrap(
            AsyncClient.from_env(
                environ,
                default_provider=default_provider,
                middleware=middleware,
                strict=strict,
                on_loss=on_loss,
                read_path_urls=read_path_urls,
                prices=prices,
                behaviours=behaviours,
            )
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
        read_path_urls: bool = False,
        prices: Prices | None = None,
    ) -> Self:
        """Like `interlingua.Client.from_file`."""
        return cls.wrap(
            AsyncClient.from_file(
                path,
                environ,
                middleware=middleware,
                strict=strict,
                on_loss=on_loss,
                read_path_urls=read_path_urls,
                prices=prices,
            )
        )

    def __repr__(self) -> str:
        return f"sync.{self.asynchronous!r}"

    @property
    def registry(self) -> Registry:
        """The models of the registry file, with their tiers and aliases."""
        return self.asynchronous.registry

    @property
    def default_provider(self) -> str | None:
        """The adapter for all models that no other rule routes; set it to switch providers."""
        return self.asynchronous.default_provider

    @default_provider.setter
    def default_provider(self, name: str | None) -> None:
        self.asynchronous.default_provider = name

    def adapter(self, name: str) -> Adapter:
        """The adapter of that name, or of the provider with that alias."""
        return self.asynchronous.adapter(name)

    def config(self, name: str) -> ProviderConfig:
        """What is set for an adapter, with its key and its secret headers redacted."""
        return self.asynchronous.config(name)

    def register(self, name: str, adapter: Adapter, *, behaviour: Behaviour | None = None) -> None:
        """Add an adapter, in place of the one of that name, while calls may be under way."""
        background.run(self.asynchronous.register(name, adapter, behaviour=behaviour))

    def unregister(self, name: str) -> None:
        """Remove an adapter while calls may be under way; calls that have begun end on it."""
        background.run(self.asynchronous.unregister(name))

    def with_access(
        self,
        model: str,
        provider: str | None = None,
        *,
        api_key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Self:
        """A client with another key, address or headers at the provider of a model."""
        return self.wrap(
            self.asynchronous.with_access(
                model, provider, api_key=api_key, base_url=base_url, headers=headers
            )
        )

    def with_middleware(self, *middleware: Middleware) -> Self:
        """A client with more middleware, inside of what this one has."""
        return self.wrap(self.asynchronous.with_middleware(*middleware))

    def with_prices(self, prices: Prices) -> Self:
        """A client with these prices over those that this one has."""
        return self.wrap(self.asynchronous.with_prices(prices))

    def complete(self, request: Request, *, retry: RetryPolicy | None = None) -> Response:
        """The whole answer. Retried only if `retry` or the `max_retries` of the adapter says so."""
        return background.run(self.asynchronous.complete(request, retry=retry))

    def stream(
        self, request: Request, *, retry: RetryPolicy | None = None
    ) -> BlockingIterator[StreamEvent]:
        """The events of the answer; the last one, `Finish`, has the whole response."""
        attempts = Attempts.open(self.asynchronous.calls, request, retry)
        return BlockingIterator(
            attempts.fold(), lambda event: type(event) in DELTAS and attempts.is_cancelled
        )

    def cancel(self, request_id: str) -> bool:
        """Cancel a call that another thread waits for; False if none is active."""
        return background.run(self.asynchronous.cancel(request_id))

    def profile_for(self, request: Request) -> Profile:
        """The profile of the model that would answer; the neutral profile if it is unknown."""
        return self.asynchronous.profile_for(request)

    def explain(self, request: Request, *, stream: bool = False) -> Explanation:
        """The exact wire request and every change to it, without key or network."""
        return self.asynchronous.explain(request, stream=stream)

    def estimate_cost(self, request: Request) -> CostRange | None:
        """The least and the most that a call may cost in dollars, before it is sent."""
        return self.asynchronous.estimate_cost(request)

    def estimate_input_tokens(self, request: Request) -> int:
        """An offline estimate of the number of input tokens."""
        return self.asynchronous.estimate_input_tokens(request)

    def perform(
        self,
        provider: str,
        operation: str | Operation,
        value: Any = None,
        *,
        retry: RetryPolicy | None = None,
    ) -> Any:
        """Perform an operation other than generation, such as `list_models`."""
        return background.run(self.asynchronous.perform(provider, operation, value, retry=retry))

    @overload
    def address(self, value: Request) -> Request: ...

    @overload
    def address(self, value: Addressed) -> Addressed: ...

    def address(self, value: Any) -> Any:
        """The value of an operation with the provider and the model that would perform it."""
        return self.asynchronous.address(value)

    def count_tokens(self, request: Request) -> int:
        """The number of input tokens as the provider counts them (a request is sent)."""
        return background.run(self.asynchronous.count_tokens(request))

    def list_models(self, provider: str | None = None) -> list[ServedModel]:
        """The models that a provider, or each configured one, serves now (requests are sent)."""
        return background.run(self.asynchronous.list_models(provider))

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with each call event; returns a function that unsubscribes it."""
        return self.asynchronous.subscribe(subscriber)

    def close(self) -> None:
        """Cancel all calls and close all connections; does nothing during interpreter exit."""
        if background.is_over:
            return
        background.run(self.asynchronous.close())


class GenerateOptions(RunOptions, total=False):
    """The options of the async functions; the client may be blocking or async."""

    client: Client | AsyncClient | None


def unwrap(options: Any) -> Any:
    """The same options with the async client, for the async functions."""
    client = options.get("client")
    return {**options, "client": client.asynchronous} if isinstance(client, Client) else options
