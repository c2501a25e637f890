"""Search for models: by name, short name, capability, price and tier."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta

from interlingua.providers.catalog.models import NOTICES, ModelInfo, ModelTier, find_model, table
from interlingua.providers.catalog.prices import price_at
from interlingua.providers.row_tables import makers
from interlingua.providers.rows import row_name
from interlingua.spec.contracts import ModelKind
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning

CAPABILITIES = (
    "tools",
    "vision",
    "reasoning",
    "structured_output",
    "caching",
    "audio",
    "pdf",
    "web_search",
)
"""The names of capabilities: `tools` is the field `supports_tools`, and so on."""

_SHORT_NAME = re.compile("[a-z]{3,}(?:-[a-z]{3,})*")
_INPUT_SHARE = 0.75
_NEAR = timedelta(days=365)


def get_model_info(model_id: str, provider: str | None = None) -> ModelInfo | None:
    """
    Return the entry of a model; None if it is unknown.

    `model_id` is an id, an alias, the dated id of a version, `provider:model`, or a short name such
    as `sonnet` or `flash`: the best model of that name that can be used without approval and was
    not about to be retired on the day of the catalog. If several providers serve the id, it is the
    entry of `provider`, by default of the first in the catalog.
    """
    name = None if provider is None else _section(provider)
    found = find_model(model_id, name)
    if found is None and provider is None:
        prefix, colon, rest = model_id.partition(":")
        if colon and _section(prefix) in table().models:
            return get_model_info(rest, prefix)
    return found or find_short_name(model_id, name)


def find_short_name(name: str, provider: str | None = None) -> ModelInfo | None:
    """
    The model that a short name such as `sonnet` stands for; None if the name is no short name.

    It is that of `provider`, the name of a row, by default that of a maker: first of one with a
    family of this name, then in the order of the rows. An id is no short name.
    """
    words = "-".join(name.lower().split())
    if _SHORT_NAME.fullmatch(words) is None or find_model(words, provider) is not None:
        return None
    sellers = [provider] if provider is not None else _makers(words)
    found = (table().find_short(words, seller) for seller in sellers)
    return next((model for model in found if model is not None), None)


def list_models(
    provider: str | None = None,
    *,
    capability: str | Iterable[str] | None = None,
    kind: ModelKind | None = None,
    tier: ModelTier | None = None,
    max_price: float | None = None,
    min_context: int | None = None,
    available: bool = False,
) -> tuple[ModelInfo, ...]:
    """
    List the known models, for each provider the best first.

    What is unknown does not satisfy a condition.

    `capability` is a name of `CAPABILITIES` or several of them. `max_price` is the highest
    `mixed_price`. `available` leaves out models that need approval, are deprecated, or retire
    within a year.
    """
    wanted = _fields(capability)
    return tuple(
        model
        for model in _models(provider)
        if (kind is None or model.kind == kind)
        and (tier is None or model.tier == tier)
        and (min_context is None or (model.context_window or 0) >= min_context)
        and (not available or is_available(model))
        and all(getattr(model, field) is True for field in wanted)
        and (max_price is None or _costs_at_most(model, max_price))
    )


def get_latest_model(
    provider: str, capability: str | Iterable[str] | None = None, *, tier: ModelTier | None = None
) -> ModelInfo | None:
    """Return the best chat model of a provider that is neither gated nor about to be retired."""
    models = list_models(provider, capability=capability, tier=tier, kind="chat", available=True)
    return next(filter(writes_text, models), None)


def cheapest(
    capability: str | Iterable[str] | None = None,
    *,
    provider: str | None = None,
    kind: ModelKind = "chat",
    tier: ModelTier | None = None,
    min_context: int | None = None,
    free: bool = False,
) -> ModelInfo | None:
    """
    Return the available model with the lowest `mixed_price`; None if no price is known.

    Free offers have limits of their own; they count only with `free`.
    """
    found = list_models(
        provider,
        capability=capability,
        kind=kind,
        tier=tier,
        min_context=min_context,
        available=True,
    )
    priced = [(price, model) for model in found if (price := mixed_price(model)) is not None]
    chosen = [
        pair
        for pair in priced
        if (free or pair[0] > 0) and (kind != "chat" or writes_text(pair[1]))
    ]
    return min(chosen, key=lambda pair: pair[0])[1] if chosen else None


def mixed_price(model: ModelInfo, at: datetime | None = None) -> float | None:
    """
    Return the dollars per million tokens if three of four tokens are input; None if unknown.

    It is the standard price at a moment, by default now. For an embedding model it is the price of
    input.
    """
    price = price_at(model.prices, at or datetime.now(UTC))
    if price is None or price.rates.input is None:
        return None
    if model.kind == "embedding":
        return price.rates.input
    if price.rates.output is None:
        return None
    return _INPUT_SHARE * price.rates.input + (1 - _INPUT_SHARE) * price.rates.output


def writes_text(model: ModelInfo) -> bool:
    """Whether its answers are text, as far as is known; some chat models only speak or draw."""
    return not model.output_modalities or "text" in model.output_modalities


def is_available(model: ModelInfo) -> bool:
    """Whether anyone may use it, and its end is not near."""
    return not (model.is_gated or ends_soon(model, datetime.now(UTC).date()))


def ends_soon(model: ModelInfo, today: date) -> bool:
    """Whether it is deprecated, retired, or retires within a year: some hosts date every model."""
    return model.deprecated or (model.retires is not None and model.retires - today <= _NEAR)


def _models(provider: str | None) -> Iterator[ModelInfo]:
    models = table().models
    if provider is not None:
        yield from models.get(_section(provider), ())
        return
    for listed in models.values():
        yield from listed


def _section(provider: str) -> str:
    """The name of a provider in the catalog; the rows of other packages are loaded if need be."""
    return provider if provider in table().models else row_name(provider) or provider


def _fields(capability: str | Iterable[str] | None) -> list[str]:
    names = (capability,) if isinstance(capability, str) else tuple(capability or ())
    for name in names:
        if name not in CAPABILITIES:
            known = ", ".join(CAPABILITIES)
            raise ConfigurationError(f"There is no capability {name!r}. Use one of {known}.")
    return [f"supports_{name}" for name in names]


def _costs_at_most(model: ModelInfo, limit: float) -> bool:
    price = mixed_price(model)
    return price is not None and price <= limit


def _makers(name: str) -> list[str]:
    """The makers of models, first those with a family of this name; no host of others' models."""
    word = name.partition("-")[0]
    rows = [row for row in makers.ROWS if row.families]
    rows.sort(key=lambda row: not any(family.startswith(word) for family in row.families))
    return [row.name for row in rows]


def short_name_notice(name: str, provider: str, model: str) -> Warning:
    """The warning that a model was called by a short name."""
    return make_warning("model_resolved", name=name, target=f"{provider}:{model}")


# Models that a provider has deprecated or will no longer serve.


_MOST_NOTICES = 1000
"""Models in `NOTICES`; callers choose the names."""


def lifecycle_notices(provider: str, model: str) -> tuple[Warning, ...]:
    """The warnings about a model that have nothing to do with a request; kept in `NOTICES`."""
    used = table()
    info = find_model(model, provider)
    found = () if info is None else _notices(info, model, datetime.now(UTC).date())
    if len(NOTICES) >= _MOST_NOTICES:
        NOTICES.clear()
    if table() is used:  # else the catalog was changed meanwhile
        NOTICES[provider, model] = found
    return found


def _notices(info: ModelInfo, model: str, today: date) -> tuple[Warning, ...]:
    if not ends_soon(info, today):
        return ()
    if info.retires is None:
        state = "is deprecated"
    else:
        verb = "was retired" if info.retires <= today else "retires"
        state = f"{verb} on {info.retires}"
    other = replacement(info)
    advice = "choose another model" if other is None else f"use {other.id}"
    target = f"{info.provider}:{model}"
    return (make_warning("model_deprecated", target=target, state=state, advice=advice),)


def replacement(info: ModelInfo) -> ModelInfo | None:
    """The best available model of the same provider, kind and tier; else of any tier."""
    same = list_models(info.provider, kind=info.kind, tier=info.tier, available=True)
    others = same or list_models(info.provider, kind=info.kind, available=True)
    return others[0] if others else None
