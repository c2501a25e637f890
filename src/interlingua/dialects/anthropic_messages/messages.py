"""
Messages <-> `system` and `messages`.

A leading system message is the `system` field; a later one stays in its place.
"""

from __future__ import annotations

from typing import Any

from interlingua.dialects.anthropic_messages.content import ENCODERS, decode_content
from interlingua.dialects.anthropic_messages.facts import NAME, extra_for
from interlingua.spec.content import Json, Opaque, ToolResult
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, restore, wrong_type

INLINE = "~inline"
"""Our own mark in `extra`: a system message that stood among the messages."""


def encode_messages(request: Request, body: dict[str, Any], warnings: WarningList) -> None:
    messages = request.messages
    hoisted = 0
    for message in messages:
        if message.role not in ("system", "developer") or extra_of(message, NAME).get(INLINE):
            break
        hoisted += 1
    if hoisted:
        system: list[dict[str, Any]] = []
        for warnings.message in range(hoisted):
            system += _encode_parts(messages[warnings.message], warnings)
        body["system"] = _shorten(system)
    encoded: list[Json] = []
    for warnings.message in range(hoisted, len(messages)):
        wire = _encode_message(messages[warnings.message], warnings)
        if wire is not None:
            encoded.append(wire)
    body["messages"] = encoded


def _encode_message(message: Message, warnings: WarningList) -> Json:
    content = message.content
    if len(content) == 1 and type(content[0]) is Opaque:
        only = content[0]
        if only.dialect == NAME and isinstance(only.data, str):
            return only.data  # a message that was no object to begin with
    blocks = _encode_parts(message, warnings)
    if not blocks and content:
        warnings.add("emptied_message_dropped", warnings.message_path())
        return None
    wire: dict[str, Any] = {"role": _ROLES[message.role], "content": _shorten(blocks)}
    if message.extra:
        wire = restore(wire, message, NAME)
        wire.pop(INLINE, None)
    if message.name is not None:
        warnings.add("name_dropped", f"{warnings.message_path()}.name")
    return wire


_ROLES: dict[Role, str] = {
    "user": "user",
    "tool": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}


def _encode_parts(message: Message, warnings: WarningList) -> list[dict[str, Any]]:
    if message.role == "developer":
        warnings.add("developer_as_system", warnings.message_path())
    blocks: list[dict[str, Any]] = []
    for warnings.part, part in enumerate(message.content):
        block = ENCODERS[type(part)](part, warnings)
        if block is not None:
            blocks.append(block)
    return blocks


def _shorten(blocks: list[dict[str, Any]]) -> Json:
    """One plain text block may be written as a string."""
    if len(blocks) == 1:
        block = blocks[0]
        if len(block) == 2 and block.get("type") == "text" and "text" in block:
            return block["text"]
    return blocks


def decode_messages(fields: Fields) -> tuple[Message, ...]:
    messages: list[Message] = []
    system = fields.take("system")
    if system is not None:
        messages.append(Message(role="system", content=decode_content(system, "system")))
    items = fields.array("messages")
    if items is None:
        raise wrong_type("messages", "an array", None)
    messages += [_decode_message(item, i) for i, item in enumerate(items)]
    return tuple(messages)


def _decode_message(item: Json, index: int) -> Message:
    path = f"messages[{index}]"
    if isinstance(item, str):  # no message at all, but nothing we should lose
        return Message(role="user", content=(Opaque(dialect=NAME, data=item),))
    fields = Fields(item, path)
    role = fields.text("role")
    if role not in ("user", "assistant", "system"):
        raise wrong_type(f"{path}.role", "user, assistant or system", role)
    content = decode_content(fields.take("content"), f"{path}.content")
    extra: dict[str, Any] = dict(fields.left)
    if role == "system":
        extra[INLINE] = True
    elif role == "user" and content and all(isinstance(part, ToolResult) for part in content):
        role = "tool"
    return Message(
        role=role,  # type: ignore[arg-type]
        content=content,
        extra=extra_for(extra),
    )
