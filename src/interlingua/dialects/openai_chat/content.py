"""Parts <-> content parts of a message."""

from __future__ import annotations

from typing import Any, assert_never

from interlingua.dialects.openai_chat.marks import (
    IN_PLACE,
    SENT_AS,
    WITHOUT,
    complete,
    keep,
    mark_of,
)
from interlingua.dialects.openai_chat.quirks import DEFAULT_QUIRKS, ChatQuirks
from interlingua.dialects.openai_chat.wire import NAME
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
from interlingua.wire.jsontext import loads
from interlingua.wire.media import (
    decode_base64,
    encode_base64,
    make_data_url,
    media_type_for,
    parse_data_url,
)
from interlingua.wire.shape import Fields, extra_of, wrong_type

_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
MEDIA = (Image, Audio, Document)


def decode_part(block: Json, path: str = "") -> Part:
    """One content part; a kind we do not know is kept as it is."""
    if not isinstance(block, dict):
        raise wrong_type(path, "a content part", block)
    kind = block.get("type")
    decode = _DECODE.get(kind) if isinstance(kind, str) else None
    if decode is None:
        return Opaque(dialect=NAME, data=block)
    fields = Fields(block, path)
    fields.take("type")
    return decode(fields) or Opaque(dialect=NAME, data=block)


def read_part(block: Json) -> Part:
    """One part of an answer: what does not fit its own kind is kept as it is."""
    try:
        return decode_part(block)
    except DecodeError:
        return Opaque(dialect=NAME, data=block)


def _decode_text(fields: Fields) -> Part:
    text = fields.need("text")
    return Text(text=text, extra=keep(fields.left))


def _decode_refusal(fields: Fields) -> Part:
    text = fields.need("refusal")
    return Refusal(text=text, extra={NAME: {SENT_AS: "part", **fields.left}})


def _decode_thinking(fields: Fields) -> Part | None:
    chunks = fields.take("thinking")
    text = _thought(chunks)
    if text is None:
        return None
    extra = {SENT_AS: "part", **fields.left}
    if chunks != thought_chunks(text):
        extra["thinking"] = chunks
    return Thinking(text=text, extra={NAME: extra})


def _thought(chunks: Any) -> str | None:
    """The text of a thought given in chunks; None if they hold more than text."""
    if isinstance(chunks, str):
        return chunks
    texts: list[str] = []
    for chunk in chunks if isinstance(chunks, list) else [chunks]:
        match chunk:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case _:
                return None
    return "".join(texts)


def thought_chunks(text: str) -> list[dict[str, Any]]:
    """The usual form of a thought in a content part."""
    return [{"type": "text", "text": text}]


def _decode_image(fields: Fields) -> Part | None:
    match fields.take("image_url"):
        case str(url):
            return Image(**_source(url), extra=keep({SENT_AS: "text", **fields.left}))
        case {"url": str(url)} as image:
            inner = Fields(image, strict=False)
            inner.take("url")
            detail = inner.text("detail")
            if inner.left:
                fields.left["image_url"] = inner.left
            return Image(**_source(url), detail=detail, extra=keep(fields.left))
    return None


def _decode_audio(fields: Fields) -> Part | None:
    match fields.take("input_audio"):
        case str(text):
            extra = keep({SENT_AS: "text", **fields.left})
            if text.startswith(("http:", "https:")):
                return Audio(url=text, extra=extra)
            data = _exact_base64(text)
            return None if data is None else Audio(data=data, extra=extra)
        case {"data": str(text), "format": str(form), **rest}:
            data = _exact_base64(text)
            media_type = _AUDIO_TYPES.get(form, f"audio/{form}")
            if data is None or _audio_format(media_type) != form:
                return None
            if form not in _AUDIO_TYPES:
                fields.left[IN_PLACE] = True
            if rest:
                fields.left["input_audio"] = rest
            return Audio(data=data, media_type=media_type, extra=keep(fields.left))
    return None


def _decode_file(fields: Fields) -> Part | None:
    file = fields.take("file")
    if not isinstance(file, dict):
        return None
    inner = Fields(file, strict=False)
    file_id, url = inner.text("file_id"), inner.text("file_data")
    if (file_id is None) is (url is None):
        return None
    source: dict[str, Any] = {"file_id": file_id}
    if url is not None:
        if not url.startswith(("data:", "http:", "https:")):
            return None
        source = _source(url)
        if "url" in source:
            fields.left[SENT_AS] = "file_data"
        if "filename" not in file:
            fields.left[WITHOUT] = ["file.filename"]
    name = inner.text("filename")
    if inner.left:
        fields.left["file"] = inner.left
    return Document(**source, file_name=name, extra=keep(fields.left))


def _decode_video(fields: Fields) -> Part | None:
    match fields.take("video_url"):
        case {"url": str(url), **rest}:
            source = _source(url)
            source.setdefault("media_type", media_type_for(b"", url, "video/mp4"))
            if rest:
                fields.left["video_url"] = rest
            return Document(**source, extra={NAME: {SENT_AS: "video_url", **fields.left}})
    return None


def _decode_document(fields: Fields) -> Part | None:
    url = fields.take("document_url")
    if not isinstance(url, str):
        return None
    name = fields.text("document_name")
    extra = {NAME: {SENT_AS: "document_url", **fields.left}}
    return Document(**_source(url), file_name=name, extra=extra)


_DECODE: dict[str, Any] = {
    "text": _decode_text,
    "refusal": _decode_refusal,
    "thinking": _decode_thinking,
    "image_url": _decode_image,
    "input_audio": _decode_audio,
    "file": _decode_file,
    "video_url": _decode_video,
    "document_url": _decode_document,
}


def _source(url: str) -> dict[str, Any]:
    """Bytes if the address holds them and can be rebuilt from them, else the address."""
    inline = parse_data_url(url)
    if inline is None or inline[1] is None or make_data_url(*inline) != url:
        return {"url": url}
    return {"data": inline[0], "media_type": inline[1]}


def _exact_base64(text: str) -> bytes | None:
    data = decode_base64(text)
    return data if data is not None and encode_base64(data) == text else None


def encode_part(
    part: Part, losses: Losses, path: str, quirks: ChatQuirks = DEFAULT_QUIRKS
) -> Json | None:
    """
    The content part that says a part; None, and a warning, if there is none.

    Thinking, calls and results are no content parts here: messages have fields for them.
    """
    match part:
        case Text():
            return _encode_text(part)
        case Image():
            return _encode_image(part, losses, path)
        case Audio():
            return _encode_audio(part, losses, path, quirks)
        case Document():
            return _encode_document(part, losses, path, quirks)
        case Refusal():
            return complete({"type": "refusal", "refusal": part.text}, part)
        case Thinking():
            chunks = extra_of(part, NAME).get("thinking", thought_chunks(part.text))
            return complete({"type": "thinking", "thinking": chunks}, part)
        case Opaque():
            if part.dialect == NAME:
                return part.data
            losses.dropped(f"part of {part.dialect}", NAME, path)
        case ToolCall() | ToolResult():
            losses.dropped(f"{part.kind} in this place", NAME, path)
        case _:
            assert_never(part)
    return None


def _encode_text(part: Text) -> Json:
    if mark_of(part, SENT_AS) == "json":
        try:
            return loads(part.text)
        except DecodeError:  # it was changed since
            return {"type": "text", "text": part.text}
    return complete({"type": "text", "text": part.text}, part)


def _encode_image(part: Image, losses: Losses, path: str) -> Json | None:
    url = _url_of(part, "image/png")
    if url is None:
        losses.dropped("image by file id" if part.file_id else "empty image", NAME, path)
        return None
    if mark_of(part, SENT_AS) == "text":
        return complete({"type": "image_url", "image_url": url}, part)
    image = {"url": url} if part.detail is None else {"url": url, "detail": part.detail}
    return complete({"type": "image_url", "image_url": image}, part)


def _encode_audio(part: Audio, losses: Losses, path: str, quirks: ChatQuirks) -> Json | None:
    if mark_of(part, SENT_AS) == "text":
        text = part.url if part.data is None else encode_base64(part.data)
        return complete({"type": "input_audio", "input_audio": text}, part)
    data, media_type = part.data, part.media_type
    inline = parse_data_url(part.url) if part.url is not None else None
    if inline is not None:
        data, media_type = inline[0], media_type or inline[1]
    if data is None:
        losses.dropped("audio by address", NAME, path)
        return None
    form = _audio_format(media_type or media_type_for(data) or "audio/wav")
    if form not in quirks.audio_formats and not mark_of(part, IN_PLACE):
        losses.dropped(f"{form} audio", NAME, path)
        return None
    sound = {"data": encode_base64(data), "format": form}
    return complete({"type": "input_audio", "input_audio": sound}, part)


def _encode_document(part: Document, losses: Losses, path: str, quirks: ChatQuirks) -> Json | None:
    form = mark_of(part, SENT_AS)
    url = _url_of(part, "application/pdf")
    if form == "video_url":
        return complete({"type": "video_url", "video_url": {"url": url}}, part)
    if form == "document_url" or (quirks.document_url and url is not None):
        name = {} if part.file_name is None else {"document_name": part.file_name}
        return complete({"type": "document_url", "document_url": url, **name}, part)
    named = {} if part.file_name is None else {"filename": part.file_name}
    if part.file_id is not None:
        return complete({"type": "file", "file": {"file_id": part.file_id, **named}}, part)
    if part.text is not None:
        losses.add("document_as_text", f"{NAME} has no text documents; its text was sent", path)
        return {"type": "text", "text": part.text}
    if url is None or not (url.startswith("data:") or form == "file_data"):
        losses.dropped("empty document" if url is None else "document by address", NAME, path)
        return None
    block = complete({"type": "file", "file": {"file_data": url, **named}}, part)
    if not mark_of(part, WITHOUT):
        block["file"].setdefault("filename", "document.pdf")  # it must have one
    return block


def _url_of(part: Image | Document, default: str) -> str | None:
    if part.url is not None:
        return part.url
    if part.data is None:
        return None
    name = getattr(part, "file_name", None)
    return make_data_url(part.data, part.media_type or media_type_for(part.data, name, default))


def _audio_format(media_type: str) -> str:
    return _AUDIO_FORMATS.get(media_type, media_type.rpartition("/")[2])
