"""Parts <-> content parts of a message or of a tool's output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from interlingua.dialects.openai_responses.wire import ITEM, NAME
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
)
from interlingua.wire.carry import Losses
from interlingua.wire.media import (
    decode_base64,
    encode_base64,
    make_data_url,
    media_type_for,
    parse_data_url,
)
from interlingua.wire.shape import Fields, extra_of, wrong_type

INPUT_TEXT = "input_text"
OUTPUT_TEXT = "output_text"

_TEXT_KINDS = (INPUT_TEXT, OUTPUT_TEXT, "text")
_AUDIO_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_AUDIO_FORMATS = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
}
_SUFFIXES = {
    "text/plain": "txt",
    "text/markdown": "md",
    "text/csv": "csv",
    "text/html": "html",
    "application/json": "json",
}
_OURS = (ITEM, "type", "image_url", "file_data")  # put back by hand, not beside the rest


def decode_content(content: Json, path: str, text_kind: str) -> tuple[Part, ...]:
    """A string is one text part, of the kind that is usual here."""
    if isinstance(content, str):
        return (Text(text=content),)
    if not isinstance(content, list):
        raise wrong_type(path, "text or an array of parts", content)
    return tuple(decode_part(block, f"{path}[{i}]", text_kind) for i, block in enumerate(content))


def decode_part(block: Json, path: str, text_kind: str) -> Part:
    """One content part; a kind we do not know is kept as it is."""
    if not isinstance(block, dict):
        raise wrong_type(path, "a content part", block)
    kind = block.get("type")
    fields = Fields(block, path)
    fields.take("type")
    if isinstance(kind, str) and kind in _TEXT_KINDS:
        text = fields.need("text")
        if kind != text_kind:
            fields.left["type"] = kind
        return Text(text=text, extra=_extra(fields.left))
    decode = _DECODE.get(kind) if isinstance(kind, str) else None
    return (decode and decode(fields)) or Opaque(dialect=NAME, data=block)


def _extra(left: dict[str, Any]) -> Extra:
    return {NAME: left} if left else {}


def _decode_refusal(fields: Fields) -> Part:
    return Refusal(text=fields.need("refusal"), extra=_extra(fields.left))


def _decode_image(fields: Fields) -> Part | None:
    detail = fields.text("detail")
    url = fields.text("image_url")
    if url is not None:
        source = _decode_url(fields, "image_url", url)
        return Image(**source, detail=detail, extra=_extra(fields.left))
    file_id = fields.text("file_id")
    if file_id is None:
        return None
    return Image(file_id=file_id, detail=detail, extra=_extra(fields.left))


def _decode_file(fields: Fields) -> Part | None:
    source: dict[str, Any]
    name = fields.text("filename")
    if (data := fields.text("file_data")) is not None:
        source = _decode_url(fields, "file_data", data)
        if "url" in source:
            return None
    elif (url := fields.text("file_url")) is not None:
        source = {"url": url}
    elif (file_id := fields.text("file_id")) is not None:
        source = {"file_id": file_id}
    else:
        return None
    # an empty mark says that it came without a name, which ours are given
    extra = {NAME: fields.left} if fields.left or name is None else {}
    return Document(**source, file_name=name, extra=extra)


def _decode_audio(fields: Fields) -> Part | None:
    match fields.object("input_audio"):
        case {"data": str(text), "format": str(form), **rest} if not rest:
            data = decode_base64(text)
            media_type = _AUDIO_TYPES.get(form)
            if media_type is not None and data is not None and encode_base64(data) == text:
                return Audio(data=data, media_type=media_type, extra=_extra(fields.left))
    return None


def _decode_url(fields: Fields, key: str, text: str) -> dict[str, Any]:
    """Inline data as bytes; its text is kept if writing the bytes would give another."""
    found = _parse_inline(key, text)
    if found is None:
        return {"url": text}
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


_DECODE: dict[str, Callable[[Fields], Part | None]] = {
    "refusal": _decode_refusal,
    "input_image": _decode_image,
    "input_file": _decode_file,
    "input_audio": _decode_audio,
}


def encode_part(part: Part, text_kind: str, losses: Losses, path: str) -> dict[str, Any] | None:
    """The content part that says a part; None, and a warning, if there is none."""
    kept = extra_of(part, NAME)
    match part:
        case Text():
            return _restore({"type": kept.get("type", text_kind), "text": part.text}, kept)
        case Refusal():
            if text_kind == OUTPUT_TEXT:
                return _restore({"type": "refusal", "refusal": part.text}, kept)
            losses.add("refusal_as_text", "only the model can refuse; it was sent as text", path)
            return {"type": text_kind, "text": part.text}
        case Opaque():
            if part.dialect == NAME and isinstance(part.data, dict):
                return part.data
            losses.dropped(f"block of {part.dialect}", NAME, path)
            return None
        case Image() | Document() | Audio():
            return _encode_media(part, kept, text_kind, losses, path)
    losses.dropped(f"{part.kind} inside a message", NAME, path)
    return None


def _encode_media(
    part: Image | Document | Audio,
    kept: Mapping[str, Any],
    text_kind: str,
    losses: Losses,
    path: str,
) -> dict[str, Any] | None:
    wire: dict[str, Any] | None
    if text_kind == OUTPUT_TEXT:
        losses.dropped(f"{part.kind} of the model", NAME, path)
        return None
    if isinstance(part, Image):
        wire = _encode_image(part, kept)
    elif isinstance(part, Document):
        wire = _encode_file(part, kept)
    else:
        wire = _encode_audio(part)
    if wire is None:
        losses.dropped(f"{part.kind} of this kind", NAME, path)
        return None
    return _restore(wire, kept)


def _restore(wire: dict[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in kept.items():
        if key not in _OURS:
            wire.setdefault(key, value)
    return wire


def _encode_image(part: Image, kept: Mapping[str, Any]) -> dict[str, Any] | None:
    wire: dict[str, Any] = {"type": "input_image"}
    if part.url is not None:
        wire["image_url"] = part.url
    elif part.data is not None:
        wire["image_url"] = _inline(part.data, part.media_type, "image_url", kept, "image/png")
    elif part.file_id is not None:
        wire["file_id"] = part.file_id
    else:
        return None
    wire["detail"] = "auto" if part.detail is None else part.detail  # the API's types require it
    return wire


def _encode_file(part: Document, kept: Mapping[str, Any]) -> dict[str, Any] | None:
    wire: dict[str, Any] = {"type": "input_file"}
    name = part.file_name
    if part.file_id is not None:
        wire["file_id"] = part.file_id
    elif part.url is not None and parse_data_url(part.url) is None:
        wire["file_url"] = part.url
    else:
        source = _inline_source(part)
        if source is None:
            return None
        data, media_type = source
        if name is None and NAME not in part.extra:  # the API wants a name with inline data
            name = f"document.{_SUFFIXES.get(media_type or '', 'pdf')}"
        wire["file_data"] = _inline(data, media_type, "file_data", kept, "application/pdf")
    if name is not None:
        wire["filename"] = name
    return wire


def _inline_source(part: Document) -> tuple[bytes, str | None] | None:
    if part.url is not None:
        return parse_data_url(part.url)
    if part.text is not None:
        return part.text.encode("utf-8", "replace"), part.media_type or "text/plain"
    if part.data is None:
        return None
    return part.data, part.media_type or media_type_for(part.data, part.file_name)


def _encode_audio(part: Audio) -> dict[str, Any] | None:
    data, media_type = part.data, part.media_type
    if part.url is not None and (found := parse_data_url(part.url)) is not None:
        data, media_type = found[0], media_type or found[1]
    if data is None:
        return None
    form = _AUDIO_FORMATS.get(media_type or media_type_for(data) or "")
    if form is None:
        return None
    return {
        "type": "input_audio",
        "input_audio": {"data": encode_base64(data), "format": form},
    }


def _inline(
    data: bytes, media_type: str | None, key: str, kept: Mapping[str, Any], default: str
) -> str:
    """The data URL; the text it came as, if that still says the same."""
    came = kept.get(key)
    if isinstance(came, str):
        found = _parse_inline(key, came)
        if found is not None and found[0] == data and found[1] in (media_type, None):
            return came  # without a media type of its own, ours was only a guess
    return make_data_url(data, media_type or media_type_for(data) or default)
