"""
The provider that serves a model, and the model's name there. Never a guess.

In this order: `provider=` of the request; `name:model` with the name of an adapter; an id, alias or
tier of the registry file; the adapter that the caller chose. If none is chosen: the adapter of the
one provider that serves an exact id of the catalog, or whose models have this short name; the only
remote adapter, unless the name of the model points to another provider. Everything else is an
error that says what to write or to set (`refusals`).
"""

from __future__ import annotations

from interlingua.client import refusals
from interlingua.client.configured import Configured, find_adapter
from interlingua.client.registry import TIER, ModelEntry, Route
from interlingua.providers.catalog.models import providers_of
from interlingua.providers.catalog.search import find_short_name
from interlingua.providers.rows import OPEN_MODELS, find_own_id, maker_of
from interlingua.spec.errors import ConfigurationError


def resolve(provider: str | None, model: str, configured: Configured) -> Route:
    """The route to a model; `ConfigurationError` says what to do if it is not certain."""
    if not model:
        return _default(provider, configured)
    if provider is not None:
        return _named(provider, model, configured, is_prefixed=False)
    prefix, colon, rest = model.partition(":")
    if colon and find_adapter(prefix, configured.adapters) is not None:
        return _named(prefix, rest, configured, is_prefixed=True)
    registry, chosen = configured.registry, configured.chosen
    entry = registry.named(model)
    if entry is not None:
        return Route(check_configured(entry.adapter, configured), entry.wire_name)
    if model in registry.aliases:
        route = resolve(None, registry.aliases[model], configured)
        reason = f"{model!r} is an alias of {registry.aliases[model]!r}"
        return route._replace(reason="; ".join(filter(None, (reason, route.reason))))
    choices, conditions = registry.tier(model)
    if choices:
        return _among(choices, conditions, model, configured)
    if colon and configured.is_removed(prefix):
        raise refusals.removed(prefix, configured)
    if chosen is None:
        return _by_name(model, configured)
    if colon and configured.is_at_vendor(chosen) and refusals.is_like_provider(prefix, configured):
        raise refusals.unknown_prefix(prefix, rest, configured)
    return _at(chosen, model, configured)


def check_configured(name: str, configured: Configured) -> str:
    """The key of the adapter; `ConfigurationError` says what to set if there is none."""
    key = find_adapter(name, configured.adapters)
    if key is None:
        raise refusals.not_configured(name, configured)
    return key


def _among(
    choices: tuple[ModelEntry, ...],
    conditions: tuple[str, ...],
    model: str,
    configured: Configured,
) -> Route:
    """The route of a tier; which of several models answers depends on the request."""
    if len(choices) > 1 or conditions:
        return Route("", model, choices=choices, conditions=conditions)
    (entry,) = choices
    key = check_configured(entry.adapter, configured)
    return Route(key, entry.wire_name, f"the only model of {model}")


def _default(provider: str | None, configured: Configured) -> Route:
    """The route of a request without a model: a default that is configured, else an error."""
    registry = configured.registry
    key = configured.chosen if provider is None else check_configured(provider, configured)
    behaviour = None if key is None else configured.behaviour_of(key)
    if provider is None and registry.default_model:
        model, reason = registry.default_model, "default_model of the registry file"
    elif key is not None and behaviour is not None and behaviour.default_model:
        provider, model, reason = key, behaviour.default_model, f"default_model of {key}"
    else:
        raise refusals.no_model(key if provider is not None else None, configured)
    route = resolve(provider, model, configured)
    return route._replace(reason="; ".join(filter(None, (reason, route.reason))))


def _named(name: str, model: str, configured: Configured, *, is_prefixed: bool) -> Route:
    """The route of a model at the provider that the caller named."""
    key = check_configured(name, configured)
    for prefix in {name, key}:  # `provider=` and a prefix may name the same provider
        rest = model.removeprefix(f"{prefix}:")
        is_prefixed = is_prefixed or rest != model
        model = rest
    if not model:
        return _default(key, configured._replace(chosen=None))
    if model.startswith(TIER):
        tier, conditions = configured.registry.tier(model)
        choices = tuple(entry for entry in tier if entry.adapter == key)
        if not choices:
            raise ConfigurationError(f"{model!r} has no model of {key}. Name another model.")
        return _among(choices, conditions, model, configured)
    route = _at(key, model, configured)
    if is_prefixed and route == Route(key, model):
        return _by_short_name(key, model, configured) or route
    return route


def _at(key: str, model: str, configured: Configured) -> Route:
    """The route of a model at this adapter: an entry of the registry, of its map, or verbatim."""
    entry = configured.registry.named(f"{key}:{model}")
    if entry is not None and entry.adapter == key:
        return Route(key, entry.wire_name)
    behaviour = configured.behaviour_of(key)
    mapped = None if behaviour is None else behaviour.model_map.get(model)
    if mapped is None:
        return Route(key, model)
    return Route(key, mapped, f"{model!r} is {mapped!r} in the model_map of {key}")


def _by_short_name(key: str, model: str, configured: Configured) -> Route | None:
    """
    The route of a short name of the catalog, such as `sonnet`, at this adapter.

    A gateway under another name has names of its own.
    """
    row = configured.row(key)
    if row is None or not (key == row.name or configured.is_at_vendor(key)):
        return None
    info = None if row.is_local or not row.base_url else find_short_name(model, row.name)
    if info is None:
        return None
    return Route(key, info.id, f"{model!r} is a short name of {info.id!r}", short_name=model)


# The caller chose no provider.


def _by_name(model: str, configured: Configured) -> Route:
    """The route of a model whose provider the caller did not choose; never a guess."""
    prefix, colon, rest = model.partition(":")
    if colon and configured.knows(prefix):
        raise refusals.not_configured(prefix, configured)
    if configured.lost_default is not None:
        raise refusals.lost_default(model, configured)
    owner, slash, name = model.partition("/")
    if slash and name and configured.knows(owner):
        raise refusals.slash(owner, name, configured)
    known = providers_of(model)
    route = _serving(model, known, configured) or _in_own_form(model, configured)
    if route is not None:
        return route
    if not known and colon:
        raise refusals.unknown_prefix(prefix, rest, configured)
    if not known:
        refusals.check_effort(model, configured)
        route = _short_name_anywhere(model, configured)
        if route is not None:
            return route
    maker, only = maker_of(model), configured.only_remote
    if only is not None and not known and _may_serve(only, maker, configured):
        return Route(only, model)
    raise refusals.no_route(model, known, maker, configured)


def _serving(model: str, known: tuple[str, ...], configured: Configured) -> Route | None:
    """The route of an exact id of the catalog, if a provider that serves it is configured."""
    serving = [key for key in configured.adapters if configured.names(key) & {*known}]
    if len(serving) > 1:
        choices = " or ".join(f"{key}:{model}" for key in serving)
        raise ConfigurationError(f"Several providers serve {model!r}. Write {choices}.")
    return Route(serving[0], model) if serving else None


def _in_own_form(model: str, configured: Configured) -> Route | None:
    """The route of an id that only the only provider has, such as `ft:…`."""
    only = configured.only_remote
    row = None if only is None else configured.row(only)
    if only is not None and row is not None and find_own_id(row, model) == model:
        return Route(only, model)
    return None


def _short_name_anywhere(model: str, configured: Configured) -> Route | None:
    """The route of a short name at the one configured provider that has it."""
    found = [
        route
        for key in configured.remote
        if (row := configured.row(key)) is not None and row.families
        if (route := _by_short_name(key, model, configured)) is not None
    ]
    if len(found) > 1:
        choices = " or ".join(f"{route.provider}:{model}" for route in found)
        raise ConfigurationError(f"Several providers have the short name {model!r}. Use {choices}.")
    if found:
        return found[0]
    info = find_short_name(model)
    if info is not None:
        raise refusals.short_name(model, info, configured)
    return None


def _may_serve(key: str, maker: str | None, configured: Configured) -> bool:
    """Whether the name of a model does not point to another provider."""
    row = configured.row(key)
    if maker == OPEN_MODELS:
        return row is None or not row.families
    return maker is None or maker in configured.names(key)
