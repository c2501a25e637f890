"""Messages as attributes of spans, in the form of OpenTelemetry's conventions; without keys."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec

from interlingua.client.middleware import telemetry_names as names
from interlingua.spec.content import (
    MEDIA_TYPES,
    Opaque,
    Part,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.response import Response
from interlingua.wire.json_text import dump_text
from interlingua.wire.secrets import redact

_PROMPTS = ("system", "developer")


def input_attributes(request: Request) -> dict[str, str]:
    """The messages, instructions and tools of a request."""
    instructions = [
        form for message in request.messages if message.role in _PROMPTS for form in _parts(message)
    ]
    messages = [
        {"role": message.role, "parts": _parts(message)}
        for message in request.messages
        if message.role not in _PROMPTS
    ]
    tools = [_tool(each) for each in request.tools if isinstance(each, ToolDefinition)]
    values = {
        names.INPUT_MESSAGES: messages,
        names.SYSTEM_INSTRUCTIONS: instructions,
        names.TOOL_DEFINITIONS: tools,
    }
    return {name: safe_json(value) for name, value in values.items() if value}


def output_attributes(response: Response) -> dict[str, str]:
    """The message of an answer."""
    reason = response.finish_reason.reason
    message = {
        "role": response.message.role,
        "parts": _parts(response.message),
        "finish_reason": names.REASONS.get(reason, reason),
    }
    return {names.OUTPUT_MESSAGES: safe_json([message])}


def result_text(result: ToolResult) -> str:
    """The result of a tool: its text, or JSON."""
    content = _result(result)
    return redact(content) if isinstance(content, str) else safe_json(content)


def safe_json(value: Any) -> str:
    """The value as JSON text, without what looks like a key."""
    try:
        return redact(dump_text(value))
    except (TypeError, ValueError, RecursionError, msgspec.EncodeError):
        return "[no JSON form]"


def _parts(message: Message) -> list[dict[str, Any]]:
    return [form for part in message.content if (form := _part(part)) is not None]


def _part(part: Part) -> dict[str, Any] | None:
    if isinstance(part, ToolCall):
        form = {"type": "tool_call", "id": part.id, "name": part.name}
        return {**form, "arguments": part.arguments}
    if isinstance(part, ToolResult):
        form = {"type": "tool_call_response", "id": part.tool_call_id}
        return {**form, "response": _result(part)}
    if isinstance(part, Thinking):
        return {"type": "reasoning", "content": part.text}
    if isinstance(part, Opaque):
        return None
    if isinstance(part, MEDIA_TYPES):
        return _media(part)
    return {"type": "text", "content": part.text}


def _media(part: Any) -> dict[str, Any]:
    if getattr(part, "text", None) is not None:
        return {"type": "text", "content": part.text}
    form = {"mime_type": part.media_type, "modality": part.kind}
    if part.url is not None:
        return {"type": "uri", **form, "uri": part.url}
    if part.file_id is not None:
        return {"type": "file", **form, "file_id": part.file_id}
    return {"type": "blob", **form, "content": b64encode(part.data or b"").decode()}


def _result(result: ToolResult) -> Any:
    parts = result.parts
    return result.content if parts is None else [_part(part) for part in parts]


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    form = {"type": "function", "name": tool.name, "description": tool.description}
    return {**form, "parameters": tool.parameters}
