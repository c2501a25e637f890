"""Parts <-> the parts of a content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from interlingua.dialects.gemini_generate.calls import (
    Links,
    decode_call,
    decode_result,
    encode_call,
    encode_result,
)
from interlingua.dialects.gemini_generate.facts import ABSENT, NAME, SIGNATURE, keep
from interlingua.dialects.gemini_generate.media import decode_media, encode_media
from interlingua.dialects.gemini_generate.names import DATA
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
from interlingua.wire.fields import Fields, extra_of, restore, wrong_type


def decode_part(part: Json, links: Links, path: str = "") -> Part:
    """One part, its names in camelCase; a kind we do not know is kept as it is."""
    if not isinstance(part, dict):
        raise wrong_type(path, "a part", part)
    data = [key for key in part if key in DATA and part[key] is not None]
    decode = _DECODE.get(data[0]) if len(data) == 1 and ABSENT not in part else None
    if decode is None:
        return Opaque(dialect=NAME, data=part)
    return decode(part, links, path)


def decode_content(parts: list[Json], links: Links, path: str) -> tuple[Part, ...]:
    """The parts of one content."""
    return tuple(decode_part(part, links, f"{path}[{i}]") for i, part in enumerate(parts))


def read_part(part: Json, links: Links) -> Part:
    """One part of an answer: what does not fit its own kind is kept as it is."""
    try:
        return decode_part(part, links)
    except (DecodeError, RecursionError):
        return Opaque(dialect=NAME, data=part)


def _decode_text(part: dict[str, Any], _: Links, path: str) -> Part:
    fields = Fields(part, path)
    if part.get("thought") is True:
        return decode_thinking(fields)
    text = fields.need("text")
    if fields.flag("thought") is False:
        fields.left["thought"] = False
    return Text(text=text, extra=keep(fields.left))


def _decode_media(part: dict[str, Any], _: Links, path: str) -> Part:
    return decode_media(part, path)


_DECODE: dict[str, Callable[[dict[str, Any], Links, str], Part]] = {
    "text": _decode_text,
    "inlineData": _decode_media,
    "fileData": _decode_media,
    "functionCall": decode_call,
    "functionResponse": decode_result,
}


_Calls: TypeAlias = Mapping[str, ToolCall]
_NO_CALLS: _Calls = {}


def encode_part(
    part: Part, warnings: WarningList, calls: _Calls = _NO_CALLS
) -> dict[str, Any] | None:
    """
    The part that says a part; None, and a warning, if there is none.

    `calls` are those made before it, by id: a result is named after its call.
    """
    return ENCODERS[type(part)](part, warnings, calls)


def _encode_text(part: Text, _: WarningList, __: _Calls) -> dict[str, Any]:
    wire: dict[str, Any] = {"text": part.text}
    return restore(wire, part, NAME) if part.extra else wire


def _encode_media(
    part: Image | Audio | Document, warnings: WarningList, _: _Calls
) -> dict[str, Any] | None:
    return encode_media(part, warnings)


def _encode_call(part: ToolCall, _: WarningList, __: _Calls) -> dict[str, Any]:
    return encode_call(part)


def _encode_result(part: ToolResult, warnings: WarningList, calls: _Calls) -> dict[str, Any]:
    return encode_result(part, calls, warnings)


def _encode_thinking(part: Thinking, warnings: WarningList, _: _Calls) -> dict[str, Any] | None:
    return encode_thinking(part, warnings)


def _encode_refusal(part: Refusal, warnings: WarningList, _: _Calls) -> dict[str, Any]:
    warnings.add_here("refusal_as_text")
    return {"text": part.text}


def _encode_opaque(part: Opaque, warnings: WarningList, _: _Calls) -> dict[str, Any] | None:
    if part.dialect == NAME and isinstance(part.data, dict):
        return part.data
    warnings.add_here("foreign_block_dropped", owner=part.dialect)
    return None


ENCODERS: Mapping[type, Callable[[Any, WarningList, _Calls], dict[str, Any] | None]] = {
    Text: _encode_text,
    Image: _encode_media,
    Audio: _encode_media,
    Document: _encode_media,
    ToolCall: _encode_call,
    ToolResult: _encode_result,
    Thinking: _encode_thinking,
    Refusal: _encode_refusal,
    Opaque: _encode_opaque,
}
"""The encoder of each kind of part."""


def encode_answer_part(part: Part) -> list[Json]:
    """
    The same for an answer: the one part that says it, or none.

    Another model's thoughts may be shown there, but not proven; and what was no object when it
    was read is none again.
    """
    if isinstance(part, Opaque) and part.dialect == NAME:
        return [part.data]
    wire = show_thinking(part) if isinstance(part, Thinking) else encode_part(part, WarningList())
    return [] if wire is None else [wire]


# Thinking <-> text parts marked as thoughts; signatures.


def decode_thinking(fields: Fields) -> Thinking:
    """A thought, with the signature that proves it."""
    text = fields.need("text")
    fields.take("thought")
    signature = fields.text(SIGNATURE)
    return Thinking(text=text, signature=signature, extra={NAME: fields.left})


def encode_thinking(part: Thinking, warnings: WarningList) -> dict[str, Any] | None:
    """A thought of this API's own model; None, and a warning, for another's."""
    wire = show_thinking(part) if _is_native(part) else None
    if wire is None:
        reason = f"{warnings.target} accepts only its own thinking"
        warnings.add_here("foreign_thinking_dropped", reason=reason)
    return wire


def show_thinking(part: Thinking) -> dict[str, Any] | None:
    """A thought of any model, as an answer shows it; its signature only if it is of this API."""
    is_native = _is_native(part)
    if part.redacted or (part.text == "" and not is_native):
        return None
    wire: dict[str, Any] = {"text": part.text, "thought": True}
    if part.signature is not None and is_native:
        wire[SIGNATURE] = part.signature
    return restore(wire, part, NAME)


def is_signed(part: Text | Thinking) -> bool:
    """Whether it carries a signature: such a part is never joined with another."""
    if isinstance(part, Thinking):
        return part.signature is not None
    return extra_of(part, NAME).get(SIGNATURE) is not None


def _is_native(part: Thinking) -> bool:
    return NAME in part.extra or (not part.extra and part.data is None)
