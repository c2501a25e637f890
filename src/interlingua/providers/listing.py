"""The models a provider serves now: its own list, read in each dialect's words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import msgspec

from interlingua.providers.provider import Provider
from interlingua.spec.content import Json

_PATHS = {
    "openai_responses": "/v1/models",
    "openai_chat": "/models",
    "anthropic_messages": "/v1/models",
    "gemini_generate": "/v1beta/models",
}
"""Where each dialect has its list, its version written as in the path of a call."""


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


def models_path(row: Provider, dialect: str) -> str:
    """Where a provider lists its models."""
    return row.models_path or _PATHS[dialect]


async def read_pages(ask: Callable[[str], Awaitable[Json]], provider: str) -> list[ServedModel]:
    """
    The models of every page; `ask` gets the page of a query.

    A page that leads to one that was there ends the list: some servers say for ever that
    there are more.
    """
    found: list[ServedModel] = []
    seen: set[str] = set()
    query: str | None = ""
    while query is not None and query not in seen:
        seen.add(query)
        page = await ask(query)
        found += read_models(page, provider)
        query = next_page(page)
    return list({model.id: model for model in found}.values())


def read_models(body: Json, provider: str) -> list[ServedModel]:
    """The models of one page, in whichever of the known shapes."""
    if isinstance(body, dict):
        body = body.get("data") or body.get("models") or []
    entries = body if isinstance(body, list) else []
    found = [_read(entry, provider) for entry in entries if isinstance(entry, dict)]
    return [model for model in found if model.id]


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
