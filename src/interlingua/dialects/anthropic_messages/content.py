"""Parts <-> content blocks."""

from __future__ import annotations

from typing import Any, assert_never

from interlingua.dialects.anthropic_messages.wire import NAME
from interlingua.spec.content import (
    Audio,
    Document,
    Extra,
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
from interlingua.wire.jsontext import dump_text
from interlingua.wire.media import decode_base64, encode_base64, media_type_for, parse_data_url
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


def _extra(left: dict[str, Any]) -> Extra:
    return {NAME: left} if left else {}


def _decode_text(fields: Fields, _: dict[str, Any]) -> Part:
    text = fields.need("text")
    return Text(text=text, extra=_extra(fields.left))


def _decode_thinking(fields: Fields, _: dict[str, Any]) -> Part:
    text = fields.text("thinking") or ""
    signature = fields.text("signature")
    return Thinking(text=text, signature=signature, extra={NAME: fields.left})


def _decode_redacted(fields: Fields, _: dict[str, Any]) -> Part:
    data = fields.text("data")
    return Thinking(redacted=True, data=data, extra={NAME: fields.left})


def _decode_tool_use(fields: Fields, _: dict[str, Any]) -> Part:
    return ToolCall(
        id=fields.need("id"),
        name=fields.need("name"),
        arguments=fields.object("input") or {},
        extra=_extra(fields.left),
    )


def _decode_tool_result(fields: Fields, _: dict[str, Any]) -> Part:
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
        tool_call_id=call_id, content=content, is_error=is_error, extra=_extra(fields.left)
    )


def _decode_image(fields: Fields, block: dict[str, Any]) -> Part:
    source = _decode_source(fields)
    if source is None or "text" in source:
        return Opaque(dialect=NAME, data=block)
    return Image(**source, extra=_extra(fields.left))


def _decode_document(fields: Fields, block: dict[str, Any]) -> Part:
    source = _decode_source(fields)
    if source is None:
        return Opaque(dialect=NAME, data=block)
    title = fields.text("title")
    return Document(**source, file_name=title, extra=_extra(fields.left))


def _decode_source(fields: Fields) -> dict[str, Any] | None:
    """The part's fields for a source, or None if the block must be kept as it is."""
    source = fields.object("source")
    match source:
        case {"type": "url", "url": str(url), **rest} if not rest:
            return {"url": url}
        case {"type": "file", "file_id": str(file_id), **rest} if not rest:
            return {"file_id": file_id}
        case {"type": "text", "media_type": str(media_type), "data": str(text), **rest} if not rest:
            return {"text": text, "media_type": media_type}
        case {"type": "base64", "media_type": str(media_type), "data": str(text), **rest} if (
            not rest
        ):
            data = decode_base64(text)
            if data is not None and encode_base64(data) == text:
                return {"data": data, "media_type": media_type}
    return None


_DECODE: dict[str, Any] = {
    "text": _decode_text,
    "thinking": _decode_thinking,
    "redacted_thinking": _decode_redacted,
    "tool_use": _decode_tool_use,
    "tool_result": _decode_tool_result,
    "image": _decode_image,
    "document": _decode_document,
}


def encode_part(part: Part, losses: Losses, path: str) -> dict[str, Any] | None:  # noqa: C901 -- one case a part
    """The block that says a part; None, and a warning, if there is none."""
    match part:
        case Text():
            return restore({"type": "text", "text": part.text}, part, NAME)
        case Image():
            source = _encode_source(part, losses, path)
            return source and restore({"type": "image", "source": source}, part, NAME)
        case Document():
            source = _encode_source(part, losses, path)
            title = {} if part.file_name is None else {"title": part.file_name}
            return source and restore({"type": "document", "source": source, **title}, part, NAME)
        case ToolCall():
            return encode_tool_use(part)
        case ToolResult():
            return _encode_tool_result(part, losses, path)
        case Thinking():
            return _encode_thinking(part, losses, path)
        case Refusal():
            losses.add("refusal_as_text", f"{NAME} has no refusal block; it was sent as text", path)
            return {"type": "text", "text": part.text}
        case Opaque():
            if part.dialect == NAME and isinstance(part.data, dict):
                return part.data
            losses.dropped(f"block of {part.dialect}", NAME, path)
        case Audio():
            losses.dropped("audio", NAME, path)
        case _:
            assert_never(part)
    return None


def encode_tool_use(call: ToolCall) -> dict[str, Any]:
    """Arguments are an object here: text that is none goes in one under `input`."""
    arguments = call.arguments
    if call.type == "custom" or not (arguments or call.is_valid):
        arguments = {"input": call.raw_arguments}
    block = {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}
    return restore(block, call, NAME)


def _encode_tool_result(result: ToolResult, losses: Losses, path: str) -> dict[str, Any]:
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


def _encode_thinking(part: Thinking, losses: Losses, path: str) -> dict[str, Any] | None:
    native = NAME in part.extra or (not part.extra and bool(part.signature or part.redacted))
    if not native:
        losses.dropped("thinking of another model", NAME, path)
        return None
    if part.redacted:
        return restore({"type": "redacted_thinking", "data": part.data}, part, NAME)
    block: dict[str, Any] = {"type": "thinking", "thinking": part.text}
    if part.signature is not None:
        block["signature"] = part.signature
    return restore(block, part, NAME)


def _encode_source(part: Image | Document, losses: Losses, path: str) -> dict[str, Any] | None:
    data, media_type = part.data, part.media_type
    if part.url is not None:
        inline = parse_data_url(part.url)
        if inline is None:
            return {"type": "url", "url": part.url}
        data, media_type = inline[0], media_type or inline[1]
    if part.file_id is not None:
        return {"type": "file", "file_id": part.file_id}
    if isinstance(part, Document) and part.text is not None:
        return {"type": "text", "media_type": part.media_type or "text/plain", "data": part.text}
    if data is None:
        losses.dropped(f"empty {part.kind}", NAME, path)
        return None
    media_type = media_type or media_type_for(data, getattr(part, "file_name", None))
    if media_type is None:
        media_type = "image/png" if isinstance(part, Image) else "application/pdf"
    return {"type": "base64", "media_type": media_type, "data": encode_base64(data)}
