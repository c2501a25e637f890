"""Encodes and decodes forms as multipart/form-data (RFC 7578)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from hashlib import sha256

from interlingua.spec.contracts import Content, FormPart
from interlingua.spec.errors import ConfigurationError, DecodeError

# The HTML standard's escapes for names and file names; they prevent header injection.
_ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
_UNESCAPES = (("%22", '"'), ("%0D", "\r"), ("%0A", "\n"))
_find_boundary = re.compile(r'boundary="?([^";,\s]{1,200})').search
_find_parameters = re.compile(r'\b(name|filename)="([^"]*)"').findall


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
        content = _encode(part.content) if isinstance(part.content, str) else part.content
        segments += [_encode(f"--{boundary}\r\n{_head(part)}\r\n"), content, b"\r\n"]
    segments.append(f"--{boundary}--\r\n".encode())
    in_memory = [segment for segment in segments if isinstance(segment, bytes)]
    is_whole = len(in_memory) == len(segments)
    content_type = f"multipart/form-data; boundary={boundary}"
    return content_type, b"".join(in_memory) if is_whole else FormBody(segments)


def decode_form(content_type: str, body: bytes) -> tuple[FormPart, ...]:
    """The parts of a form; `DecodeError` if it is not one. Parts without a file name are text."""
    match = _find_boundary(content_type)
    if match is None:
        raise DecodeError("A multipart form needs a boundary in its content type.")
    pieces = (b"\r\n" + body).split(b"\r\n--" + match[1].encode())
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise DecodeError("The multipart form has no end.")
    return tuple(_read_part(piece) for piece in pieces[1:-1])


def _read_part(piece: bytes) -> FormPart:
    head, blank, content = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    headers = dict(_read_header(line) for line in head.decode("utf-8", "replace").split("\r\n"))
    parameters = dict(_find_parameters(headers.get("content-disposition", "")))
    if not blank or "name" not in parameters:
        raise DecodeError("A part of the multipart form has no name.")
    file_name = parameters.get("filename")
    return FormPart(
        name=_unescape(parameters["name"]),
        content=content.decode("utf-8", "replace") if file_name is None else content,
        file_name=None if file_name is None else _unescape(file_name),
        media_type=headers.get("content-type"),
    )


def _read_header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()


def _unescape(text: str) -> str:
    for escape, character in _UNESCAPES:
        text = text.replace(escape, character)
    return text


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
        if not media_type.isprintable():  # a line break would begin another header
            raise ConfigurationError(f"{media_type!r:.60} is not a media type.")
        lines.append(f"content-type: {media_type}")
    return "".join(f"{line}\r\n" for line in lines)


def _encode(text: str) -> bytes:
    """The text in UTF-8; what has no form there, such as a lone surrogate, becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _size(content: Content) -> int | None:
    if isinstance(content, bytes):
        return len(content)
    size = getattr(content, "size", None)
    return size if isinstance(size, int) else None


def _digest(parts: tuple[FormPart, ...]) -> str | None:
    """A digest of all contents; None if one of them is streamed."""
    digest = sha256()
    for part in parts:
        content = _encode(part.content) if isinstance(part.content, str) else part.content
        if not isinstance(content, bytes):
            return None
        digest.update(_encode(f"{part.name}\0{part.file_name}\0{len(content)}\0"))
        digest.update(content)
    return digest.hexdigest()[:40]
