"""
Messages <-> `systemInstruction` and `contents`.

The leading system messages are `systemInstruction`; there is no other place for one.
"""

from __future__ import annotations

from typing import Any

from interlingua.dialects.gemini_generate.calls import Links, request_links
from interlingua.dialects.gemini_generate.content import ENCODERS, decode_content
from interlingua.dialects.gemini_generate.facts import ABSENT, NAME, keep
from interlingua.spec.content import Json, Opaque, Part, ToolCall, ToolResult
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of


def encode_messages(request: Request, body: dict[str, Any], warnings: WarningList) -> None:
    """`systemInstruction` and `contents`."""
    hoisted = 0
    while hoisted < len(request.messages) and request.messages[hoisted].role in _INSTRUCTING:
        hoisted += 1
    calls: dict[str, ToolCall] = {}
    system: dict[str, Any] | None = None
    contents: list[Json] = []
    for warnings.message, message in enumerate(request.messages):
        leading = warnings.message < hoisted
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


_INSTRUCTING = ("system", "developer")
_ROLES: dict[Role, str] = {
    "user": "user",
    "tool": "user",
    "assistant": "model",
    "system": "user",
    "developer": "user",
}


def _encode_message(
    message: Message, calls: dict[str, ToolCall], warnings: WarningList, *, leading: bool
) -> Any:
    content = message.content
    if len(content) == 1 and type(content[0]) is Opaque:
        only = content[0]
        if only.dialect == NAME and isinstance(only.data, str):
            return only.data  # a content that was no object to begin with
    parts: list[dict[str, Any]] = []
    for warnings.part, part in enumerate(content):
        if type(part) is ToolCall:
            calls[part.id] = part
        wire = ENCODERS[type(part)](part, warnings, calls)
        if wire is not None:
            parts.append(wire)
    if message.name is not None:
        warnings.add("name_dropped", f"{warnings.message_path()}.name")
    if content and not parts:
        return None
    if not message.extra and not leading:
        return {"role": _ROLES[message.role], "parts": parts}
    return _encode_content(message, parts, leading=leading)


def _encode_content(
    message: Message, parts: list[dict[str, Any]], *, leading: bool
) -> dict[str, Any]:
    kept = dict(extra_of(message, NAME))
    absent = kept.pop(ABSENT, ())
    told = {"role": kept.pop("role")} if "role" in kept else None
    if leading:  # it needs no role, but most clients give one
        wire: dict[str, Any] = told or {}
    elif message.role in ("user", "tool"):
        wire = told or ({} if "role" in absent else {"role": _ROLES[message.role]})
    else:
        wire = {"role": _ROLES[message.role]}
    if parts or not ("parts" in absent or "parts" in kept):
        wire["parts"] = parts
    return {**kept, **wire}


def decode_messages(fields: Fields) -> tuple[Message, ...]:
    """The request's messages, one for each content."""
    messages: list[Message] = []
    links = request_links()
    system = fields.left.get("systemInstruction")
    if isinstance(system, str):
        fields.take("systemInstruction")
        messages.append(Message.system(system))
    elif (content := fields.fields("systemInstruction")) is not None:
        messages.append(_decode_system(content, links))
    contents = fields.array("contents")
    if contents:
        messages += [_decode_content(item, i, links) for i, item in enumerate(contents)]
    elif contents is not None:
        fields.left["contents"] = contents
    return tuple(messages)


def _decode_system(fields: Fields, links: Links) -> Message:
    content, absent = _decode_parts(fields, links)
    if absent:
        fields.left[ABSENT] = absent
    return Message(role="system", content=content, extra=keep(fields.left))


def _decode_content(item: Json, index: int, links: Links) -> Message:
    if isinstance(item, str):  # no content at all, but nothing we should lose
        return Message(role="user", content=(Opaque(dialect=NAME, data=item),))
    fields = Fields(item, f"contents[{index}]")
    links.turn()
    content, absent = _decode_parts(fields, links)
    if "role" not in fields.left:
        absent.append("role")
    told = fields.text("role")
    role: Role = "assistant" if told == "model" else "user"
    if told == "function" or (role == "user" and content and _are_results(content)):
        role = "tool"
    if told not in ("user", "model", None):
        fields.left["role"] = told
    if absent:
        fields.left[ABSENT] = absent
    return Message(role=role, content=content, extra=keep(fields.left))


def _decode_parts(fields: Fields, links: Links) -> tuple[tuple[Part, ...], list[str]]:
    """The content, and the name of the field it came in if that is missing."""
    absent = [] if "parts" in fields.left else ["parts"]
    return decode_content(fields.array("parts") or [], links, fields.at("parts")), absent


def _are_results(content: tuple[Part, ...]) -> bool:
    return all(isinstance(part, ToolResult) for part in content)
