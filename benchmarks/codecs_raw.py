"""
The shortest code between canonical values and the four wire formats, for `contenders.Codec`.

It reads the deltas of text and of arguments, and writes texts, tool calls and results: what the
benchmarks stream and send. Nothing is checked, repaired, kept or explained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from interlingua import Message, Request, Text, ToolCall, ToolResult
from interlingua.spec.events import TextDelta, ToolCallDelta

_dump = msgspec.json.Encoder().encode


# Events.


def _read_anthropic(data: dict[str, Any]) -> TextDelta | ToolCallDelta | None:
    if data["type"] != "content_block_delta":
        return None
    delta, index = data["delta"], data["index"]
    if delta["type"] == "text_delta":
        return TextDelta(id=f"text_{index}", index=index, delta=delta["text"])
    return ToolCallDelta(id=f"tool_call_{index}", index=index, delta=delta["partial_json"])


def _read_chat(data: dict[str, Any]) -> TextDelta | ToolCallDelta | None:
    if not data["choices"]:
        return None
    delta = data["choices"][0]["delta"]
    if "tool_calls" in delta:
        call = delta["tool_calls"][0]
        index = call["index"]
        arguments = call["function"]["arguments"]
        return ToolCallDelta(id=f"tool_call_{index}", index=index, delta=arguments)
    text = delta.get("content")
    return None if text is None else TextDelta(id="text_0", index=0, delta=text)


def _read_responses(data: dict[str, Any]) -> TextDelta | ToolCallDelta | None:
    kind = data["type"]
    if kind == "response.output_text.delta":
        index = data["output_index"]
        return TextDelta(id=f"text_{index}", index=index, delta=data["delta"])
    if kind == "response.function_call_arguments.delta":
        index = data["output_index"]
        return ToolCallDelta(id=f"tool_call_{index}", index=index, delta=data["delta"])
    return None


def _read_gemini(data: dict[str, Any]) -> TextDelta | ToolCallDelta | None:
    parts = data["candidates"][0].get("content", {}).get("parts")
    return TextDelta(id="text_0", index=0, delta=parts[0]["text"]) if parts else None


READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "anthropic_messages": _read_anthropic,
    "openai_chat": _read_chat,
    "openai_responses": _read_responses,
    "gemini_generate": _read_gemini,
}
"""The delta in the object of an event, by dialect; None if there is none."""


# Requests: a prompt first, then messages; the tool has no parameters that need a form of their own.


def _write_anthropic(request: Request) -> dict[str, Any]:
    prompt, *messages = request.messages
    (tool,) = request.tools
    return {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": prompt.text,
        "messages": [_anthropic_message(message) for message in messages],
        "tools": [{"name": tool.name, "input_schema": tool.parameters}],
    }


def _anthropic_message(message: Message) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for part in message.content:
        if type(part) is Text:
            blocks.append({"type": "text", "text": part.text})
        elif type(part) is ToolCall:
            call = {"id": part.id, "name": part.name, "input": part.arguments}
            blocks.append({"type": "tool_use", **call})
        elif type(part) is ToolResult:
            result = {"tool_use_id": part.tool_call_id, "content": part.content}
            blocks.append({"type": "tool_result", **result})
    return {"role": "user" if message.role == "tool" else message.role, "content": blocks}


def _write_chat(request: Request) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for message in request.messages:
        wire: dict[str, Any] = {"role": message.role, "content": None}
        for part in message.content:
            if type(part) is Text:
                wire["content"] = part.text
            elif type(part) is ToolCall:
                function = {"name": part.name, "arguments": _dump(part.arguments).decode()}
                call = {"id": part.id, "type": "function", "function": function}
                wire.setdefault("tool_calls", []).append(call)
            elif type(part) is ToolResult:
                wire["tool_call_id"], wire["content"] = part.tool_call_id, part.content
        messages.append(wire)
    (tool,) = request.tools
    function = {"name": tool.name, "parameters": tool.parameters}
    return {
        "model": request.model,
        "max_completion_tokens": request.max_tokens,
        "messages": messages,
        "tools": [{"type": "function", "function": function}],
    }


def _write_responses(request: Request) -> dict[str, Any]:
    prompt, *messages = request.messages
    items: list[dict[str, Any]] = []
    for message in messages:
        for part in message.content:
            if type(part) is Text:
                items.append({"role": message.role, "content": part.text})
            elif type(part) is ToolCall:
                call = {"name": part.name, "arguments": _dump(part.arguments).decode()}
                items.append({"type": "function_call", "call_id": part.id, **call})
            elif type(part) is ToolResult:
                result = {"call_id": part.tool_call_id, "output": part.content}
                items.append({"type": "function_call_output", **result})
    (tool,) = request.tools
    return {
        "model": request.model,
        "max_output_tokens": request.max_tokens,
        "instructions": prompt.text,
        "input": items,
        "tools": [{"type": "function", "name": tool.name, "parameters": tool.parameters}],
    }


def _write_gemini(request: Request) -> dict[str, Any]:
    prompt, *messages = request.messages
    contents: list[dict[str, Any]] = []
    for message in messages:
        parts: list[dict[str, Any]] = []
        for part in message.content:
            if type(part) is Text:
                parts.append({"text": part.text})
            elif type(part) is ToolCall:
                parts.append({"functionCall": {"name": part.name, "args": part.arguments}})
            elif type(part) is ToolResult:
                response = {"name": part.name, "response": {"result": part.content}}
                parts.append({"functionResponse": response})
        contents.append(
            {"role": "model" if message.role == "assistant" else "user", "parts": parts}
        )
    (tool,) = request.tools
    declaration = {"name": tool.name, "parametersJsonSchema": tool.parameters}
    return {
        "systemInstruction": {"parts": [{"text": prompt.text}]},
        "contents": contents,
        "generationConfig": {"maxOutputTokens": request.max_tokens},
        "tools": [{"functionDeclarations": [declaration]}],
    }


WRITERS: dict[str, Callable[[Request], dict[str, Any]]] = {
    "anthropic_messages": _write_anthropic,
    "openai_chat": _write_chat,
    "openai_responses": _write_responses,
    "gemini_generate": _write_gemini,
}
"""The body of a request, by dialect."""
