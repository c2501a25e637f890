"""Parts <-> content parts of a message or of a tool's output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlingua.dialects.openai_responses.media import (
    INLINE,
    decode_audio,
    decode_document,
    decode_image,
    encode_media,
)
from interlingua.dialects.openai_responses.wire import (
    INPUT_TEXT,
    ITEM,
    NAME,
    OUTPUT_TEXT,
    extra_for,
)
from interlingua.spec.content import Audio, Document, Image, Json, Opaque, Part, Refusal, Text
from interlingua.wire.carry import Losses
from interlingua.wire.shape import Fields, extra_of, wrong_type

_TEXT_KINDS = (INPUT_TEXT, OUTPUT_TEXT, "text")
_NOT_BESIDE = (ITEM, *INLINE)  # what is kept, but not put back as a field of the block


def decode_content(content: Json, path: str, text_kind: str) -> tuple[Part, ...]:
    """A string is one text part, of the kind that is usual here."""
    if isinstance(content, str):
        return (Text(text=content),)
    if not isinstance(content, list):
        raise wrong_type(path, "text or an array of parts", content)
    return tuple([decode_part(block, f"{path}[{i}]", text_kind) for i, block in enumerate(content)])


def decode_part(block: Json, path: str, text_kind: str) -> Part:
    """One content part; a kind we do not know is kept as it is."""
    if not isinstance(block, dict):
        raise wrong_type(path, "a content part", block)
    fields = Fields(block, path)
    kind = fields.take("type")
    if kind in _TEXT_KINDS:
        text = fields.need("text")
        if kind != text_kind:
            fields.left["type"] = kind
        return Text(text=text, extra=extra_for(fields.left))
    decode = _DECODE.get(kind) if isinstance(kind, str) else None
    return (decode and decode(fields)) or Opaque(dialect=NAME, data=block)


def _decode_refusal(fields: Fields) -> Part:
    return Refusal(text=fields.need("refusal"), extra=extra_for(fields.left))


_DECODE: dict[str, Callable[[Fields], Part | None]] = {
    "refusal": _decode_refusal,
    "input_image": decode_image,
    "input_file": decode_document,
    "input_audio": decode_audio,
}


def encode_part(part: Part, text_kind: str, losses: Losses, path: str) -> dict[str, Any] | None:
    """The content part that says a part; None, and a warning, if there is none."""
    kept = extra_of(part, NAME)
    block: dict[str, Any] | None = None
    match part:
        case Text():
            block = {"type": kept.get("type", text_kind), "text": part.text}
        case Refusal():
            if text_kind != OUTPUT_TEXT:
                message = "only the model can refuse; it was sent as text"
                losses.add("refusal_as_text", message, path)
                return {"type": text_kind, "text": part.text}
            block = {"type": "refusal", "refusal": part.text}
        case Image() | Document() | Audio():
            block = encode_media(part, text_kind, losses, path)
        case Opaque(dialect=dialect, data=data):
            if dialect == NAME and isinstance(data, dict):
                return data
            losses.foreign_block(dialect, NAME, path)
        case _:
            losses.dropped(f"{part.kind} inside a message", NAME, path, code=part.kind)
    if block is not None:
        for key, value in kept.items():
            if key not in _NOT_BESIDE or value is None:
                block.setdefault(key, value)
    return block
