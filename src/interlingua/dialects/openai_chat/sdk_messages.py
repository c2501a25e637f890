"""Messages of OpenAI's SDK with fields that have no canonical place: `spec` reads all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlingua.dialects.openai_chat.facts import LEGACY
from interlingua.dialects.openai_chat.messages import decode_messages
from interlingua.dialects.openai_chat.tool_calls import LEGACY_RESULT
from interlingua.spec.content import Json
from interlingua.spec.messages import Message

# Of the SDK's `ChatCompletionAssistantMessageParam`; `reasoning_details` and `images` are
# OpenRouter's, `cache_control` is what hosts of Claude take.
_FIELDS = frozenset(("audio", LEGACY, "images", "reasoning_details"))


def is_sdk_message(item: Mapping[str, Json]) -> bool:
    """Return whether it has one of these fields."""
    if "type" in item or not isinstance(item.get("role"), str):
        return False
    return item.get("role") == LEGACY_RESULT or any(item.get(name) for name in _FIELDS)


def decode_sdk_messages(items: Sequence[Mapping[str, Json]]) -> tuple[Message, ...]:
    """Return the messages, one for each item."""
    return decode_messages([_present(item) for item in items])


def _present(item: Mapping[str, Json]) -> Json:
    return {name: value for name, value in item.items() if value is not None}
