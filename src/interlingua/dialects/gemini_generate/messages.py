"""
Messages <-> `systemInstruction` and `contents`.

The leading system messages are `systemInstruction`; `contents` has no system role.
"""

from __future__ import annotations

from interlingua.dialects.gemini_generate.calls import Links, request_links
from interlingua.dialects.gemini_generate.content import decode_part, encode_part
from interlingua.dialects.gemini_generate.facts import NAME, extra_for, mark_absent, take_absent
from interlingua.spec.content import Opaque, Part, Text, ToolCall, ToolResult, UncheckedJson
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of


def encode_messages(
    request: Request, body: dict[str, UncheckedJson], warnings: WarningList
) -> None:
    """Adds `systemInstruction` and `contents` to the body."""
    calls: dict[str, ToolCall] = {}
    system: dict[str, UncheckedJson] | None = None
    contents: list[UncheckedJson] = []
    leading = True
    for warnings.message, message in enumerate(request.messages):
        leading = leading and message.role in ("system", "developer")
        content = _encode_message(message, calls, warnings, leading=leading)
        if content is None:
            warnings.add("emptied_message_dropped", warnings.message_path())
        elif not leading:
            contents.append(content)
        elif system is None:
            system = content
        else:
            system = {**system, "parts": [*system.get("parts", ()), *content.get("parts", ())]}
        if leading and message.role == "developer":
            warnings.add("developer_as_system", warnings.message_path())
    if system is not None:
        body["systemInstruction"] = system
    if contents:
        body["contents"] = contents


def _encode_message(
    message: Message, calls: dict[str, ToolCall], warnings: WarningList, *, leading: bool
) -> UncheckedJson:
    content = message.content
    if len(content) == 1 and type(content[0]) is Opaque:
        only = content[0]
        if only.dialect == NAME and isinstance(only.data, str):
            return only.data  # see `_decode_content`
    parts: list[UncheckedJson] = []
    for warnings.part, part in enumerate(content):
        if type(part) is Text and not part.extra:  # the usual case
            parts.append({"text": part.text})
            continue
        if type(part) is ToolCall:
            calls[part.id] = part
        wire = encode_part(part, warnings, calls)
        if wire is not None:
            parts.append(wire)
    if message.name is not None:
        warnings.add("name_dropped", f"{warnings.message_path()}.name")
    if content and not parts:
        return None
    role = "model" if message.role == "assistant" else "user"
    if not message.extra and not leading:  # fast path
        return {"role": role, "parts": parts}
    return _restore_content(message, role, parts, leading=leading)


def _restore_content(
    message: Message, role: str, parts: list[UncheckedJson], *, leading: bool
) -> dict[str, UncheckedJson]:
    """The content of a leading system message, or of a message that was decoded from one."""
    extra = dict(extra_of(message, NAME))
    absent = take_absent(extra)
    if not leading and message.role not in ("user", "tool"):
        extra["role"] = role
    elif not leading and "role" not in absent:  # `systemInstruction` needs no role
        extra.setdefault("role", role)
    if parts or not ("parts" in absent or "parts" in extra):
        extra["parts"] = parts
    return extra


def decode_messages(fields: Fields) -> tuple[Message, ...]:
    """The messages of a request, one for each content."""
    messages: list[Message] = []
    links = request_links()
    system = fields.left.get("systemInstruction")
    if isinstance(system, str):
        fields.take("systemInstruction")
        messages.append(Message.system(system))
    elif (content := fields.fields("systemInstruction")) is not None:
        mark_absent(content.left, content.left, "parts")
        parts = _decode_parts(content, links)
        messages.append(Message(role="system", content=parts, extra=extra_for(content.left)))
    contents = fields.array("contents")
    if contents:
        messages += [_decode_content(item, i, links) for i, item in enumerate(contents)]
    elif contents is not None:
        fields.left["contents"] = contents
    return tuple(messages)


def _decode_content(item: UncheckedJson, index: int, links: Links) -> Message:
    if isinstance(item, str):  # not a valid content, but it must not be lost
        return Message(role="user", content=(Opaque(dialect=NAME, data=item),))
    fields = Fields(item, f"contents[{index}]")
    links.turn()
    mark_absent(fields.left, fields.left, "parts", "role")
    content = _decode_parts(fields, links)
    wire_role = fields.text("role")
    role: Role = "assistant" if wire_role == "model" else "user"
    is_all_results = bool(content) and all(isinstance(part, ToolResult) for part in content)
    if wire_role == "function" or (role == "user" and is_all_results):
        role = "tool"
    if wire_role not in ("user", "model", None):
        fields.left["role"] = wire_role
    return Message(role=role, content=content, extra=extra_for(fields.left))


def _decode_parts(fields: Fields, links: Links) -> tuple[Part, ...]:
    parts, path = fields.array("parts") or [], fields.at("parts")
    decoded: dict[int, Part] = {}
    # Results whose name no call has come last: then only the calls that they answer still wait.
    for i in sorted(range(len(parts)), key=lambda i: _is_stray(parts[i], links)):
        decoded[i] = decode_part(parts[i], links, f"{path}[{i}]")
    return tuple(decoded[i] for i in range(len(parts)))


def _is_stray(part: UncheckedJson, links: Links) -> bool:
    match part:
        case {"functionResponse": {"name": name}}:
            return not links.waits_for(name)
    return False
