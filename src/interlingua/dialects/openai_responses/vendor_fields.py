"""
The fields that every answer of the vendor has, for the answers of other servers.

Seen in recordings; a law compares them. Most repeat what the request asks for.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.spec.content import Json

REQUIRED: Mapping[str, Json] = {
    "object": "response",
    "created_at": 0,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": None,
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
}
"""The fields that the vendor's types require."""

_USUAL: Mapping[str, Json] = {
    **REQUIRED,
    "background": False,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "auto",
    "store": False,  # unless the request asks for it, and the server keeps it
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "usage": None,
    "user": None,
}
_FUNCTION: Mapping[str, Json] = {"description": None, "strict": False}
"""Of a function among the tools: the vendor repeats it with all fields."""


def complete_answer(
    body: Mapping[str, Json], repeated: Mapping[str, Json], created_at: float
) -> dict[str, Json]:
    """The body of an answer with all fields: its own, those of the request, the usual ones."""
    whole: dict[str, Json] = {**_USUAL, **repeated, **body}
    if not whole["created_at"]:
        whole["created_at"] = int(created_at)
    for name in ("reasoning", "text"):
        usual, given = _USUAL[name], whole[name]
        if isinstance(usual, dict) and isinstance(given, dict):
            whole[name] = {**usual, **given}
    tools = whole["tools"]
    if isinstance(tools, list):
        whole["tools"] = [_complete_tool(tool) for tool in tools]
    return whole


def _complete_tool(tool: Json) -> Json:
    is_function = isinstance(tool, dict) and tool.get("type") == "function"
    return {**_FUNCTION, **tool} if is_function and isinstance(tool, dict) else tool
