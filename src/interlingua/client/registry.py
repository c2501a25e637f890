"""
Routing: the provider that serves a model, and the model's name there. Never a guess.

In this order: `provider=` of the request, `provider:model`, an id, alias or tier of the registry
file, the exact id of a catalog model that one configured provider serves, the default provider.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec

from interlingua.providers.catalog.models import providers_of
from interlingua.providers.rows import providers
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request


class ModelEntry(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """A model of a registry file."""

    id: str
    """The name that callers use, such as `anthropic:claude-opus-5`."""
    adapter: str
    wire_name: str
    """The provider's name for it."""
    tier: str | None = None
    can_delegate: bool = False
    """Whether another model may delegate work to it; read by programs, not by the client."""
    aliases: tuple[str, ...] = ()
    profile: Mapping[str, Any] = {}
    """Overrides of fields of its `Profile`."""


class Route(NamedTuple):
    """A provider, and its name for the model."""

    provider: str
    model: str


class Registry:
    """
    The models of a registry file, found by id, alias or tier.

        registry.find("opus").can_delegate
    """

    def __init__(self, models: Collection[ModelEntry] = ()) -> None:
        self.models: dict[str, ModelEntry] = {entry.id: entry for entry in models}
        self._names: dict[str, ModelEntry] = {}
        self._tiers: dict[str, list[ModelEntry]] = {}
        self._served = {(entry.adapter, entry.wire_name) for entry in models}
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

    def find(self, name: str) -> ModelEntry | None:
        """The entry with this id, alias or tier; `ConfigurationError` if the tier has several."""
        entry = self._names.get(name)
        if entry is not None:
            return entry
        tier = self._tiers.get(name, ())
        if len(tier) > 1:
            choices = ", ".join(entry.id for entry in tier)
            raise ConfigurationError(f"Tier {name!r} has several models; name one of {choices}.")
        return tier[0] if tier else None

    def serves(self, adapter: str | None, wire_name: str) -> bool:
        """Whether an entry has this adapter and wire name."""
        return (adapter, wire_name) in self._served


def resolve(
    request: Request,
    configured: Collection[str],
    registry: Registry,
    default_provider: str | None = None,
) -> Route:
    """The route of a request; `ConfigurationError` names the choices if it is not certain."""
    model = request.model
    if request.provider is not None:
        return _named(request.provider, model, configured, registry)
    entry = registry.find(model)
    if entry is not None and ":" in model:
        return Route(check_configured(entry.adapter, configured), entry.wire_name)
    prefix, colon, rest = model.partition(":")
    if colon and (prefix in configured or prefix in providers()):
        return _named(prefix, rest, configured, registry)
    if entry is not None:
        return Route(check_configured(entry.adapter, configured), entry.wire_name)
    serving = [name for name in providers_of(model) if name in configured]
    if len(serving) == 1:
        return Route(serving[0], model)
    if default_provider is not None:
        _check_prefix(prefix if colon else "", rest, default_provider)
        return Route(check_configured(default_provider, configured), model)
    raise ConfigurationError(_no_route(model, serving, configured))


def _named(name: str, model: str, configured: Collection[str], registry: Registry) -> Route:
    model = model.removeprefix(f"{name}:")  # `provider=` and a prefix may name the same provider
    entry = registry.find(f"{name}:{model}")
    if entry is not None and entry.adapter == name:
        return Route(check_configured(name, configured), entry.wire_name)
    return Route(check_configured(name, configured), model)


def check_configured(name: str, configured: Collection[str]) -> str:
    """The name; `ConfigurationError` says what to set if that provider is not configured."""
    if name in configured:
        return name
    row = providers().get(name)
    variables = []
    if row is not None and row.key_env:
        variables.append(" or ".join(row.key_env))
    if row is not None and row.base_url_env and not row.base_url:
        variables.append(" or ".join(row.base_url_env))
    advice = f" Set {' and '.join(variables)}." if variables else ""
    names = ", ".join(configured) or "none"
    raise ConfigurationError(f"Provider {name!r} is not configured.{advice} Configured: {names}.")


def _no_route(model: str, serving: list[str], configured: Collection[str]) -> str:
    if serving:
        choices = " or ".join(f"{name}:{model}" for name in serving)
        return f"Several providers serve {model!r}: use {choices}."
    names = ", ".join(configured)
    if not names:
        return "No provider is configured. Set a key such as OPENAI_API_KEY, or pass providers=."
    prefix, colon, _ = model.partition(":")
    if colon:
        return (
            f"Unknown provider {prefix!r} in {model!r}. "
            f"Write one of the configured providers before the colon: {names}."
        )
    return (
        f"Unknown provider for {model!r}. Write it before the model, as in "
        f"{next(iter(configured))}:{model}, or set default_provider (configured: {names})."
    )


def _check_prefix(prefix: str, rest: str, default: str) -> None:
    """Raise `ConfigurationError` if the prefix looks like a misspelled provider name."""
    if not prefix:
        return
    row = providers().get(default)
    if row is None or row.is_local:  # local servers have models such as `mixtral:8x7b`
        return
    from difflib import get_close_matches

    matches = get_close_matches(prefix, providers(), n=1, cutoff=0.8)
    if matches:
        raise ConfigurationError(
            f"Unknown provider {prefix!r}. Did you mean {matches[0]}:{rest}? "
            f"If {default} has a model of this name, pass provider={default!r}."
        )
