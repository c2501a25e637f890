"""Files and URLs named in parts -> their bytes, before a request is encoded."""

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
    The request with the bytes of every file its parts name (`/…`, `./…`, `~…`).

    The same object if they name none. With `root`, only files inside that folder are read. For
    the requests of this program only: in one that came over a network a path is somebody else's.
    """
    inside = None if root is None else Path(root).resolve()

    def load(part: Media, where: str) -> Media:
        return _load(part, where, max_bytes, inside)

    return replace_media(request, _names_file, load)


async def load_media_async(
    request: Request, *, max_bytes: int = MAX_FILE, root: str | PathLike[str] | None = None
) -> Request:
    """The same; files are read in a thread, and without files there is nothing to wait for."""
    if not find_media(request, _names_file):
        return request
    return await asyncio.to_thread(load_media, request, max_bytes=max_bytes, root=root)


def find_media(request: Request, wanted: Callable[[Media], bool]) -> list[tuple[str, Media]]:
    """The media parts that are wanted, those in tool results too, and where they stand."""
    found: list[tuple[str, Media]] = []

    def note(part: Media, where: str) -> Media:
        found.append((where, part))
        return part

    replace_media(request, wanted, note)
    return found


def replace_media(
    request: Request, wanted: Callable[[Media], bool], change: Callable[[Media, str], Media]
) -> Request:
    """The request with each wanted part changed; the same object if no part was."""
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
    """The part with its bytes in place of its address."""
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
            raise ConfigurationError(f"{where}: {name!r} is outside of the folder for media")
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
    # A pipe or a device has no end, and opening it may wait for ever: look before.
    if not stat.S_ISREG(path.stat().st_mode):
        raise _RefusedError("it is not a file")
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise _RefusedError(f"it is larger than {max_bytes} bytes")
    if not data:
        raise _RefusedError("it is empty")
    return data
