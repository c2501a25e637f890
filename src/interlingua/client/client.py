"""`Client`: finds the adapter for a model and runs calls through middleware and attempts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from copy import copy
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from msgspec.structs import replace

from interlingua.client.attempts import Attempts
from interlingua.client.call_events import Subscriber
from interlingua.client.calls import Calls
from interlingua.client.configured import Configured
from interlingua.client.lifecycle import Retirement, close, initialize
from interlingua.client.middleware.contract import Middleware, ToolMiddleware
from interlingua.client.middleware.layers import Layers, arrange, check_middleware
from interlingua.client.registry import Registry
from interlingua.client.resolve import check_configured
from interlingua.client.retry_policy import RetryPolicy
from interlingua.client.routing import Routing, find_rebind
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.keys import Key
from interlingua.providers.rows import row_name
from interlingua.providers.tariffs import Prices, Tariffs
from interlingua.runtime.callbacks import signature_of
from interlingua.runtime.cancel import CancelScope, running_loop
from interlingua.runtime.log import logger
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.check import describe
from interlingua.spec.contracts import Adapter, Profile
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.request_check import check_request
from interlingua.spec.response import Response

if TYPE_CHECKING:
    from pathlib import Path

    from interlingua.client.explain import Explanation
    from interlingua.client.provider_config import ProviderConfig
    from interlingua.providers.cost_range import CostRange
    from interlingua.providers.uploads import Uploads
    from interlingua.spec.operations import Operation, OperationInput, ServedModel

Addressed = TypeVar("Addressed", bound="OperationInput | Request")


class Client:
    """
    Any model of any provider, by name.

        async with Client.from_env() as client:
            response = await client.complete(Request(model="openai:gpt-5.2", messages="Hello"))

    It holds no state between requests. Many tasks, threads and event loops may use it at once.
    `on_loss` is the default for `Request.on_loss`: which losses raise `UnsupportedError` before
    anything is sent. `strict=True` means `on_loss="strict"`. `read_path_urls=True` reads a `url`
    of a part that looks like a path; use it only if the program builds all content itself.
    `prices` are rates by model, over those of the catalog: `{"gpt-5.2": {"input": 1.5}}`.
    `behaviours` are keyed by provider; see `Behaviour`.
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
        _check_adapters(providers)
        if strict:
            _check_strict(providers)
        self._registry = registry or Registry()
        chosen = next(iter(providers)) if len(providers) == 1 else None
        if default_provider is not None:
            chosen = check_configured(default_provider, Configured(providers, self._registry))
        self._routing = Routing(
            providers,
            self._registry,
            chosen,
            behaviours=behaviours or {},
            on_loss="strict" if strict else on_loss,
            read_path_urls=read_path_urls,
        )
        self._is_strict = strict
        self._settings: dict[str, Any] = {
            "registry": registry,
            "strict": strict,
            "on_loss": on_loss,
            "read_path_urls": read_path_urls,
            "prices": prices,
            "behaviours": behaviours,
        }
        self._retirement = Retirement()
        outer, inner = self._set_middleware(middleware)
        self.calls: Calls = Calls(
            self._routing,
            outer=outer,
            inner=inner,
            settings={"strict": True} if strict else {},
            registry_ids=self._registry.ids,
            tariffs=Tariffs(prices),
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
        prices: Prices | None = None,
        behaviours: Mapping[str, Behaviour] | None = None,
        config: str | Path | Mapping[Path, str] | None = None,
    ) -> Self:
        """
        Return a client for every provider with an API key in the environment.

        A model of a provider that is not configured is looked up in the environment again, so a
        key may be set later. Servers on this machine that need no key (`ollama`, `vllm`,
        `llamacpp`, `lmstudio`) and the local model are used only when they are named. `config` is
        a registry file, or several with their contents, of which the first wins: its adapters come
        before those of the environment, and its models, aliases and defaults hold.
        """
        from interlingua.client.environment_adapters import adapters_from_env

        environ = os.environ if environ is None else environ
        adapters: dict[str, Adapter] = {}
        registry: Registry | None = None
        if config is not None:
            from interlingua.client.config_files import read_config

            found, registry, default = read_config(config, environ)
            adapters |= found
            default_provider = default if default_provider is None else default_provider
        named = row_name(default_provider or "")
        adapters = {**adapters_from_env(environ, named=named, known=adapters), **adapters}
        client = cls(
            adapters,
            default_provider=default_provider,
            middleware=middleware,
            registry=registry,
            strict=strict,
            on_loss=on_loss,
            read_path_urls=read_path_urls,
            prices=prices,
            behaviours=behaviours,
        )
        client._routing.environ = environ
        if default_provider is None:
            # That only one key is set is no choice of the caller.
            client._routing.choose_provider(None)
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
        prices: Prices | None = None,
    ) -> Self:
        """Return a client for the adapters and models of a registry file (YAML)."""
        from interlingua.client.config import read_registry

        adapters, registry, default = read_registry(path, environ)
        return cls(
            adapters,
            default_provider=default,
            middleware=middleware,
            registry=registry,
            strict=strict,
            on_loss=on_loss,
            read_path_urls=read_path_urls,
            prices=prices,
        )

    def __repr__(self) -> str:
        return f"Client({', '.join(self._adapters)})"

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        """
        Pickle as its configuration: adapters, middleware, registry and settings.

        Connections, active calls and subscribers stay here. Keys that came from the environment are
        read again where it is unpickled.
        """
        from interlingua.client.carried import carry

        return carry(self, self._routing, {**self._settings, "middleware": self._middleware})

    @property
    def registry(self) -> Registry:
        """The models of the registry file, with their tiers and aliases."""
        return self._registry

    @property
    def _adapters(self) -> Mapping[str, Adapter]:
        return self._routing.adapters

    @property
    def default_provider(self) -> str | None:
        """
        The adapter for all models that no other rule routes; None if there is none.

        Set it to switch providers at run time: later calls go there, also those of clients made
        from this one.
        """
        return self._routing.chosen

    @default_provider.setter
    def default_provider(self, name: str | None) -> None:
        self._routing.choose_provider(None if name is None else self._routing.find_key(name))

    def adapter(self, name: str) -> Adapter:
        """Return the adapter of that name, or of the provider with that alias."""
        return self._adapters[self._routing.find_key(name)]

    def config(self, name: str) -> ProviderConfig:
        """Return what is set for an adapter, with its key and its secret headers redacted."""
        from interlingua.client.provider_config import describe_config

        key = self._routing.find_key(name)
        return describe_config(key, self._adapters[key], self._routing.behaviour_of(key))

    async def register(
        self, name: str, adapter: Adapter, *, behaviour: Behaviour | None = None
    ) -> None:
        """
        Add an adapter, in place of the one of that name, while calls may be under way.

        Its `initialize` is awaited first; if that fails, nothing changes. Calls that have begun end
        on the adapter that they began with, which is closed afterwards. Clients made from this one
        by `with_middleware` and `with_access` have the adapter too.
        """
        running_loop()
        _check_adapters({name: adapter})
        if self._is_strict:
            _check_strict({name: adapter})
        await initialize(adapter)
        before = self._routing.put(name, adapter, behaviour)
        self.calls.initialization.forget(name)
        await self._retirement.close_later(before, self._routing, self.calls.scopes)

    async def unregister(self, name: str) -> None:
        """
        Remove an adapter while calls may be under way.

        Calls that have begun end on it; it is closed when they have. Later requests for it are
        routed again, or refused with `ConfigurationError`. A key in the environment does not bring
        it back.
        """
        running_loop()
        key = self._routing.find_key(name)
        before = self._routing.remove(key)
        self.calls.initialization.forget(key)
        await self._retirement.close_later(before, self._routing, self.calls.scopes)

    def with_access(
        self,
        model: str,
        provider: str | None = None,
        *,
        api_key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Self:
        """
        Return a client with another key, address or headers at the provider of a model.

        It shares connections, middleware and active calls with this one. With a key or an
        address, a provider that is named need not be configured. Requests that a middleware sends
        to another provider have neither the key nor the headers.
        """
        routing = self._routing
        is_given = api_key is not None or base_url is not None
        key = routing.find_owner(provider, model, is_given=is_given)
        adapter = routing.adapters.get(key)
        if adapter is None:
            adapter = routing.unconfigured(key, base_url)
        rebind = find_rebind(adapter)
        if rebind is None:
            what = "is not an HttpAdapter: it takes no api_key, base_url or headers"
            raise ConfigurationError(f"The adapter {key!r} {what}.")
        bound = rebind(key, api_key=api_key, base_url=base_url, headers=headers)
        twin = copy(self)
        twin._follow(routing.with_adapter(key, bound))  # noqa: SLF001
        return twin

    def with_middleware(self, *middleware: Middleware | Iterable[Middleware]) -> Self:
        """
        Return a client with more middleware, one by one or as a list, inside of what this one has.

        It shares adapters, connections, subscribers and active calls with this one.
        """
        twin = copy(self)
        given: tuple[Any, ...] = middleware  # a caller without a type checker may pass a string
        lists = [each if isinstance(each, (list, tuple)) else (each,) for each in given]
        twin._add_middleware(tuple(chain.from_iterable(lists)))  # noqa: SLF001
        return twin

    def with_prices(self, prices: Prices) -> Self:
        """
        Return a client with these prices over the prices that this one has.

        It shares everything else with this one.
        """
        twin = copy(self)
        twin.calls = self.calls.with_prices(prices)
        before = self._settings["prices"] or {}
        twin._settings = {**self._settings, "prices": {**before, **prices}}  # noqa: SLF001
        return twin

    def _follow(self, routing: Routing) -> None:
        self._routing = routing
        self.calls = self.calls.rebind(routing)

    @property
    def middleware(self) -> tuple[Middleware, ...]:
        """The middleware, in the order in which it was given."""
        return self._middleware

    def _add_middleware(self, middleware: tuple[Middleware, ...]) -> None:
        outer, inner = self._set_middleware((*self._middleware, *middleware))
        self.calls = self.calls.rebind(self._routing, outer, inner)

    def _set_middleware(self, middleware: Iterable[Middleware]) -> tuple[Layers, Layers]:
        """Returns the layers of calls: those outside of the attempts, and those inside."""
        self._middleware = check_middleware(middleware)
        layers = arrange(self._middleware)
        self.tool_layers: tuple[ToolMiddleware, ...] = layers.tools
        """The layers around the tools of a run."""
        return layers.outer, layers.inner

    # Calls.

    async def complete(self, request: Request, *, retry: RetryPolicy | None = None) -> Response:
        """Return the whole answer; retry only if `retry` or the adapter's `max_retries` says so."""
        request = check_request(request)
        if request.upload is None:
            return await self._complete(request, retry)
        from interlingua.providers.uploads import Uploads, closed

        async with closed(Uploads()) as uploads:
            return await self._complete(request, retry, uploads)

    def _complete(
        self, request: Request, retry: RetryPolicy | None, uploads: Uploads | None = None
    ) -> Awaitable[Response]:
        scope, attempts = CancelScope(), Attempts(self.calls, request, retry, uploads=uploads)
        work = attempts.answer(scope)
        return self.calls.scopes.wait(attempts.request.request_id or "", work, scope)

    def stream(
        self, request: Request, *, retry: RetryPolicy | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        """Return the events of the answer; the last one, `Finish`, has the whole response."""
        from interlingua.client.stream_attempts import StreamAttempts

        request = check_request(request)
        if request.upload is None:
            return StreamAttempts(self.calls, request, retry).fold()
        from interlingua.providers.uploads import Uploads, closing

        uploads = Uploads()
        return closing(StreamAttempts(self.calls, request, retry, uploads=uploads).fold(), uploads)

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
        """Return the profile of the model that would answer; the neutral one if it is unknown."""
        from interlingua.client.adapter_members import profile_of

        request = self._routing.address(request)
        return profile_of(self._adapters[request.provider or ""], request.model)

    def explain(self, request: Request, *, stream: bool = False) -> Explanation:
        """
        Return the exact wire request and every change to it, without key or network.

        Of an adapter of your own, it shows the request that the adapter would get. The files that
        parts name by `path` are read. URLs that the call itself would fetch are not: `fetches`
        lists them.
        """
        from interlingua.client.explain import explain, explain_custom

        request = self._routing.address(check_request(request))
        key, tariffs = request.provider or "", self.calls.tariffs
        adapter = self._routing.find_http(key)
        if adapter is None:
            own, behaviour = self._adapters[key], self._routing.behaviour_of(key)
            return explain_custom(own, request, tariffs, behaviour)
        return explain(adapter, request, tariffs, stream=stream)

    def estimate_cost(self, request: Request) -> CostRange | None:
        """
        Return the least and the most that a call may cost in dollars, before it is sent.

        The least: everything is read from a cache, and the answer is empty. The most: nothing is,
        and the answer is as long as `max_tokens` or the model allows. None if the price or that
        limit is unknown.
        """
        from interlingua.client.explain import estimate_cost
        from interlingua.client.metering import seller_of

        request = self._routing.address(check_request(request))
        key = request.provider or ""
        adapter = self._routing.adapters[key]
        return estimate_cost(adapter, request, self.calls.tariffs, seller_of(adapter, key))

    def estimate_input_tokens(self, request: Request) -> int:
        """Estimate the number of input tokens offline."""
        from interlingua.client.adapter_members import estimate_tokens

        request = self._routing.address(check_request(request))
        return estimate_tokens(self._adapters[request.provider or ""], request)

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
        from interlingua.client.operation_attempts import OperationAttempts
        from interlingua.runtime.items import perform_in

        key = self._routing.find_key(provider)
        attempts, scope = OperationAttempts(self.calls, key, operation, value, retry), CancelScope()
        work = attempts.perform(scope)
        return await perform_in(self.calls.scopes, attempts.request_id, work, scope)

    @overload
    def address(self, value: Request) -> Request: ...

    @overload
    def address(self, value: Addressed) -> Addressed: ...

    def address(self, value: Any) -> Any:
        """Return a request, or an operation's value, with the provider and model it goes to."""
        if isinstance(value, Request):
            return self._routing.address(value)
        route = self._routing.place(value.provider, value.model)
        return replace(value, provider=route.provider, model=route.model)

    async def count_tokens(self, request: Request) -> int:
        """Count the input tokens as the provider counts them (a request is sent)."""
        request = self._routing.address(check_request(request))
        tokens: int = await self.perform(request.provider or "", "count_tokens", request)
        return tokens

    async def list_models(self, provider: str | None = None) -> list[ServedModel]:
        """
        List the models that a provider, or each configured one, serves now (requests are sent).

        If one of several providers fails, that is logged; if all fail, the first error is raised.
        """
        from interlingua.providers.operations import name_models

        running_loop()
        if provider is not None:
            provider = self._routing.find_key(provider)
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

    async def retrieve_model(self, model: str, provider: str | None = None) -> ServedModel:
        """Return what its provider says about one model (a request is sent)."""
        from interlingua.spec.operations import OperationInput

        value = self.address(OperationInput(model=model, provider=provider))
        found: ServedModel = await self.perform(value.provider or "", "retrieve_model", value)
        return found

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
        spare, retired = self._routing.spare_transport, self._retirement.take_all()
        closing = [close(each) for each in (*self._adapters.values(), *retired, spare)]
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
        if not isinstance(adapter, HttpAdapter):
            from interlingua.client.adapter_members import check_adapter

            check_adapter(name, adapter)


def _check_strict(adapters: Mapping[str, Adapter]) -> None:
    """Refuse custom adapters without a `strict` parameter, which they may leave out otherwise."""
    for name, adapter in adapters.items():
        for method in ("complete", "stream"):
            parameters = signature_of(getattr(adapter, method)).parameters
            takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
            if "strict" not in parameters and not takes_any:
                raise ConfigurationError(
                    f"`strict=True` needs adapters whose `{method}` has a parameter `strict`; "
                    f"the adapter {name!r} has none."
                )
