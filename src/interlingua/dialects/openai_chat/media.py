"""Images, audio and documents <-> content parts."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_chat.quirks import ChatQuirks
from interlingua.dialects.openai_chat.wire import (
    IN_PLACE,
    NAME,
    SENT_AS,
    WITHOUT,
    complete,
    extra_for,
    given,
    mark_of,
    note_absent,
)
from interlingua.spec.content import Audio, Document, Image, Json, Part
from interlingua.wire.carry import Losses
from interlingua.wire.media import (
    decode_base64,
    encode_base64,
    make_data_url,
    media_type_for,
    parse_data_url,
)
from interlingua.wire.shape import Fields

_ADDRESS = ("http:", "https:")
_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_AUDIO_FORMATS = {"audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3"}
MEDIA = (Image, Audio, Document)


# Each of the decoders gives None for a content part that must be kept as it is.


def decode_image(fields: Fields) -> Part | None:
    image = fields.take("image_url")
    if isinstance(image, str):
        return Image(**_source(image), extra=extra_for(fields.left, sent_as="text"))
    if not isinstance(image, dict) or not isinstance(image.get("url"), str):
        return None
    inner = Fields(image, strict=False)
    url, detail = inner.take("url"), inner.text("detail")
    return Image(**_source(url), detail=detail, extra=extra_for(fields.left, image_url=inner.left))


def decode_audio(fields: Fields) -> Part | None:
    match fields.take("input_audio"):
        case str(text):
            extra = extra_for(fields.left, sent_as="text")
            if text.startswith(_ADDRESS):
                return Audio(url=text, extra=extra)
            data = _exact_base64(text)
            return None if data is None else Audio(data=data, extra=extra)
        case {"data": str(text), "format": str(form), **rest}:
            data = _exact_base64(text)
            media_type = _AUDIO_TYPES.get(form, f"audio/{form}")
            if data is not None and _audio_format(media_type) == form:
                in_place = form not in _AUDIO_TYPES
                extra = extra_for(fields.left, in_place=in_place, input_audio=rest)
                return Audio(data=data, media_type=media_type, extra=extra)
    return None


def decode_file(fields: Fields) -> Part | None:
    file = fields.take("file")
    if not isinstance(file, dict):
        return None
    inner = Fields(file, strict=False)
    file_id, url, name = inner.text("file_id"), inner.text("file_data"), inner.text("filename")
    if url is None and file_id is not None:
        extra = extra_for(fields.left, file=inner.left)
        return Document(file_id=file_id, file_name=name, extra=extra)
    if url is None or file_id is not None or not url.startswith(("data:", *_ADDRESS)):
        return None
    source = _source(url)
    form = "file_data" if "url" in source else None
    missing = note_absent(file, "filename", inside="file")
    extra = extra_for(fields.left, missing, sent_as=form, file=inner.left)
    return Document(**source, file_name=name, extra=extra)


def decode_video(fields: Fields) -> Part | None:
    match fields.take("video_url"):
        case {"url": str(url), **rest}:
            source = {"media_type": media_type_for(b"", url, "video/mp4"), **_source(url)}
            extra = extra_for(fields.left, sent_as="video_url", video_url=rest)
            return Document(**source, extra=extra)
    return None


def decode_document(fields: Fields) -> Part | None:
    url = fields.take("document_url")
    if not isinstance(url, str):
        return None
    name = fields.text("document_name")
    extra = extra_for(fields.left, sent_as="document_url")
    return Document(**_source(url), file_name=name, extra=extra)


def _source(url: str) -> dict[str, Any]:
    """Bytes if the address holds them and can be rebuilt from them, else the address."""
    inline = parse_data_url(url)
    if inline is None or inline[1] is None or make_data_url(*inline) != url:
        return {"url": url}
    return {"data": inline[0], "media_type": inline[1]}


def _exact_base64(text: str) -> bytes | None:
    data = decode_base64(text)
    return data if data is not None and encode_base64(data) == text else None


def encode_media(
    part: Image | Audio | Document, losses: Losses, path: str, quirks: ChatQuirks
) -> Json | None:
    """The content part; None, and a warning, if the part cannot be said."""
    match part:
        case Image():
            block = _encode_image(part)
        case Audio():
            block = _encode_audio(part, quirks)
        case Document():
            block = _encode_document(part, losses, path, quirks)
    if isinstance(block, str):
        losses.dropped(block, NAME, path)
        return None
    return block


# Each of the encoders gives the words for what it cannot say.


def _encode_image(part: Image) -> dict[str, Any] | str:
    url = _url_of(part, "image/png")
    if url is None:
        return "image by file id" if part.file_id else "empty image"
    image = url if mark_of(part, SENT_AS) == "text" else {"url": url, **given(detail=part.detail)}
    return complete({"type": "image_url", "image_url": image}, part)


def _encode_audio(part: Audio, quirks: ChatQuirks) -> dict[str, Any] | str:
    if mark_of(part, SENT_AS) == "text":
        text = part.url if part.data is None else encode_base64(part.data)
        return complete({"type": "input_audio", "input_audio": text}, part)
    data, media_type = part.data, part.media_type
    inline = parse_data_url(part.url) if part.url is not None else None
    if inline is not None:
        data, media_type = inline[0], media_type or inline[1]
    if data is None:
        return "audio by address"
    form = _audio_format(media_type or media_type_for(data) or "audio/wav")
    if form not in quirks.audio_formats and not mark_of(part, IN_PLACE):
        return f"{form} audio"
    sound = {"data": encode_base64(data), "format": form}
    return complete({"type": "input_audio", "input_audio": sound}, part)


def _encode_document(
    part: Document, losses: Losses, path: str, quirks: ChatQuirks
) -> dict[str, Any] | str:
    form = mark_of(part, SENT_AS)
    url = _url_of(part, "application/pdf")
    if form == "video_url":
        return complete({"type": "video_url", "video_url": {"url": url}}, part)
    if form == "document_url" or (quirks.document_url and url is not None):
        name = given(document_name=part.file_name)
        return complete({"type": "document_url", "document_url": url, **name}, part)
    file = given(file_id=part.file_id, filename=part.file_name)
    if part.file_id is not None:
        return complete({"type": "file", "file": file}, part)
    if part.text is not None:
        losses.add("document_as_text", f"{NAME} has no text documents; its text was sent", path)
        return {"type": "text", "text": part.text}
    if url is None or not (url.startswith("data:") or form == "file_data"):
        return "empty document" if url is None else "document by address"
    block = complete({"type": "file", "file": {"file_data": url, **file}}, part)
    if not mark_of(part, WITHOUT):
        block["file"].setdefault("filename", "document.pdf")  # it must have one
    return block


def _url_of(part: Image | Document, default: str) -> str | None:
    if part.url is not None or part.data is None:
        return part.url
    name = getattr(part, "file_name", None)
    return make_data_url(part.data, part.media_type or media_type_for(part.data, name, default))


def _audio_format(media_type: str) -> str:
    return _AUDIO_FORMATS.get(media_type, media_type.rpartition("/")[2])
