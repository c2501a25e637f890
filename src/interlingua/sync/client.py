"""`Client`, blocking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, overload

from interlingua.api.run.clients import BlockingClient
from interlingua.client.call_events import Subscriber
from interlingua.client.client import Addressed
from interlingua.client.client import Client as AsyncClient
from interlingua.client.middleware.contract import Middleware
from interlingua.client.registry import Registry
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.keys import Key
from interlingua.providers.tariffs import Prices
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.contracts import Adapter, Profile
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.response import Response
from interlingua.sync.blocking import documented_by
from interlingua.sync.blocking_iterator import BlockingIterator, ClosedByWith
from interlingua.sync.loop_thread import background

if TYPE_CHECKING:
    from pathlib import Path

    from interlingua.client.explain import Explanation
    from interlingua.client.provider_config import ProviderConfig
    from interlingua.providers.cost_range import CostRange
    from interlingua.spec.operations import Operation, ServedModel


class Client(ClosedByWith, BlockingClient):
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

    @classmethod
    def wrap(cls, client: AsyncClient) -> Self:
        """Return a blocking client around an existing async client."""
        wrapper = cls.__new__(cls)
        wrapper.asynchronous = client
        return wrapper

    @classmethod
    @documented_by(AsyncClient.from_env)
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
        config: str | Path | Mapping[Path, str] | None = None,
    ) -> Self:
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
                config=config,
            )
        )

    @classmethod
    @documented_by(AsyncClient.from_file)
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

    @documented_by(AsyncClient.adapter)
    def adapter(self, name: str) -> Adapter:
        return self.asynchronous.adapter(name)

    @documented_by(AsyncClient.config)
    def config(self, name: str) -> ProviderConfig:
        return self.asynchronous.config(name)

    @documented_by(AsyncClient.register)
    def register(self, name: str, adapter: Adapter, *, behaviour: Behaviour | None = None) -> None:
        background.run(self.asynchronous.register(name, adapter, behaviour=behaviour))

    @documented_by(AsyncClient.unregister)
    def unregister(self, name: str) -> None:
        background.run(self.asynchronous.unregister(name))

    @documented_by(AsyncClient.with_access)
    def with_access(
        self,
        model: str,
        provider: str | None = None,
        *,
        api_key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Self:
        return self.wrap(
            self.asynchronous.with_access(
                model, provider, api_key=api_key, base_url=base_url, headers=headers
            )
        )

    @documented_by(AsyncClient.with_middleware)
    def with_middleware(self, *middleware: Middleware | Iterable[Middleware]) -> Self:
        return self.wrap(self.asynchronous.with_middleware(*middleware))

    @documented_by(AsyncClient.with_prices)
    def with_prices(self, prices: Prices) -> Self:
        return self.wrap(self.asynchronous.with_prices(prices))

    @documented_by(AsyncClient.complete)
    def complete(self, request: Request, *, retry: RetryPolicy | None = None) -> Response:
        return background.run(self.asynchronous.complete(request, retry=retry))

    @documented_by(AsyncClient.stream)
    def stream(
        self, request: Request, *, retry: RetryPolicy | None = None
    ) -> BlockingIterator[StreamEvent]:
        from interlingua.client.stream_attempts import StreamAttempts
        from interlingua.streams.grammar import DELTAS

        attempts = StreamAttempts(self.asynchronous.calls, request, retry)
        return BlockingIterator(
            attempts.fold(), lambda event: type(event) in DELTAS and attempts.is_cancelled
        )

    @documented_by(AsyncClient.cancel)
    def cancel(self, request_id: str) -> bool:
        return background.run(self.asynchronous.cancel(request_id))

    @documented_by(AsyncClient.profile_for)
    def profile_for(self, request: Request) -> Profile:
        return self.asynchronous.profile_for(request)

    @documented_by(AsyncClient.explain)
    def explain(self, request: Request, *, stream: bool = False) -> Explanation:
        return self.asynchronous.explain(request, stream=stream)

    @documented_by(AsyncClient.estimate_cost)
    def estimate_cost(self, request: Request) -> CostRange | None:
        return self.asynchronous.estimate_cost(request)

    @documented_by(AsyncClient.estimate_input_tokens)
    def estimate_input_tokens(self, request: Request) -> int:
        return self.asynchronous.estimate_input_tokens(request)

    @documented_by(AsyncClient.perform)
    def perform(
        self,
        provider: str,
        operation: str | Operation,
        value: Any = None,
        *,
        retry: RetryPolicy | None = None,
    ) -> Any:
        return background.run(self.asynchronous.perform(provider, operation, value, retry=retry))

    @overload
    def address(self, value: Request) -> Request: ...

    @overload
    def address(self, value: Addressed) -> Addressed: ...

    @documented_by(AsyncClient.address)
    def address(self, value: Any) -> Any:
        return self.asynchronous.address(value)

    @documented_by(AsyncClient.count_tokens)
    def count_tokens(self, request: Request) -> int:
        return background.run(self.asynchronous.count_tokens(request))

    @documented_by(AsyncClient.list_models)
    def list_models(self, provider: str | None = None) -> list[ServedModel]:
        return background.run(self.asynchronous.list_models(provider))

    @documented_by(AsyncClient.retrieve_model)
    def retrieve_model(self, model: str, provider: str | None = None) -> ServedModel:
        return background.run(self.asynchronous.retrieve_model(model, provider))

    @documented_by(AsyncClient.subscribe)
    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        return self.asynchronous.subscribe(subscriber)

    def close(self) -> None:
        """Cancel all calls and close all connections; does nothing during interpreter exit."""
        if background.is_over:
            return
        background.run(self.asynchronous.close())
