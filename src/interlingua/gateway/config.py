"""The section `gateway` of a registry file: where to listen, keys, public names of models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

from interlingua.client.client import Client
from interlingua.client.config import Section, read_document, read_registry
from interlingua.client.middleware.balance import Balance
from interlingua.client.middleware.cache import Cache
from interlingua.client.middleware.circuit_breaker import CircuitBreaker
from interlingua.client.middleware.contract import Middleware
from interlingua.client.middleware.fallback import Fallback
from interlingua.client.middleware.hedge import Hedge
from interlingua.client.middleware.telemetry import Telemetry
from interlingua.client.registry import Registry
from interlingua.client.stores.contract import Store
from interlingua.gateway.keys import Key, is_hash
from interlingua.gateway.limits import Clients, Limit, Limits, read_limit
from interlingua.gateway.responses import read_keep, read_kept
from interlingua.gateway.stores import Stores
from interlingua.providers.adapter import HttpAdapter
from interlingua.serving.client_application import MAX_BODY, Caller, Routes
from interlingua.serving.exchange import ModelRoute
from interlingua.serving.kept_responses import KeptResponses
from interlingua.serving.storage import Storage
from interlingua.spec.check import Positive, Seconds, rows_of_options
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import ConfigurationError, ErrorClass
from interlingua.spec.request import Request

HOST = "127.0.0.1"
PORT = 4000
FILES = "gateway-files.db"
"""The usual store of files: beside the registry file; it is made when it is first needed."""
_LOCAL = "local:smollm2"


class ServerTimeouts(NamedTuple):
    """How long the server waits for its clients, in seconds."""

    headers: float = 15.0
    """From the first byte of a request to the end of its headers."""
    stalled: float = 300.0
    """While a client neither sends more of its request nor takes more of the reply."""
    idle: float = 75.0
    """While a connection has no request; longer than the clients keep theirs."""
    grace: float = 30.0
    """What requests have to end after a signal to stop."""


class _Gateway(TypedDict, total=False):
    """The keys of the section."""

    host: str
    port: int
    workers: Positive
    direct: bool
    keys: Mapping[str, Any]
    routes: Mapping[str, Any]
    responses: Any  # `gateway/responses.py` reads it
    cors: list[str]
    max_body: Positive
    timeouts: Mapping[str, Any]
    storage: Mapping[str, Any]
    store: str
    telemetry: bool


class _Timeouts(TypedDict, total=False):
    """The keys of the timeouts."""

    headers: Seconds
    stalled: Seconds
    idle: Seconds
    grace: Seconds


class _Storage(TypedDict, total=False):
    """The keys of the storage of a key."""

    files: Positive
    file_bytes: Positive
    jobs: Positive
    responses: Positive
    response_bytes: Positive


class _Key(TypedDict, total=False):
    """The keys of a key."""

    hash: str
    models: list[str]
    limits: Mapping[str, Any]  # `gateway/limits.py` reads it
    responses: Any
    storage: Mapping[str, Any]


class _Route(TypedDict, total=False):
    """The keys of a route."""

    model: str
    balance: list[str] | Mapping[str, float]
    affinity: Literal["session", "key"]
    limits: Mapping[str, Any]  # `gateway/limits.py` reads it
    fallback: list[str]
    hedge: float | str
    cache: float
    settings: Mapping[str, Any]


class Gateway(NamedTuple):
    """What a gateway serves, and where."""

    client: Client
    routes: Routes
    keys: tuple[Key, ...] = ()
    host: str = HOST
    port: int = PORT
    kept: KeptResponses | None = None
    """What is kept for callers; None for nothing."""
    workers: int = 1
    timeouts: ServerTimeouts = ServerTimeouts()
    cors: tuple[str, ...] = ()
    """The origins whose pages may call; `*` for all."""
    max_body: int = MAX_BODY
    """Bytes of a request."""
    limits: Limits | None = None
    """What callers may ask for; None for anything."""
    telemetry: bool = False
    """Whether calls are told to OpenTelemetry, as part of the traces of their clients."""
    store: Store | None = None
    """The files of callers, and where their batches and videos are; None for this process only."""
    storage: Storage = Storage()
    """The most that is stored for one key, unless the key has its own."""


def guarded(client: Client) -> Client:
    """The client, which no longer calls a model that is down."""
    return client.with_middleware(make_breaker())


def make_breaker() -> CircuitBreaker:
    """
    What stops the calls of a model that is down.

    Agents ask again and again (Codex six times, opencode for ever), so three failures in a row are
    enough. A provider that asks to wait is not down: its 429 reaches the client, which waits.
    """
    down = (ErrorClass.AUTH, ErrorClass.SERVER_ERROR, ErrorClass.NETWORK)
    return CircuitBreaker(failures=3, errors=down)


def gateway_from_env(environ: Mapping[str, str] | None = None) -> Gateway:
    """Serve every provider that the environment has a key for, and the local model."""
    client = Client.from_env(os.environ if environ is None else environ)
    # No provider lists the local model; its name is a route, so that clients are told it.
    routes = {_LOCAL: _LOCAL} if find_spec("xllamacpp") is not None else {}
    return Gateway(guarded(client), Routes(routes))


def gateway_from_file(
    path: str | Path,
    environ: Mapping[str, str] | None = None,
    *,
    text: str | None = None,
    stores: Stores | None = None,
) -> Gateway:
    """
    Read the adapters, the models and the section `gateway` of a registry file.

    Whatever is wrong in it is a `ConfigurationError` with the line. `text` is the content of the
    file, if it is known; `stores` are those that are open already.
    """
    stores = Stores(Path(path).expanduser().parent) if stores is None else stores
    adapters, registry, default = read_registry(path, environ, text=text)
    file = read_document(Path(path).expanduser(), text)
    section = file.section("gateway", "gateway").check(rows_of_options(_Gateway))
    reader = _Reader(section, stores, adapters)
    clients = reader.open(default, registry)
    found = {name: reader.route(name, clients) for name in reader.routes}
    keys = section.sections("keys", rows_of_options(_Key))
    storage = _read_storage(section, "gateway.storage", Storage())
    timeouts = section.section("timeouts", "gateway.timeouts").check(rows_of_options(_Timeouts))
    return Gateway(
        clients.plain,
        Routes(found, direct=section.get("direct", not found)),
        tuple(_key(name, each, storage) for name, each in keys.items()),
        host=section.get("host", HOST),
        port=section.get("port", PORT),
        kept=read_kept(section, stores),
        workers=section.get("workers", 1),
        timeouts=ServerTimeouts(**{name: timeouts.get(name) for name in timeouts}),
        cors=tuple(section.get("cors", ())),
        max_body=section.get("max_body", MAX_BODY),
        limits=reader.limits(clients, keys),
        telemetry=section.get("telemetry", False),
        store=stores.open(FILES),
        storage=storage,
    )


def _read_storage(section: Section, where: str, usual: Storage) -> Storage:
    """The part `storage` of a section; what it leaves out is as usual."""
    given = section.section("storage", where).check(rows_of_options(_Storage))
    return usual._replace(**{name: given.get(name) for name in given})


def _key(name: str, section: Section, usual: Storage) -> Key:
    value = section.get("hash", "")
    if not is_hash(value):
        raise section.error(
            "hash",
            f"gateway.keys.{name}: `hash` must be sha256: and 64 hexadecimal digits. "
            "`interlingua serve --new-key` prints one.",
        )
    models = section.get("models")
    keep = read_keep(section, name)
    storage = _read_storage(section, f"gateway.keys.{name}.storage", usual)
    return Key(value, Caller(name, None if models is None else tuple(models), keep, storage))


class _Reader:
    """Reads the routes and the limits."""

    def __init__(
        self, section: Section, stores: Stores, adapters: Mapping[str, HttpAdapter]
    ) -> None:
        self._stores = stores
        self._place = section.get("store")
        if self._place is not None:
            stores.open_for(section, self._place)
        self._has_telemetry = section.get("telemetry", False)
        self._adapters: dict[str, Adapter] = {**adapters}
        self._limits: list[tuple[ModelRoute, Limit]] = []
        self.routes = section.section("routes", "gateway.routes")

    def open(self, default: str | None, registry: Registry) -> Clients:
        """The clients, with an adapter for each set of adapters that are balanced."""
        for name in self.routes:
            section = self._section(name)
            if section is not None and "balance" in section:
                self._add_balance(section, f"gateway.routes.{name}")
        base = Client(self._adapters, default_provider=default, registry=registry)
        usual: list[Middleware] = [Telemetry()] if self._has_telemetry else []
        return Clients(base, *usual, make_breaker())

    def _section(self, name: str) -> Section | None:
        """The section of a route; None if it is only the name of a model."""
        if isinstance(self.routes.get(name), str):
            return None
        section = self.routes.section(name, f"gateway.routes.{name}")
        return section.check(rows_of_options(_Route))

    def _add_balance(self, section: Section, where: str) -> None:
        names = [*section.get("balance")]
        for name in names:
            if name not in self._adapters:
                raise section.error("balance", f"{where}: this file has no adapter {name!r}.")
        weights = section.get("balance")
        try:
            balance = Balance(
                *(self._adapters[name] for name in names),
                weights=[*weights.values()] if isinstance(weights, Mapping) else None,
            )
        except ConfigurationError as error:
            raise section.error("balance", f"{where}: {error.message}") from None
        # Each is asked before a client is told that one of them has failed.
        balance.max_retries = max(balance.max_retries, len(names) - 1)
        self._adapters[balanced_name(names)] = balance

    def route(self, name: str, clients: Clients) -> ModelRoute:
        """The route of a public name: the name of a model, or a section."""
        section = self._section(name)
        if section is None:
            model = self.routes.get(name)
            _check_model(self.routes, name, clients.plain, model)
            return ModelRoute(model)
        where = f"gateway.routes.{name}"
        model = section.get("model", "")
        for each in (model, *section.get("fallback", ())):
            _check_model(section, "model", clients.plain, each)
        if "balance" in section:
            model = f"{balanced_name(section.get('balance'))}:{model.rpartition(':')[2]}"
        settings = section.get("settings", {})
        try:
            Request(model=model, messages="x", **settings)
        except (ConfigurationError, TypeError) as error:
            raise section.error("settings", f"{where}.settings: {error}") from None
        limit = read_limit(section, f"route {name}", self._stores, place=self._place)
        middleware = _middleware(section, where)
        own = clients.make(*middleware, limit=limit) if middleware or limit else None
        affinity = section.get("affinity", "session")
        route = ModelRoute(model, own, settings, affinity)
        if limit is not None:
            self._limits.append((route, limit))
        return route

    def limits(self, clients: Clients, keys: Mapping[str, Section]) -> Limits | None:
        """The limits of all keys and routes; None if there are none."""
        read = {
            name: read_limit(section, f"key {name}", self._stores, place=self._place)
            for name, section in keys.items()
        }
        found = {name: limit for name, limit in read.items() if limit is not None}
        return Limits(clients, found, self._limits) if found or self._limits else None


def balanced_name(adapters: Iterable[str]) -> str:
    """The name of several adapters that are used as one."""
    return "+".join(adapters)


def _middleware(section: Section, where: str) -> list[Any]:
    found: list[Any] = []
    try:
        if "cache" in section:
            found.append(Cache(ttl=section.get("cache")))
        if "fallback" in section:
            found.append(Fallback(*section.get("fallback")))
        if "hedge" in section:
            found.append(Hedge(section.get("hedge")))
    except ConfigurationError as error:
        raise section.error("model", f"{where}: {error.message}") from None
    return found


def _check_model(section: Section, key: str, client: Client, model: str) -> None:
    """Raise an error with the line if no provider of the file has this model."""
    try:
        client.calls.routing.address(Request(model=model, messages="x"))
    except ConfigurationError as error:
        raise section.error(key, error.message) from None
