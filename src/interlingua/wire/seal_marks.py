"""Finds seals in the parts of messages; `seal` makes and opens them."""

from __future__ import annotations

from base64 import b64encode

from msgspec.structs import replace

from interlingua.spec.content import Json, Part, Thinking

MAGIC = b"\xd8\xa2\x9e\xd6\x07\x01"  # the last byte is the version
MARK: str = b64encode(MAGIC).decode()
"""How every seal begins. The text is plain base64: some clients decode the field that holds it."""


def is_seal(text: str | None) -> bool:
    """Whether a text is a seal of any key."""
    return text is not None and text.startswith(MARK)


def has_seal(part: Part) -> bool:
    """Whether a part has a seal in a place where dialects have opaque fields."""
    if isinstance(part, Thinking) and (is_seal(part.signature) or is_seal(part.data)):
        return True
    return any(map(_holds_seal, part.extra.values()))


def without_seal(part: Part) -> Part | None:
    """The part without its seals; None for thinking, which is nothing without them."""
    if isinstance(part, Thinking):
        return None
    extra = {
        name: {key: value for key, value in fields.items() if not _holds_seal({key: value})}
        for name, fields in part.extra.items()
    }
    return replace(part, extra={name: fields for name, fields in extra.items() if fields})


def _holds_seal(fields: Json) -> bool:
    if not isinstance(fields, dict):
        return False
    for value in fields.values():
        if isinstance(value, str):
            if value.startswith(MARK):
                return True
        elif isinstance(value, list):
            texts = [item.get("data") for item in value if isinstance(item, dict)]
            if any(isinstance(text, str) and is_seal(text) for text in texts):
                return True
    return False
