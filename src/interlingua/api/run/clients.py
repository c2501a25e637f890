"""The client of a run: the default one, and what the options of the run change about it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from interlingua.client.client import Client
from interlingua.client.configured import find_adapter
from interlingua.client.routing import Routing
from interlingua.providers.rows import row_name
from interlingua.spec.errors import ConfigurationError

Place: TypeAlias = tuple[str | None, str | None]
"""The `provider=` and the model of a run."""
ACCESS = frozenset(("api_key", "base_url", "headers"))
"""The options that change the provider's adapter for one run."""
CLIENT_OPTIONS = ACCESS | {"prices", "on_usage"}
"""The options of a run that change its client."""
OF_A_PROVIDER = ACCESS | {"provider"}
"""The options that are for one provider."""


class BlockingClient:
    """What `interlingua.sync.Client` is to the async functions, which take it as `client=` too."""

    asynchronous: Client
    """The async client that does the work."""


_default_lock = threading.Lock()
_default_client: Client | None = None


def get_default_client() -> Client:
    """
    Return the client that was set, or else one made on first use.

    That is made from the environment and the user's configuration file: the one that
    INTERLINGUA_CONFIG names, or `interlingua.yaml` in the user's configuration folder.
    """
    global _default_client  # noqa: PLW0603 -- one for the program is the point
    with _default_lock:
        if _default_client is None:
            from interlingua.client.config_files import user_config

            _default_client = Client.from_env(config=user_config())
        return _default_client


def find_client(client: Client | BlockingClient | None) -> Client:
    """The async client for an option `client=`; the default client if that is None."""
    if client is None:
        return get_default_client()
    return client if isinstance(client, Client) else client.asynchronous


def with_access(client: Client, model: str | None, options: Mapping[str, Any]) -> Client:
    """The client with the key, address and headers of this run, at the provider of the model."""
    access = {name: options[name] for name in ACCESS if options.get(name) is not None}
    return client.with_access(model or "", options.get("provider"), **access) if access else client


def with_usage_reports(client: Client, options: Mapping[str, Any]) -> Client:
    """The client with a layer that calls `on_usage`."""
    from interlingua.client.middleware.usage_reports import BATCH, UsageReports

    batch, caller_id = options.get("usage_batch_size"), options.get("caller_id")
    layer = UsageReports(
        options["on_usage"], client.calls, batch=batch or BATCH, caller_id=caller_id
    )
    return client.with_middleware(layer)


def adapt_client(client: Client, model: str | None, options: Mapping[str, Any]) -> Client:
    """The client with the key, prices and usage reports of this run."""
    if not ACCESS.isdisjoint(options):
        client = with_access(client, model, options)
    if options.get("prices"):
        client = client.with_prices(options["prices"])
    return client if options.get("on_usage") is None else with_usage_reports(client, options)


def set_default_client(client: Client | BlockingClient | None) -> None:
    """
    Set the client of functions without `client=`; None to use the environment again.

    The functions of `interlingua` and of `interlingua.sync` use the same one, which may be async or
    blocking.
    """
    value: object = client  # a caller without a type checker may pass anything
    if value is not None and not isinstance(value, Client | BlockingClient):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise ConfigurationError(
            "The default client must be an interlingua.Client or an interlingua.sync.Client, "
            f"not {kind}."
        )
    global _default_client  # noqa: PLW0603 -- as above
    with _default_lock:
        _default_client = None if client is None else find_client(client)


# Options for several runs, which may have models of several providers.


def drop_foreign(
    options: dict[str, Any], own: Collection[str], home: Place, client: Client
) -> None:
    """
    Remove the provider, key, address and headers that were given for another provider.

    `home` is what they were given with; those in `own` were given for this run.
    """
    model: str | None = options.get("model")
    if "provider" not in own and not is_at_home(model, home, client):
        options.pop("provider", None)
    access = (ACCESS & options.keys()).difference(own)
    place = (options.get("provider"), model)
    if access and place != home:
        owner = _owner(client.calls.routing, place)
        if owner is None or owner != _owner(client.calls.routing, home):
            for name in access:
                del options[name]


def is_at_home(model: str | None, home: Place, client: Client | None) -> bool:
    """Whether the `provider=` of `home` is for this model, which names no other provider."""
    prefix, colon, _ = model.partition(":") if isinstance(model, str) else ("", "", "")
    adapters = {} if client is None else client.calls.adapters
    is_named = colon and (row_name(prefix) or find_adapter(prefix, adapters)) is not None
    return model == home[1] or not is_named


def _owner(routing: Routing, place: Place) -> str | None:
    """The provider of a model; None if that is not certain."""
    provider, model = place
    try:
        return routing.find_owner(provider, model or "", is_given=True)
    except ConfigurationError:
        return None
