"""
Messages <-> `system` and `messages`.

Leading system messages become the `system` field; a later one stays in its place.
"""

from __future__ import annotations

from interlingua.dialects.anthropic_messages.content import ENCODERS, Block, decode_content
from interlingua.dialects.anthropic_messages.facts import NAME, extra_for
from interlingua.spec.content import Json, Opaque, Text, ToolResult
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, restore, shorten, wrong_type

_INLINE = "~inline"
"""Our own key in `extra`: the system message was in `messages`, not in `system`."""
_ROLES: dict[Role, str] = {"tool": "user", "developer": "system"}  # the others have our names


def encode_messages(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    messages = request.messages
    leading = 0  # how many messages go to `system`
    for message in messages:
        if message.role not in ("system", "developer") or extra_of(message, NAME).get(_INLINE):
            break
        leading += 1
    if leading:
        system: list[Block] = []
        for warnings.message in range(leading):
            system += _encode_parts(messages[warnings.message], warnings)
        body["system"] = shorten(system)
    body["messages"] = encoded = []
    for warnings.message in range(leading, len(messages)):
        message = messages[warnings.message]
        wire = _encode_text(message) or _encode_message(message, warnings)
        if wire is not None:
            encoded.append(wire)


def _encode_text(message: Message) -> Json:
    """The usual message, which is one plain text; None for any other."""
    content = message.content
    if len(content) != 1 or type(content[0]) is not Text or content[0].extra or message.extra:
        return None
    if message.role not in ("user", "assistant") or message.name is not None:
        return None
    return {"role": message.role, "content": content[0].text}


def _encode_message(message: Message, warnings: WarningList) -> Json:
    content = message.content
    if len(content) == 1 and type(content[0]) is Opaque:
        part = content[0]
        if part.dialect == NAME and isinstance(part.data, str):
            return part.data  # `_decode_message` read it from a string
    blocks = _encode_parts(message, warnings)
    if not blocks and content:
        warnings.add("emptied_message_dropped", warnings.message_path())
        return None
    wire = {"role": _ROLES.get(message.role, message.role), "content": shorten(blocks)}
    if message.extra:
        restore(wire, message, NAME).pop(_INLINE, None)
    return wire


def _encode_parts(message: Message, warnings: WarningList) -> list[Block]:
    if message.role == "developer":
        warnings.add("developer_as_system", warnings.message_path())
    if message.name is not None:
        warnings.add("name_dropped", f"{warnings.message_path()}.name")
    blocks: list[Block] = []
    for warnings.part, part in enumerate(message.content):
        block = ENCODERS[type(part)](part, warnings)
        if block is not None:
            blocks.append(block)
    return blocks


def decode_messages(fields: Fields) -> tuple[Message, ...]:
    messages: list[Message] = []
    system = fields.take("system")
    if system is not None:
        messages.append(Message(role="system", content=decode_content(system, "system")))
    items = fields.array("messages")
    if items is None:
        raise wrong_type("messages", "an array", None)
    messages += [_decode_message(item, f"messages[{i}]") for i, item in enumerate(items)]
    return tuple(messages)


def _decode_message(item: Json, path: str) -> Message:
    if isinstance(item, str):  # not a valid message, but it must survive the round trip
        return Message(role="user", content=(Opaque(dialect=NAME, data=item),))
    fields = Fields(item, path)
    role = fields.text("role")
    if role not in ("user", "assistant", "system"):
        raise wrong_type(f"{path}.role", "user, assistant or system", role)
    content = decode_content(fields.take("content"), f"{path}.content")
    if role == "system":
        fields.left[_INLINE] = True
    elif role == "user" and content and all(isinstance(part, ToolResult) for part in content):
        role = "tool"
    return Message(role=role, content=content, extra=extra_for(fields.left))  # type: ignore[arg-type]
