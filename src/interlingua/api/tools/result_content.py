"""What a handler returns, as the content of a tool result."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from interlingua.spec.content import Audio, Document, Image, Json, Opaque, Part, Text, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.json_text import dump_text
from interlingua.wire.media import sniff

_SAYABLE = (Text, Image, Audio, Document, Opaque)


def to_result_content(value: Any) -> str | Json | tuple[Part, ...]:
    """
    Text, JSON, or parts; a `ToolResult` is given back as it is.

    Bytes are an image, a sound, a document or text, by what they begin with. In a list or tuple
    with a part in it, what is no part becomes text.
    """
    if isinstance(value, (str, ToolResult)):
        return value
    if isinstance(value, bytes):
        return _from_bytes(value)
    if isinstance(value, _SAYABLE):
        return (value,)
    if isinstance(value, (list, tuple)) and any(_is_media(item) for item in value):
        return tuple(_part(item) for item in value)
    return _json(value)


def _is_media(item: Any) -> bool:
    return isinstance(item, (*_SAYABLE, bytes))


def _part(item: Any) -> Part:
    if isinstance(item, _SAYABLE):
        return item
    if isinstance(item, bytes):
        found = _from_bytes(item)
        return Text(text=found) if isinstance(found, str) else found[0]
    return Text(text=item if isinstance(item, str) else dump_text(_json(item)))


def _from_bytes(data: bytes) -> str | tuple[Part, ...]:
    media_type = sniff(data)
    if media_type is None:
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ConfigurationError(
                "the tool returned bytes of an unknown kind; return "
                "Document(data=..., media_type=...) or text"
            ) from None
    match media_type.partition("/")[0]:
        case "image":
            return (Image(data=data, media_type=media_type),)
        case "audio":
            return (Audio(data=data, media_type=media_type),)
        case _:
            return (Document(data=data, media_type=media_type),)


def _json(value: Any) -> Json:
    try:
        said = msgspec.to_builtins(value, str_keys=True, enc_hook=dump_foreign)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"the tool returned a {type(value).__name__} that cannot be said in JSON: {error}"
        ) from error
    return list(said) if isinstance(said, tuple) else said


def dump_foreign(value: Any) -> Json:
    """The JSON form of a value that msgspec does not know; `TypeError` if it has none."""
    if hasattr(value, "model_dump"):  # pydantic
        return value.model_dump(mode="json")
    if hasattr(value, "tolist"):  # numpy and its like
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")
