"""Thinking <-> its blocks."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.anthropic_messages.wire import NAME
from interlingua.spec.content import Part, Thinking
from interlingua.wire.carry import Losses
from interlingua.wire.shape import Fields, restore


def decode_thinking(fields: Fields, _: dict[str, Any]) -> Part:
    text = fields.text("thinking") or ""
    signature = fields.text("signature")
    return Thinking(text=text, signature=signature, extra={NAME: fields.left})


def decode_redacted(fields: Fields, _: dict[str, Any]) -> Part:
    return Thinking(redacted=True, data=fields.text("data"), extra={NAME: fields.left})


def encode_thinking(part: Thinking, losses: Losses, path: str) -> dict[str, Any] | None:
    """Only what this API made goes back to it: it checks the signature."""
    if not is_native(part):
        losses.foreign_thinking(NAME, path)
        return None
    if part.redacted:
        return restore({"type": "redacted_thinking", "data": part.data}, part, NAME)
    block: dict[str, Any] = {"type": "thinking", "thinking": part.text}
    if part.signature is not None:
        block["signature"] = part.signature
    return restore(block, part, NAME)


def show_thinking(part: Thinking) -> dict[str, Any] | None:
    """
    A thought of any model, as an answer shows it.

    Another's has an empty signature, as clients want one: it proves nothing and says so.
    """
    if is_native(part):
        return encode_thinking(part, Losses(), "")
    if part.redacted or not part.text:
        return None
    return {"type": "thinking", "thinking": part.text, "signature": ""}


def is_native(part: Thinking) -> bool:
    """Whether this API made the thought; one made by hand may claim so by its signature."""
    return NAME in part.extra or (not part.extra and bool(part.signature or part.redacted))
