"""The models a provider serves now: its own list, read in each dialect's words."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from interlingua.spec.content import Json


class ServedModel(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """A model as its provider lists it."""

    id: str
    provider: str = ""
    name: str | None = None
    """For people."""
    context_window: int | None = None
    max_output_tokens: int | None = None
    raw: Json = None


def read_models(body: Json, provider: str) -> list[ServedModel]:
    """The models of one page, in whichever of the known shapes."""
    if isinstance(body, dict):
        body = body.get("data") or body.get("models") or []
    entries = body if isinstance(body, list) else []
    return [_read(entry, provider) for entry in entries if isinstance(entry, dict)]


def next_page(body: Json) -> str | None:
    """The query that asks for the page after this one; None if it is the last."""
    if not isinstance(body, dict):
        return None
    token = body.get("nextPageToken")
    if isinstance(token, str) and token:
        return f"pageToken={quote(token, safe='')}"
    last = body.get("last_id")
    if body.get("has_more") is True and isinstance(last, str):
        return f"after_id={quote(last, safe='')}"
    return None


def _read(entry: dict[str, Any], provider: str) -> ServedModel:
    name = entry.get("id") or entry.get("name") or ""
    return ServedModel(
        id=str(name).removeprefix("models/"),
        provider=provider,
        name=_text(entry, "display_name", "displayName", "name"),
        context_window=_count(
            entry, "inputTokenLimit", "max_input_tokens", "context_length", "context_window"
        ),
        max_output_tokens=_count(entry, "outputTokenLimit", "max_tokens", "max_output_tokens"),
        raw=entry,
    )


def _text(entry: dict[str, Any], *keys: str) -> str | None:
    return next((entry[key] for key in keys if isinstance(entry.get(key), str)), None)


def _count(entry: dict[str, Any], *keys: str) -> int | None:
    return next((entry[key] for key in keys if type(entry.get(key)) is int), None)
