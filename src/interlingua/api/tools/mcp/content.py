"""Decodes results of MCP tools to tool results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from interlingua.spec.content import Audio, Document, Extra, Image, Json, Part, Text, ToolResult
from interlingua.spec.errors import DecodeError
from interlingua.wire.json_text import dump_text, loads
from interlingua.wire.media import decode_base64, media_type_for, sniff

_KEY = "mcp"
"""The key in `extra` for the fields of a block beside its content, such as URI and annotations."""


def decode_result(result: Mapping[str, Any], name: str) -> ToolResult:
    """
    Decode the result of a tool to text, JSON or parts; `isError` becomes `is_error`.

    Structured content becomes JSON, and text that only repeats it is dropped. Servers wrap a
    value that is not an object as `{"result": …}`; it is unwrapped if the text repeats the value.
    """
    parts = tuple(_decode_block(block) for block in result.get("content") or ())
    content = _join(parts, result.get("structuredContent"))
    is_error = bool(result.get("isError"))
    if is_error and content in ((), ""):
        content = "the tool failed without an error message"
    return ToolResult(tool_call_id="", name=name, content=content, is_error=is_error)


def _join(parts: tuple[Part, ...], structured: Json) -> Json | tuple[Part, ...]:
    texts = [part.text for part in parts if isinstance(part, Text) and not part.extra]
    is_text = len(texts) == len(parts)
    if structured is None:
        return texts[0] if is_text and len(texts) == 1 else parts
    if not parts:
        return structured
    if _repeats(texts, structured):
        return structured if is_text else parts
    match structured:
        case {"result": value} if len(structured) == 1 and _repeats(texts, value):
            return value if is_text else parts
    return (*parts, Text(text=dump_text(structured)))


def _repeats(texts: list[str], value: Json) -> bool:
    if len(texts) == 1 and (texts[0] == value or _parse(texts[0]) == value):
        return True
    # Servers often send one text block for each item of a list.
    return isinstance(value, list) and len(texts) == len(value) and [*map(_parse, texts)] == value


def _parse(text: str) -> Json:
    try:
        return loads(text)
    except DecodeError:
        return text


def _decode_block(block: Json) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text=text, extra=_extra(block, "text"))
        case {"type": "image", "data": str(base64)}:
            return _decode_media(block, block, base64, "image/")
        case {"type": "audio", "data": str(base64)}:
            return _decode_media(block, block, base64, "audio/")
        case {"type": "resource", "resource": {"text": str(text)}}:
            # Not a document: most providers accept few document types, but all accept text.
            return Text(text=text, extra=_extra(block, "text"))
        case {"type": "resource", "resource": {"blob": str(base64)}}:
            return _decode_media(block, block["resource"], base64, "")
        case {"type": "resource_link", "uri": str()}:
            return Text(text=_describe_link(block), extra={_KEY: block})
        case _:
            return Text(text=dump_text(block), extra={_KEY: block})


def _decode_media(block: Json, fields: Mapping[str, Any], base64: str, family: str) -> Part:
    """`family` is the media type that the block implies: `image/`, `audio/`, or any if empty."""
    declared = fields.get("mimeType")
    data = decode_base64(base64)
    if data is None:
        return Text(text=f"[{declared or 'data'}: invalid base64]", extra={_KEY: block})
    file_name = _file_name(fields.get("uri"))
    media_type = _media_type(data, declared, file_name, family)
    extra = _extra(block, "data", "blob")
    family = family or f"{(media_type or '').partition('/')[0]}/"
    if family == "image/":
        return Image(data=data, media_type=media_type, extra=extra)
    if family == "audio/":
        return Audio(data=data, media_type=media_type, extra=extra)
    return Document(data=data, media_type=media_type, file_name=file_name, extra=extra)


def _media_type(
    data: bytes, declared: str | None, file_name: str | None, family: str
) -> str | None:
    # The bytes win over the declared type: providers reject an image whose type is wrong.
    sniffed = sniff(data)
    if sniffed is not None and sniffed.startswith(family or ("image/", "audio/")):
        return sniffed
    if declared and declared != "application/octet-stream":
        return declared
    return media_type_for(data, file_name, declared)


def _extra(block: Mapping[str, Any], *content: str) -> Extra:
    """The fields of the block except its content, as `extra`; empty if there are none."""
    decoded = {"type", "mimeType", *content}
    fields = {key: value for key, value in block.items() if key not in decoded}
    resource = fields.get("resource")
    if isinstance(resource, dict):
        fields["resource"] = {key: value for key, value in resource.items() if key not in content}
    return {_KEY: fields} if fields else {}


def _describe_link(block: Mapping[str, Any]) -> str:
    title = block.get("title") or block.get("name") or "resource"
    details = [str(block[key]) for key in ("mimeType", "description") if block.get(key)]
    return f"[{title}]({block['uri']})" + (f": {', '.join(details)}" if details else "")


def _file_name(uri: Any) -> str | None:
    if not isinstance(uri, str):
        return None
    try:
        path = urlsplit(uri).path
    except ValueError:
        return None
    return unquote(path).rpartition("/")[2] or None
