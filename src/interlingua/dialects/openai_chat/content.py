"""Parts <-> content parts of a message."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from interlingua.dialects.openai_chat.media import (
    MEDIA,
    decode_audio,
    decode_document,
    decode_file,
    decode_image,
    decode_video,
    encode_media,
)
from interlingua.dialects.openai_chat.quirks import DEFAULT_QUIRKS, ChatQuirks
from interlingua.dialects.openai_chat.thinking import decode_thinking_part, encode_thinking_part
from interlingua.dialects.openai_chat.wire import (
    IN_PLACE,
    NAME,
    SENT_AS,
    complete,
    extra_for,
    mark_of,
)
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
from interlingua.wire.jsontext import dump_text, loads_object
from interlingua.wire.shape import Fields, extra_of, wrong_type


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
    return complete({"type": "text", "text": part.text}, part)


def encode_part(
    part: Part, losses: Losses, path: str, quirks: ChatQuirks = DEFAULT_QUIRKS
) -> Json | None:
    """
    The content part that says a part; None, and a warning, if there is none.

    Calls and results are no content parts here: messages have fields for them.
    """
    match part:
        case Text():
            return encode_text(part)
        case Image() | Audio() | Document():
            return encode_media(part, losses, path, quirks)
        case Refusal():
            return complete({"type": "refusal", "refusal": part.text}, part)
        case Thinking():
            return encode_thinking_part(part)
        case Opaque():
            if part.dialect == NAME:
                return part.data
            losses.foreign_block(part.dialect, NAME, path)
        case ToolCall() | ToolResult():
            losses.dropped(f"{part.kind} in this place", NAME, path, code=part.kind)
        case _:
            assert_never(part)
    return None


def encode_item(
    part: Part, losses: Losses, path: str, quirks: ChatQuirks, *, media: bool
) -> list[Json]:
    """The content part for a part, if there is one and it may stand here."""
    if isinstance(part, MEDIA) and not media and not mark_of(part, IN_PLACE):
        losses.dropped(
            f"{part.kind} in a message that is not the user's", NAME, path, code=part.kind
        )
        return []
    item = encode_part(part, losses, path, quirks)
    is_own = isinstance(part, Opaque) and part.dialect == NAME  # it may be null
    return [] if item is None and not is_own else [item]


def join_content(items: list[Json], *, flat: bool = False) -> Json:
    """No part or one plain text may be written as a string; `flat` joins several."""
    if flat or len(items) <= 1:
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
