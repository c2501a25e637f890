"""
Messages that are given as plain dicts, or as objects of OpenAI's SDK.

    {"role": "user", "content": [{"type": "text", "text": "What is this?"},
                                 {"type": "image_url", "image_url": {"url": "https://…"}}]}
    {"role": "assistant", "tool_calls": [{"id": "1", "type": "function",
                                          "function": {"name": "look", "arguments": "{}"}}]}
    {"role": "tool", "tool_call_id": "1", "content": "a cat"}

This is the form of OpenAI's chat API; fields that are None are ignored. A call may also be
`{"id": "1", "name": "look", "args": {}}`, and field names may be in camel case (`toolCalls`). The
JSON form of a `Message` is read too. A field that has no place in a `Message` is an error.

The forms of other APIs belong to their dialects, which this room does not know: `api` asks them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from operator import is_
from typing import Any

import msgspec

from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    parse_arguments,
    refuse_paths,
)
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import ROLES, Message, is_sdk_object

_KNOWN = frozenset(("role", "content", "name", "id", "metadata", "tool_calls", "tool_call_id"))
_KNOWN |= {"refusal", "reasoning_content", "reasoning", "annotations"}
_SNAKE_CASE = {"toolCalls": "tool_calls", "toolCallId": "tool_call_id"}
_TEXTS = ("name", "id", "refusal", "reasoning_content", "reasoning")
_MESSAGE = frozenset((Message,))
# What `parse` of the SDKs adds to an answer: values that were read from its text.
_PARSED = frozenset(("parsed", "parsed_arguments", "parsed_output"))
_PART_TYPES = frozenset(("text", "image_url", "input_audio", "file", "refusal"))
_ADVICE = (
    "A Request takes messages in the form of OpenAI's chat API. For those of another API, pass "
    "interlingua.history.read_messages(messages)."
)
_SDK_DEPTH = 8
"""How deep the objects of an SDK are inside of a message: a source in a block of a tool result."""


def to_messages(value: object) -> tuple[Message, ...]:
    """One or many messages as a tuple; `ConfigurationError` says which one is wrong, and why."""
    items = list_messages(value)
    if _MESSAGE.issuperset(map(type, items)):
        return items
    return tuple([to_message(item, f"messages[{i}]") for i, item in enumerate(items)])


def to_request_messages(value: object) -> tuple[Message, ...]:
    """As `to_messages`; the error for a message of another API says which function reads it."""
    items = list_messages(value)
    try:
        return to_messages(items)
    except ConfigurationError as error:
        if not any(map(_is_foreign, items)):
            raise
        raise ConfigurationError(f"{error.message} {_ADVICE}") from None


def _is_foreign(item: object) -> bool:
    """Whether it has a type, or parts of a type, that no message of OpenAI's chat API has."""
    item = without_objects(item)
    if not isinstance(item, Mapping):
        return False
    content = item.get("content")
    parts = content if isinstance(content, (list, tuple)) else ()
    return item.get("type") is not None or any(map(_is_foreign_part, parts))


def _is_foreign_part(part: object) -> bool:
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        return False
    is_more = part["type"] == "text" and bool(part.keys() - {"type", "text"})
    return is_more or part["type"] not in _PART_TYPES


def list_messages(value: object) -> tuple[Any, ...]:
    """One or many messages in any form, as a tuple; `ConfigurationError` for anything else."""
    if isinstance(value, (str, Message, Mapping)) or is_sdk_object(value):
        return (value,)
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise ConfigurationError(f"messages must be a list of messages, not a {_type(value)}.")
    return tuple(value)


def without_objects(value: Any, depth: int = _SDK_DEPTH) -> Any:
    """The value with a dict for each object of an SDK in it; the same object if there is none."""
    if depth == 0:
        return value
    if isinstance(value, Mapping):
        fields = {key: without_objects(item, depth - 1) for key, item in value.items()}
        return value if all(map(is_, fields.values(), value.values())) else fields
    if isinstance(value, (list, tuple)):
        items = [without_objects(item, depth - 1) for item in value]
        return value if all(map(is_, items, value)) else items
    return _sdk_fields(value, depth) if is_sdk_object(value) else value


def _sdk_fields(value: Any, depth: int) -> dict[str, Any]:
    """The fields of an object of an SDK, by their names in JSON."""
    fields: dict[str, Any] = {}
    for name in (*type(value).model_fields, *(value.model_extra or ())):
        item = getattr(value, name, None)
        if item is not None and name in value.model_fields_set and name not in _PARSED:
            declared = type(value).model_fields.get(name)
            key = None if declared is None else declared.alias
            fields[key or name] = without_objects(item, depth - 1)
    return fields


def to_message(item: object, where: str) -> Message:
    """One message; `where` is its place, for errors."""
    if isinstance(item, Message):
        return item
    if isinstance(item, str):
        return Message.user(item)
    item = without_objects(item)
    if not isinstance(item, Mapping):
        raise ConfigurationError(
            f"{where} must be a Message, a string or a dict, not a {_type(item)}."
        )
    if "extra" in item or _has_kinds(item.get("content")):
        return _from_json(item, where)
    return _from_fields(_fields(item, where), where)


def _has_kinds(content: object) -> bool:
    items = content if isinstance(content, (list, tuple)) else ()
    return any(isinstance(item, Mapping) and "kind" in item for item in items)


def _from_json(item: Mapping[str, Any], where: str) -> Message:
    try:
        return msgspec.convert(dict(item), Message, dec_hook=refuse_paths)
    except (msgspec.ValidationError, ConfigurationError) as error:
        raise ConfigurationError(
            f"{where} is not the JSON form of a Message: {error}. "
            "Use Message.user(...) and the other constructors."
        ) from None


def _fields(item: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields that are not None, by their names in snake case."""
    fields: dict[str, Any] = {}
    for name, value in item.items():
        if value is None:
            continue
        key = _SNAKE_CASE.get(name, name)
        if key not in _KNOWN:
            known = ", ".join(sorted(_KNOWN))
            raise ConfigurationError(
                f"{where} has an unknown field {name!r:.60}. Known fields: {known}."
            )
        fields[key] = value
    role = fields.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise ConfigurationError(
            f"{where}.role is {role!r:.60}. Use one of {', '.join(sorted(ROLES))}."
        )
    for name in _TEXTS:
        if not isinstance(fields.get(name, ""), str):
            raise ConfigurationError(f"{where}.{name} must be a string.")
    if not isinstance(fields.get("metadata", {}), Mapping):
        raise ConfigurationError(f"{where}.metadata must be a dict.")
    return fields


def _from_fields(fields: dict[str, Any], where: str) -> Message:
    role, name = fields["role"], fields.get("name")
    parts: list[Part] = []
    if role == "tool":
        parts.append(_result(fields, where))
        name = None  # it is the tool's
    else:
        thinking = fields.get("reasoning_content") or fields.get("reasoning")
        parts += [Thinking(text=thinking)] if thinking else []
        parts += _parts(fields.get("content"), f"{where}.content")
        parts += [Refusal(text=fields["refusal"])] if fields.get("refusal") else []
        parts += _calls(fields.get("tool_calls", ()), f"{where}.tool_calls")
    metadata = {**fields.get("metadata", {})}
    if fields.get("annotations"):  # of an answer; no provider reads them
        metadata["annotations"] = fields["annotations"]
    return Message(
        role=role, content=tuple(parts), name=name, id=fields.get("id"), metadata=metadata
    )


def _parts(content: Any, where: str) -> list[Part]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [Text(text=content)]
    if not isinstance(content, (list, tuple)):
        raise ConfigurationError(f"{where} must be a string or a list, not a {_type(content)}.")
    return [_part(item, f"{where}[{i}]") for i, item in enumerate(content)]


def _part(item: Any, where: str) -> Part:
    if isinstance(item, str):
        return Text(text=item)
    part: Part | None = None
    rest: dict[Any, Any] = {}
    match item:
        case {"type": "text", "text": str(text), **rest}:
            part = Text(text=text)
        case {"type": "refusal", "refusal": str(text), **rest}:
            part = Refusal(text=text)
        case {"type": "image_url", "image_url": image, **rest}:
            part = _image(image)
        case {"type": "input_audio", "input_audio": audio, **rest}:
            part = _audio(audio)
        case {"type": "file", "file": dict(file), **rest}:
            part = _file(file)
    if part is None:
        kind = item.get("type") if isinstance(item, Mapping) else _type(item)
        raise ConfigurationError(
            f"{where} ({kind!r:.60}) must be a complete part of type 'text', 'image_url', "
            "'input_audio', 'file' or 'refusal', without other fields."
        )
    for name, value in rest.items():
        if value is not None:
            raise ConfigurationError(f"{where} has an unknown field {name!r:.60}.")
    return part


def _image(image: Any) -> Part | None:
    match {"url": image} if isinstance(image, str) else image:
        case {"url": str(url), **rest} if rest.keys() <= {"detail"}:
            detail = rest.get("detail")
            return Image(**_source(url), detail=None if detail is None else str(detail))
    return None


def _audio(audio: Any) -> Part | None:
    match audio:
        case {"data": str(text), "format": str(form), **rest} if not rest:
            data = _bytes(text)
            media_type = {"mp3": "audio/mpeg"}.get(form, f"audio/{form}")
            return None if data is None else Audio(data=data, media_type=media_type)
    return None


def _file(file: dict[str, Any]) -> Part | None:
    match {name: value for name, value in file.items() if value is not None}:
        case {"file_id": str(file_id), **rest} if rest.keys() <= {"filename"}:
            return Document(file_id=file_id, file_name=rest.get("filename"))
        case {"file_data": str(url), **rest} if rest.keys() <= {"filename"}:
            return Document(**_source(url), file_name=rest.get("filename"))
    return None


def _calls(calls: Any, where: str) -> list[ToolCall]:
    if not isinstance(calls, (list, tuple)):
        raise ConfigurationError(f"{where} must be a list.")
    return [_call(call, f"{where}[{i}]") for i, call in enumerate(calls)]


def _call(call: Any, where: str) -> ToolCall:
    match call:
        case {"id": str(call_id), "function": {"name": str(name), **inner}}:
            text = inner.get("arguments")
            if text is None or isinstance(text, str):
                arguments = parse_arguments(text or "") or {}
                return ToolCall(id=call_id, name=name, arguments=arguments, raw_arguments=text)
            if isinstance(text, dict):
                return ToolCall(id=call_id, name=name, arguments=text)
        case {"id": str(call_id), "custom": {"name": str(name), "input": str(text)}}:
            return ToolCall(id=call_id, name=name, raw_arguments=text, type="custom")
        case {"id": str(call_id), "name": str(name), **more}:
            values = more.get("args", more.get("arguments"))
            if values is None or isinstance(values, Mapping):
                return ToolCall(id=call_id, name=name, arguments=dict(values or {}))
    raise ConfigurationError(
        f"{where} needs 'id' and 'function' with 'name' and 'arguments', or 'id', 'name' and "
        "'args', an object."
    )


def _result(fields: Mapping[str, Any], where: str) -> ToolResult:
    call_id, content = fields.get("tool_call_id"), fields.get("content")
    if not isinstance(call_id, str):
        raise ConfigurationError(f"{where} needs tool_call_id, the id of the call that it answers.")
    if isinstance(content, (list, tuple)) and content and all(map(_is_part, content)):
        parts = tuple(_parts(content, f"{where}.content"))
        content = parts[0].text if len(parts) == 1 and isinstance(parts[0], Text) else parts
    return ToolResult(
        tool_call_id=call_id, content=() if content is None else content, name=fields.get("name")
    )


def _is_part(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("type") in ("text", "image_url")


def _source(url: str) -> dict[str, Any]:
    """The bytes if `url` is a base64 data URL, otherwise the URL."""
    head, comma, body = url.partition(",")
    media_type = head[5:].removesuffix(";base64")
    if comma and url.startswith("data:") and media_type and head.endswith(";base64"):
        data = _bytes(body)
        if data is not None:
            return {"data": data, "media_type": media_type}
    return {"url": url}


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _type(value: Any) -> str:
    return type(value).__name__
