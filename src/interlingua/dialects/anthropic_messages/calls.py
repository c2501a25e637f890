"""Tool calls and results <-> their blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from interlingua.dialects.anthropic_messages.wire import NAME, extra_for
from interlingua.spec.content import Json, Part, ToolCall, ToolResult
from interlingua.wire.arguments import input_object
from interlingua.wire.carry import Losses
from interlingua.wire.jsontext import dump_text
from interlingua.wire.shape import Fields, restore, wrong_type

DecodeContent: TypeAlias = Callable[[Json, str], tuple[Part, ...]]
EncodePart: TypeAlias = Callable[[Part, Losses, str], dict[str, Any] | None]


def decode_tool_use(fields: Fields, _: dict[str, Any]) -> Part:
    return ToolCall(
        id=fields.need("id"),
        name=fields.need("name"),
        arguments=fields.object("input") or {},
        extra=extra_for(fields.left),
    )


def decode_tool_result(fields: Fields, decode_content: DecodeContent) -> Part:
    """Content is text, blocks, or nothing."""
    call_id = fields.need("tool_use_id")
    content = fields.take("content")
    if isinstance(content, list):
        content = decode_content(content, fields.at("content"))
    elif content is None:
        content = ()
    elif not isinstance(content, str):
        raise wrong_type(fields.at("content"), "text or an array of blocks", content)
    is_error = fields.left.get("is_error") is True and fields.take("is_error")
    return ToolResult(
        tool_call_id=call_id, content=content, is_error=is_error, extra=extra_for(fields.left)
    )


def encode_tool_use(call: ToolCall) -> dict[str, Any]:
    """Arguments are an object here: text that is none goes in one under `input`."""
    block = {"type": "tool_use", "id": call.id, "name": call.name, "input": input_object(call)}
    return restore(block, call, NAME)


def encode_tool_result(
    result: ToolResult, losses: Losses, path: str, encode_part: EncodePart
) -> dict[str, Any]:
    """A JSON value is said as its text."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.tool_call_id}
    parts = result.parts
    if parts:
        encoded = (
            encode_part(part, losses, f"{path}.content[{i}]") for i, part in enumerate(parts)
        )
        block["content"] = [item for item in encoded if item is not None]
    elif isinstance(result.content, str):
        block["content"] = result.content
    elif parts is None:
        block["content"] = dump_text(result.content)
    if result.is_error:
        block["is_error"] = True
    return restore(block, result, NAME)
