"""The normal form of Anthropic Messages bodies: what two bodies that mean the same agree on."""

from __future__ import annotations

from typing import Any

from interlingua.spec.content import Json


def normal_request(body: Json) -> Json:
    """`stream` is false by default; a string stands for one text block."""
    if not isinstance(body, dict):
        return body
    normal = dict(body)
    if normal.get("stream") is False:
        del normal["stream"]
    if "system" in normal:
        normal["system"] = _blocks(normal["system"])
    if isinstance(normal.get("messages"), list):
        normal["messages"] = [_message(message) for message in normal["messages"]]
    return normal


def normal_response(body: Json) -> Json:
    """Answers have no shorthand; `stop_sequence` is null by default."""
    if isinstance(body, dict) and body.get("type") == "message":
        return {"stop_sequence": None, **body}
    return body


def _message(message: Any) -> Any:
    if not isinstance(message, dict) or "content" not in message:
        return message
    return {**message, "content": _blocks(message["content"])}


def _blocks(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return content
    return [_block(block) for block in content]


def _block(block: Any) -> Any:
    if isinstance(block, dict) and block.get("type") == "tool_result":
        content = block.get("content")
        return {**block, "content": _blocks(content if content is not None else [])}
    return block
