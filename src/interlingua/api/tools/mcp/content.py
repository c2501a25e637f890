"""Results of MCP tools -> tool results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from interlingua.spec.content import Audio, Document, Extra, Image, Json, Part, Text, ToolResult
from interlingua.spec.errors import DecodeError
from interlingua.wire.json_text import dump_text, loads
from interlingua.wire.media import decode_base64, media_type_for, sniff

_KEY = "mcp"
"""Under this key of `extra` a part keeps what a block says beside its content: URI, annotations."""


def decode_result(result: Mapping[str, Any], name: str) -> ToolResult:
    """
    What a tool gave, as text, JSON or parts; an error stays one.

    Structured content is JSON, and text that only repeats it is left out. `{"result": …}`, in
    which servers wrap what is no object, is taken off where the text says the same without it.
    """
    parts = tuple(_decode_block(block) for block in result.get("content") or ())
    content = _join(parts, result.get("structuredContent"))
    is_error = bool(result.get("isError"))
    if is_error and content in ((), ""):
        content = "the tool failed and gave no reason"
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
    if len(texts) == 1 and (texts[0] == value or _read(texts[0]) == value):
        return True
    # a list is often said item by item
    return isinstance(value, list) and len(texts) == len(value) and [*map(_read, texts)] == value


def _read(text: str) -> Json:
    try:
        return loads(text)
    except DecodeError:
        return text


def _decode_block(block: Json) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text=text, extra=_kept(block, "text"))
        case {"type": "image", "data": str(coded)}:
            return _decode_media(block, block, coded, "image/")
        case {"type": "audio", "data": str(coded)}:
            return _decode_media(block, block, coded, "audio/")
        case {"type": "resource", "resource": {"text": str(text)}}:
            # No document: most providers take only few kinds of them, but all take text.
            return Text(text=text, extra=_kept(block, "text"))
        case {"type": "resource", "resource": {"blob": str(coded)}}:
            return _decode_media(block, block["resource"], coded, "")
        case {"type": "resource_link", "uri": str()}:
            return Text(text=_describe_link(block), extra={_KEY: block})
        case _:
            return Text(text=dump_text(block), extra={_KEY: block})


def _decode_media(block: Json, holder: Mapping[str, Any], coded: str, family: str) -> Part:
    """The family is what the block says it is: `image/`, `audio/`, or nothing."""
    declared = holder.get("mimeType")
    data = decode_base64(coded)
    if data is None:
        return Text(text=f"[{declared or 'data'} that is not base64]", extra={_KEY: block})
    file_name = _file_name(holder.get("uri"))
    media_type = _media_type(data, declared, file_name, family)
    extra = _kept(block, "data", "blob")
    kind = family or f"{(media_type or '').partition('/')[0]}/"
    if kind == "image/":
        return Image(data=data, media_type=media_type, extra=extra)
    if kind == "audio/":
        return Audio(data=data, media_type=media_type, extra=extra)
    return Document(data=data, media_type=media_type, file_name=file_name, extra=extra)


def _media_type(
    data: bytes, declared: str | None, file_name: str | None, family: str
) -> str | None:
    # Providers refuse an image whose bytes are of another type than was said.
    sniffed = sniff(data)
    if sniffed is not None and sniffed.startswith(family or ("image/", "audio/")):
        return sniffed
    if declared and declared != "application/octet-stream":
        return declared
    return media_type_for(data, file_name, declared)


def _kept(block: Mapping[str, Any], *content: str) -> Extra:
    """The block without its content, if anything is left to keep."""
    gone = {"type", "mimeType", *content}
    kept = {key: value for key, value in block.items() if key not in gone}
    inner = kept.get("resource")
    if isinstance(inner, dict):
        kept["resource"] = {key: value for key, value in inner.items() if key not in content}
    return {_KEY: kept} if kept else {}


def _describe_link(block: Mapping[str, Any]) -> str:
    title = block.get("title") or block.get("name") or "resource"
    about = [str(block[key]) for key in ("mimeType", "description") if block.get(key)]
    return f"[{title}]({block['uri']})" + (f": {', '.join(about)}" if about else "")


def _file_name(uri: Any) -> str | None:
    if not isinstance(uri, str):
        return None
    try:
        path = urlsplit(uri).path
    except ValueError:
        return None
    return unquote(path).rpartition("/")[2] or None
