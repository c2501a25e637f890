"""The normal form of Gemini bodies: what two bodies that mean the same agree on."""

from __future__ import annotations

from interlingua.dialects.gemini_generate.names import REQUEST, RESPONSE, to_camel
from interlingua.spec.content import Json


def normal_request(body: Json) -> Json:
    """
    Known names may be written in snake_case, and one object may stand for an array of one.

    A string as `systemInstruction` stands for one text part. Nothing has a default that
    clients write out.
    """
    normal = to_camel(body, REQUEST)
    if isinstance(normal, dict) and isinstance(normal.get("systemInstruction"), str):
        instruction = {"parts": [{"text": normal["systemInstruction"]}]}
        return {**normal, "systemInstruction": instruction}
    return normal


def normal_response(body: Json) -> Json:
    """Answers have no shorthand but their names."""
    return to_camel(body, RESPONSE)
