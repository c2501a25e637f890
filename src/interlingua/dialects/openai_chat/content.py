"""Parts <-> content parts of a message, and thinking <-> the fields, parts or tags that hold it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypedDict, assert_never

import msgspec

from interlingua.dialects.openai_chat.facts import (
    DEFAULT_QUIRKS,
    DETAILS,
    FIELDS,
    IMAGES,
    IN_PLACE,
    MADE,
    NAME,
    REASONING_FIELDS,
    SENT_AS,
    TAGS,
    WITHOUT,
    ChatQuirks,
    absent,
    append_items,
    complete,
    extra_for,
    mark_of,
)
from interlingua.dialects.openai_shared.rules import without_none
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
from interlingua.wire.fields import Fields, extra_of, text_of, wrong_type
from interlingua.wire.json_text import dump_text, loads_object
from interlingua.wire.media import (
    decode_base64,
    encode_base64,
    make_data_url,
    media_type_for,
    parse_data_url,
)

_ADDRESS = ("http:", "https:")
_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
# Names of media types that are in use for the two formats.
_AUDIO_FORMATS = {"audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3"}
_OPEN_TAG, _CLOSE_TAG = "<think>", "</think>"


class _Source(TypedDict, total=False):
    """The arguments of a media part that say where its content is."""

    url: str
    data: bytes
    media_type: str | None


def decode_content(fields: Fields, *, user: bool = False) -> tuple[Part, ...]:
    """
    The parts of `content`; a value that is no content stays in `fields.left`.

    OpenAI accepts media only from the user. Elsewhere they are marked, so that they are not
    moved when the request is encoded again.
    """
    content = fields.left.get("content")
    parts: tuple[Part, ...]
    if isinstance(content, str):
        parts = (Text(text=content),)
    elif isinstance(content, list) and content:
        parts = _decode_list(content, fields, user=user)
    elif fields.strict and content is not None and not isinstance(content, list):
        raise wrong_type(fields.at("content"), "text or an array of parts", content)
    elif isinstance(content, dict):
        parts = (decode_parsed(content),)
    else:
        return ()
    del fields.left["content"]
    return parts


def _decode_list(content: list[Json], fields: Fields, *, user: bool) -> tuple[Part, ...]:
    if not fields.strict:
        parts = [read_part(item) for item in content]
        if len(parts) > 1 and all(isinstance(part, Text) and not part.extra for part in parts):
            fields.left[SENT_AS] = "list"
        return tuple(parts)
    path = fields.at("content")
    parts = [decode_part(item, f"{path}[{i}]") for i, item in enumerate(content)]
    for i, part in enumerate(parts):
        if isinstance(part, MEDIA_TYPES) and not user:
            extra = {**part.extra, NAME: {**extra_of(part, NAME), IN_PLACE: True}}
            parts[i] = msgspec.structs.replace(part, extra=extra)
    return tuple(parts)


def decode_parsed(content: dict[str, Json]) -> Text:
    """Structured output that a server sent as an object instead of as text."""
    # Cloudflare, for a `json_schema` format (recorded).
    return Text(text=dump_text(content), extra={NAME: {SENT_AS: "json"}})


def encode_parsed(part: Part) -> dict[str, Json] | None:
    """The reverse of `decode_parsed`; None for any other part, or if it is no object any more."""
    if not isinstance(part, Text) or mark_of(part, SENT_AS) != "json":
        return None
    return loads_object(part.text) if part.text else None


def decode_part(block: Json, path: str = "") -> Part:
    """One content part; an unknown type is carried verbatim."""
    if not isinstance(block, dict):
        raise wrong_type(path, "a content part", block)
    kind = block.get("type")
    decode = _DECODERS.get(kind) if isinstance(kind, str) else None
    if decode is None:
        return Opaque(dialect=NAME, data=block)
    fields = Fields(block, path)
    del fields.left["type"]
    return decode(fields) or Opaque(dialect=NAME, data=block)


def read_part(block: Json) -> Part:
    """One content part of a response: one with invalid fields is carried verbatim too."""
    try:
        return decode_part(block)
    except DecodeError:
        return Opaque(dialect=NAME, data=block)


# Each decoder returns None for a content part that must be carried verbatim.


def _decode_text(fields: Fields) -> Part:
    return Text(text=fields.need("text"), extra=extra_for(fields.left))


def _decode_refusal(fields: Fields) -> Part:
    return Refusal(text=fields.need("refusal"), extra=extra_for(fields.left, sent_as="part"))


def _decode_image(fields: Fields) -> Part | None:
    match fields.take("image_url"):
        case str(url):  # Mistral documents both forms, and OpenAI accepted this one (recorded)
            return Image(**_source(url), extra=extra_for(fields.left, sent_as="text"))
        case {"url": str(url), **rest}:
            inner = Fields(rest, strict=False)
            detail, extra = inner.text("detail"), extra_for(fields.left, image_url=inner.left)
            return Image(**_source(url), detail=detail, extra=extra)
    return None


def _decode_audio(fields: Fields) -> Part | None:
    match fields.take("input_audio"):
        case str(text):  # Mistral: base64 or an address, without a format
            extra = extra_for(fields.left, sent_as="text")
            if text.startswith(_ADDRESS):
                return Audio(url=text, extra=extra)
            data = _exact_base64(text)
            return None if data is None else Audio(data=data, extra=extra)
        case {"data": str(text), "format": str(form), **rest}:
            data = _exact_base64(text)
            media_type = _AUDIO_TYPES.get(form, f"audio/{form}")
            if data is not None and _audio_format(media_type) == form:
                if form not in _AUDIO_TYPES:
                    fields.left[IN_PLACE] = True
                extra = extra_for(fields.left, input_audio=rest)
                return Audio(data=data, media_type=media_type, extra=extra)
    return None


def _decode_file(fields: Fields) -> Part | None:
    file = fields.take("file")
    if not isinstance(file, dict):
        return None
    inner = Fields(file, strict=False)
    # `file_data` is a data URL at OpenAI; OpenRouter takes an address there too.
    file_id, url, name = inner.text("file_id"), inner.text("file_data"), inner.text("filename")
    if url is None and file_id is not None:
        extra = extra_for(fields.left, file=inner.left)
        return Document(file_id=file_id, file_name=name, extra=extra)
    if url is None or file_id is not None or not url.startswith(("data:", *_ADDRESS)):
        return None
    source = _source(url)
    form = "file_data" if "url" in source else None
    missing = absent(file, "filename", inside="file")
    extra = extra_for(fields.left, missing, sent_as=form, file=inner.left)
    return Document(**source, file_name=name, extra=extra)


def _decode_video(fields: Fields) -> Part | None:
    # Accepted by OpenRouter, refused by DeepSeek (recorded). There is no canonical part for video:
    # a document holds any file.
    match fields.take("video_url"):
        case {"url": str(url), **rest}:
            source: _Source = {"media_type": media_type_for(b"", url, "video/mp4"), **_source(url)}
            extra = extra_for(fields.left, sent_as="video_url", video_url=rest)
            return Document(**source, extra=extra)
    return None


def _decode_document(fields: Fields) -> Part | None:
    url = fields.take("document_url")
    if not isinstance(url, str):
        return None
    name = fields.text("document_name")
    extra = extra_for(fields.left, sent_as="document_url")
    return Document(**_source(url), file_name=name, extra=extra)


def _decode_thinking_part(fields: Fields) -> Part | None:
    chunks = fields.take("thinking")
    texts: list[str] = []
    for chunk in chunks if isinstance(chunks, list) else [chunks]:
        match chunk:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case str(text) if chunk is chunks:
                texts.append(text)
            case _:
                return None
    text = "".join(texts)
    form = {} if chunks == thinking_chunks(text) else {"thinking": chunks}
    return Thinking(text=text, extra={NAME: {SENT_AS: "part", **fields.left, **form}})


_Decode: TypeAlias = Callable[[Fields], Part | None]
_DECODERS: dict[str, _Decode] = {
    "text": _decode_text,
    "refusal": _decode_refusal,
    "thinking": _decode_thinking_part,
    "image_url": _decode_image,
    "input_audio": _decode_audio,
    "file": _decode_file,
    "video_url": _decode_video,
    "document_url": _decode_document,
}


def _source(url: str) -> _Source:
    """The bytes if `url` is a data URL that can be rebuilt from them, otherwise the URL."""
    inline = parse_data_url(url)
    if inline is None or inline[1] is None or make_data_url(*inline) != url:
        return {"url": url}
    return {"data": inline[0], "media_type": inline[1]}


def _exact_base64(text: str) -> bytes | None:
    data = decode_base64(text)
    return data if data is not None and encode_base64(data) == text else None


def _audio_format(media_type: str) -> str:
    return _AUDIO_FORMATS.get(media_type, media_type.rpartition("/")[2])


def encode_part(
    part: Part, warnings: WarningList, quirks: ChatQuirks = DEFAULT_QUIRKS
) -> Json | None:
    """
    The content part for a part; None, and a warning, if there is none.

    Calls and results are not content parts: messages have fields for them.
    """
    match part:
        case Text():
            return encode_text(part)
        case Image() | Audio() | Document():
            block = _encode_media(part, warnings, quirks)
            if isinstance(block, str):
                warnings.media_dropped(part.kind, block)
                return None
            return block
        case Refusal():
            return complete({"type": "refusal", "refusal": part.text}, part)
        case Thinking():
            return encode_thinking_part(part)
        case Opaque():
            if part.dialect == NAME:
                data: Json = part.data
                return data
            warnings.add_here("foreign_block_dropped", owner=part.dialect)
        case ToolCall() | ToolResult():
            place = "in this message"
            warnings.add_here("misplaced_part_dropped", part=part.kind, place=place)
        case _:
            assert_never(part)
    return None


def encode_text(part: Text) -> dict[str, Json]:
    """A text as a content part."""
    item: dict[str, Json] = {"type": "text", "text": part.text}
    return complete(item, part) if part.extra else item


def _encode_media(
    part: Image | Audio | Document, warnings: WarningList, quirks: ChatQuirks
) -> dict[str, Json] | str:
    """The content part, or the name of what the server does not support."""
    if isinstance(part, Audio):
        return _encode_audio(part, quirks)
    if isinstance(part, Document):
        return _encode_document(part, warnings, quirks)
    url = _url_of(part, "image/png")
    if url is None:
        return "images by file id" if part.file_id else "an image without a source"
    is_text = mark_of(part, SENT_AS) == "text"
    image = url if is_text else {"url": url, **without_none(detail=part.detail)}
    return complete({"type": "image_url", "image_url": image}, part)


def _encode_audio(part: Audio, quirks: ChatQuirks) -> dict[str, Json] | str:
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
    audio = {"data": encode_base64(data), "format": form}
    return complete({"type": "input_audio", "input_audio": audio}, part)


def _encode_document(
    part: Document, warnings: WarningList, quirks: ChatQuirks
) -> dict[str, Json] | str:
    form = mark_of(part, SENT_AS)
    url = _url_of(part, "application/pdf")
    if form == "video_url":
        return complete({"type": "video_url", "video_url": {"url": url}}, part)
    if form == "document_url" or (quirks.document_url and url is not None):
        name = without_none(document_name=part.file_name)
        return complete({"type": "document_url", "document_url": url, **name}, part)
    file = without_none(file_id=part.file_id, filename=part.file_name)
    if part.file_id is not None:
        return complete({"type": "file", "file": file}, part)
    if part.text is not None:
        warnings.add_here("document_as_text")
        return {"type": "text", "text": part.text}
    if url is None or not (url.startswith("data:") or form == "file_data"):
        return "a document without a source" if url is None else "documents by URL"
    block = complete({"type": "file", "file": {"file_data": url, **file}}, part)
    inner = block["file"]
    # 15 of 16 recorded parts with data have a name: OpenAI requires one, other hosts may not.
    if isinstance(inner, dict) and not mark_of(part, WITHOUT):
        inner.setdefault("filename", "document.pdf")
    return block


def _url_of(part: Image | Document, default: str) -> str | None:
    if part.url is not None or part.data is None:
        return part.url
    name = part.file_name if isinstance(part, Document) else None
    return make_data_url(part.data, part.media_type or media_type_for(part.data, name, default))


# Images that the model made: a list beside the content, whose items are content parts.


def decode_images(fields: Fields) -> list[Part]:
    """The images of a message; empty, and the field stays unread, if an item is something else."""
    images = read_images(fields.left.get(IMAGES))
    if images:
        del fields.left[IMAGES]
    return images


def read_images(items: Json) -> list[Part]:
    """The images of a list; empty if it is no list, or if an item is something else."""
    parts = [read_part(item) for item in items] if isinstance(items, list) else []
    if not all(isinstance(part, Image) for part in parts):
        return []
    return [
        msgspec.structs.replace(part, extra={NAME: {**extra_of(part, NAME), MADE: True}})
        for part in parts
    ]


def encode_image(part: Part) -> Json | None:
    """An item of `images`; None if the part is not an image or cannot be encoded."""
    return encode_part(part, WarningList()) if isinstance(part, Image) else None


def encode_item(
    part: Part, warnings: WarningList, quirks: ChatQuirks, *, media: bool
) -> list[Json]:
    """The content part for a part, as a list; empty if there is none. `media`: they may be here."""
    if isinstance(part, MEDIA_TYPES) and not media and not mark_of(part, IN_PLACE):
        warnings.media_dropped(part.kind, f"{part.kind} outside user messages")
        return []
    item = encode_part(part, warnings, quirks)
    is_own = isinstance(part, Opaque) and part.dialect == NAME  # its data may be null
    return [] if item is None and not is_own else [item]


def join_content(items: list[Json], *, flat: bool = False) -> Json:
    """`content`: a string for no part or one plain text; `flat` joins several texts too."""
    if len(items) == 1:
        text = _plain_text(items[0])
        return items if text is None else text
    if flat or not items:
        texts = [text for item in items if (text := _plain_text(item)) is not None]
        if len(texts) == len(items):
            return "".join(texts)
    return items


def _plain_text(item: Json) -> str | None:
    # a match statement would read better, but takes ten times as long
    if type(item) is dict and len(item) == 2 and item.get("type") == "text":
        text = item.get("text")
        return text if isinstance(text, str) else None
    return None


# Thinking.


def decode_thinking(fields: Fields) -> Thinking | None:
    """
    The thinking of a message, from the fields that hold it; None if there is none.

    The details must be sent back unchanged. Their text is used only if no other field has one.
    """
    text, names = thinking_text(fields.left)
    for name in names:
        del fields.left[name]
    extra: dict[str, Json] = {FIELDS: names}
    details = fields.left.get(DETAILS)
    if isinstance(details, list) and details:
        extra[DETAILS] = fields.take(DETAILS)
        text = text or details_text(details)
    elif not names:
        return None
    return Thinking(text=text, extra={NAME: extra})


def thinking_text(message: Mapping[str, Json]) -> tuple[str, list[str]]:
    """
    The text of the thinking, and the names of the fields that hold it.

    Servers may send the same text in two fields. A second, different text is left unread.
    """
    text = ""
    names: list[str] = []
    for name in REASONING_FIELDS:
        value = message.get(name)
        if value and isinstance(value, str) and text in ("", value):
            text = value
            names.append(name)
    return text, names


def details_text(details: Sequence[Json]) -> str:
    """The readable text in `reasoning_details`."""
    return "".join(
        text_of(detail.get("text") or detail.get("summary"))
        for detail in details
        if isinstance(detail, dict)
    )


def split_tags(text: str) -> list[Part]:
    """Text that may start with thinking in tags, as parts."""
    if not text.lstrip().startswith(_OPEN_TAG):
        return _split_unopened(text)
    splitter = TagSplitter()
    pieces = [*splitter.feed(text), *splitter.finish()]
    thinking = "".join([piece for is_thinking, piece in pieces if is_thinking])
    part = Thinking(text=thinking, extra={NAME: {TAGS: splitter.tags}})
    return [part, *(Text(text=piece) for is_thinking, piece in pieces if not is_thinking)]


def _split_unopened(text: str) -> list[Part]:
    """
    Text that may be thinking up to a closing tag without its opening tag, as parts.

    Seen in recordings of llama.cpp with a model of Qwen, whose template puts the opening tag into
    the prompt. A tag that a text mentions has more text in its line.
    """
    thinking, close, rest = text.partition(_CLOSE_TAG)
    if not close or _OPEN_TAG[1:] in thinking or (rest and rest[0] not in "\r\n"):
        return [Text(text=text)]
    part = Thinking(text=thinking, extra={NAME: {TAGS: {"opened": False, "closed": True}}})
    return [part, Text(text=rest)] if rest else [part]


class TagSplitter:
    """
    Finds thinking in tags at the start of text that arrives in fragments, cut anywhere.

    Each piece of text is returned with whether it is thinking.
    """

    def __init__(self) -> None:
        self._before: list[str] = []  # the white space before the opening tag
        self._waiting = ""  # what may be the start of a tag
        self.is_past: bool = False
        """Whether all that follows is text."""
        self.tags: dict[str, Json] | None = None
        """The value of the mark `TAGS`; None if there are no tags."""

    @property
    def has_begun(self) -> bool:
        """Whether it has seen text."""
        return self.is_past or self.tags is not None or bool(self._before or self._waiting)

    def feed(self, text: str) -> list[tuple[bool, str]]:
        if self.is_past:
            return [(False, text)]
        if self.tags is None and not self._waiting:
            bare = text.lstrip()
            self._before.append(text[: len(text) - len(bare)])
            text = bare
        text, self._waiting = self._waiting + text, ""
        if self.tags is None:
            if _OPEN_TAG.startswith(text) and text != _OPEN_TAG:
                self._waiting = text
                return []
            before = "".join(self._before)
            if not text.startswith(_OPEN_TAG):
                self.is_past = True
                return [(False, before + text)]
            self.tags = {"before": before, "closed": False}
            text = text[len(_OPEN_TAG) :]
        thinking, close, rest = text.partition(_CLOSE_TAG)
        if close:
            self.is_past = True
            self.tags = {**self.tags, "closed": True}
        else:  # the text may end with the start of the closing tag
            overlap = next(
                n for n in range(len(_CLOSE_TAG) - 1, -1, -1) if text.endswith(_CLOSE_TAG[:n])
            )
            cut = len(text) - overlap
            thinking, self._waiting = text[:cut], text[cut:]
        return [piece for piece in ((True, thinking), (False, rest)) if piece[1]]

    def finish(self) -> list[tuple[bool, str]]:
        """The text that was held back because it could have been part of a tag; the last one."""
        text, self._waiting = self._waiting, ""
        if self.tags is None and not self.is_past:
            text = "".join(self._before) + text
        pieces = [] if self.is_past or not text else [(self.tags is not None, text)]
        self.is_past = True
        return pieces


def encode_thinking(part: Thinking, message: dict[str, Json]) -> list[Json]:
    """Append thinking to the fields of `message` that it came from, or return its content part."""
    extra = extra_of(part, NAME)
    if isinstance(extra.get(TAGS), dict):
        before, after = tags_around(extra[TAGS])
        return [{"type": "text", "text": f"{before}{part.text}{after}"}]
    if extra.get(SENT_AS) == "part":
        return [encode_thinking_part(part)]
    for name in thinking_fields(extra):
        message[name] = text_of(message.get(name)) + part.text
    if isinstance(extra.get(DETAILS), list):
        append_items(message, DETAILS, *extra[DETAILS])
    return []


def encode_thinking_part(part: Thinking) -> dict[str, Json]:
    """Thinking as a content part, as Mistral sends it."""
    chunks = extra_of(part, NAME).get("thinking", thinking_chunks(part.text))
    return complete({"type": "thinking", "thinking": chunks}, part)


def thinking_chunks(text: str) -> list[dict[str, Json]]:
    """The usual value of `thinking` in a content part."""
    return [{"type": "text", "text": text}]


def thinking_fields(extra: Mapping[str, Json]) -> list[str]:
    """The fields that the text of a thinking part is written to."""
    names = extra.get(FIELDS)
    if not isinstance(names, list):
        return [REASONING_FIELDS[0]]
    return [name for name in names if name in REASONING_FIELDS]


def tags_around(tags: Mapping[str, Json]) -> tuple[str, str]:
    """The text before thinking in tags, and after it."""
    opening = _OPEN_TAG if tags.get("opened", True) else ""
    return f"{tags.get('before') or ''}{opening}", _CLOSE_TAG if tags.get("closed", True) else ""
