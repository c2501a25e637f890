"""Thinking <-> text parts marked as thoughts; signatures."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.gemini_generate.wire import NAME, SIGNATURE
from interlingua.spec.content import Text, Thinking
from interlingua.wire.carry import Losses
from interlingua.wire.shape import Fields, extra_of, restore


def decode_thinking(fields: Fields) -> Thinking:
    """A thought, with the signature that proves it."""
    text = fields.need("text")
    fields.take("thought")
    signature = fields.text(SIGNATURE)
    return Thinking(text=text, signature=signature, extra={NAME: fields.left})


def encode_thinking(part: Thinking, losses: Losses, path: str) -> dict[str, Any] | None:
    """A thought of this API's own model; None, and a warning, for another's."""
    wire = show_thinking(part) if _is_native(part) else None
    if wire is None:
        losses.foreign_thinking(NAME, path)
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
