"""The normal form of Responses bodies: what two bodies that mean the same agree on."""

from __future__ import annotations

from typing import Any

from interlingua.spec.content import Json

_RESULTS = ("function_call_output", "custom_tool_call_output")


def normal_request(body: Json) -> Json:
    """
    `stream` is false by default; no input is the same as an empty one; a function without
    `parameters` may say so with null.
    """
    if not isinstance(body, dict):
        return body
    normal = dict(body)
    if not normal.get("stream", True):
        del normal["stream"]
    given = normal.get("input")
    if isinstance(given, list):
        normal["input"] = [_item(item) for item in given]
    if given in (None, []):
        normal.pop("input", None)
    if isinstance(normal.get("tools"), list):
        normal["tools"] = [_tool(tool) for tool in normal["tools"]]
    return normal


def normal_response(body: Json) -> Json:
    """Answers have no shorthand and no defaults."""
    return body


def _item(item: Any) -> Any:
    """Content and output may be one text as a string."""
    if not isinstance(item, dict):
        return item
    if item.get("type", "message") == "message" and "content" in item:
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        return {**item, "content": _parts(item["content"], kind)}
    if item.get("type") in _RESULTS and "output" in item:
        return {**item, "output": _parts(item["output"], "input_text")}
    return item


def _parts(content: Any, kind: str) -> Any:
    return [{"type": kind, "text": content}] if isinstance(content, str) else content


def _tool(tool: Any) -> Any:
    if isinstance(tool, dict) and tool.get("type") == "function" and "name" in tool:
        return {"parameters": None, **tool}
    return tool
