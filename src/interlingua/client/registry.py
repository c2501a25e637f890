"""
A model's name -> who serves it, and under which name. Never a guess.

In order: `provider=` on the request, `provider:model`, an id, alias or tier of the registry
file, the exact id of a model in the catalog that one configured provider serves, the default
provider.
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
    """One model of a registry file."""

    id: str
    """What callers name, e.g. `anthropic:claude-opus-5`."""
    adapter: str
    wire_name: str
    """What the provider calls it."""
    tier: str | None = None
    can_delegate: bool = False
    """Whether work may be handed to it by another model; for those who route."""
    aliases: tuple[str, ...] = ()
    profile: Mapping[str, Any] = {}
    """Fields of its `Profile` that are known better here."""


class Route(NamedTuple):
    """Who answers, and what the model is called there."""

    provider: str
    model: str


class Registry:
    """
    The models of a file, found by id, alias or tier.

    `models` holds them by id, for those who route: `registry.find("opus").can_delegate`.
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
                        f"{name!r} names both {known.id!r} and {entry.id!r}; a name must be one's",
                        model=entry.id,
                        setting="aliases",
                    )
            if entry.tier is not None:
                self._tiers.setdefault(entry.tier, []).append(entry)

    def find(self, name: str) -> ModelEntry | None:
        """The entry of this id, alias or tier; `ConfigurationError` if a tier has several."""
        entry = self._names.get(name)
        if entry is not None:
            return entry
        tier = self._tiers.get(name, ())
        if len(tier) > 1:
            choices = ", ".join(entry.id for entry in tier)
            raise ConfigurationError(f"tier {name!r} has several models: {choices}; name one")
        return tier[0] if tier else None

    def serves(self, adapter: str | None, wire_name: str) -> bool:
        """Whether an entry has this adapter, and this name there."""
        return (adapter, wire_name) in self._served


def resolve(
    request: Request,
    configured: Collection[str],
    registry: Registry,
    default_provider: str | None = None,
) -> Route:
    """Who answers this request; `ConfigurationError` names the choices if nobody surely does."""
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
    raise ConfigurationError(_unclear(model, serving, configured))


def _named(name: str, model: str, configured: Collection[str], registry: Registry) -> Route:
    model = model.removeprefix(f"{name}:")  # who names the provider twice means it once
    entry = registry.find(f"{name}:{model}")
    if entry is not None and entry.adapter == name:
        return Route(check_configured(name, configured), entry.wire_name)
    return Route(check_configured(name, configured), model)


def check_configured(name: str, configured: Collection[str]) -> str:
    """The name; `ConfigurationError` tells what to set if there is no such provider."""
    if name in configured:
        return name
    row = providers().get(name)
    needs = []
    if row is not None and row.key_env:
        needs.append(" or ".join(row.key_env))
    if row is not None and row.base_url_env and not row.base_url:
        needs.append(" or ".join(row.base_url_env))
    hint = f"; set {' and '.join(needs)}" if needs else ""
    there = ", ".join(configured) or "none"
    raise ConfigurationError(f"provider {name!r} is not configured{hint} (configured: {there})")


def _unclear(model: str, serving: list[str], configured: Collection[str]) -> str:
    if serving:
        choices = " or ".join(f"{name}:{model}" for name in serving)
        return f"several providers serve {model!r}: say {choices}"
    there = ", ".join(configured)
    if not there:
        return "no provider is configured: set a key such as OPENAI_API_KEY, or pass providers="
    prefix, colon, _ = model.partition(":")
    if colon:
        return (
            f"no provider is called {prefix!r} (configured: {there}); "
            "write one of these before the colon"
        )
    return (
        f"it is not known who serves {model!r}: write its provider before it, as in "
        f"{next(iter(configured))}:{model}, or set default_provider (configured: {there})"
    )


def _check_prefix(prefix: str, rest: str, default: str) -> None:
    """`ConfigurationError` if a model's name seems to begin with a provider's, misspelt."""
    if not prefix:
        return
    row = providers().get(default)
    if row is None or row.is_local:  # there `mixtral:8x7b` is a model
        return
    from difflib import get_close_matches

    near = get_close_matches(prefix, providers(), n=1, cutoff=0.8)
    if near:
        raise ConfigurationError(
            f"no provider is called {prefix!r}: did you mean {near[0]}:{rest}? "
            f"(for a model of this name at {default}, say provider={default!r})"
        )
