"""Provider options: fields of one dialect, merged over the encoded body last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.spec.contracts import DIALECT_NAMES
from interlingua.spec.request import Request
from interlingua.spec.response import Warning

AUTO_CACHE = "auto_cache"
"""A reserved option, never sent: False leaves prompt caching to the caller."""


def options_for(request: Request, dialect: str) -> dict[str, Any]:
    """The options meant for this dialect, by its own name or by the provider's."""
    merged: dict[str, Any] = {}
    given = request.provider_options
    if not given:  # as in most requests
        return merged
    for name in (dialect, request.provider):
        options = given.get(name) if name else None
        if isinstance(options, Mapping):
            merged = merge(merged, options)
    return merged


def foreign_options(request: Request, dialect: str) -> list[Warning]:
    """A warning for each other dialect whose options this request carries."""
    if not request.provider_options:
        return []
    return [
        Warning(
            code="options_dropped",
            message=f"options of {name} cannot be said in {dialect}: {_names(options)}",
            path=f"provider_options.{name}",
        )
        for name in DIALECT_NAMES
        if name != dialect and (options := _without_ours(request.provider_options.get(name)))
    ]


def merge(body: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """
    `options` over `body`: objects are merged, anything else replaces.

    A null fills a gap but never hides a value: it stands for a field that was sent as
    null, not for its removal.
    """
    merged = dict(body)
    for key, value in options.items():
        present = merged.get(key)
        if value is None and key in merged:
            continue
        if isinstance(present, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(present, value)
        else:
            merged[key] = value
    return merged


def _without_ours(options: Any) -> Any:
    """An option that no dialect sends is none that another cannot say."""
    if not isinstance(options, Mapping) or AUTO_CACHE not in options:
        return options
    return {name: value for name, value in options.items() if name != AUTO_CACHE}


def _names(options: Any) -> str:
    return ", ".join(sorted(map(str, options))) if isinstance(options, Mapping) else repr(options)
