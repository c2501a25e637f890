"""Thinking <-> reasoning items."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_responses.wire import NAME, PARAGRAPH, SECTIONS
from interlingua.spec.content import Part, Thinking
from interlingua.wire.shape import Fields, extra_of


def decode_thinking(fields: Fields) -> Part:
    """The summary, else the thoughts themselves; a list we would not write so is kept."""
    kept = dict(fields.left)
    summary = fields.array("summary") or []
    content = fields.array("content") or []
    text = _join(summary) or _join(content)
    data = fields.text("encrypted_content")
    if data is not None:
        del kept["encrypted_content"]
    if not content and "summary" in kept and summary == _summary(text):
        del kept["summary"]
    return Thinking(text=text, data=data, extra={NAME: kept})


def encode_thinking(part: Thinking, made: str | None = None) -> dict[str, Any]:
    """
    The lists it came with, if they still say its text.

    `made` is the id of an item that has none of its own.
    """
    kept = dict(extra_of(part, NAME))
    said = _join(kept.get("summary")) or _join(kept.get("content"))
    if said and said != part.text:
        for name in SECTIONS:
            kept.pop(name, None)
    if not kept.get("content"):
        kept.setdefault("summary", _summary(part.text))
    item: dict[str, Any] = {"type": "reasoning"}
    if made is not None:
        item["id"] = made
    if part.data is not None and is_native(part):
        item["encrypted_content"] = part.data
    return {**item, **kept}


def is_native(part: Thinking) -> bool:
    """Whether this API made the thought: only then does it want it back."""
    return NAME in part.extra or (not part.extra and part.data is not None and not part.redacted)


def _join(parts: Any) -> str:
    texts = [part.get("text") for part in parts or () if isinstance(part, dict)]
    return PARAGRAPH.join(text for text in texts if isinstance(text, str))


def _summary(text: str) -> list[dict[str, Any]]:
    return [{"type": SECTIONS["summary"], "text": text}] if text else []
