"""Repairs of media: what the target has no form for is left out, before others are moved."""

from __future__ import annotations

from interlingua.spec.content import MEDIA_TYPES, Audio, Document, Image, Part, ToolResult
from interlingua.spec.messages import Message
from interlingua.wire.history.target import Policy, Target
from interlingua.wire.history.trail import (
    Messages,
    Trail,
    edit,
    is_unchanged,
    with_fields,
    with_parts,
)

_SOURCES = ("url", "data", "file_id", "text")
_WORDS = {"url": "by address", "data": "as bytes", "file_id": "by file id", "text": "as text"}


def drop_unsayable_media(messages: Messages, target: Target, _: Policy, trail: Trail) -> Messages:
    """
    Media in a form that the target does not take; what came from itself stays.

    Their message stays too, though it be empty then: other rules see to that.
    """
    if not target.media:
        return messages

    def drop(message: Message) -> Message:
        kept = [
            _drop_inside(part, target, trail)
            for part in message.content
            if not _is_lost(part, target, trail)
        ]
        return message if is_unchanged(kept, message.content) else with_parts(message, kept, trail)

    return edit(messages, drop)


def _drop_inside(part: Part, target: Target, trail: Trail) -> Part:
    if not isinstance(part, ToolResult) or not part.parts:
        return part
    kept = [inner for inner in part.parts if not _is_lost(inner, target, trail)]
    same = is_unchanged(kept, part.parts)
    return part if same else with_fields(part, trail, content=tuple(kept))


def _is_lost(part: Part, target: Target, trail: Trail) -> bool:
    taken = target.media.get(part.kind)
    if taken is None or not isinstance(part, MEDIA_TYPES) or target.dialect in part.extra:
        return False
    source = _source(part)
    if source is None or source in taken:
        return False
    why = f"{target.dialect} takes no {part.kind} {_WORDS[source]}; it was left out"
    trail.change(f"{part.kind}_dropped", why, part)
    return True


def _source(part: Image | Audio | Document) -> str | None:
    """The form in which it is given; a data URL is bytes, wherever it stands."""
    found = next((name for name in _SOURCES if getattr(part, name, None) is not None), None)
    if found == "url" and part.url is not None and part.url[:5].lower() == "data:":
        return "data"
    return found
