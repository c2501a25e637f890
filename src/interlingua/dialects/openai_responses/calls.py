"""Tool calls and results <-> their items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from interlingua.dialects.openai_responses.wire import (
    ARGUMENTS,
    CALLS,
    INPUT_TEXT,
    NAME,
    RESULTS,
    extra_for,
    shorten,
)
from interlingua.spec.content import Json, Part, ToolCall, ToolResult, ToolType
from interlingua.spec.contracts import NewId
from interlingua.wire.carry import Losses
from interlingua.wire.jsontext import dump_text, loads_object
from interlingua.wire.segments import ToolCallSegment
from interlingua.wire.shape import Fields, restore

DecodeContent: TypeAlias = Callable[[Json, str, str], tuple[Part, ...]]
EncodePart: TypeAlias = Callable[[Part, str, Losses, str], dict[str, Any] | None]


def decode_call(fields: Fields, tool_type: ToolType, new_id: NewId | None) -> Part:
    """A call; `new_id` if it is of an answer, where it is read leniently and always marked."""
    key = ARGUMENTS[tool_type]
    if new_id is None:
        call_id, raw = fields.need("call_id"), fields.need(key)
    else:
        call_id = _call_id(fields.left) or new_id()
        given = fields.take(key)
        raw = given if isinstance(given, str) else dump_text({} if given is None else given)
        if fields.left.get("call_id", "") in (call_id, ""):
            fields.take("call_id")
    return ToolCall(
        id=call_id,
        name=fields.need("name"),
        arguments={} if tool_type == "custom" else loads_object(raw) or {},
        raw_arguments=raw,
        type=tool_type,
        extra={NAME: fields.left} if new_id else extra_for(fields.left),
    )


def open_call(
    left: dict[str, Any], tool_type: ToolType, index: int, new_id: NewId
) -> ToolCallSegment:
    """A call that begins to be streamed; `left` are the fields of its item but for its text."""
    call_id = _call_id(left) or new_id()
    left.pop("call_id", None)
    name = left.pop("name", None)
    return ToolCallSegment(
        index,
        call_id=call_id,
        name=name if isinstance(name, str) else "",
        tool_type=tool_type,
        extra={NAME: left},
    )


def _call_id(item: Mapping[str, Any]) -> str | None:
    """The id of a call, else that of its item."""
    found = (item.get(key) for key in ("call_id", "id"))
    return next((text for text in found if isinstance(text, str) and text), None)


def encode_call(call: ToolCall, made: str | None = None) -> dict[str, Any]:
    """The argument text as it came; `made` is the id of an item that has none of its own."""
    raw = call.raw_arguments
    item: dict[str, Any] = {
        "type": CALLS[call.type],
        "call_id": call.id,
        "name": call.name,
        ARGUMENTS[call.type]: dump_text(call.arguments) if raw is None else raw,
    }
    if made is not None:
        item |= {"id": made, "status": "completed"}
    return restore(item, call, NAME)


def decode_result(item: dict[str, Any], path: str, decode_content: DecodeContent) -> Part:
    """A tool's output: text, or content parts."""
    fields = Fields(item, path)
    if fields.left["type"] == RESULTS["function"]:
        fields.take("type")
    call_id = fields.need("call_id")
    content: Any = fields.take("output")
    if not isinstance(content, str):
        content = decode_content(content, fields.at("output"), INPUT_TEXT)
    name = fields.left.get("name")
    return ToolResult(
        tool_call_id=call_id,
        content=content,
        name=name if isinstance(name, str) else None,
        # an empty mark tells `[]`, which we would not write, from a result of others
        extra={NAME: fields.left} if content == () else extra_for(fields.left),
    )


def encode_result(
    result: ToolResult, tool_type: ToolType, losses: Losses, path: str, encode_part: EncodePart
) -> dict[str, Any]:
    """The output of a call to a tool of this type, unless it came as that of another."""
    item = {
        "call_id": result.tool_call_id,
        "output": _encode_output(result, losses, path, encode_part),
    }
    return {"type": RESULTS[tool_type], **restore(item, result, NAME)}


def _encode_output(result: ToolResult, losses: Losses, path: str, encode_part: EncodePart) -> Json:
    parts = result.parts
    if parts is None:
        content = result.content
        text = content if isinstance(content, str) else dump_text(content)
        return _say_error(text, losses, path) if result.is_error else text
    if not parts and NAME in result.extra:
        return []
    encoded = (
        encode_part(part, INPUT_TEXT, losses, f"{path}.content[{i}]")
        for i, part in enumerate(parts)
    )
    blocks = [block for block in encoded if block is not None]
    if result.is_error:
        blocks = _say_error_first(blocks, losses, path)
    return shorten(blocks, INPUT_TEXT) if blocks else ""


def _say_error_first(blocks: list[Any], losses: Losses, path: str) -> list[Any]:
    text = blocks[0].get("text") if blocks else None
    if isinstance(text, str) and text:
        return [{**blocks[0], "text": _say_error(text, losses, path)}, *blocks[1:]]
    return [{"type": INPUT_TEXT, "text": _say_error("", losses, path)}, *blocks]


def _say_error(text: str, losses: Losses, path: str) -> str:
    if text[:5].lower() == "error":
        return text
    losses.add("tool_error_as_text", f"{NAME} has no error flag; the text says it", path)
    return f"Error: {text}" if text else "Error"
