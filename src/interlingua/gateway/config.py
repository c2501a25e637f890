"""The section `gateway` of a registry file: where to listen, keys, public names of models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from interlingua.client.client import Client
from interlingua.client.config import Section, read_document
from interlingua.client.middleware.cache import Cache
from interlingua.client.middleware.circuit_breaker import CircuitBreaker
from interlingua.client.middleware.fallback import Fallback
from interlingua.client.middleware.hedge import Hedge
from interlingua.client.stores.contract import Store
from interlingua.client.stores.sqlite import SQLiteStore
from interlingua.gateway.keys import Key, is_hash
from interlingua.gateway.responses import read_keep, read_kept
from interlingua.serving.client_application import Caller, ModelRoute, Routes
from interlingua.serving.kept_responses import KeptResponses
from interlingua.spec.check import rows_of_options
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request

HOST = "127.0.0.1"
PORT = 4000
FILES = "gateway-files.db"
"""The usual store of files: beside the registry file; it is made when it is first needed."""
_LOCAL = "local:smollm2"


class _Gateway(TypedDict, total=False):
    """The keys of the section."""

    host: str
    port: int
    direct: bool
    keys: Mapping[str, Any]
    routes: Mapping[str, Any]
    responses: Any  # `gateway/responses.py` reads it


class _Key(TypedDict, total=False):
    """The keys of a key."""

    hash: str
    models: list[str]
    responses: Any


class _Route(TypedDict, total=False):
    """The keys of a route."""

    model: str
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
    store: Store | None = None
    """The files of callers, and where their batches and videos are; None for this process only."""


def guarded(client: Client) -> Client:
    """
    The client, which no longer calls a model that is down.

    Agents ask again and again (Codex six times, opencode for ever), so three failures in a row are
    enough.
    """
    return client.with_middleware(CircuitBreaker(failures=3))


def gateway_from_env(environ: Mapping[str, str] | None = None) -> Gateway:
    """Serve every provider that the environment has a key for, and the local model."""
    client = Client.from_env(os.environ if environ is None else environ)
    # No provider lists the local model; its name is a route, so that clients are told it.
    routes = {_LOCAL: _LOCAL} if find_spec("xllamacpp") is not None else {}
    return Gateway(guarded(client), Routes(routes))


def gateway_from_file(path: str | Path, environ: Mapping[str, str] | None = None) -> Gateway:
    """
    Read the adapters, the models and the section `gateway` of a registry file.

    Whatever is wrong in it is a `ConfigurationError` with the line.
    """
    client = guarded(Client.from_file(path, environ))
    file = read_document(Path(path).expanduser())
    section = file.section("gateway", "gateway").check(rows_of_options(_Gateway))
    routes = section.section("routes", "gateway.routes")
    found = {name: _route(routes, name, client) for name in routes}
    keys = section.sections("keys", rows_of_options(_Key))
    return Gateway(
        client,
        Routes(found, direct=section.get("direct", not found)),
        tuple(_key(name, each) for name, each in keys.items()),
        section.get("host", HOST),
        section.get("port", PORT),
        read_kept(section, Path(path).expanduser()),
        SQLiteStore(Path(path).expanduser().with_name(FILES)),
    )


def _key(name: str, section: Section) -> Key:
    value = section.get("hash", "")
    if not is_hash(value):
        raise section.error(
            "hash",
            f"gateway.keys.{name}: `hash` must be sha256: and 64 hexadecimal digits. "
            "`interlingua serve --new-key` prints one.",
        )
    models = section.get("models")
    keep = read_keep(section, name)
    return Key(value, Caller(name, None if models is None else tuple(models), keep))


def _route(routes: Section, name: str, client: Client) -> ModelRoute:
    """The route of a public name: the name of a model, or a section."""
    value = routes.get(name)
    if isinstance(value, str):
        _check_model(routes, name, client, value)
        return ModelRoute(value)
    where = f"gateway.routes.{name}"
    section = routes.section(name, where).check(rows_of_options(_Route))
    model = section.get("model", "")
    for each in (model, *section.get("fallback", ())):
        _check_model(section, "model", client, each)
    settings = section.get("settings", {})
    try:
        Request(model=model, messages="x", **settings)
    except (ConfigurationError, TypeError) as error:
        raise section.error("settings", f"{where}.settings: {error}") from None
    middleware: list[Any] = []
    try:
        if "cache" in section:
            middleware.append(Cache(ttl=section.get("cache")))
        if "fallback" in section:
            middleware.append(Fallback(*section.get("fallback")))
        if "hedge" in section:
            middleware.append(Hedge(section.get("hedge")))
    except ConfigurationError as error:
        raise section.error("model", f"{where}: {error.message}") from None
    own = client.with_middleware(*middleware) if middleware else None
    return ModelRoute(model, own, settings)


def _check_model(section: Section, key: str, client: Client, model: str) -> None:
    """Raise an error with the line if no provider of the file has this model."""
    try:
        client.calls.routing.address(Request(model=model, messages="x"))
    except ConfigurationError as error:
        raise section.error(key, error.message) from None
