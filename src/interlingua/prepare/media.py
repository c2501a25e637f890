"""Media the model does not read: left out, each with a warning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec.structs import replace

from interlingua.prepare.plain import may_hold_media
from interlingua.spec.content import MEDIA_TYPES, Audio, Document, Image, Part, ToolResult
from interlingua.spec.contracts import Profile
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.warnings import Losses
from interlingua.wire.media import sniff

_Types: TypeAlias = tuple[str, ...] | None

_SAME_TYPE = {
    "image/jpg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
}


def drop_media(request: Request, profile: Profile, losses: Losses) -> Request:
    """Media the model does not read."""
    images, audio, documents = profile.image_types, profile.audio_types, profile.document_types
    if images is None and audio is None and documents is None:
        return request
    if not may_hold_media(request.messages):
        return request
    accepted = {Image.kind: images, Audio.kind: audio, Document.kind: documents}
    changed: dict[int, Message] = {}
    for i, message in enumerate(request.messages):
        for part in message.content:
            is_made_of_parts = type(part) is ToolResult and type(part.content) is tuple
            if is_made_of_parts or type(part) in MEDIA_TYPES:
                content = _readable(message.content, accepted, losses, f"messages[{i}].content")
                if content is not message.content:
                    changed[i] = replace(message, content=content)
                break
    if not changed:
        return request
    messages = tuple(changed.get(i, message) for i, message in enumerate(request.messages))
    return replace(request, messages=messages)


def _readable(
    parts: tuple[Part, ...], accepted: Mapping[str, _Types], losses: Losses, path: str
) -> tuple[Part, ...]:
    kept: list[Part] = []
    for i, part in enumerate(parts):
        where = f"{path}[{i}]"
        if isinstance(part, MEDIA_TYPES):
            if not _is_accepted(part, accepted[part.kind]):
                message = f"{_media_type(part) or part.kind} is not read here; it was left out"
                losses.add(f"{part.kind}_dropped", message, where)
                continue
        elif isinstance(part, ToolResult) and part.parts:
            inner = _readable(part.parts, accepted, losses, f"{where}.content")
            if inner is not part.parts:
                kept.append(replace(part, content=inner))
                continue
        kept.append(part)
    same = len(kept) == len(parts) and all(a is b for a, b in zip(kept, parts, strict=True))
    return parts if same else tuple(kept)


def _is_accepted(part: Image | Audio | Document, types: _Types) -> bool:
    if not types:
        return types is None
    if isinstance(part, Document) and part.text is not None and "text/plain" in types:
        return True
    media_type = _media_type(part)
    return (
        media_type is None  # only its owner can tell
        or media_type in types
        or f"{media_type.partition('/')[0]}/*" in types
    )


def _media_type(part: Image | Audio | Document) -> str | None:
    named = part.media_type
    if named is None and part.url is not None and part.url[:5].lower() == "data:":
        named = part.url[5:256].partition(",")[0]
    if named is None and part.data is not None:
        named = sniff(part.data)
    bare = (named or "").partition(";")[0].strip().lower()
    return _SAME_TYPE.get(bare, bare) or None
