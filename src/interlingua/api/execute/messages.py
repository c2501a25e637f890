"""
Messages as plain dicts, the form of the callback front door -> ours.

    {"role": "user", "content": [{"type": "text", "text": "What is this?"},
                                 {"type": "image_url", "image_url": {"url": "https://…"}}]}
    {"role": "assistant", "content": "", "toolCalls": [{"id": "1", "name": "look", "args": {}}]}
    {"role": "tool", "toolCallId": "1", "content": "a cat"}

Names of fields may also be in snake case. The JSON form of a `Message` is read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any, TypeAlias

import msgspec

from interlingua.spec.content import Image, Part, Text, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import ROLES, Message

AnyMessage: TypeAlias = Message | str | Mapping[str, Any]
"""A message of ours, what the user says, or a dict."""

_FIELDS = frozenset(
    ("role", "content", "toolCallId", "tool_call_id", "toolCalls", "tool_calls", "metadata", "name")
)


def decode_messages(given: Iterable[AnyMessage] | str) -> tuple[Message, ...]:
    """Each message as ours; `ConfigurationError` says which one cannot be read, and why."""
    if isinstance(given, str):
        return (Message.user(given),)
    if isinstance(given, (Mapping, Message)) or not isinstance(given, Iterable):
        raise ConfigurationError("messages is a list of messages, or a text")
    return tuple(_decode(message, f"messages[{place}]") for place, message in enumerate(given))


def _decode(given: AnyMessage, where: str) -> Message:
    if isinstance(given, Message):
        return given
    if isinstance(given, str):
        return Message.user(given)
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"{where} is a {type(given).__name__}, not a message")
    content = given.get("content")
    if _is_canonical(content):
        return _read(given, where)
    _check(given, where)
    role = given["role"]
    if role == "tool":
        parts: tuple[Part, ...] = (_result(given, where),)
    else:
        parts = (*_parts(content, f"{where}.content"), *_calls(given, where))
    return Message(
        role=role,
        content=parts,
        name=given.get("name") if role != "tool" else None,
        metadata=given.get("metadata") or {},
    )


def _check(given: Mapping[str, Any], where: str) -> None:
    role = given.get("role")
    if not isinstance(role, str) or role not in ROLES:
        known = ", ".join(sorted(ROLES))
        raise ConfigurationError(f"{where}.role is {role!r}; use one of {known}")
    for field in given:
        if field not in _FIELDS:
            raise ConfigurationError(f"{where} has a field that is not known: {field!r}")
    if not isinstance(given.get("name"), (str, NoneType)):
        raise ConfigurationError(f"{where}.name is no text")
    if not isinstance(given.get("metadata"), (Mapping, NoneType)):
        raise ConfigurationError(f"{where}.metadata is no object")


def _is_canonical(content: Any) -> bool:
    items = content if isinstance(content, (list, tuple)) else ()
    return any(isinstance(item, Mapping) and "kind" in item for item in items)


def _read(given: Mapping[str, Any], where: str) -> Message:
    try:
        return msgspec.convert(dict(given), Message)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where} is not the JSON form of a message: {error}") from None


def _parts(content: Any, where: str) -> tuple[Part, ...]:
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Text(text=content),)
    if not isinstance(content, (list, tuple)):
        raise ConfigurationError(f"{where} is a {type(content).__name__}, not text or a list")
    return tuple(_part(item, f"{where}[{place}]") for place, item in enumerate(content))


def _part(item: Any, where: str) -> Part:
    match item:
        case str():
            return Text(text=item)
        case {"type": "text", "text": str(text)}:
            return Text(text=text)
        case {"type": "image_url", "image_url": {"url": str(url), **more}}:
            detail = more.get("detail")
            return Image(url=url, detail=detail if isinstance(detail, str) else None)
        case {"type": "image_url", "image_url": str(url)}:
            return Image(url=url)
        case _:
            kind = item.get("type") if isinstance(item, Mapping) else type(item).__name__
            raise ConfigurationError(
                f"{where} ({kind!r}) is neither a whole 'text' nor a whole 'image_url'"
            )


def _calls(given: Mapping[str, Any], where: str) -> tuple[ToolCall, ...]:
    found = _either(given, "toolCalls", "tool_calls")
    if found is None:
        return ()
    if not isinstance(found, (list, tuple)):
        raise ConfigurationError(f"{where}.toolCalls is no list")
    return tuple(_call(call, f"{where}.toolCalls[{place}]") for place, call in enumerate(found))


def _call(call: Any, where: str) -> ToolCall:
    match call:
        case {"id": str(call_id), "name": str(name), **more}:
            arguments = more.get("args")
            if arguments is None or isinstance(arguments, Mapping):
                return ToolCall(id=call_id, name=name, arguments=dict(arguments or {}))
    raise ConfigurationError(f"{where} needs 'id' and 'name' as text, and 'args' as an object")


def _result(given: Mapping[str, Any], where: str) -> ToolResult:
    call_id = _either(given, "toolCallId", "tool_call_id")
    if not isinstance(call_id, str):
        raise ConfigurationError(f"{where} has no toolCallId: which call does it answer?")
    content = given.get("content")
    is_parts = isinstance(content, (list, tuple)) and all(
        isinstance(item, Mapping) and item.get("type") in ("text", "image_url") for item in content
    )
    if content is None or (is_parts and content):
        content = _parts(content, f"{where}.content")
    return ToolResult(tool_call_id=call_id, content=content, name=given.get("name"))


def _either(given: Mapping[str, Any], camel: str, snake: str) -> Any:
    found = given.get(camel)
    return given.get(snake) if found is None else found
