"""Media that the model does not support: dropped, or replaced by a note, each with a warning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import TypeAlias

from msgspec.structs import replace

from interlingua.spec.content import (
    LOST,
    MEDIA_TYPES,
    NO_MEDIA,
    STORED,
    Audio,
    Document,
    Image,
    Json,
    Part,
    Text,
    ToolResult,
)
from interlingua.spec.contracts import Profile
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList
from interlingua.wire.media import sniff

_Types: TypeAlias = tuple[str, ...] | None

_TEXTS = frozenset(("text/plain", "text/*"))
_ALIASES = {"image/jpg": "image/jpeg", "audio/mp3": "audio/mpeg"}
_ALIASES |= {"audio/wave": "audio/wav", "audio/x-wav": "audio/wav"}


def drop_media(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Drop media that the model does not support; in a tool's result, a note replaces it."""
    # Seen in recordings: «image input is not supported» of llama.cpp, «unknown variant
    # `input_audio`, expected `text`» of DeepSeek. One such part fails the whole request.
    images, audio, documents = profile.image_types, profile.audio_types, profile.document_types
    most = profile.max_image_bytes
    accepted = {Image.kind: images, Audio.kind: audio, Document.kind: documents}
    messages = list(request.messages)
    for i, message in enumerate(messages):
        if not _has_unsupported(message.content, accepted, most):
            continue
        warnings.message = i
        content = _supported_parts(message.content, accepted, most, warnings)
        if content is not message.content:
            messages[i] = replace(message, content=content)
    is_same = all(map(is_, messages, request.messages))
    return request if is_same else replace(request, messages=tuple(messages))


def media_note(part: Image | Audio | Document) -> Text:
    """The text that replaces media in a tool's result."""
    media_type = _media_type(part)
    kind = f"{part.kind} ({media_type})" if media_type else part.kind
    return Text(text=f"[The tool returned media that this model cannot read: {kind}.]")


def encode_result_parts(
    parts: Sequence[Part],
    encode: Callable[[Part], dict[str, Json] | None],
    warnings: WarningList,
) -> list[dict[str, Json]]:
    """The blocks of a tool's result; media for which `encode` has no block become a note."""
    blocks: list[dict[str, Json]] = []
    for warnings.inner, part in enumerate(parts):
        block = encode(part)
        if block is None and isinstance(part, MEDIA_TYPES):
            block = encode(media_note(part))
        if block is not None:
            blocks.append(block)
    warnings.inner = None
    return blocks


def _has_unsupported(
    parts: tuple[Part, ...], accepted: Mapping[str, _Types], most: int | None
) -> bool:
    for part in parts:
        if type(part) in NO_MEDIA:
            continue
        if isinstance(part, MEDIA_TYPES):
            if _unsupported(part, accepted[part.kind], most):
                return True
        elif isinstance(part, ToolResult) and _has_unsupported(part.parts or (), accepted, most):
            return True
    return False


def _supported_parts(
    parts: tuple[Part, ...],
    accepted: Mapping[str, _Types],
    most: int | None,
    warnings: WarningList,
    *,
    is_result: bool = False,
) -> tuple[Part, ...]:
    """The parts without unsupported media; inside a result, a note replaces it."""
    supported: list[Part] = []
    for i, part in enumerate(parts):
        if is_result:
            warnings.inner = i
        else:
            warnings.part, warnings.inner = i, None
        if isinstance(part, MEDIA_TYPES) and (
            lack := _unsupported(part, accepted[part.kind], most)
        ):
            warnings.media_dropped(part.kind, lack)
            supported += [media_note(part)] if is_result else []
        elif isinstance(part, ToolResult) and part.parts and not is_result:
            content = _supported_parts(part.parts, accepted, most, warnings, is_result=True)
            warnings.inner = None
            supported.append(part if content is part.parts else replace(part, content=content))
        else:
            supported.append(part)
    same = len(supported) == len(parts) and all(map(is_, supported, parts))
    return parts if same else tuple(supported)


def _unsupported(part: Image | Audio | Document, types: _Types, most: int | None) -> str | None:
    """What the model does not support of it; None if it supports it."""
    stored = part.extra.get(STORED) if part.extra and part.file_id is not None else None
    if isinstance(stored, Mapping) and LOST in stored:
        return str(stored[LOST])
    if not _is_accepted(part, types):
        return _media_type(part) or part.kind
    size = len(part.data or b"") if isinstance(part, Image) else 0
    if most is not None and size > most:
        return f"an image of {size} bytes (at most {most})"
    return None


def _is_accepted(part: Image | Audio | Document, types: _Types) -> bool:
    if not types:
        return types is None
    if isinstance(part, Document) and part.text is not None and not _TEXTS.isdisjoint(types):
        return True
    media_type = _media_type(part)
    return (
        media_type is None  # unknown here: the provider decides
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
    return _ALIASES.get(bare, bare) or None
