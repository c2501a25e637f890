"""The id and the metadata of a message that a call returned: who made it, and how it ended."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from interlingua.providers.ulid import new_ulid
from interlingua.spec.messages import Message
from interlingua.spec.response import Response, Usage


def message_of(
    response: Response, provider: str, model: str, registry_id: str | None = None
) -> Message:
    """
    The message of a response, with an id and with metadata for the rules of history repair.

    `model` is the name that was sent, so that the same name later means the same maker: a
    provider may answer with the name of a version.
    """
    message = response.message
    metadata = {
        **message.metadata,
        "model": model or response.model,
        "provider": provider or response.provider,
        "finish_reason": response.finish_reason.reason,
        "usage": usage_of(response.usage),
    }
    if registry_id is not None:
        metadata["registry_id"] = registry_id
    return replace(message, id=message.id or new_ulid(), metadata=metadata)


def with_usage(response: Response, usage: Usage) -> Response:
    """The response with another usage, also in the metadata of its message."""
    message = response.message
    if "usage" in message.metadata:
        message = replace(message, metadata={**message.metadata, "usage": usage_of(usage)})
    return replace(response, usage=usage, message=message)


def usage_of(usage: Usage) -> dict[str, Any]:
    """The token counts that are known, as JSON."""
    counts: dict[str, Any] = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }
    if usage.reasoning_tokens is not None:
        counts["reasoning_tokens"] = usage.reasoning_tokens
    if usage.cache_read_tokens is not None:
        counts["cache_read_tokens"] = usage.cache_read_tokens
    if usage.cache_write_tokens is not None:
        counts["cache_write_tokens"] = usage.cache_write_tokens
    if usage.estimated:
        counts["estimated"] = True
    return counts
