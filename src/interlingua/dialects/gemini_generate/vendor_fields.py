"""
The fields that every answer of the vendor has, for the answers of other servers.

Seen in recordings; a law compares them. The time of an answer is not among them: «This field is not
supported in Gemini API» (`create_time` of the SDK).
"""

from __future__ import annotations

from interlingua.spec.content import Json
from interlingua.spec.response import Usage


def complete_usage(body: dict[str, Json], usage: Usage) -> dict[str, Json]:
    """The body with the input tokens by modality; what is of no other modality is text."""
    counts = body.get("usageMetadata")
    given = counts if isinstance(counts, dict) else {}
    by_modality = {"AUDIO": usage.input_audio_tokens or 0, "IMAGE": usage.input_image_tokens or 0}
    text = max(0, usage.input_tokens - sum(by_modality.values()))
    details: list[Json] = [
        {"modality": name, "tokenCount": tokens}
        for name, tokens in (("TEXT", text), *by_modality.items())
        if tokens or name == "TEXT"
    ]
    usual: dict[str, Json] = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": 0,
        "totalTokenCount": usage.total_tokens,
        "promptTokensDetails": details,
    }
    return {**body, "usageMetadata": {**usual, **given}}
