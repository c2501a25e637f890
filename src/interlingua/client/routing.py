"""
`Routing`: the adapters of a client, and the adapter and model of each request.

Adapters may be added and removed while calls are under way. Each change makes a new mapping: a
call keeps the one that it began with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import lru_cache
from threading import Lock
from typing import Any, Protocol, Self
from weakref import WeakSet

from msgspec.structs import replace

from interlingua.client.configured import Configured, find_adapter, is_remote
from interlingua.client.member_adapters import as_member_adapter
from interlingua.client.registry import Registry, Route
from interlingua.client.resolve import check_configured, resolve
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.adapter_options import find_transport
from interlingua.providers.catalog.models import providers_of
from interlingua.providers.environment import add_environment
from interlingua.providers.rows import find_provider, row_name
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.contracts import Adapter, Transport
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import OnLoss, Request

ROUTES = 256
"""How many model names a client caches the route of."""
_NEEDS_NOTHING = Request()


class CachedRoutes(Protocol):
    """Finds the route of a provider and a model, and remembers it."""

    def __call__(self, provider: str | None, model: str, /) -> Route: ...
    def cache_clear(self) -> None:
        """Forget all routes."""


class Routing:
    """
    Where the requests of a client go.

    Clients made by `with_access` have a routing of their own, which follows every change of the
    first one.
    """

    def __init__(
        self,
        adapters: Mapping[str, Adapter],
        registry: Registry,
        chosen: str | None,
        *,
        behaviours: Mapping[str, Behaviour],
        on_loss: OnLoss | None,
        read_path_urls: bool,
    ) -> None:
        self._given = {_key_of(name, adapters): each for name, each in behaviours.items()}
        self.adapters: dict[str, Adapter] = {
            key: self.known_as(key, adapter) for key, adapter in adapters.items()
        }
        """By key; the mapping is replaced when an adapter is registered or unregistered."""
        self.registry = registry
        self.chosen = chosen
        """The adapter that the caller chose for all models, if any."""
        self.environ: Mapping[str, str] | None = None
        """Where keys that are set later are looked up."""
        self.spare_transport: Transport | None = None  # of providers that are not configured
        self._on_loss = on_loss
        self.reads_path_urls = read_path_urls
        """Whether a `url` that looks like a path is read as a file."""
        self._own: dict[str, Adapter] = {}  # of `with_adapter`; they stay whatever is registered
        self._removed: set[str] = set()  # unregistered; not taken from the environment again
        self._only_named: set[str] = set()  # added because they were named
        self._remote: set[str] = {key for key, each in adapters.items() if is_remote(each)}
        """The keys of all remote adapters that the client ever had."""
        self._lost_default: str | None = None
        self._all: WeakSet[Routing] = WeakSet((self,))
        self._lock = Lock()
        self.route: CachedRoutes = lru_cache(ROUTES)(self._find_route)

    # Requests.

    def address(self, request: Request) -> Request:
        """The request with its provider, the provider's name for the model, and an id."""
        if self.reads_path_urls:
            from interlingua.transport.media import paths_from_urls

            request = paths_from_urls(request)
        route = self.route(request.provider, request.model)
        if route.choices:
            route = _choose(route, request, self.adapters)
        reason, short_name = request.chosen_because, route.short_name
        if request.short_name and (request.provider, request.model) == route[:2]:
            short_name = request.short_name  # it was addressed before
        if route.reason:
            reason = f"{reason}; {route.reason}" if reason else route.reason
        return replace(
            request,
            provider=route.provider,
            model=route.model,
            request_id=request.request_id or new_ulid(),
            on_loss=request.on_loss or self._on_loss,
            chosen_because=reason,
            short_name=short_name,
        )

    def place(self, provider: str | None, model: str) -> Route:
        """The route of an operation."""
        route = self.route(provider, model)
        return _choose(route, _NEEDS_NOTHING, self.adapters) if route.choices else route

    def resolve_again(self, request: Request) -> Request:
        """The request with its route, after a middleware changed the provider or model."""
        # A wire name of the registry is not looked up again: it may be the id of another entry.
        is_served = self.registry.serves(request.provider, request.model)
        if is_served and request.provider in self.adapters:
            return request
        return self.address(request)

    def _find_route(self, provider: str | None, model: str) -> Route:
        try:
            return resolve(provider, model, self._configured())
        except ConfigurationError:
            if not self._read_environment(provider or model.partition(":")[0]):
                raise
        return resolve(provider, model, self._configured())

    def _configured(self) -> Configured:
        return Configured(
            self.adapters,
            self.registry,
            self.chosen,
            self.behaviour_of,
            removed=self._removed,
            lost_default=self._lost_default,
            only_named=self._only_named,
            had_several=len(self._remote) > 1,
            environ=self.environ,
        )

    def find_key(self, provider: str) -> str:
        """The key of the adapter that the caller names."""
        if find_adapter(provider, self.adapters) is None:
            self._read_environment(provider)
        return check_configured(provider, self._configured())

    def find_owner(self, provider: str | None, model: str, *, is_given: bool) -> str:
        """The provider of a model; with a key or address given, also one that is not configured."""
        if provider is not None and not model:  # of an operation that needs no model
            key = find_adapter(provider, self.adapters)
            if key is not None:
                return key
        try:
            return _one_provider(self.route(provider, model), model)
        except ConfigurationError:
            owner = self._unconfigured_owner(provider, model) if is_given else None
            if owner is None:
                raise
            return owner

    def _unconfigured_owner(self, provider: str | None, model: str) -> str | None:
        """The row of a model that names its provider, or that one provider alone serves."""
        name, colon, _ = model.partition(":")
        if provider is not None or (colon and row_name(name) is not None):
            return row_name(provider or name)
        if self._lost_default is not None or self._configured().knows(model.partition("/")[0]):
            return None
        owners = providers_of(model)
        return owners[0] if len(owners) == 1 else None

    # Adapters.

    def behaviour_of(self, key: str) -> Behaviour | None:
        """The behaviour at an adapter: what the client was given, or that of the adapter."""
        own: Behaviour | None = getattr(self.adapters.get(key), "behaviour", None)
        return self._given.get(key, own)

    def known_as(self, key: str, adapter: Adapter) -> Adapter:
        """The adapter under its key in the client; the caller's own object is not changed."""
        behaviour = self._given.get(key)
        rebind = find_rebind(adapter)
        if rebind is None or (adapter.name == key and behaviour is None):
            return adapter
        return rebind(key, behaviour=behaviour)

    def find_http(self, name: str) -> HttpAdapter | None:
        """The adapter, or the first of a `Balance`, if it is an `HttpAdapter`."""
        adapter = self.adapters[name]
        members = as_member_adapter(adapter)
        adapter = adapter if members is None else members.first
        return adapter if isinstance(adapter, HttpAdapter) else None

    def unconfigured(self, name: str, base_url: str | None) -> HttpAdapter:
        """An adapter for one run, whose provider is not configured."""
        if self.spare_transport is None:
            self.spare_transport = find_transport({})
        row, environ = find_provider(name), self.environ or {}
        settings = {"base_url": base_url, "transport": self.spare_transport}
        return HttpAdapter(row, **add_environment(row, settings, environ))

    def with_adapter(self, key: str, adapter: Adapter) -> Self:
        """The same routing with another adapter under this key."""
        twin = copy(self)
        twin._own = {**self._own, key: adapter}  # noqa: SLF001
        twin.adapters = {**self.adapters, key: adapter}
        twin.route = lru_cache(ROUTES)(twin._find_route)  # noqa: SLF001
        with self._lock:
            self._all.add(twin)
        return twin

    def put(self, key: str, adapter: Adapter, behaviour: Behaviour | None) -> Adapter | None:
        """Add an adapter; returns the one that had the key before."""
        self._removed.discard(key)
        if behaviour is not None:
            self._given[key] = behaviour
        elif getattr(adapter, "behaviour", None) is not None:
            self._given.pop(key, None)  # the adapter brings its own
        return self._change(key, self.known_as(key, adapter))

    def remove(self, key: str) -> Adapter | None:
        """Remove an adapter, also as the chosen one; returns it."""
        self._removed.add(key)
        self._given.pop(key, None)
        return self._change(key, None)

    def choose_provider(self, key: str | None) -> None:
        """Set the adapter for all models without another route."""
        with self._lock:
            for routing in tuple(self._all):
                routing.chosen, routing._lost_default = key, None  # noqa: SLF001
                routing.route.cache_clear()

    def is_used(self, transport: Transport) -> bool:
        """Whether an adapter sends through this transport."""
        with self._lock:
            adapters = [each for routing in self._all for each in routing.adapters.values()]
        return any(getattr(each, "transport", None) is transport for each in adapters)

    def _change(self, key: str, adapter: Adapter | None) -> Adapter | None:
        with self._lock:
            before = self.adapters.get(key)
            if adapter is not None and is_remote(adapter):
                self._remote.add(key)
            for routing in tuple(self._all):
                own = routing._own.get(key, adapter)  # noqa: SLF001
                changed = {**routing.adapters, key: own}
                routing.adapters = {
                    name: each for name, each in changed.items() if each is not None
                }
                routing._follow_choice()  # noqa: SLF001
                routing.route.cache_clear()
        return before

    def _follow_choice(self) -> None:
        """Forget the chosen adapter if it was removed, and choose it again if it is back."""
        if self.chosen is not None and self.chosen not in self.adapters:
            self.chosen, self._lost_default = None, self.chosen
        elif self._lost_default in self.adapters:
            self.chosen, self._lost_default = self._lost_default, None

    def _read_environment(self, name: str) -> bool:
        """
        Add the adapters that the environment has by now; return whether there are any.

        A program may set a forgotten key later; a row without a key is added when it is named.
        """
        if self.environ is None:
            return False
        from interlingua.client.environment_adapters import adapters_from_env

        known = {*self.adapters, *self._removed}
        found = adapters_from_env(self.environ, named=row_name(name), known=known)
        for key, adapter in found.items():
            self.adapters.setdefault(key, self.known_as(key, adapter))
            row = adapter.provider
            if row.only_named or (row.identity is not None and adapter.configuration.key is None):
                self._only_named.add(key)
            elif is_remote(adapter):
                self._remote.add(key)
        self.route.cache_clear()
        return bool(found)


def _key_of(name: str, adapters: Mapping[str, Adapter]) -> str:
    """The key of the adapter that a behaviour is for, which may be added later."""
    key = find_adapter(name, adapters) or row_name(name)
    if key is None:
        configured = ", ".join(adapters) or "none"
        raise ConfigurationError(
            f"Behaviours: {name!r} is neither an adapter of the client nor a known provider. "
            f"Configured: {configured}."
        )
    return key


def _choose(route: Route, request: Request, adapters: Mapping[str, Adapter]) -> Route:
    """The route to one of the models of a tier."""
    from interlingua.client.tiers import choose

    return choose(route, request, adapters)


def _one_provider(route: Route, model: str) -> str:
    """The provider of a route; `ConfigurationError` if a tier has models of several."""
    providers = {entry.adapter for entry in route.choices} or {route.provider}
    if len(providers) == 1:
        return providers.pop()
    choices = ", ".join(entry.id for entry in route.choices)
    raise ConfigurationError(
        f"`api_key`, `base_url` and `headers` are for one provider, but {model!r} has models of "
        f"several. Name one of {choices}."
    )


def find_rebind(adapter: Any) -> Callable[..., Adapter] | None:
    """`rebind` of an `HttpAdapter`, or of a `Balance` of several; None of another adapter."""
    if isinstance(adapter, HttpAdapter) or as_member_adapter(adapter) is not None:
        rebind: Callable[..., Adapter] = adapter.rebind
        return rebind
    return None
