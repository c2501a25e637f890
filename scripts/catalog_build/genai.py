"""Prices from the wheel of `genai-prices`: start dates, hours, long context, tiers of service."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from catalog_build.entries import Entry, Source, dollars, known
from catalog_build.served import request_id
from interlingua.providers.catalog.prices import LongContext, Price, Rates

ROWS = {
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "google": ("gemini", "vertex", "vertex_anthropic"),
    "openrouter": ("openrouter",),
    "x-ai": ("xai",),
    "fireworks": ("fireworks",),
    "groq": ("groq",),
    "mistral": ("mistral",),
    "deepseek": ("deepseek",),
    "together": ("together",),
    "cerebras": ("cerebras",),
    "moonshotai": ("moonshot",),
    "zai": ("zai",),
    "azure": ("azure",),
    "avian": ("avian",),
    "aws": ("bedrock", "bedrock_invoke"),
    "baseten": ("baseten",),
    "cloudflare": ("cloudflare",),
    "cohere": ("cohere",),
    "databricks": ("databricks",),
    "doubleword": ("doubleword",),
    "github-copilot": ("github_copilot",),
    "minimax": ("minimax",),
    "novita": ("novita",),
    "perplexity": ("perplexity",),
    "voyageai": ("voyage",),
}
"""Its names of providers, and our rows."""
LISTS = {
    *("openrouter", "xai", "fireworks", "groq", "deepseek", "together", "cerebras", "moonshot"),
    *("avian", "baseten", "cloudflare", "databricks", "doubleword", "github_copilot", "novita"),
    *("perplexity", "voyage"),
}
"""The rows of which its ids are ids of requests; of the others they are names of families."""

_TOKENS = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "input_audio_mtok": "input_audio",
    "cache_audio_read_mtok": "cache_read_audio",
    "output_audio_mtok": "output_audio",
    "input_image_mtok": "input_image",
    "cache_image_read_mtok": "cache_read_image",
    "output_image_mtok": "output_image",
    "input_video_mtok": "input_video",
    "output_video_mtok": "output_video",
    "output_reasoning_mtok": "reasoning",
    "audio_hours": "per_audio_hour",
    "input_audio_hours": "per_audio_hour",
    "input_mchars": "per_million_characters",
}
_PER_THOUSAND = {"web_searches_kcount": "per_web_search", "requests_kcount": "per_request"}


def read(wheel: Path, written: date) -> Source:
    """The source; the wheel is imported from where it is, and never installed."""
    sys.path.insert(0, str(wheel))
    from genai_prices import data

    models = {row: one.models for one in data.providers for row in ROWS.get(one.id, ())}
    entries = {row: [(model, _entry(model)) for model in models[row]] for row in models}
    listed = {
        row: {
            model_id: entry
            for model, entry in pairs
            for name in _ids(model)
            if (model_id := request_id(row, name)) is not None
        }
        for row, pairs in entries.items()
        if row in LISTS
    }

    def lookup(provider: str, model_id: str) -> Entry | None:
        for model, entry in entries.get(provider, ()):
            if model.is_match(model_id):
                return entry if model_id in _ids(model) else Entry(prices=entry.prices)
        return None  # else the pattern covers several models, of which only the price is the same

    return Source(name="genai-prices", written=written, listed=listed, lookup=lookup)


def _ids(model: Any) -> Iterator[str]:
    if model.is_match(model.id):
        yield model.id
    else:
        yield from _equals(model.match)


def _equals(clause: Any) -> Iterator[str]:
    if hasattr(clause, "equals"):
        yield clause.equals
    for inner in getattr(clause, "or_", ()):
        yield from _equals(inner)


def _entry(model: Any) -> Entry:
    fields = known({"display_name": model.name, "context_window": model.context_window})
    if model.deprecated:
        fields["deprecated"] = True
    return Entry(fields=fields, prices=tuple(prices_of(model)))


def prices_of(model: Any) -> Iterator[Price]:
    """The prices of a model, those of a tier in ascending order of their dates."""
    conditional = model.prices if isinstance(model.prices, list) else [model]
    standard = list(_dated(conditional))
    yield from standard
    variants: dict[str, list[Any]] = {}
    for variant in model.price_variants or ():
        tier = variant.when.get("processing") or variant.when.get("service_tier")
        if tier not in (None, "default"):
            variants.setdefault(tier, []).append(variant)
    for tier, partial in variants.items():
        yield from _tier(tier, partial, standard)


def _dated(conditional: Iterable[Any]) -> Iterator[Price]:
    starts: date | None = None
    for one in conditional:
        constraint = getattr(one, "constraint", None)
        starts = getattr(constraint, "start_date", starts)
        hours = None
        if hasattr(constraint, "start_time"):  # it holds no longer than the price that it follows
            ends = (constraint.start_time, constraint.end_time)
            hours = tuple(end.replace(tzinfo=None) for end in ends)
        price = _price(vars(one.prices))
        if price is not None:
            yield msgspec.structs.replace(price, starts=starts, hours=hours)


def _tier(tier: str, partial: list[Any], standard: list[Price]) -> Iterator[Price]:
    """
    A tier states only the prices that differ, and the day on which they were looked up.

    If the standard price never changed, the price of the tier is taken to be as old.
    """
    dated = sorted(partial, key=lambda one: getattr(one.constraint, "start_date", date.min))
    for one in dated:
        starts = getattr(one.constraint, "start_date", None)
        base = [price for price in standard if price.hours is None and _starts_by(price, starts)]
        values = vars(one.prices)
        price = _price(values, base[-1] if base else None)
        if price is not None and values:
            starts = None if len(standard) == len(dated) == 1 else starts
            yield msgspec.structs.replace(price, tier=tier, starts=starts)


def _starts_by(price: Price, day: date | None) -> bool:
    return price.starts is None or (day is not None and price.starts <= day)


def _price(values: dict[str, Any], base: Price | None = None) -> Price | None:
    """The price of these values, over those of `base`; None if none of them has a name here."""
    rates, above = _rates(values)
    if base is not None:
        rates = msgspec.structs.asdict(base.rates) | rates
    if not rates:
        return None
    tiers = tuple(
        LongContext(above=start, rates=Rates(**(rates | above[start]))) for start in sorted(above)
    )
    return Price(rates=Rates(**rates), long_context=tiers)


def _rates(values: dict[str, Any]) -> tuple[dict[str, float], dict[int, dict[str, float]]]:
    rates: dict[str, float] = {}
    above: dict[int, dict[str, float]] = {}
    for key, value in values.items():
        if value is None:
            continue
        if key in _PER_THOUSAND:
            rates[_PER_THOUSAND[key]] = dollars(value / 1000)
        elif key in _TOKENS:
            rates[_TOKENS[key]] = dollars(getattr(value, "base", value))
            for step in getattr(value, "tiers", ()):
                above.setdefault(step.start, {})[_TOKENS[key]] = dollars(step.price)
    return rates, above
