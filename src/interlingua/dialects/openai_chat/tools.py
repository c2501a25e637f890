"""Tools and the choice among them <-> body."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_chat.facts import LEGACY, NAME
from interlingua.dialects.openai_chat.marks import (
    SENT_AS,
    complete,
    extra_for,
    given,
    mark_of,
    take_usual,
)
from interlingua.dialects.openai_chat.quirks import ChatQuirks
from interlingua.dialects.openai_shared import STRICT_SCHEMA
from interlingua.prepare.schema import encode_parameters
from interlingua.spec.content import Json, ToolType
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ToolChoice,
    ToolChoiceMode,
    ToolDefinition,
    ToolSpec,
)
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, wrong_type

_LEGACY_TOOLS = "functions"
_MODES: dict[str, ToolChoiceMode] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",
}


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
    fields = Fields(tool, path)
    kind: ToolType = "custom" if tool.get("type") == "custom" else "function"
    if tool.get("type", kind) != kind or not isinstance(tool.get(kind), dict):
        return BuiltinTool(dialect=NAME, data=tool)
    missing = take_usual(fields.left, type=kind)
    inner = Fields(fields.take(kind), f"{path}.{kind}")
    found = _decode_definition(inner, kind)
    return ToolDefinition(**found, extra=extra_for(fields.left, missing, **{kind: inner.left}))


def _decode_legacy(tool: Json, path: str) -> ToolSpec:
    inner = Fields(tool, path)
    found = _decode_definition(inner, "function")
    return ToolDefinition(**found, extra=extra_for({SENT_AS: _LEGACY_TOOLS}, function=inner.left))


def _decode_definition(inner: Fields, kind: ToolType) -> dict[str, Any]:
    found: dict[str, Any] = {"type": kind, "name": inner.need("name")}
    found["description"] = inner.text("description")
    if kind == "function":
        found |= {"parameters": inner.object("parameters"), "strict": inner.flag("strict")}
    return found


def _decode_choice(wire: Json, *, legacy: bool) -> ToolChoice | None:
    """None for a form we do not know, which is then carried as it is."""
    form = LEGACY if legacy else None
    match wire:
        case str() if wire in _MODES:
            extra = extra_for({}, sent_as=wire if wire == "any" else form)
            return ToolChoice(mode=_MODES[wire], extra=extra)
        case {"name": str(name), **rest} if legacy and not rest:
            return ToolChoice(mode="named", tool_name=name, extra=extra_for({}, sent_as=form))
        case {"allowed_tools": {"mode": "auto" | "required" as mode, "tools": list(tools)}}:
            choice = ToolChoice(mode=mode, allowed=tuple(_allowed_name(tool) for tool in tools))
            return choice if _encode_allowed(choice) == wire else None
        case {"type": "custom", "custom": {"name": str(name)}}:
            return _decode_named(wire, name, "custom")
        case {"function": {"name": str(name)}} if wire.get("type", "function") == "function":
            return _decode_named(wire, name, "function")
    return None


def _decode_named(wire: dict[str, Any], name: str, kind: ToolType) -> ToolChoice:
    left = dict(wire)
    inner = {key: value for key, value in left.pop(kind).items() if key != "name"}
    missing = take_usual(left, type=kind)
    form = kind if kind == "custom" else None
    extra = extra_for(left, missing, sent_as=form, **{kind: inner})
    return ToolChoice(mode="named", tool_name=name, extra=extra)


def _allowed_name(tool: Json) -> str:
    match tool:
        case {"function": {"name": str(name)}}:
            return name
    return ""


def encode_tools(
    request: Request, body: dict[str, Any], quirks: ChatQuirks, warnings: WarningList
) -> None:
    """`tools`, `tool_choice` and `parallel_tool_calls`, or the older `functions`."""
    tools: list[Json] = []
    legacy: list[Json] = []
    for i, tool in enumerate(request.tools or ()):
        if isinstance(tool, ToolDefinition) and mark_of(tool, SENT_AS) == _LEGACY_TOOLS:
            legacy.append(_encode_tool(tool, warnings, f"tools[{i}]")["function"])
        elif isinstance(tool, ToolDefinition):
            tools.append(_encode_tool(tool, warnings, f"tools[{i}]"))
        elif tool.dialect == NAME:
            tools.append(tool.data)
        else:
            warnings.add("builtin_tool_dropped", f"tools[{i}]", owner=tool.dialect)
    if tools or request.tools == ():
        body["tools"] = tools
    if legacy:
        body[_LEGACY_TOOLS] = legacy
    body |= given(parallel_tool_calls=request.parallel_tool_calls)
    choice = request.tool_choice
    if choice is not None:
        key = LEGACY if mark_of(choice, SENT_AS) == LEGACY else "tool_choice"
        body[key] = _encode_choice(choice, request, quirks)


def _encode_tool(tool: ToolDefinition, warnings: WarningList, path: str) -> dict[str, Any]:
    inner = given(name=tool.name, description=tool.description)
    if tool.type == "function":
        schema, strict = tool.parameters, tool.strict
        if schema is not None:
            schema, strict = encode_parameters(
                schema, STRICT_SCHEMA, warnings, f"{path}.parameters", strict=strict
            )
        inner |= given(parameters=schema, strict=strict)
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
