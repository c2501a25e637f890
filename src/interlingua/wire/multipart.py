"""Encodes forms as multipart/form-data (RFC 7578)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from hashlib import sha256

from interlingua.spec.contracts import Content, FormPart

# The HTML standard's escapes for names and file names; they prevent header injection.
_ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})


class FormBody:
    """A form with streamed files; `size` is None if the size of a file is unknown."""

    def __init__(self, segments: list[Content]) -> None:
        self._segments = segments
        sizes = [_size(segment) for segment in segments]
        known = [size for size in sizes if size is not None]
        self.size: int | None = sum(known) if len(known) == len(sizes) else None

    @property
    def is_repeatable(self) -> bool:
        """Whether the form can be sent again."""
        return all(is_repeatable(segment) for segment in self._segments)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for segment in self._segments:
            if isinstance(segment, bytes):
                yield segment
            else:
                async for piece in segment:
                    yield piece


def encode_form(parts: tuple[FormPart, ...], new_id: Callable[[], str]) -> tuple[str, Content]:
    """
    The content type and the body of a form.

    If the whole form is in memory, the boundary is a digest of its content, so that equal forms
    give equal bytes. If files are streamed, the boundary is a new id, which nobody can put into
    the files beforehand.
    """
    boundary = _digest(parts) or new_id()
    segments: list[Content] = []
    for part in parts:
        content = part.content.encode() if isinstance(part.content, str) else part.content
        segments += [f"--{boundary}\r\n{_head(part)}\r\n".encode(), content, b"\r\n"]
    segments.append(f"--{boundary}--\r\n".encode())
    in_memory = [segment for segment in segments if isinstance(segment, bytes)]
    is_whole = len(in_memory) == len(segments)
    content_type = f"multipart/form-data; boundary={boundary}"
    return content_type, b"".join(in_memory) if is_whole else FormBody(segments)


def is_repeatable(content: Content) -> bool:
    """Whether the content can be sent again; an async iterator is exhausted after one use."""
    if isinstance(content, FormBody):
        return content.is_repeatable
    return isinstance(content, bytes) or not isinstance(content, AsyncIterator)


def _head(part: FormPart) -> str:
    lines = [f'content-disposition: form-data; name="{part.name.translate(_ESCAPES)}"']
    if part.file_name is not None:
        lines[0] += f'; filename="{part.file_name.translate(_ESCAPES)}"'
    media_type = part.media_type
    if media_type is None and part.file_name is not None:
        media_type = "application/octet-stream"
    if media_type is not None:
        lines.append(f"content-type: {media_type}")
    return "".join(f"{line}\r\n" for line in lines)


def _size(content: Content) -> int | None:
    if isinstance(content, bytes):
        return len(content)
    size = getattr(content, "size", None)
    return size if isinstance(size, int) else None


def _digest(parts: tuple[FormPart, ...]) -> str | None:
    """A digest of all contents; None if one of them is streamed."""
    digest = sha256()
    for part in parts:
        content = part.content.encode() if isinstance(part.content, str) else part.content
        if not isinstance(content, bytes):
            return None
        digest.update(f"{part.name}\0{part.file_name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:40]
