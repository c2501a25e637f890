"""Converts what a tool's function returns to the content of a tool result."""

from __future__ import annotations

from typing import Any

from interlingua.api.types.shapes import to_json
from interlingua.spec.content import Audio, Document, Image, Json, Opaque, Part, Text, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.json_text import dump_text
from interlingua.wire.media import sniff

_PARTS = (Text, Image, Audio, Document, Opaque)


def to_result_content(value: Any) -> str | Json | tuple[Part, ...]:
    """
    Convert a value to text, JSON or parts; a `ToolResult` is returned unchanged.

    Bytes become an image, audio, document or text part, depending on their first bytes. If a list
    or tuple contains a part or bytes, its other items become text parts.
    """
    if isinstance(value, (str, ToolResult)):
        return value
    if isinstance(value, bytes):
        return _from_bytes(value)
    if isinstance(value, _PARTS):
        return (value,)
    if isinstance(value, (list, tuple)) and any(
        isinstance(item, (*_PARTS, bytes)) for item in value
    ):
        return tuple(_part(item) for item in value)
    return _json(value)


def _part(item: Any) -> Part:
    if isinstance(item, _PARTS):
        return item
    if isinstance(item, bytes):
        content = _from_bytes(item)
        return Text(text=content) if isinstance(content, str) else content[0]
    return Text(text=item if isinstance(item, str) else dump_text(_json(item)))


def _from_bytes(data: bytes) -> str | tuple[Part, ...]:
    media_type = sniff(data)
    if media_type is None:
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ConfigurationError(
                "the tool returned bytes of an unknown media type; return text or "
                "Document(data=..., media_type=...)"
            ) from None
    match media_type.partition("/")[0]:
        case "image":
            return (Image(data=data, media_type=media_type),)
        case "audio":
            return (Audio(data=data, media_type=media_type),)
        case _:
            return (Document(data=data, media_type=media_type),)


def _json(value: Any) -> Json:
    try:
        builtins = to_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"the tool returned a {type(value).__name__}, which cannot be converted to JSON: "
            f"{error}"
        ) from error
    return list(builtins) if isinstance(builtins, tuple) else builtins
