"""Finds seals in the parts of messages; `seal` makes and opens them."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from typing import TypeVar

from msgspec.structs import replace

from interlingua.spec.content import Json, Part, Thinking, ToolCall, ToolResult

MAGIC = b"\xd8\xa2\x9e\xd6\x07\x02"  # the last byte is the version
MARK: str = b64encode(MAGIC).decode()
"""How every seal begins. The text is plain base64: some clients decode the field that holds it."""
_ID_MARK = MARK.replace("+", "-").replace("/", "_")


_REFERENCE = f"{MARK}kept"
_REFERENCE_LENGTH = len(_REFERENCE) + 64  # shorter than any seal


def refer_to(text: str) -> str:
    """A short text in place of a seal that is kept elsewhere, under `reference_in` of it."""
    return _REFERENCE + hashlib.sha256(text.encode()).hexdigest()


def reference_in(text: str | None) -> str | None:
    """The name under which the seal is kept that a text refers to; None if it is no reference."""
    if text is None or len(text) != _REFERENCE_LENGTH:
        return None
    usual = text.replace("-", "+").replace("_", "/")
    return usual.removeprefix(_REFERENCE) if usual.startswith(_REFERENCE) else None


def is_seal(text: str | None) -> bool:
    """Whether a text is a seal of any key."""
    return text is not None and text.startswith(MARK)


def has_seal(part: Part) -> bool:
    """Whether a part has a seal in a place where dialects have opaque fields."""
    if isinstance(part, Thinking) and (is_seal(part.signature) or is_seal(part.data)):
        return True
    if isinstance(part, (ToolCall, ToolResult)) and split_id(_id_of(part))[1] is not None:
        return True
    return any(map(_holds_seal, part.extra.values()))


def without_seal(part: Part) -> Part | None:
    """The part without its seals; None for thinking, which is nothing without them."""
    if isinstance(part, Thinking):
        return None
    if isinstance(part, (ToolCall, ToolResult)):
        part = with_own_id(part)
    extra = {name: _pruned(fields) for name, fields in part.extra.items()}
    return replace(part, extra={name: fields for name, fields in extra.items() if fields})


def _holds_seal(value: Json) -> bool:
    if isinstance(value, str):
        return value.startswith(MARK)
    if isinstance(value, dict):
        return any(map(_holds_seal, value.values()))
    if isinstance(value, list):
        texts = [item.get("data") for item in value if isinstance(item, dict)]
        return any(isinstance(text, str) and is_seal(text) for text in texts)
    return False


def _pruned(fields: Json) -> Json:
    """The fields without those that hold seals, in nested objects too."""
    if not isinstance(fields, dict) or not _holds_seal(fields):
        return fields
    kept = {
        name: _pruned(value) if isinstance(value, dict) else value
        for name, value in fields.items()
        if isinstance(value, dict) or not _holds_seal(value)
    }
    return {name: value for name, value in kept.items() if value != {} or fields[name] == {}}


# Ids of calls.

SHORTEST = 64
"""An id of at most this many characters has no seal."""
_Paired = TypeVar("_Paired", bound=ToolCall | ToolResult)


def append_to_id(id: str, text: str, most: int) -> str | None:  # noqa: A002 -- the name of the field
    """The id of a call with a seal, in letters that ids may have; None if it would be too long."""
    whole = id + text.replace("+", "-").replace("/", "_").rstrip("=")
    return whole if len(whole) <= most else None


def split_id(id: str) -> tuple[str, str | None]:  # noqa: A002 -- the name of the field
    """The id as the model made it, and its seal, if it has one."""
    place = id.rfind(_ID_MARK) if len(id) > SHORTEST else -1
    return (id, None) if place < 0 else (id[:place], id[place:])


def with_own_id(part: _Paired) -> _Paired:
    """The call or result with the id as the model made it."""
    id, text = split_id(_id_of(part))
    if text is None:
        return part
    name = "id" if isinstance(part, ToolCall) else "tool_call_id"
    return replace(part, **{name: id})


def _id_of(part: ToolCall | ToolResult) -> str:
    return part.id if isinstance(part, ToolCall) else part.tool_call_id
