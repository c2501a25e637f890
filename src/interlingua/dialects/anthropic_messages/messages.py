"""
Messages <-> `system` and `messages`.

A leading system message is the `system` field; a later one stays in its place.
"""

from __future__ import annotations

from typing import Any

from interlingua.dialects.anthropic_messages.content import (
    decode_content,
    encode_part,
    encode_tool_use,
)
from interlingua.dialects.anthropic_messages.facts import NAME, extra_for
from interlingua.prepare.plain import plain_result, plain_text, plain_turn
from interlingua.spec.content import Json, Opaque, Text, ToolResult
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request
from interlingua.spec.warnings import Losses
from interlingua.wire.fields import Fields, extra_of, restore, wrong_type

INLINE = "~inline"
"""Our own mark in `extra`: a system message that stood among the messages."""


def encode_messages(request: Request, body: dict[str, Any], losses: Losses) -> None:
    hoisted = 0
    for message in request.messages:
        if message.role not in ("system", "developer") or extra_of(message, NAME).get(INLINE):
            break
        hoisted += 1
    if hoisted:
        system = [
            block
            for i, message in enumerate(request.messages[:hoisted])
            for block in _encode_parts(message, losses, f"messages[{i}]")
        ]
        body["system"] = _shorten(system)
    encoded = [
        _encode_plain(message) or _encode_message(message, losses, f"messages[{i}]")
        for i, message in enumerate(request.messages[hoisted:], hoisted)
    ]
    body["messages"] = [wire for wire in encoded if wire is not None]
    if "developer" in [message.role for message in request.messages]:
        _tell_developers(request.messages, losses)


def _tell_developers(messages: tuple[Message, ...], losses: Losses) -> None:
    for i, message in enumerate(messages):
        if message.role == "developer":
            losses.add("developer_as_system", f"{NAME} has no developer role", f"messages[{i}]")


def _encode_plain(message: Message) -> dict[str, Any] | None:
    """The short way for what most messages are."""
    text = plain_text(message)
    if text is not None:
        return {"role": _ROLES[message.role], "content": text}
    turn = plain_turn(message)
    if turn is not None:
        blocks = [
            {"type": "text", "text": part.text} if isinstance(part, Text) else encode_tool_use(part)
            for part in turn
        ]
        return {"role": "assistant", "content": blocks}
    result = plain_result(message)
    if result is None:
        return None
    block = {
        "type": "tool_result",
        "tool_use_id": result.tool_call_id,
        "content": result.content,
    }
    return {"role": "user", "content": [block]}


def _encode_message(message: Message, losses: Losses, path: str) -> Json:
    if len(message.content) == 1 and isinstance(message.content[0], Opaque):
        part = message.content[0]
        if part.dialect == NAME and isinstance(part.data, str):
            return part.data  # a message that was no object to begin with
    role = _ROLES[message.role]
    blocks = _encode_parts(message, losses, path)
    if message.content and not blocks:
        losses.dropped("message with nothing left in it", NAME, path)
        return None
    wire = restore({"role": role, "content": _shorten(blocks)}, message, NAME)
    wire.pop(INLINE, None)
    if message.name is not None:
        losses.dropped("name", NAME, f"{path}.name")
    return wire


_ROLES: dict[Role, str] = {
    "user": "user",
    "tool": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}


def _encode_parts(message: Message, losses: Losses, path: str) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for i, part in enumerate(message.content):
        block = encode_part(part, losses, f"{path}.content[{i}]")
        if block is not None:
            blocks.append(block)
    return blocks


def _shorten(blocks: list[dict[str, Any]]) -> Json:
    """One plain text block may be written as a string."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and blocks[0]["type"] == "text":
        return blocks[0]["text"]
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
