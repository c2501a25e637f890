"""
The fields that every answer of the vendor has, for the answers of other servers.

Seen in recordings; a law compares them. The tier is `standard` in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.spec.content import Json

_USAGE: Mapping[str, Json] = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


def complete_usage(usage: Mapping[str, Json]) -> dict[str, Json]:
    """The usage of an answer with all fields; what is unknown is 0, as the vendor writes it."""
    written = usage.get("cache_creation_input_tokens") or 0
    return {
        **_USAGE,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written,
            "ephemeral_1h_input_tokens": 0,
        },
        "service_tier": "standard",
        **usage,
    }


def complete_late_usage(usage: Mapping[str, Json]) -> dict[str, Json]:
    """The usage at the end of a stream with all fields."""
    return {**_USAGE, **usage}
