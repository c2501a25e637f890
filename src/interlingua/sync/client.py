"""The client, blocking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from interlingua.api.run.options import RunOptions
from interlingua.client.call_events import Subscriber
from interlingua.client.client import Client as AsyncClient
from interlingua.client.explain import Explanation
from interlingua.client.middleware.layers import Middleware
from interlingua.client.registry import Registry
from interlingua.client.retry_policy import RetryPolicy
from interlingua.spec.contracts import Adapter, Profile
from interlingua.spec.events import StreamEvent
from interlingua.spec.operations import Operation, ServedModel
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.response import Response
from interlingua.sync.blocking_iterator import BlockingIterator
from interlingua.sync.loop_thread import background


class Client:
    """
    Any model of any provider, by name.

        with Client.from_env() as client:
            response = client.complete(Request(model="openai:gpt-5.2", messages="Hello"))

    What it blocks is the thread that calls; any number of threads may use one client. Middleware
    and subscribers are those of the async client, and run in the thread of the background loop.
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
        self.asynchronous: AsyncClient = AsyncClient(
            providers,
            default_provider=default_provider,
            middleware=middleware,
            registry=registry,
            strict=strict,
            on_loss=on_loss,
        )
        """The client behind it."""

    @classmethod
    def wrap(cls, client: AsyncClient) -> Self:
        """A client that is there already."""
        made = cls.__new__(cls)
        made.asynchronous = client
        return made

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        middleware: Iterable[Middleware] = (),
        strict: bool = False,
        on_loss: OnLoss | None = None,
    ) -> Self:
        """Every provider the environment has a key for; the first is the default."""
        return cls.wrap(
            AsyncClient.from_env(environ, middleware=middleware, strict=strict, on_loss=on_loss)
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
        return cls.wrap(
            AsyncClient.from_file(
                path, environ, middleware=middleware, strict=strict, on_loss=on_loss
            )
        )

    def __repr__(self) -> str:
        return f"sync.{self.asynchronous!r}"

    @property
    def registry(self) -> Registry:
        """The models of its file: their tiers, their other names, which may be delegated to."""
        return self.asynchronous.registry

    # Calls.

    def complete(self, request: Request, *, retry: RetryPolicy | None = None) -> Response:
        """The whole answer. It is not retried, unless `retry` says so or its adapter is set to."""
        return background.run(self.asynchronous.complete(request, retry=retry))

    def stream(
        self, request: Request, *, retry: RetryPolicy | None = None
    ) -> BlockingIterator[StreamEvent]:
        """The answer as it comes; the last event, `Finish`, has the whole response."""
        return BlockingIterator(self.asynchronous.stream(request, retry=retry))

    def cancel(self, request_id: str) -> bool:
        """Stop a call that another thread waits for; False if there is none of that id."""
        return background.run(self.asynchronous.cancel(request_id))

    def profile_for(self, request: Request) -> Profile:
        """What is known of the model of this request; the neutral profile if nothing is."""
        return self.asynchronous.profile_for(request)

    def explain(self, request: Request, *, stream: bool = False) -> Explanation:
        """The exact wire request and every change, without key or network."""
        return self.asynchronous.explain(request, stream=stream)

    def estimate_input_tokens(self, request: Request) -> int:
        """About how many tokens the request has; nothing is sent."""
        return self.asynchronous.estimate_input_tokens(request)

    def perform(
        self,
        provider: str,
        operation: str | Operation,
        value: Any = None,
        *,
        retry: RetryPolicy | None = None,
    ) -> Any:
        """Do what is no answer: an operation of the provider's dialect, or one of your own."""
        return background.run(self.asynchronous.perform(provider, operation, value, retry=retry))

    def count_tokens(self, request: Request) -> int:
        """How many tokens the request has, as its provider counts them, asked live."""
        return background.run(self.asynchronous.count_tokens(request))

    def list_models(self, provider: str | None = None) -> list[ServedModel]:
        """The models a provider (or each one configured) serves now, asked live."""
        return background.run(self.asynchronous.list_models(provider))

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with each call event; the function returned ends that."""
        return self.asynchronous.subscribe(subscriber)

    # Life.

    def close(self) -> None:
        """Stop what is under way and release every connection; at exit that is done already."""
        if background.is_over:
            return
        background.run(self.asynchronous.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class GenerateOptions(RunOptions, total=False):
    """The options of the async functions; the client may be either."""

    client: Client | AsyncClient | None


def unwrap(options: Any) -> Any:
    """The same options with the async client, for the async functions."""
    client = options.get("client")
    return {**options, "client": client.asynchronous} if isinstance(client, Client) else options
