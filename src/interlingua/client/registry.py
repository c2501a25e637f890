"""The models of a registry file: found by id, alias or tier."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec

from interlingua.spec.errors import ConfigurationError

TIER = "tier:"
"""What precedes the name of a tier."""


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
    short_name: str | None = None
    """The short name that the caller wrote, such as `sonnet`."""


class Registry:
    """
    The models of a registry file, found by id, alias or tier.

        registry.find("opus").can_delegate
    """

    def __init__(
        self,
        models: Collection[ModelEntry] = (),
        default_model: str = "",
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.default_model = default_model
        """The model of requests without one: an id, an alias, or any name."""
        self.models: dict[str, ModelEntry] = {entry.id: entry for entry in models}
        self._names: dict[str, ModelEntry] = {}
        self._tiers: dict[str, list[ModelEntry]] = {}
        self.ids: dict[tuple[str, str], str] = {
            (entry.adapter, entry.wire_name): entry.id for entry in models
        }
        """The ids by adapter and wire name."""
        self.aliases: Mapping[str, str] = dict(aliases or {})
        """Names for models that need no entry: `{"sonnet": "anthropic:claude-sonnet-5-5"}`."""
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
        for name, model in self.aliases.items():
            self._check_alias(name, model)

    def _check_alias(self, name: str, model: str) -> None:
        problem = None
        if name in self._names:
            problem = f"The alias {name!r} is also a name of the model {self._names[name].id!r}."
        elif model in self.aliases:
            problem = f"The alias {name!r} stands for another alias, {model!r}. Name its model."
        elif not name.strip() or ":" in name:
            problem = f"The alias {name!r} must be a word without a colon."
        if problem is not None:
            raise ConfigurationError(problem, model=name, setting=name)

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
        tier = self._tiers.get(name.removeprefix(TIER), ())
        if len(tier) > 1:
            choices = ", ".join(entry.id for entry in tier)
            raise ConfigurationError(f"Tier {name!r} has several models; name one of {choices}.")
        return tier[0] if tier else None

    def tier(self, name: str) -> tuple[tuple[ModelEntry, ...], tuple[str, ...]]:
        """
        Return the models of a tier (`deep` or `tier:deep?tools`), and the conditions after `?`.

        `ConfigurationError` names the tiers if `tier:` precedes another name.
        """
        bare = name.removeprefix(TIER)
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
