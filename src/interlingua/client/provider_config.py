"""What is set for an adapter of a client, to read back; without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.client.member_adapters import as_member_adapter
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.contracts import Adapter
from interlingua.spec.defaults import Timeouts
from interlingua.spec.request import OnLoss
from interlingua.wire.secrets import REDACTED, redact_headers


class ProviderConfig(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """
    The settings of one adapter of a client.

    A custom adapter has only `name`, `behaviour` and `max_retries`.
    """

    name: str
    """Its key in the client."""
    behaviour: Behaviour = Behaviour()
    """How the provider is used."""
    provider: str | None = None
    """The name of its row."""
    dialect: str | None = None
    """The dialect that is used."""
    base_url: str | None = None
    """The address."""
    api_key: str | None = None
    """A placeholder if there is a key."""
    headers: Mapping[str, str] = {}
    """The headers, with secrets redacted."""
    timeouts: Timeouts | None = None
    """The time limits of each phase."""
    max_retries: int = 0
    """How often a call is repeated by default."""
    on_loss: OnLoss | None = None
    """The loss policy of the adapter."""
    options: Mapping[str, Any] = {}
    """The provider options of every request."""
    profile: Mapping[str, Any] = {}
    """The fields of the profile that are overridden."""
    model_profiles: Mapping[str, Mapping[str, Any]] = {}
    """Overridden fields of profiles, by model."""


def describe_config(name: str, adapter: Adapter, behaviour: Behaviour | None) -> ProviderConfig:
    """What is set for an adapter."""
    own = behaviour or Behaviour()
    members = as_member_adapter(adapter)
    adapter = adapter if members is None else members.first
    if not isinstance(adapter, HttpAdapter):
        retries = getattr(adapter, "max_retries", 0)
        return ProviderConfig(name=name, behaviour=own, max_retries=retries)
    settings = adapter.settings()
    headers, has_key = settings.pop("headers"), settings.pop("has_key")
    return ProviderConfig(
        name=name,
        behaviour=own,
        provider=adapter.provider.name,
        dialect=adapter.dialect,
        base_url=adapter.base_url,
        api_key=REDACTED if has_key else None,
        headers=redact_headers(headers),
        max_retries=adapter.max_retries,
        on_loss=adapter.on_loss,
        **settings,
    )
