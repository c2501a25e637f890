"""Parts <-> content parts of a message."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from interlingua.dialects.openai_chat.facts import NAME
from interlingua.dialects.openai_chat.marks import (
    IN_PLACE,
    SENT_AS,
    WITHOUT,
    complete,
    extra_for,
    given,
    mark_of,
    note_absent,
)
from interlingua.dialects.openai_chat.quirks import DEFAULT_QUIRKS, ChatQuirks
from interlingua.dialects.openai_chat.thinking import decode_thinking_part, encode_thinking_part
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
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, wrong_type
from interlingua.wire.json_text import dump_text, loads_object
from interlingua.wire.media import (
    decode_base64,
    encode_base64,
    make_data_url,
    media_type_for,
    parse_data_url,
)

# Images, audio and documents <-> content parts.


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
    part: Image | Audio | Document, warnings: WarningList, quirks: ChatQuirks
) -> Json | None:
    """The content part; None, and a warning, if the part cannot be said."""
    match part:
        case Image():
            block = _encode_image(part)
        case Audio():
            block = _encode_audio(part, quirks)
        case Document():
            block = _encode_document(part, warnings, quirks)
    if isinstance(block, str):
        warnings.media_dropped(part.kind, block)
        return None
    return block


# Each of the encoders gives the words for what it cannot say.


def _encode_image(part: Image) -> dict[str, Any] | str:
    url = _url_of(part, "image/png")
    if url is None:
        return "images by file id" if part.file_id else "an image without a source"
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
        return "audio by URL"
    form = _audio_format(media_type or media_type_for(data) or "audio/wav")
    if form not in quirks.audio_formats and not mark_of(part, IN_PLACE):
        return f"{form} audio"
    sound = {"data": encode_base64(data), "format": form}
    return complete({"type": "input_audio", "input_audio": sound}, part)


def _encode_document(
    part: Document, warnings: WarningList, quirks: ChatQuirks
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
        warnings.add_here("document_as_text")
        return {"type": "text", "text": part.text}
    if url is None or not (url.startswith("data:") or form == "file_data"):
        return "a document without a source" if url is None else "documents by URL"
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


def decode_content(fields: Fields, *, user: bool = False) -> tuple[Part, ...]:
    """
    The parts of `content`; what is none stays in `fields.left`.

    Media are marked where only some servers take them: anywhere but from the user.
    """
    content = fields.left.get("content")
    if isinstance(content, list) and content:
        del fields.left["content"]
        return _decode_list(content, fields, user=user)
    if isinstance(content, str):
        del fields.left["content"]
        return (Text(text=content),)
    if fields.strict and content is not None and not isinstance(content, list):
        raise wrong_type(fields.at("content"), "text or an array of parts", content)
    if not isinstance(content, dict):
        return ()
    del fields.left["content"]
    return (parsed_text(content),)


def _decode_list(content: list[Json], fields: Fields, *, user: bool) -> tuple[Part, ...]:
    if fields.strict:
        path = fields.at("content")
        parts = [decode_part(item, f"{path}[{i}]") for i, item in enumerate(content)]
        return tuple(part if user else _mark_in_place(part) for part in parts)
    parts = [read_part(item) for item in content]
    if len(parts) > 1 and all(isinstance(part, Text) and not part.extra for part in parts):
        fields.left[SENT_AS] = "list"
    return tuple(parts)


def _mark_in_place(part: Part) -> Part:
    """Media are said to be where the server took them."""
    if not isinstance(part, MEDIA):
        return part
    extra = {**part.extra, NAME: {**extra_of(part, NAME), IN_PLACE: True}}
    return msgspec.structs.replace(part, extra=extra)


def parsed_text(content: dict[str, Any]) -> Text:
    """Structured output that came already parsed."""
    return Text(text=dump_text(content), extra={NAME: {SENT_AS: "json"}})


def parsed_again(part: Part) -> dict[str, Any] | None:
    """The reverse of `parsed_text`; None for any other part, or one changed since."""
    if not isinstance(part, Text) or mark_of(part, SENT_AS) != "json":
        return None
    return loads_object(part.text) if part.text else None


def read_part(block: Json) -> Part:
    """One part of an answer: what does not fit its own kind is kept as it is."""
    try:
        return decode_part(block)
    except DecodeError:
        return Opaque(dialect=NAME, data=block)


def _decode_text(fields: Fields) -> Part:
    return Text(text=fields.need("text"), extra=extra_for(fields.left))


def _decode_refusal(fields: Fields) -> Part:
    return Refusal(text=fields.need("refusal"), extra=extra_for(fields.left, sent_as="part"))


_DECODE: dict[str, Any] = {
    "text": _decode_text,
    "refusal": _decode_refusal,
    "thinking": decode_thinking_part,
    "image_url": decode_image,
    "input_audio": decode_audio,
    "file": decode_file,
    "video_url": decode_video,
    "document_url": decode_document,
}


def encode_text(part: Text) -> dict[str, Any]:
    """A text as a content part."""
    item: dict[str, Any] = {"type": "text", "text": part.text}
    return complete(item, part) if part.extra else item


def encode_part(
    part: Part, warnings: WarningList, quirks: ChatQuirks = DEFAULT_QUIRKS
) -> Json | None:
    """
    The content part that says a part; None, and a warning, if there is none.

    Calls and results are no content parts here: messages have fields for them.
    """
    match part:
        case Text():
            return encode_text(part)
        case Image() | Audio() | Document():
            return encode_media(part, warnings, quirks)
        case Refusal():
            return complete({"type": "refusal", "refusal": part.text}, part)
        case Thinking():
            return encode_thinking_part(part)
        case Opaque():
            if part.dialect == NAME:
                return part.data
            warnings.add_here("foreign_block_dropped", owner=part.dialect)
        case ToolCall() | ToolResult():
            place = "in this message"
            warnings.add_here("misplaced_part_dropped", part=part.kind, place=place)
        case _:
            assert_never(part)
    return None


def encode_item(
    part: Part, warnings: WarningList, quirks: ChatQuirks, *, media: bool
) -> list[Json]:
    """The content part for a part, if there is one and it may stand here."""
    if isinstance(part, MEDIA) and not media and not mark_of(part, IN_PLACE):
        warnings.media_dropped(part.kind, f"{part.kind} outside user messages")
        return []
    item = encode_part(part, warnings, quirks)
    is_own = isinstance(part, Opaque) and part.dialect == NAME  # it may be null
    return [] if item is None and not is_own else [item]


def join_content(items: list[Json], *, flat: bool = False) -> Json:
    """No part or one plain text may be written as a string; `flat` joins several."""
    if len(items) == 1:
        text = _plain(items[0])
        return items if text is None else text
    if flat or not items:
        texts = [text for item in items if (text := _plain(item)) is not None]
        if len(texts) == len(items):
            return "".join(texts)
    return items


def _plain(item: Json) -> str | None:
    # a pattern reads better and costs ten times as much
    if type(item) is dict and len(item) == 2 and item.get("type") == "text":
        text = item.get("text")
        return text if isinstance(text, str) else None
    return None
