"""Frames that hold JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.spec.content import UncheckedJson
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import DecodeError, StreamError
from interlingua.wire.json_text import UNCOMMON, decode_common, dump_text, loads

DONE = "[DONE]"


def read_frame(frame: Frame) -> dict[str, Any] | None:
    """Return the object in a frame; None for an empty frame and for a final `[DONE]`."""
    if not frame.data or frame.data == DONE:
        return None
    try:
        data = decode_common(frame.data)
    except UNCOMMON:
        if is_done(frame):
            return None
        data = _read_uncommon(frame.data)
    if not isinstance(data, dict):
        raise StreamError("A stream event is not a JSON object.")
    return data


def is_done(frame: Frame) -> bool:
    """Whether the frame is the `[DONE]` that ends some streams, perhaps with blanks around it."""
    return frame.data.strip() == DONE


def _read_uncommon(text: str) -> UncheckedJson:
    try:
        return loads(text)
    except DecodeError as error:
        raise StreamError(f"Cannot decode a stream event: {error.message}") from error


def is_bare_error(data: Mapping[str, object]) -> bool:
    """Whether a server sent the body of an error response in the stream, without a `type`."""
    return "type" not in data and bool(data.get("error"))


def json_frame(data: object, event: str | None = None) -> Frame:
    """Return a frame with this value as JSON text."""
    return Frame(data=dump_text(data), event=event)
