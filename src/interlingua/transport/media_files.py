"""Reads the files that parts name, before a request is encoded."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from interlingua.spec.content import MEDIA_TYPES, Audio, Document, Image, Part, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.wire.media import is_local_path, media_type_for

MAX_FILE = 64 * 1024 * 1024

Media: TypeAlias = Image | Audio | Document


def load_media(
    request: Request, *, max_bytes: int = MAX_FILE, root: str | PathLike[str] | None = None
) -> Request:
    """
    The request with each local path in a part's `url` (`/…`, `./…`, `~…`) replaced by the bytes.

    Returns the same object if there is no path. With `root`, only files inside that folder are
    read. Use it only for requests that your program built itself: in a request from the network
    a path was chosen by a stranger.
    """
    inside = None if root is None else Path(root).resolve()

    def load(part: Media, where: str) -> Media:
        return _load(part, where, max_bytes, inside)

    return replace_media(request, _names_file, load)


async def load_media_async(
    request: Request, *, max_bytes: int = MAX_FILE, root: str | PathLike[str] | None = None
) -> Request:
    """`load_media`, with the files read in a thread; no thread is used if there are no files."""
    if not find_media(request, _names_file):
        return request
    return await asyncio.to_thread(load_media, request, max_bytes=max_bytes, root=root)


def find_media(request: Request, wanted: Callable[[Media], bool]) -> list[tuple[str, Media]]:
    """The wanted media parts and their paths in the request; includes those in tool results."""
    parts: list[tuple[str, Media]] = []

    def collect(part: Media, where: str) -> Media:
        parts.append((where, part))
        return part

    replace_media(request, wanted, collect)
    return parts


def replace_media(
    request: Request, wanted: Callable[[Media], bool], change: Callable[[Media, str], Media]
) -> Request:
    """The request with each wanted media part changed; the same object if nothing changed."""
    messages = [
        _in_message(message, wanted, change, f"messages[{index}].content")
        for index, message in enumerate(request.messages)
    ]
    if all(new is old for new, old in zip(messages, request.messages, strict=True)):
        return request
    return replace(request, messages=tuple(messages))


def _in_message(
    message: Message,
    wanted: Callable[[Media], bool],
    change: Callable[[Media, str], Media],
    where: str,
) -> Message:
    content = _in_parts(message.content, wanted, change, where)
    return message if content is message.content else replace(message, content=content)


def _in_parts(
    parts: tuple[Part, ...],
    wanted: Callable[[Media], bool],
    change: Callable[[Media, str], Media],
    where: str,
) -> tuple[Part, ...]:
    changed: list[Part] | None = None
    for index, part in enumerate(parts):
        new: Part = part
        if isinstance(part, MEDIA_TYPES):
            if wanted(part):
                new = change(part, f"{where}[{index}]")
        elif isinstance(part, ToolResult) and part.parts:
            inner = _in_parts(part.parts, wanted, change, f"{where}[{index}].content")
            if inner is not part.parts:
                new = replace(part, content=inner)
        if new is not part:
            changed = list(parts) if changed is None else changed
            changed[index] = new
    return parts if changed is None else tuple(changed)


def with_bytes(part: Media, data: bytes, media_type: str | None, name: str | None) -> Media:
    """The part with `data` in place of `url`."""
    fields: dict[str, Any] = {
        "url": None,
        "data": data,
        "media_type": part.media_type or media_type,
    }
    if isinstance(part, Document) and part.file_name is None and name:
        fields["file_name"] = name
    return replace(part, **fields)


def _names_file(part: Media) -> bool:
    return part.url is not None and is_local_path(part.url)


def _load(part: Media, where: str, max_bytes: int, inside: Path | None) -> Media:
    name = part.url or ""
    try:
        path = Path(name).expanduser()
        if inside is not None and not path.resolve().is_relative_to(inside):
            raise ConfigurationError(f"{where}: {name!r} is outside of the allowed folder {inside}")
        data = _read(path, max_bytes)
    except _RefusedError as refused:
        raise ConfigurationError(f"{where}: cannot read {name!r}: {refused}") from None
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"{where}: cannot read {name!r}: {reason}") from None
    return with_bytes(part, data, media_type_for(data, path.name), path.name)


class _RefusedError(Exception):
    pass


def _read(path: Path, max_bytes: int) -> bytes:
    # Opening a pipe may block for ever, and a device may be endless, so check before.
    if not stat.S_ISREG(path.stat().st_mode):
        raise _RefusedError("it is not a regular file")
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise _RefusedError(f"it is larger than {max_bytes} bytes")
    if not data:
        raise _RefusedError("it is empty")
    return data
