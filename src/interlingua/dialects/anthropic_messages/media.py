"""Images and documents <-> their blocks."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.anthropic_messages.wire import NAME, extra_for
from interlingua.spec.content import Document, Image, Opaque, Part
from interlingua.wire.carry import Losses
from interlingua.wire.media import decode_base64, encode_base64, media_type_for, parse_data_url
from interlingua.wire.shape import Fields, restore


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


def encode_media(part: Image | Document, losses: Losses, path: str) -> dict[str, Any] | None:
    """The block; None, and a warning, if the part has no source."""
    source = _encode_source(part)
    if source is None:
        losses.dropped(f"empty {part.kind}", NAME, path)
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
