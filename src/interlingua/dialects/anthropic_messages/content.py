"""Parts <-> content blocks."""

from __future__ import annotations

from typing import Any, assert_never

from interlingua.dialects.anthropic_messages.calls import (
    decode_tool_result,
    decode_tool_use,
    encode_tool_result,
    encode_tool_use,
)
from interlingua.dialects.anthropic_messages.media import (
    decode_document,
    decode_image,
    encode_media,
)
from interlingua.dialects.anthropic_messages.thinking import (
    decode_redacted,
    decode_thinking,
    encode_thinking,
)
from interlingua.dialects.anthropic_messages.wire import NAME, extra_for
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Json,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.errors import DecodeError
from interlingua.wire.carry import Losses
from interlingua.wire.shape import Fields, restore, wrong_type


def decode_part(block: Json, path: str = "") -> Part:
    """One block; a kind we do not know is kept as it is."""
    if not isinstance(block, dict):
        raise wrong_type(path, "a content block", block)
    kind = block.get("type")
    decode = _DECODE.get(kind) if isinstance(kind, str) else None
    if decode is None:
        return Opaque(dialect=NAME, data=block)
    fields = Fields(block, path)
    fields.take("type")
    return decode(fields, block)  # type: ignore[no-any-return]


def decode_content(content: Json, path: str) -> tuple[Part, ...]:
    """A string is one text block."""
    if isinstance(content, str):
        return (Text(text=content),)
    if not isinstance(content, list):
        raise wrong_type(path, "text or an array of blocks", content)
    return tuple(decode_part(block, f"{path}[{i}]") for i, block in enumerate(content))


def read_part(block: Json) -> Part:
    """One block of an answer: what does not fit its own kind is kept as it is."""
    try:
        return decode_part(block)
    except DecodeError:
        return Opaque(dialect=NAME, data=block)


def _decode_text(fields: Fields, _: dict[str, Any]) -> Part:
    return Text(text=fields.need("text"), extra=extra_for(fields.left))


_DECODE: dict[str, Any] = {
    "text": _decode_text,
    "thinking": decode_thinking,
    "redacted_thinking": decode_redacted,
    "tool_use": decode_tool_use,
    "tool_result": lambda fields, _: decode_tool_result(fields, decode_content),
    "image": decode_image,
    "document": decode_document,
}


def encode_part(part: Part, losses: Losses, path: str) -> dict[str, Any] | None:
    """The block that says a part; None, and a warning, if there is none."""
    match part:
        case Text():
            return restore({"type": "text", "text": part.text}, part, NAME)
        case ToolCall():
            return encode_tool_use(part)
        case ToolResult():
            return encode_tool_result(part, losses, path, encode_part)
        case Thinking():
            return encode_thinking(part, losses, path)
        case Image() | Document():
            return encode_media(part, losses, path)
        case Refusal():
            losses.add("refusal_as_text", f"{NAME} has no refusal block; it was sent as text", path)
            return {"type": "text", "text": part.text}
        case Opaque():
            if part.dialect == NAME and isinstance(part.data, dict):
                return part.data
            losses.foreign_block(part.dialect, NAME, path)
        case Audio():
            losses.dropped("audio", NAME, path)
        case _:
            assert_never(part)
    return None
