"""
Routing: the provider that serves a model, and the model's name there. Never a guess.

In this order: `provider=` of the request; `name:model` with the name of an adapter; an id, alias or
tier of the registry file; the adapter that the caller chose. If none is chosen: the adapter of the
one provider that serves an exact id of the catalog; the only remote adapter, unless the name of the
model points to another provider. Everything else is an error that says what to write or to set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeAlias

import msgspec

from interlingua.providers.catalog.models import find_model, providers_of, table
from interlingua.providers.provider import Provider
from interlingua.providers.rows import (
    OPEN_MODELS,
    OTHERS,
    maker_of,
    near_names,
    providers,
    row_name,
)
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.errors import ConfigurationError

_LONGEST_SENTENCE = 1000
_TIER = "tier:"
_MAX_CHOICES = 20  # names in an error


BehaviourOf: TypeAlias = Callable[[str], Behaviour | None]
"""The behaviour at the adapter with this key."""


class ModelEntry(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """A model of a registry file."""

    id: str
    """The name that callers use, such as `anthropic:claude-opus-5`."""
    adapter: str
    """The key of its adapter in the client."""
    wire_name: str
    """The provider's name for it."""
    tier: str | None = None
    """Its tier, for `tier:` names."""
    can_delegate: bool = False
    """Whether another model may delegate work to it, as `tier:deep?can_delegate` asks."""
    aliases: tuple[str, ...] = ()
    """Other names for it."""
    profile: Mapping[str, Any] = {}
    """Overrides of fields of its `Profile`."""


class Route(NamedTuple):
    """A provider, its name for the model, and why they were chosen; or a tier to choose from."""

    provider: str
    model: str
    reason: str = ""
    """Empty if the caller named the model."""
    choices: tuple[ModelEntry, ...] = ()
    """The models of a tier; which one answers depends on the request (`client/tiers.py`)."""
    conditions: tuple[str, ...] = ()
    """What the model must be able to do, as in `tier:deep?can_delegate`."""


class Registry:
    """
    The models of a registry file, found by id, alias or tier.

        registry.find("opus").can_delegate
    """

    def __init__(self, models: Collection[ModelEntry] = (), default_model: str = "") -> None:
        self.default_model = default_model
        """The model of requests without one: an id, an alias, or any name."""
        self.models: dict[str, ModelEntry] = {entry.id: entry for entry in models}
        self._names: dict[str, ModelEntry] = {}
        self._tiers: dict[str, list[ModelEntry]] = {}
        self.ids: dict[tuple[str, str], str] = {
            (entry.adapter, entry.wire_name): entry.id for entry in models
        }
        """The ids by adapter and wire name."""
        for entry in models:
            for name in (entry.id, *entry.aliases):
                known = self._names.setdefault(name, entry)
                if known is not entry:
                    raise ConfigurationError(
                        f"The name {name!r} is used by both {known.id!r} and {entry.id!r}.",
                        model=entry.id,
                        setting="aliases",
                    )
            if entry.tier is not None:
                self._tiers.setdefault(entry.tier, []).append(entry)

    def named(self, name: str) -> ModelEntry | None:
        """Return the entry with this id or alias."""
        return self._names.get(name)

    def find(self, name: str) -> ModelEntry | None:
        """
        Return the entry with this id or alias, or of this tier (`deep` or `tier:deep`).

        `ConfigurationError` if the tier has several.
        """
        entry = self._names.get(name)
        if entry is not None:
            return entry
        tier = self._tiers.get(name.removeprefix(_TIER), ())
        if len(tier) > 1:
            choices = ", ".join(entry.id for entry in tier)
            raise ConfigurationError(f"Tier {name!r} has several models; name one of {choices}.")
        return tier[0] if tier else None

    def tier(self, name: str) -> tuple[tuple[ModelEntry, ...], tuple[str, ...]]:
        """
        Return the models of a tier (`deep` or `tier:deep?tools`), and the conditions after `?`.

        `ConfigurationError` names the tiers if `tier:` precedes another name.
        """
        bare = name.removeprefix(_TIER)
        if bare == name:
            return tuple(self._tiers.get(name, ())), ()
        bare, _, conditions = bare.partition("?")
        if bare not in self._tiers:
            known = (
                ", ".join(self._tiers) or "none; a registry file defines them (Client.from_file)"
            )
            raise ConfigurationError(f"There is no tier {bare!r}. Tiers: {known}.")
        wanted = filter(None, (each.strip() for each in conditions.split(",")))
        return tuple(self._tiers[bare]), tuple(wanted)

    def serves(self, adapter: str | None, wire_name: str) -> bool:
        """Tell whether an entry has this adapter and wire name."""
        return (adapter, wire_name) in self.ids


def resolve(
    provider: str | None,
    model: str,
    adapters: Mapping[str, Any],
    registry: Registry,
    chosen: str | None = None,
    behaviour_of: BehaviourOf = lambda _: None,
) -> Route:
    """
    The route to a model; `ConfigurationError` names the choices if it is not certain.

    `chosen` is the adapter that the caller chose for all models.
    """
    if not model:
        return _default(provider, adapters, registry, chosen, behaviour_of)
    if provider is not None:
        return _named(provider, model, adapters, registry, behaviour_of)
    prefix, colon, rest = model.partition(":")
    if colon and find_adapter(prefix, adapters) is not None:
        return _named(prefix, rest, adapters, registry, behaviour_of)
    entry = registry.named(model)
    if entry is not None:
        return Route(check_configured(entry.adapter, adapters), entry.wire_name)
    choices, conditions = registry.tier(model)
    if choices:
        return _among(choices, conditions, model, adapters)
    if chosen is not None:
        if colon and _is_at_vendor(adapters[chosen]):
            _check_prefix(prefix, rest, adapters)
        return _at(chosen, model, registry, behaviour_of)
    if colon:
        _check_prefix(prefix, rest, adapters)
    return _by_name(model, adapters)


def _among(
    choices: tuple[ModelEntry, ...],
    conditions: tuple[str, ...],
    model: str,
    adapters: Mapping[str, Any],
) -> Route:
    """The route of a tier; which of several models answers depends on the request."""
    if len(choices) > 1 or conditions:
        return Route("", model, choices=choices, conditions=conditions)
    (entry,) = choices
    key = check_configured(entry.adapter, adapters)
    return Route(key, entry.wire_name, f"the only model of {model}")


def _default(
    provider: str | None,
    adapters: Mapping[str, Any],
    registry: Registry,
    chosen: str | None,
    behaviour_of: BehaviourOf,
) -> Route:
    """The route of a request without a model: a default that is configured, else an error."""
    key = chosen if provider is None else check_configured(provider, adapters)
    behaviour = None if key is None else behaviour_of(key)
    if provider is None and registry.default_model:
        model, reason = registry.default_model, "default_model of the registry file"
    elif key is not None and behaviour is not None and behaviour.default_model:
        provider, model, reason = key, behaviour.default_model, f"default_model of {key}"
    else:
        raise _no_model(key if provider is not None else None, adapters, registry)
    route = resolve(provider, model, adapters, registry, chosen, behaviour_of)
    return route._replace(reason="; ".join(filter(None, (reason, route.reason))))


def find_adapter(name: str, adapters: Mapping[str, Any]) -> str | None:
    """The key of the adapter with this name, or with the row of this alias."""
    if name in adapters:
        return name
    row = row_name(name)
    return row if row in adapters else None


def check_configured(name: str, adapters: Mapping[str, Any]) -> str:
    """The key of the adapter; `ConfigurationError` says what to set if there is none."""
    key = find_adapter(name, adapters)
    if key is None:
        what = f"Provider {name!r} is not configured."
        raise _error(adapters, what, _setup(name, adapters))
    return key


def _named(
    name: str,
    model: str,
    adapters: Mapping[str, Any],
    registry: Registry,
    behaviour_of: BehaviourOf,
) -> Route:
    """The route of a model at the provider that the caller named."""
    key = check_configured(name, adapters)
    for prefix in {name, key}:  # `provider=` and a prefix may name the same provider
        model = model.removeprefix(f"{prefix}:")
    if not model:
        return _default(key, adapters, registry, None, behaviour_of)
    if model.startswith(_TIER):
        tier, conditions = registry.tier(model)
        choices = tuple(entry for entry in tier if entry.adapter == key)
        if not choices:
            raise ConfigurationError(f"{model!r} has no model of {key}.")
        return _among(choices, conditions, model, adapters)
    return _at(key, model, registry, behaviour_of)


def _at(key: str, model: str, registry: Registry, behaviour_of: BehaviourOf) -> Route:
    """The route of a model at this adapter: an entry of the registry, of its map, or verbatim."""
    entry = registry.named(f"{key}:{model}")
    if entry is not None and entry.adapter == key:
        return Route(key, entry.wire_name)
    behaviour = behaviour_of(key)
    mapped = None if behaviour is None else behaviour.model_map.get(model)
    if mapped is None:
        return Route(key, model)
    return Route(key, mapped, f"{model!r} is {mapped!r} in the model_map of {key}")


def _by_name(model: str, adapters: Mapping[str, Any]) -> Route:
    """The route of a model whose provider the caller did not choose; never a guess."""
    known = providers_of(model)
    serving = [key for key, adapter in adapters.items() if _names(key, adapter) & {*known}]
    if len(serving) == 1:
        return Route(serving[0], model)
    if serving:
        choices = " or ".join(f"{key}:{model}" for key in serving)
        raise ConfigurationError(f"Several providers serve {model!r}: use {choices}.")
    remote = [key for key, adapter in adapters.items() if not _is_local(adapter)]
    maker = maker_of(model)
    if len(remote) == 1 and not known and _may_serve(remote[0], adapters[remote[0]], maker):
        return Route(remote[0], model)
    raise _no_route(model, known, maker, remote, adapters)


def _row(adapter: Any) -> Provider | None:
    row = getattr(adapter, "provider", None)  # a custom adapter has none, or something else
    return row if isinstance(row, Provider) else None


def _names(key: str, adapter: Any) -> set[str]:
    row = _row(adapter)
    return {key} if row is None else {key, row.name}


def _is_local(adapter: Any) -> bool:
    row = _row(adapter)
    return row is not None and row.is_local


def _is_at_vendor(adapter: Any) -> bool:
    """Whether it calls the vendor's own address, where no model has another provider's prefix."""
    row = _row(adapter)
    return row is not None and not row.is_local and adapter.base_url == row.base_url


def _may_serve(key: str, adapter: Any, maker: str | None) -> bool:
    """Whether the name of a model does not point to another provider."""
    row = _row(adapter)
    if maker == OPEN_MODELS:
        return row is None or not row.families
    return maker is None or maker in _names(key, adapter)


# Errors.


def _no_model(
    key: str | None, adapters: Mapping[str, Any], registry: Registry
) -> ConfigurationError:
    """The error for a request without a model, with the choices; `key` if a provider is named."""
    entries = [entry for entry in registry.models.values() if key in (None, entry.adapter)]
    names = [" or ".join((entry.id, *entry.aliases)) for entry in entries]
    if key is not None:
        what = f"No model is given, and {key} has no default_model."
        advice = f"Write it after the provider: {key}:model."
    else:
        what = "No model is given, and there is no default_model in a registry file."
        remote = [f"{name}:model" for name, each in adapters.items() if not _is_local(each)]
        advice = f"Pass one, such as {' or '.join(remote) or 'openai:gpt-5.2'}."
    if names:
        advice = f"Pass one of: {', '.join(names[:_MAX_CHOICES])}."
    return ConfigurationError(f"{what} {advice}")


def _error(adapters: Mapping[str, Any], *sentences: str) -> ConfigurationError:
    configured = f"Configured: {', '.join(adapters) or 'none'}."
    # A name may come from a stranger, and be of any length.
    text = " ".join(
        sentence[:_LONGEST_SENTENCE] for sentence in (*sentences, configured) if sentence
    )
    return ConfigurationError(text, error_code="not_configured")


def _setup(name: str, adapters: Mapping[str, Any]) -> str:
    """What to do so that a provider is configured; empty if it is."""
    row = providers().get(row_name(name) or "")
    if find_adapter(name, adapters) is not None:
        return ""
    keys = (
        [] if row is None else [key for key in adapters if row.name in _names(key, adapters[key])]
    )
    if keys:
        return f"The client knows it as {' and '.join(map(repr, keys))}: write {keys[0]}:model."
    if row is None and name.lower() in OTHERS:
        return (
            "It has no row: if it serves Chat Completions, add "
            f"OpenAICompatibleAdapter(key, base_url=...) to the client as {name!r}."
        )
    if row is None:
        near = _near(name, (*adapters, *providers()))
        return "" if near is None else f"Did you mean {near!r}?"
    if row.is_embedded and find_spec("xllamacpp") is None:
        return "Run `pip install 'interlingua[local]'`."
    if row.is_local:
        return f"Add HttpAdapter({row.name!r}) to the client, or use Client.from_env()."
    variables = [" or ".join(names) for names in (row.key_env, *row.address_env) if names]
    return f"Set {' and '.join(variables)}." if variables else ""


def _check_prefix(prefix: str, rest: str, adapters: Mapping[str, Any]) -> None:
    """Raise `ConfigurationError` if the prefix is a provider's name, or nearly is."""
    if row_name(prefix) is not None or prefix.lower() in OTHERS:
        check_configured(prefix, adapters)
    near = _near(prefix, (*adapters, *providers(), *OTHERS))
    if near is not None:
        what = f"Unknown provider {prefix!r}. Did you mean {near}:{rest}?"
        other = "If the colon belongs to the name of the model, pass provider=."
        raise _error(adapters, what, _setup(near, adapters), other)


def _near(name: str, names: Iterable[str]) -> str | None:
    return next(iter(near_names(name, names, 1)), None)


def _no_route(
    model: str,
    known: Collection[str],
    maker: str | None,
    remote: Sequence[str],
    adapters: Mapping[str, Any],
) -> ConfigurationError:
    if known:
        what = f"{model!r} is a model of {' or '.join(known)}, which is not configured."
        return _error(adapters, what, *(_setup(name, adapters) for name in known))
    rows = {key: _row(adapter) for key, adapter in adapters.items()}
    choices = remote or [key for key, row in rows.items() if row is None or not row.is_embedded]
    named = " or ".join(f"{key}:{model}" for key in choices if key != maker)
    other = f"To use another provider, write it before the model, as in {named}." if named else ""
    if maker == OPEN_MODELS:
        what = f"{model!r} is an open model with many hosts."
        return _error(adapters, what, other or f"Write its host before it, as in ollama:{model}.")
    if maker is not None:
        first, _, rest = model.replace("/", ":", 1).partition(":")
        spelling = f"{maker}:{rest if rest and row_name(first) == maker else model}"
        what = f"{model!r} is a model of {maker}. Use {spelling}."
        return _error(adapters, what, _setup(maker, adapters), other)
    info = find_model(_near(model, table().providers) or "")
    near = "" if info is None else f"Did you mean {info.provider}:{info.id}?"
    setup = "" if info is None else _setup(info.provider, adapters)
    if not choices:
        setup = setup or "Name its provider (provider:model), or set a key such as OPENAI_API_KEY."
        return _error(adapters, f"No provider is configured for {model!r}.", near, setup)
    what = f"Unknown provider for {model!r}."
    advice = f"Write it before the model, as in {named}, or set default_provider."
    return _error(adapters, what, near, setup, advice)
