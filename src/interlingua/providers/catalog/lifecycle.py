"""Warnings about models that a provider has deprecated or will no longer serve."""

from __future__ import annotations

from datetime import UTC, date, datetime

from interlingua.providers.catalog.models import NOTICES, ModelInfo, find_model, table
from interlingua.providers.catalog.search import ends_soon, list_models
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning

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
