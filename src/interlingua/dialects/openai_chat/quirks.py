"""How compatible servers differ from OpenAI's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from interlingua.spec.contracts import Profile


class ChatQuirks(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """What one server does its own way; the defaults are OpenAI's way."""

    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """The field for the output limit: many servers only know the older `max_tokens`."""
    seed_field: Literal["seed", "random_seed"] = "seed"
    """The field for the seed: Mistral's is `random_seed`."""
    top_k: bool = False
    """It takes `top_k`, which OpenAI does not know."""
    reasoning_object: bool = False
    """It takes effort and budget as `reasoning: {effort, max_tokens}`, as OpenRouter does."""
    thinking_off: Mapping[str, Any] = {}
    """What tells it not to think, where effort `none` does not: DeepSeek's `thinking` switch."""
    required_word: Literal["required", "any"] = "required"
    """The `tool_choice` that makes the model call some tool: older Mistral says `any`."""
    developer_role: bool = True
    """It knows the developer role; if not, such messages are sent as system messages."""
    flat_content: bool = False
    """It wants content that is all text as one string, never as a list of parts."""
    tool_result_media: bool = False
    """It takes media in tool messages; else they follow in a user message."""
    document_url: bool = False
    """It takes documents as `document_url` parts by address, as Mistral does."""
    audio_formats: tuple[str, ...] = ("wav", "mp3")
    """The sound formats it takes."""
    stream_usage: bool = False
    """It reports the usage of a stream only if `stream_options.include_usage` asks for it."""
    done_sentinel: bool = True
    """It ends a stream with `[DONE]`; if not, a finish reason is end enough."""
    think_tags: bool = False
    """It leaves thinking in the text, between `<think>` and `</think>` at its start."""


DEFAULT_QUIRKS = ChatQuirks()


def quirks_of(profile: Profile) -> ChatQuirks:
    """The profile's quirks if they are of this dialect, else OpenAI's own ways."""
    return profile.quirks if isinstance(profile.quirks, ChatQuirks) else DEFAULT_QUIRKS


def field_of(setting: str, quirks: ChatQuirks) -> str:
    """The field for one of the settings whose names differ; empty if there is none."""
    if setting == "max_tokens":
        return quirks.max_tokens_field
    if setting == "seed":
        return quirks.seed_field
    return "top_k" if quirks.top_k else ""


def history_quirks(quirks: ChatQuirks) -> dict[str, Any]:
    """What of it concerns the repair of histories."""
    facts: dict[str, Any] = {}
    if quirks.tool_result_media:
        facts["result_media"] = True
    if quirks.document_url:
        facts["media"] = {"image": ("url", "data"), "audio": ("data",)}
    return facts
