"""Items of `input` and `output` as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.dialects.openai_responses.facts import BARE, LIST, PREFIXES
from interlingua.spec.content import Json


def shorten(blocks: list[Any], text_kind: str) -> Json:
    """One plain text part may be written as a string."""
    if len(blocks) == 1:
        block = blocks[0]
        if len(block) == 2 and block.get("type") == text_kind and "text" in block:
            return block["text"]
    return blocks


def item_id(response_id: str, kind: str, index: int) -> str:
    """An id for an item of ours: the same wherever the item is written."""
    return f"{PREFIXES[kind]}_{response_id.removeprefix('resp_')}_{index}"


def message_item(role: str, own: Mapping[str, Any], content: Json) -> dict[str, Any]:
    """A message item; the model's own says its type: some servers do not know it without."""
    item: dict[str, Any] = {"type": "message"} if role == "assistant" and BARE not in own else {}
    if own:
        item |= own
        item.pop(BARE, None)
        item.pop(LIST, None)
    item["role"] = role
    item["content"] = content
    return item
