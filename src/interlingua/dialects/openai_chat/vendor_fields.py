"""
The fields that every answer of the vendor has, for the answers of other servers.

Seen in recordings; a law compares them. `system_fingerprint` is null there for newer models.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.spec.content import Json
from interlingua.spec.response import Usage

_INPUT_DETAILS: Mapping[str, Json] = {"cached_tokens": 0, "audio_tokens": 0}
_OUTPUT_DETAILS: Mapping[str, Json] = {
    "reasoning_tokens": 0,
    "audio_tokens": 0,
    "accepted_prediction_tokens": 0,
    "rejected_prediction_tokens": 0,
}
_MESSAGE: Mapping[str, Json] = {"refusal": None, "annotations": []}
CHOICE_FIELDS: Mapping[str, Json] = {"logprobs": None}
"""Of a choice."""
FIRST_DELTA: Mapping[str, Json] = {"refusal": None}
"""Of the first delta of a stream."""


def envelope_fields(created_at: float, tier: str | None = None) -> dict[str, Json]:
    """The fields of a body and of a chunk."""
    return {
        "created": int(created_at),
        "service_tier": tier or "default",
        "system_fingerprint": None,
    }


def complete_answer(body: dict[str, Json], created_at: float, usage: Usage) -> dict[str, Json]:
    """The body of an answer with all fields."""
    whole = {**envelope_fields(created_at, usage.service_tier), **body}
    if not whole["created"]:  # some servers send 0
        whole["created"] = int(created_at)
    choices = whole.get("choices")
    if isinstance(choices, list):
        whole["choices"] = [_complete_choice(choice) for choice in choices]
    whole["usage"] = complete_usage(whole.get("usage"))
    return whole


def _complete_choice(choice: Json) -> Json:
    """A choice with all fields, and its message."""
    if not isinstance(choice, dict):
        return choice
    message = choice.get("message")
    whole = {**CHOICE_FIELDS, **choice}
    if isinstance(message, dict):
        whole["message"] = {**_MESSAGE, **message}
    return whole


def complete_usage(usage: Json) -> dict[str, Json]:
    """The usage with all details; what is unknown is 0, as the vendor writes it."""
    given = usage if isinstance(usage, dict) else {}
    counts: dict[str, Json] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    return {
        **counts,
        **given,
        "prompt_tokens_details": _under(_INPUT_DETAILS, given.get("prompt_tokens_details")),
        "completion_tokens_details": _under(
            _OUTPUT_DETAILS, given.get("completion_tokens_details")
        ),
    }


def _under(usual: Mapping[str, Json], given: Json) -> dict[str, Json]:
    return {**usual, **(given if isinstance(given, dict) else {})}
