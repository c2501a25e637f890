"""Tools and the choice among them <-> body."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_chat.calls import LEGACY
from interlingua.dialects.openai_chat.marks import (
    SENT_AS,
    WITHOUT,
    complete,
    keep,
    mark_of,
    note_absent,
)
from interlingua.dialects.openai_chat.quirks import ChatQuirks
from interlingua.dialects.openai_chat.wire import NAME
from interlingua.spec.content import Json, ToolType
from interlingua.spec.request import BuiltinTool, Request, ToolChoice, ToolDefinition, ToolSpec
from interlingua.wire.carry import Losses
from interlingua.wire.shape import Fields, wrong_type

_LEGACY_TOOLS = "functions"
_MODES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}


def decode_tools(fields: Fields) -> dict[str, Any]:
    """The request's `tools`, `tool_choice` and `parallel_tool_calls`."""
    settings: dict[str, Any] = {"parallel_tool_calls": fields.flag("parallel_tool_calls")}
    tools = fields.array("tools")
    legacy = fields.array(_LEGACY_TOOLS)
    if tools is not None or legacy is not None:
        settings["tools"] = (
            *(_decode_tool(tool, f"tools[{i}]") for i, tool in enumerate(tools or ())),
            *(_decode_legacy(tool, f"functions[{i}]") for i, tool in enumerate(legacy or ())),
        )
    for key in (LEGACY, "tool_choice"):
        wire = fields.left.get(key)
        if wire is not None and not isinstance(wire, (str, dict)):
            raise wrong_type(key, "text or an object", wire)
        choice = _decode_choice(wire, legacy=key == LEGACY)
        if choice is not None:
            del fields.left[key]
            settings["tool_choice"] = choice
    return settings


def _decode_tool(tool: Json, path: str) -> ToolSpec:
    if not isinstance(tool, dict):
        raise wrong_type(path, "an object", tool)
    kind: ToolType = "custom" if tool.get("type") == "custom" else "function"
    if tool.get("type", kind) != kind or not isinstance(tool.get(kind), dict):
        return BuiltinTool(dialect=NAME, data=tool)
    fields = Fields(tool, path)
    inner = Fields(fields.take(kind), f"{path}.{kind}")
    missing = note_absent(fields.left, "type")
    fields.take("type")
    extra = fields.left
    found = _decode_definition(inner, kind)
    if inner.left:
        extra[kind] = inner.left
    if missing:
        extra[WITHOUT] = missing
    return ToolDefinition(type=kind, extra=keep(extra), **found)


def _decode_legacy(tool: Json, path: str) -> ToolSpec:
    inner = Fields(tool, path)
    found = _decode_definition(inner, "function")
    extra: dict[str, Any] = {SENT_AS: _LEGACY_TOOLS}
    if inner.left:
        extra["function"] = inner.left
    return ToolDefinition(extra={NAME: extra}, **found)


def _decode_definition(inner: Fields, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": inner.need("name"), "description": inner.text("description")}
    if kind == "function":
        found["parameters"] = inner.object("parameters")
        found["strict"] = inner.flag("strict")
    return found


def _decode_choice(wire: Json, *, legacy: bool) -> ToolChoice | None:
    """None for a form we do not know, which is then carried as it is."""
    extra: dict[str, Any] = {SENT_AS: LEGACY} if legacy else {}
    if isinstance(wire, str):
        mode = _MODES.get(wire)
        if mode is None:
            return None
        if wire == "any":
            extra[SENT_AS] = wire
        return ToolChoice(mode=mode, extra=keep(extra))  # type: ignore[arg-type]
    return _decode_named(wire, extra) or _decode_allowed(wire)


def _decode_named(wire: Json, extra: dict[str, Any]) -> ToolChoice | None:
    match wire:
        case {"name": str(name), **rest} if extra and not rest:
            return ToolChoice(mode="named", tool_name=name, extra=keep(extra))
        case {"function": {"name": str(name)}, **rest} if rest.get("type", "function") == (
            "function"
        ):
            kind = "function"
        case {"type": "custom", "custom": {"name": str(name)}}:
            kind = "custom"
        case _:
            return None
    fields = Fields(wire)
    inner = Fields(fields.take(kind))
    inner.take("name")
    extra = fields.left
    missing = note_absent(extra, "type")
    extra.pop("type", None)
    if inner.left:
        extra[kind] = inner.left
    if kind == "custom":
        extra[SENT_AS] = kind
    if missing:
        extra[WITHOUT] = missing
    return ToolChoice(mode="named", tool_name=name, extra=keep(extra))


def _decode_allowed(wire: Json) -> ToolChoice | None:
    match wire:
        case {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto" | "required" as mode, "tools": list(tools)},
        }:
            names = [_allowed_name(tool) for tool in tools]
            choice = ToolChoice(mode=mode, allowed=tuple(name or "" for name in names))
            return choice if _encode_allowed(choice) == wire else None
    return None


def _allowed_name(tool: Json) -> str | None:
    match tool:
        case {"function": {"name": str(name)}}:
            return name
    return None


def encode_tools(
    request: Request, body: dict[str, Any], quirks: ChatQuirks, losses: Losses
) -> None:
    """`tools`, `tool_choice` and `parallel_tool_calls`, or the older `functions`."""
    tools: list[Json] = []
    legacy: list[Json] = []
    for i, tool in enumerate(request.tools or ()):
        if isinstance(tool, ToolDefinition) and mark_of(tool, SENT_AS) == _LEGACY_TOOLS:
            legacy.append(_encode_tool(tool)["function"])
        elif isinstance(tool, ToolDefinition):
            tools.append(_encode_tool(tool))
        elif tool.dialect == NAME:
            tools.append(tool.data)
        else:
            losses.dropped(f"built-in tool of {tool.dialect}", NAME, f"tools[{i}]")
    if tools or request.tools == ():
        body["tools"] = tools
    if legacy:
        body[_LEGACY_TOOLS] = legacy
    if request.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = request.parallel_tool_calls
    choice = request.tool_choice
    if choice is not None:
        key = LEGACY if mark_of(choice, SENT_AS) == LEGACY else "tool_choice"
        body[key] = _encode_choice(choice, request, quirks)


def _encode_tool(tool: ToolDefinition) -> dict[str, Any]:
    inner: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        inner["description"] = tool.description
    if tool.type == "function" and tool.parameters is not None:
        inner["parameters"] = tool.parameters
    if tool.type == "function" and tool.strict is not None:
        inner["strict"] = tool.strict
    return complete({"type": tool.type, tool.type: inner}, tool)


def _encode_choice(choice: ToolChoice, request: Request, quirks: ChatQuirks) -> Json:
    form = mark_of(choice, SENT_AS)
    if choice.allowed is not None and choice.mode in ("auto", "required"):
        return _encode_allowed(choice)
    if choice.mode == "required":
        return "any" if form == "any" else quirks.required_word
    if choice.mode != "named":
        return choice.mode
    if form == LEGACY:
        return {"name": choice.tool_name}
    custom = form == "custom" or any(
        isinstance(tool, ToolDefinition) and tool.type == "custom" and tool.name == choice.tool_name
        for tool in request.tools or ()
    )
    kind = "custom" if custom else "function"
    return complete({"type": kind, kind: {"name": choice.tool_name}}, choice)


def _encode_allowed(choice: ToolChoice) -> Json:
    tools = [{"type": "function", "function": {"name": name}} for name in choice.allowed or ()]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
