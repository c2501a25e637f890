"""
Known models as data.

The catalog is advice: an unknown id is sent to the provider unchanged. In `models.json` the models
of a provider are sorted, best first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache

import msgspec

from interlingua.spec.content import Record
from interlingua.spec.contracts import ModelKind
from interlingua.spec.errors import ConfigurationError

_CAPABILITIES = {
    "tools": "supports_tools",
    "vision": "supports_vision",
    "reasoning": "supports_reasoning",
}


class ModelInfo(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model at one provider. None means unknown."""

    id: str
    """The id in requests."""
    provider: str
    """The name of the provider that serves it."""
    display_name: str
    kind: ModelKind = "chat"
    context_window: int | None = None
    """The maximum number of input and output tokens together."""
    max_output: int | None = None
    """The maximum number of tokens of one response."""
    supports_tools: bool | None = None
    supports_vision: bool | None = None
    supports_reasoning: bool | None = None
    input_cost_per_million: float | None = None
    """In US dollars, without long-context surcharges; None if it varies by date or hour."""
    output_cost_per_million: float | None = None
    aliases: tuple[str, ...] = ()
    """Other ids of the same model at this provider."""
    released: date | None = None
    retires: date | None = None
    """The first day on which it is no longer served."""
    is_gated: bool = False
    """Only for customers whom the provider has approved."""


class _Catalog(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    models: tuple[ModelInfo, ...]


def get_model_info(model_id: str, provider: str | None = None) -> ModelInfo | None:
    """
    The entry of a model, by its id or an alias; None if it is unknown.

    If several providers serve the id: that of `provider`, by default the first in the catalog.
    """
    models = _by_id().get(model_id, ())
    return next((model for model in models if provider in (None, model.provider)), None)


def list_models(provider: str | None = None) -> tuple[ModelInfo, ...]:
    """All known models, or those of one provider, best first."""
    return tuple(model for model in _load().models if provider in (None, model.provider))


def get_latest_model(provider: str, capability: str | None = None) -> ModelInfo | None:
    """
    The best chat model of a provider that is neither gated nor about to be retired.

    `capability` is `tools`, `vision` or `reasoning`: only models with it are considered.
    """
    if capability is not None and capability not in _CAPABILITIES:
        known = ", ".join(_CAPABILITIES)
        raise ConfigurationError(f"no capability {capability!r}; there are {known}")
    for model in list_models(provider):
        if model.kind != "chat" or model.is_gated or model.retires is not None:
            continue
        if capability is None or getattr(model, _CAPABILITIES[capability]):
            return model
    return None


def providers_of(model_id: str) -> tuple[str, ...]:
    """The providers that serve exactly this id or alias."""
    return tuple(dict.fromkeys(model.provider for model in _by_id().get(model_id, ())))


@cache
def _by_id() -> Mapping[str, tuple[ModelInfo, ...]]:
    by_id: dict[str, tuple[ModelInfo, ...]] = {}
    for model in _load().models:
        for model_id in (model.id, *model.aliases):
            by_id[model_id] = (*by_id.get(model_id, ()), model)
    return by_id


@cache
def _load() -> _Catalog:
    from pkgutil import get_data  # a tenth of the time that importlib.resources takes

    return _read(get_data("interlingua.providers.catalog", "models.json") or b"")


def _read(text: bytes) -> _Catalog:
    try:
        return msgspec.json.decode(text, type=_Catalog)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"the model catalog cannot be read: {error}") from error
