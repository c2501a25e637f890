"""The normal form of Chat Completions bodies: what two bodies that mean the same agree on."""

from __future__ import annotations

from typing import Any

from interlingua.spec.content import Json


def normal_request(body: Json) -> Json:
    """`stream` is false by default; a string stands for one text part, or one stop sequence."""
    if not isinstance(body, dict):
        return body
    normal = dict(body)
    if normal.get("stream", 0) in (None, False):
        normal.pop("stream", None)
    if isinstance(normal.get("stop"), str):
        normal["stop"] = [normal["stop"]]
    if isinstance(normal.get("messages"), list):
        normal["messages"] = [_message(message) for message in normal["messages"]]
    return normal


def normal_response(body: Json) -> Json:
    """Content may be a string or one text part here too."""
    if not isinstance(body, dict) or not isinstance(body.get("choices"), list):
        return body
    return {**body, "choices": [_choice(choice) for choice in body["choices"]]}


def _choice(choice: Any) -> Any:
    if not isinstance(choice, dict) or "message" not in choice:
        return choice
    return {**choice, "message": _message(choice["message"])}


def _message(message: Any) -> Any:
    if not isinstance(message, dict) or not isinstance(message.get("content"), str):
        return message
    return {**message, "content": [{"type": "text", "text": message["content"]}]}
