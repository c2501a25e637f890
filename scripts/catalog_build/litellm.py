"""Limits, capabilities, dates and prices from the JSON inside the wheel of `litellm`."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from datetime import date, time
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from catalog_build.entries import Entry, Source, dollars, known
from catalog_build.served import request_id
from interlingua.providers.catalog.prices import LongContext, MediaVariant, Price, Rates

FILE = "litellm/model_prices_and_context_window_backup.json"

ROWS = {
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "gemini": ("gemini",),
    "xai": ("xai",),
    "fireworks_ai": ("fireworks",),
    "fireworks_ai-embedding-models": ("fireworks",),
    "groq": ("groq",),
    "mistral": ("mistral",),
    "deepseek": ("deepseek",),
    "together_ai": ("together",),
    "cerebras": ("cerebras",),
    "moonshot": ("moonshot",),
    "zai": ("zai",),
    "azure": ("azure",),
    "ai21": ("ai21",),
    "baseten": ("baseten",),
    "bedrock": ("bedrock", "bedrock_invoke"),
    "bedrock_converse": ("bedrock", "bedrock_invoke"),
    "bedrock_mantle": ("bedrock",),
    "chatgpt": ("chatgpt",),
    "cloudflare": ("cloudflare",),
    "cohere": ("cohere",),
    "cohere_chat": ("cohere",),
    "crusoe": ("crusoe",),
    "databricks": ("databricks",),
    "deepinfra": ("deepinfra",),
    "github_copilot": ("github_copilot",),
    "hyperbolic": ("hyperbolic",),
    "jina_ai": ("jina",),
    "minimax": ("minimax",),
    "nebius": ("nebius",),
    "novita": ("novita",),
    "nvidia_nim": ("nvidia",),
    "perplexity": ("perplexity",),
    "sambanova": ("sambanova",),
    "snowflake": ("snowflake",),
    "vercel_ai_gateway": ("vercel",),
    "vertex_ai": ("vertex",),
    "vertex_ai-anthropic_models": ("vertex_anthropic",),
    "vertex_ai-embedding-models": ("vertex",),
    "vertex_ai-language-models": ("vertex",),
    "vertex_ai-video-models": ("vertex",),
    "voyage": ("voyage",),
}
"""
Its names of providers, and our rows.

Those of Alibaba are left out: its prices are those of the region Beijing, which is not ours.
"""
LISTS = {row for rows in ROWS.values() for row in rows} - {"fireworks"}
"""Of Fireworks it lists every model that can be deployed, not only those that are served."""

_KINDS = {
    "chat": "chat",
    "responses": "chat",
    "embedding": "embedding",
    "image_generation": "image",
    "image_edit": "image",
    "audio_speech": "speech",
    "audio_transcription": "transcription",
    "video_generation": "video",
    "rerank": "rerank",
    "moderation": "moderation",
}
_SUPPORTS = {
    "supports_function_calling": "supports_tools",
    "supports_vision": "supports_vision",
    "supports_reasoning": "supports_reasoning",
    "supports_response_schema": "supports_structured_output",
    "supports_prompt_caching": "supports_caching",
    "supports_audio_input": "supports_audio",
    "supports_pdf_input": "supports_pdf",
    "supports_web_search": "supports_web_search",
}
_TOKENS = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
    "cache_creation_input_token_cost_above_1hr": "cache_write_1h",
    "input_cost_per_audio_token": "input_audio",
    "cache_read_input_audio_token_cost": "cache_read_audio",
    "output_cost_per_audio_token": "output_audio",
    "input_cost_per_image_token": "input_image",
    "cache_read_input_image_token_cost": "cache_read_image",
    "output_cost_per_image_token": "output_image",
    "input_cost_per_video_token": "input_video",
    "output_cost_per_video_token": "output_video",
    "output_cost_per_reasoning_token": "reasoning",
}
_TIERS = {
    "": "standard",
    "_batches": "batch",
    "_flex": "flex",
    "_priority": "priority",
    "_ultrafast": "ultrafast",
}
_KEY = re.compile(
    f"({'|'.join(sorted(_TOKENS, key=len, reverse=True))})"
    f"(?:_above_([0-9]+)k_tokens)?({'|'.join(_TIERS)})"
)
_SIZED = re.compile("(?:(low|medium|high|standard)/)?([0-9]+)-x-([0-9]+)/(.+)")
_RESOLUTION = re.compile("output_cost_per_second_([0-9]+[pk])")
_IMAGE_SIZE = re.compile("output_cost_per_image_([0-9.]+K?)")
_MODALITIES = ("text", "image", "audio", "video")


def read(wheel: Path, written: date) -> Source:
    """The source; the wheel is opened as an archive, and never installed."""
    with zipfile.ZipFile(wheel) as archive:
        return source(json.loads(archive.read(FILE)), written)


def source(table: Mapping[str, Mapping[str, Any]], written: date) -> Source:
    """The source from its table."""
    entries: dict[str, dict[str, Entry]] = {}
    sizes: dict[tuple[str, str], list[MediaVariant]] = {}
    for key, row in table.items():
        seller = row.get("litellm_provider", "")
        for provider in ROWS.get(seller, ()):
            sized = _SIZED.fullmatch(key)
            if sized:
                sizes.setdefault((provider, sized[4]), []).append(_sized(sized, row))
            elif row.get("mode") in _KINDS and (model_id := _model_id(key, provider, seller)):
                entries.setdefault(provider, {})[model_id] = entry(row, _KINDS[row["mode"]])
    for (provider, model_id), variants in sizes.items():
        if model_id in entries.get(provider, {}):
            entries[provider][model_id].fields["variants"] = tuple(variants)
    return Source(
        name="litellm",
        written=written,
        listed={provider: entries[provider] for provider in entries if provider in LISTS},
        lookup=lambda provider, model_id: entries.get(provider, {}).get(model_id),
    )


def _model_id(key: str, provider: str, seller: str) -> str | None:
    prefix, slash, rest = key.partition("/")
    is_seller = seller == prefix or seller.startswith(f"{prefix}-")
    model_id = rest if slash and is_seller else key
    if provider == "azure" and "/" in model_id:
        return None  # a region, at another price
    if model_id.startswith(("together-ai-", "fireworks-ai-")) or model_id == "container":
        return None  # a price by size, and not a model
    return request_id(provider, model_id)


def entry(row: Mapping[str, Any], kind: str) -> Entry:
    """What a row says of a model of this kind."""
    fields: dict[str, Any] = {"kind": kind}
    retires = row.get("deprecation_date")
    fields |= known(
        {
            "context_window": row.get("max_input_tokens"),
            "max_output": row.get("max_output_tokens") if kind == "chat" else None,
            "input_modalities": _modalities(row.get("supported_modalities", ())),
            "output_modalities": _modalities(row.get("supported_output_modalities", ())),
            "retires": None if retires is None else date.fromisoformat(retires),
            "dimensions": row.get("output_vector_size"),
            "variants": tuple(_variants(row)),
        }
    )
    fields |= known({ours: row.get(key) for key, ours in _SUPPORTS.items()})
    return Entry(fields=fields, prices=tuple(prices(row, kind)))


def _modalities(names: Any) -> tuple[str, ...]:
    return tuple(name for name in _MODALITIES if name in names)


def prices(row: Mapping[str, Any], kind: str) -> Iterator[Price]:
    """The prices of a row: one for each tier of service, and one for each time of high prices."""
    cheap = row.get("off_peak_pricing")
    if cheap is None:
        yield from _tiers(row, kind)
        return
    yield from _tiers({**row, **cheap}, kind)
    days = tuple(range(1, 6))
    window = next(one for one in cheap["windows"] if tuple(one["weekdays"]) == days)
    for (_, start), (end, _) in pairwise(_hours(window["hours_utc"])):
        for price in _tiers(row, kind):
            yield msgspec.structs.replace(price, hours=(start, end), days=days)


def _hours(spans: list[str]) -> Iterator[tuple[time, time]]:
    for span in spans:
        start, end = (time.fromisoformat(part) for part in span.split("-"))
        yield start, end


def _tiers(row: Mapping[str, Any], kind: str) -> Iterator[Price]:
    rates: dict[str, dict[str, float]] = {}
    above: dict[str, dict[int, dict[str, float]]] = {}
    for key, cost in row.items():
        match = _KEY.fullmatch(key)
        if match is None or not isinstance(cost, (int, float)):
            continue
        name, tier = _TOKENS[match[1]], _TIERS[match[3]]
        if match[2]:
            start = int(match[2]) * 1000
            above.setdefault(tier, {}).setdefault(start, {})[name] = dollars(cost * 1e6)
        else:
            rates.setdefault(tier, {})[name] = dollars(cost * 1e6)
    if units := dict(_units(row, kind)):
        rates.setdefault("standard", {}).update(units)
    multiple = row.get("provider_specific_entry", {}).get("fast")
    if multiple and "standard" in rates:
        rates["fast"] = {
            name: dollars(rate * multiple)
            for name, rate in rates["standard"].items()
            if not name.startswith("per_")
        }
    for tier, plain in rates.items():
        if tier != "standard" and not {"input", "output"} <= {*plain}:
            continue  # a discount for a part only
        full = _full(plain, rates.get("standard", {}))
        steps = above.get(tier, {})
        yield Price(
            rates=Rates(**full),
            tier=tier,
            long_context=tuple(
                LongContext(above=start, rates=Rates(**(full | steps[start])))
                for start in sorted(steps)
            ),
        )


def _full(plain: Mapping[str, float], standard: Mapping[str, float]) -> dict[str, float]:
    """The rates of a tier; those that hold in every tier are taken from the standard one."""
    full = {name: rate for name, rate in standard.items() if name.startswith("per_")} | plain
    if full.get("reasoning") == full.get("output"):
        full.pop("reasoning", None)
    if not full.get("cache_write"):
        full.pop("cache_write", None)  # 0 stands for "as any input"
    return full


def _units(row: Mapping[str, Any], kind: str) -> Iterator[tuple[str, float]]:
    second = row.get("output_cost_per_video_per_second", row.get("output_cost_per_second"))
    if kind == "video" and second:
        yield "per_video_second", dollars(second)
    if kind == "transcription" and row.get("input_cost_per_second"):
        yield "per_audio_hour", dollars(row["input_cost_per_second"] * 3600)
    if kind == "speech" and row.get("input_cost_per_character"):
        yield "per_million_characters", dollars(row["input_cost_per_character"] * 1e6)
    if row.get("output_cost_per_image") and not row.get("output_cost_per_image_token"):
        yield "per_image", dollars(row["output_cost_per_image"])
    search = row.get("search_context_cost_per_query", {}).get("search_context_size_medium")
    if search:
        yield "per_web_search", dollars(search)


def _variants(row: Mapping[str, Any]) -> Iterator[MediaVariant]:
    for key, cost in row.items():
        if match := _RESOLUTION.fullmatch(key):
            yield MediaVariant(size=match[1], per_video_second=dollars(cost))
        elif match := _IMAGE_SIZE.fullmatch(key):
            yield MediaVariant(size=match[1], per_image=dollars(cost))


def _sized(match: re.Match[str], row: Mapping[str, Any]) -> MediaVariant:
    cost = row.get("output_cost_per_image", row.get("input_cost_per_image"))
    return MediaVariant(
        size=f"{match[2]}x{match[3]}",
        quality=match[1],
        per_image=None if cost is None else dollars(cost),
    )
