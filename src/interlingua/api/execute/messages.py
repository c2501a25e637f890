"""
Decodes the messages of `execute`, which may be plain dicts.

    {"role": "user", "content": [{"type": "text", "text": "What is this?"},
                                 {"type": "image_url", "image_url": {"url": "https://…"}}]}
    {"role": "assistant", "content": "", "toolCalls": [{"id": "1", "name": "look", "args": {}}]}
    {"role": "tool", "toolCallId": "1", "content": "a cat"}

Field names may also be in snake case. The JSON form of a `Message` is accepted too.
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
"""A `Message`, the text of a user message, or a dict."""

_FIELDS = frozenset(
    ("role", "content", "toolCallId", "tool_call_id", "toolCalls", "tool_calls", "metadata", "name")
)


def decode_messages(messages: Iterable[AnyMessage] | str) -> tuple[Message, ...]:
    """The messages as `Message`s; `ConfigurationError` says which one is wrong, and why."""
    if isinstance(messages, str):
        return (Message.user(messages),)
    if isinstance(messages, (Mapping, Message)) or not isinstance(messages, Iterable):
        raise ConfigurationError("messages must be a list of messages, or a string.")
    return tuple(_decode(message, f"messages[{index}]") for index, message in enumerate(messages))


def _decode(message: AnyMessage, where: str) -> Message:
    if isinstance(message, Message):
        return message
    if isinstance(message, str):
        return Message.user(message)
    if not isinstance(message, Mapping):
        raise ConfigurationError(f"{where} must be a message, not a {type(message).__name__}.")
    content = message.get("content")
    if _is_canonical(content):
        return _read(message, where)
    _check(message, where)
    role = message["role"]
    if role == "tool":
        parts: tuple[Part, ...] = (_result(message, where),)
    else:
        parts = (*_parts(content, f"{where}.content"), *_calls(message, where))
    return Message(
        role=role,
        content=parts,
        name=message.get("name") if role != "tool" else None,
        metadata=message.get("metadata") or {},
    )


def _check(message: Mapping[str, Any], where: str) -> None:
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        known = ", ".join(sorted(ROLES))
        raise ConfigurationError(f"{where}.role is {role!r}; use one of {known}.")
    for field in message:
        if field not in _FIELDS:
            raise ConfigurationError(f"{where} has an unknown field {field!r}.")
    if not isinstance(message.get("name"), (str, NoneType)):
        raise ConfigurationError(f"{where}.name must be a string.")
    if not isinstance(message.get("metadata"), (Mapping, NoneType)):
        raise ConfigurationError(f"{where}.metadata must be an object.")


def _is_canonical(content: Any) -> bool:
    items = content if isinstance(content, (list, tuple)) else ()
    return any(isinstance(item, Mapping) and "kind" in item for item in items)


def _read(message: Mapping[str, Any], where: str) -> Message:
    try:
        return msgspec.convert(dict(message), Message)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where} is not the JSON form of a message: {error}") from None


def _parts(content: Any, where: str) -> tuple[Part, ...]:
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Text(text=content),)
    if not isinstance(content, (list, tuple)):
        raise ConfigurationError(
            f"{where} must be a string or a list, not a {type(content).__name__}."
        )
    return tuple(_part(item, f"{where}[{index}]") for index, item in enumerate(content))


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
                f"{where} ({kind!r}) must be a complete 'text' or 'image_url' part."
            )


def _calls(message: Mapping[str, Any], where: str) -> tuple[ToolCall, ...]:
    calls = _either(message, "toolCalls", "tool_calls")
    if calls is None:
        return ()
    if not isinstance(calls, (list, tuple)):
        raise ConfigurationError(f"{where}.toolCalls must be a list.")
    return tuple(_call(call, f"{where}.toolCalls[{index}]") for index, call in enumerate(calls))


def _call(call: Any, where: str) -> ToolCall:
    match call:
        case {"id": str(call_id), "name": str(name), **more}:
            arguments = more.get("args")
            if arguments is None or isinstance(arguments, Mapping):
                return ToolCall(id=call_id, name=name, arguments=dict(arguments or {}))
    raise ConfigurationError(f"{where} needs 'id' and 'name' as strings, and 'args' as an object.")


def _result(message: Mapping[str, Any], where: str) -> ToolResult:
    call_id = _either(message, "toolCallId", "tool_call_id")
    if not isinstance(call_id, str):
        raise ConfigurationError(f"{where} needs toolCallId, the id of the call it answers.")
    content = message.get("content")
    is_parts = isinstance(content, (list, tuple)) and all(
        isinstance(item, Mapping) and item.get("type") in ("text", "image_url") for item in content
    )
    if content is None or (is_parts and content):
        content = _parts(content, f"{where}.content")
    return ToolResult(tool_call_id=call_id, content=content, name=message.get("name"))


def _either(message: Mapping[str, Any], camel: str, snake: str) -> Any:
    value = message.get(camel)
    return message.get(snake) if value is None else value
