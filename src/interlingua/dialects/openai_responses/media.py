"""Images, files and audio <-> their content parts."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_responses.wire import NAME, OUTPUT_TEXT, extra_for
from interlingua.spec.content import Audio, Document, Image, Part
from interlingua.wire.carry import Losses
from interlingua.wire.media import (
    decode_base64,
    encode_base64,
    make_data_url,
    media_type_for,
    parse_data_url,
)
from interlingua.wire.shape import Fields, extra_of

INLINE = ("image_url", "file_data")
"""Where inline data is written; in `extra`, the text it came as if we would write another."""

_AUDIO_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_AUDIO_FORMATS = {media_type: form for form, media_type in _AUDIO_TYPES.items()}
_SUFFIXES = {
    "text/plain": "txt",
    "text/markdown": "md",
    "text/csv": "csv",
    "text/html": "html",
    "application/json": "json",
}


def decode_image(fields: Fields) -> Part | None:
    """An image; None if it has no source."""
    detail = fields.text("detail")
    source: dict[str, Any]
    if (url := fields.text("image_url")) is not None:
        source = _decode_inline(fields, "image_url", url) or {"url": url}
    elif (file_id := fields.text("file_id")) is not None:
        source = {"file_id": file_id}
    else:
        return None
    # an empty mark says that it came without the detail that ours are given
    extra = {NAME: fields.left} if detail is None else extra_for(fields.left)
    return Image(**source, detail=detail, extra=extra)


def decode_document(fields: Fields) -> Part | None:
    """A file; None if it has no source that we can read."""
    name = fields.text("filename")
    source: dict[str, Any] | None = None
    if (data := fields.text("file_data")) is not None:
        source = _decode_inline(fields, "file_data", data)
    elif (url := fields.text("file_url")) is not None:
        source = {"url": url}
    elif (file_id := fields.text("file_id")) is not None:
        source = {"file_id": file_id}
    if source is None:
        return None
    # an empty mark says that it came without a name, which ours are given
    extra = {NAME: fields.left} if name is None else extra_for(fields.left)
    return Document(**source, file_name=name, extra=extra)


def decode_audio(fields: Fields) -> Part | None:
    """A sound, always marked as ours; None if writing it would give another text."""
    match fields.object("input_audio"):
        case {"data": str(text), "format": str(form), **rest} if not rest:
            data = decode_base64(text)
            media_type = _AUDIO_TYPES.get(form)
            if media_type is not None and data is not None and encode_base64(data) == text:
                return Audio(data=data, media_type=media_type, extra={NAME: fields.left})
    return None


def _decode_inline(fields: Fields, key: str, text: str) -> dict[str, Any] | None:
    """Inline data as bytes; its text is kept if writing the bytes would give another."""
    found = _parse_inline(key, text)
    if found is None:
        return None
    data, media_type = found
    if media_type is None or make_data_url(data, media_type) != text:
        fields.left[key] = text
    return {"data": data, "media_type": media_type}


def _parse_inline(key: str, text: str) -> tuple[bytes, str | None] | None:
    found = parse_data_url(text)
    if found is None and key == "file_data":  # some clients leave the `data:` head out
        data = decode_base64(text)
        return None if data is None else (data, None)
    return found


def encode_media(
    part: Image | Document | Audio, text_kind: str, losses: Losses, path: str
) -> dict[str, Any] | None:
    """The content part without what `extra` keeps; None, and a warning, if there is none."""
    block: dict[str, Any] | None = None
    if isinstance(part, Audio) and NAME not in part.extra:
        losses.dropped("audio", NAME, path)  # message content takes none here
    elif text_kind == OUTPUT_TEXT:
        losses.dropped(f"{part.kind} of the model", NAME, path, code=part.kind)
    else:
        block = _encode(part)
        if block is None:
            losses.dropped(f"{part.kind} of this kind", NAME, path, code=part.kind)
    return block


def _encode(part: Image | Document | Audio) -> dict[str, Any] | None:
    if isinstance(part, Image):
        return _encode_image(part)
    return _encode_document(part) if isinstance(part, Document) else _encode_audio(part)


def _encode_image(part: Image) -> dict[str, Any] | None:
    block: dict[str, Any] = {"type": "input_image"}
    if part.url is not None:
        block["image_url"] = part.url
    elif part.data is not None:
        media_type = part.media_type or media_type_for(part.data) or "image/png"
        block["image_url"] = _encode_inline(part, "image_url", part.data, media_type)
    elif part.file_id is not None:
        block["file_id"] = part.file_id
    else:
        return None
    if part.detail is not None or NAME not in part.extra:
        block["detail"] = part.detail or "auto"  # the API's types require it
    return block


def _encode_document(part: Document) -> dict[str, Any] | None:
    block: dict[str, Any] = {"type": "input_file"}
    name = part.file_name
    if part.file_id is not None:
        block["file_id"] = part.file_id
    elif part.url is not None and parse_data_url(part.url) is None:
        block["file_url"] = part.url
    else:
        source = _inline_source(part)
        if source is None:
            return None
        data, media_type = source[0], source[1] or "application/pdf"
        if name is None and NAME not in part.extra:  # the API wants a name with inline data
            name = f"document.{_SUFFIXES.get(media_type, 'pdf')}"
        block["file_data"] = _encode_inline(part, "file_data", data, media_type)
    if name is not None:
        block["filename"] = name
    return block


def _inline_source(part: Document) -> tuple[bytes, str | None] | None:
    if part.url is not None:
        return parse_data_url(part.url)
    if part.text is not None:
        return part.text.encode("utf-8", "replace"), part.media_type or "text/plain"
    if part.data is None:
        return None
    return part.data, part.media_type or media_type_for(part.data, part.file_name)


def _encode_audio(part: Audio) -> dict[str, Any] | None:
    form = _AUDIO_FORMATS.get(part.media_type or "")
    if part.data is None or form is None:
        return None
    sound = {"data": encode_base64(part.data), "format": form}
    return {"type": "input_audio", "input_audio": sound}


def _encode_inline(part: Image | Document, key: str, data: bytes, media_type: str) -> str:
    """The data URL; the text it came as, if that still says the same."""
    came = extra_of(part, NAME).get(key)
    found = _parse_inline(key, came) if isinstance(came, str) else None
    if found is not None and found[0] == data and found[1] in (media_type, None):
        return str(came)  # without a media type of its own, ours was only a guess
    return make_data_url(data, media_type)
