"""Messages as users of Anthropic's SDK have them: dicts for requests, and dumped answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlingua.dialects.anthropic_messages.request import decode_messages
from interlingua.spec.content import Json
from interlingua.spec.messages import Message
from interlingua.wire.fields import Fields, text_or_none

# The types of blocks in the SDK's `BetaContentBlockParam` that no other API has; results end with
# `_tool_result`, and `text` has fields here that others lack.
_BLOCKS = frozenset(
    (
        *("thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document"),
        *("server_tool_use", "mcp_tool_use", "mcp_tool_listing", "search_result"),
        *("container_upload", "compaction", "fallback", "tool_addition", "tool_removal"),
    )
)
_RESULT = "_tool_result"
_TEXT_FIELDS = frozenset(("cache_control", "citations"))


def is_sdk_message(item: Mapping[str, Json]) -> bool:
    """Return whether it has a form that only messages of this API have."""
    content = item.get("content")
    if item.get("type") == "message" and "stop_reason" in item:
        return True  # an answer
    return isinstance(content, Sequence) and any(map(_is_own, content))


def _is_own(block: Json) -> bool:
    if not isinstance(block, Mapping):
        return False
    kind = block.get("type")
    if kind == "text":
        return not _TEXT_FIELDS.isdisjoint(block)
    return isinstance(kind, str) and (kind in _BLOCKS or kind.endswith(_RESULT))


def decode_sdk_messages(items: Sequence[Mapping[str, Json]]) -> tuple[Message, ...]:
    """Return the messages; an answer has its id, and its model as metadata."""
    fields: list[Json] = [
        {"role": item.get("role"), "content": _content(item)}
        if item.get("type") == "message"
        else {**_present(item), "content": _content(item)}
        for item in items
    ]
    messages = decode_messages(Fields({"messages": fields}))
    return tuple(map(_label, messages, items))


def _label(message: Message, item: Mapping[str, Json]) -> Message:
    if item.get("type") != "message":
        return message
    model = text_or_none(item.get("model"))
    metadata = {} if model is None else {"model": model}
    return replace(message, id=text_or_none(item.get("id")), metadata=metadata)


def _content(item: Mapping[str, Json]) -> Json:
    """The content without fields that are None: the SDK writes those of an answer so."""
    content = item.get("content")
    if isinstance(content, str) or not isinstance(content, Sequence):
        return content
    return [_present(block) if isinstance(block, Mapping) else block for block in content]


def _present(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value is not None}
