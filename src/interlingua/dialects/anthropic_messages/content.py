"""Parts <-> content blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from interlingua.dialects.anthropic_messages.facts import NAME, extra_for
from interlingua.prepare.media import media_note
from interlingua.spec.content import (
    MEDIA_TYPES,
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
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, restore, wrong_type
from interlingua.wire.json_text import dump_text
from interlingua.wire.media import decode_base64, encode_base64, media_type_for, parse_data_url
from interlingua.wire.tool_calls import input_object

# Images and documents <-> their blocks.


def decode_image(fields: Fields, block: dict[str, Any]) -> Part:
    source = _decode_source(fields)
    if source is None or "text" in source:
        return Opaque(dialect=NAME, data=block)
    return Image(**source, extra=extra_for(fields.left))


def decode_document(fields: Fields, block: dict[str, Any]) -> Part:
    source = _decode_source(fields)
    if source is None:
        return Opaque(dialect=NAME, data=block)
    title = fields.text("title")
    return Document(**source, file_name=title, extra=extra_for(fields.left))


def encode_media(part: Image | Document, warnings: WarningList) -> dict[str, Any] | None:
    """The block; None, and a warning, if the part has no source."""
    source = _encode_source(part)
    if source is None:
        warnings.media_dropped(part.kind, f"{part.kind} without a source")
        return None
    block: dict[str, Any] = {"type": part.kind, "source": source}
    if isinstance(part, Document) and part.file_name is not None:
        block["title"] = part.file_name
    return restore(block, part, NAME)


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


def _encode_source(part: Image | Document) -> dict[str, Any] | None:
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
        return None
    media_type = media_type or media_type_for(data, getattr(part, "file_name", None))
    if media_type is None:
        media_type = "image/png" if isinstance(part, Image) else "application/pdf"
    return {"type": "base64", "media_type": media_type, "data": encode_base64(data)}


# Thinking <-> its blocks.


def decode_thinking(fields: Fields, _: dict[str, Any]) -> Part:
    text = fields.text("thinking") or ""
    signature = fields.text("signature")
    return Thinking(text=text, signature=signature, extra={NAME: fields.left})


def decode_redacted(fields: Fields, _: dict[str, Any]) -> Part:
    return Thinking(redacted=True, data=fields.text("data"), extra={NAME: fields.left})


def encode_thinking(part: Thinking, warnings: WarningList) -> dict[str, Any] | None:
    """Only what this API made goes back to it: it checks the signature."""
    if not is_native(part):
        reason = f"{warnings.target} accepts only its own thinking"
        warnings.add_here("foreign_thinking_dropped", reason=reason)
        return None
    if part.redacted:
        return restore({"type": "redacted_thinking", "data": part.data}, part, NAME)
    block: dict[str, Any] = {"type": "thinking", "thinking": part.text}
    if part.signature is not None:
        block["signature"] = part.signature
    return restore(block, part, NAME)


def show_thinking(part: Thinking) -> dict[str, Any] | None:
    """
    A thought of any model, as an answer shows it.

    Another's has an empty signature, as clients want one: it proves nothing and says so.
    """
    if is_native(part):
        return encode_thinking(part, WarningList())
    if part.redacted or not part.text:
        return None
    return {"type": "thinking", "thinking": part.text, "signature": ""}


def is_native(part: Thinking) -> bool:
    """Whether this API made the thought; one made by hand may claim so by its signature."""
    return NAME in part.extra or (not part.extra and bool(part.signature or part.redacted))


# Tool calls and results <-> their blocks.


DecodeContent: TypeAlias = Callable[[Json, str], tuple[Part, ...]]


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


def encode_tool_use(call: ToolCall, _: WarningList) -> dict[str, Any]:
    """Arguments are an object here: text that is none goes in one under `input`."""
    block = {"type": "tool_use", "id": call.id, "name": call.name, "input": input_object(call)}
    return restore(block, call, NAME) if call.extra else block


def encode_tool_result(result: ToolResult, warnings: WarningList) -> dict[str, Any]:
    """A JSON value is said as its text."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.tool_call_id}
    content = result.content
    if isinstance(content, str):
        block["content"] = content
    elif not isinstance(content, tuple):
        block["content"] = dump_text(content)
    elif content:
        block["content"] = _encode_result_parts(content, warnings)
    if result.is_error:
        block["is_error"] = True
    return restore(block, result, NAME) if result.extra else block


def _encode_result_parts(parts: tuple[Part, ...], warnings: WarningList) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for warnings.inner, part in enumerate(parts):
        block = encode_part(part, warnings)
        if block is None and isinstance(part, MEDIA_TYPES):
            block = _encode_text(media_note(part), warnings)
        if block is not None:
            blocks.append(block)
    warnings.inner = None
    return blocks


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
    text, left = fields.need("text"), fields.left
    return Text(text=text, extra=extra_for(left) if left else {})


_DECODE: dict[str, Any] = {
    "text": _decode_text,
    "thinking": decode_thinking,
    "redacted_thinking": decode_redacted,
    "tool_use": decode_tool_use,
    "tool_result": lambda fields, _: decode_tool_result(fields, decode_content),
    "image": decode_image,
    "document": decode_document,
}


def encode_part(part: Part, warnings: WarningList) -> dict[str, Any] | None:
    """The block that says a part; None, and a warning, if there is none."""
    return ENCODERS[type(part)](part, warnings)


def _encode_text(part: Text, _: WarningList) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": part.text}
    return restore(block, part, NAME) if part.extra else block


def _encode_refusal(part: Refusal, warnings: WarningList) -> dict[str, Any]:
    warnings.add_here("refusal_as_text")
    return {"type": "text", "text": part.text}


def _encode_opaque(part: Opaque, warnings: WarningList) -> dict[str, Any] | None:
    if part.dialect == NAME and isinstance(part.data, dict):
        return part.data
    warnings.add_here("foreign_block_dropped", owner=part.dialect)
    return None


def _encode_audio(part: Audio, warnings: WarningList) -> None:
    warnings.media_dropped(part.kind, "audio input")


ENCODERS: Mapping[type, Callable[[Any, WarningList], dict[str, Any] | None]] = {
    Text: _encode_text,
    ToolCall: encode_tool_use,
    ToolResult: encode_tool_result,
    Thinking: encode_thinking,
    Image: encode_media,
    Document: encode_media,
    Refusal: _encode_refusal,
    Opaque: _encode_opaque,
    Audio: _encode_audio,
}
"""The encoder of each kind of part."""
