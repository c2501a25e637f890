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

from interlingua.providers.builtin import providers
from interlingua.providers.catalog import providers_of
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
    """The models of a file, found by id, alias or tier."""

    def __init__(self, models: Collection[ModelEntry] = ()) -> None:
        self.models = {entry.id: entry for entry in models}
        self._names: dict[str, ModelEntry] = {}
        self._tiers: dict[str, list[ModelEntry]] = {}
        for entry in models:
            for name in (entry.id, *entry.aliases):
                known = self._names.setdefault(name, entry)
                if known is not entry:
                    raise ConfigurationError(
                        f"{name!r} names both {known.id!r} and {entry.id!r}; a name must be one's"
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
        return Route(_known(entry.adapter, configured), entry.wire_name)
    prefix, colon, rest = model.partition(":")
    if colon and (prefix in configured or prefix in providers()):
        return _named(prefix, rest, configured, registry)
    if entry is not None:
        return Route(_known(entry.adapter, configured), entry.wire_name)
    serving = [name for name in providers_of(model) if name in configured]
    if len(serving) == 1:
        return Route(serving[0], model)
    if default_provider is not None:
        return Route(_known(default_provider, configured), model)
    raise ConfigurationError(_unclear(model, serving, configured))


def _named(name: str, model: str, configured: Collection[str], registry: Registry) -> Route:
    entry = registry.find(f"{name}:{model}")
    if entry is not None and entry.adapter == name:
        return Route(_known(name, configured), entry.wire_name)
    return Route(_known(name, configured), model)


def _known(name: str, configured: Collection[str]) -> str:
    if name in configured:
        return name
    row = providers().get(name)
    hint = f"; set {' or '.join(row.key_env)}" if row is not None and row.key_env else ""
    there = ", ".join(configured) or "none"
    raise ConfigurationError(f"provider {name!r} is not configured{hint} (configured: {there})")


def _unclear(model: str, serving: list[str], configured: Collection[str]) -> str:
    if serving:
        choices = " or ".join(f"{name}:{model}" for name in serving)
        return f"several providers serve {model!r}: say {choices}"
    there = ", ".join(configured)
    if not there:
        return "no provider is configured: set a key such as OPENAI_API_KEY, or pass providers="
    return (
        f"it is not known who serves {model!r}: say provider:{model}, or set default_provider "
        f"(configured: {there})"
    )
