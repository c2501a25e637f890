"""Tools and the tool choice <-> body."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_responses.facts import NAME, extra_for
from interlingua.dialects.openai_shared import STRICT_SCHEMA
from interlingua.prepare.schema import encode_parameters
from interlingua.spec.content import Json
from interlingua.spec.request import BuiltinTool, Request, ToolChoice, ToolDefinition, ToolSpec
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, restore, wrong_type

_NO_INPUT = {"type": "object", "properties": {}}


def encode_tools(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    """`tools`, `tool_choice` and `parallel_tool_calls`."""
    tools = [_encode_tool(tool, warnings, f"tools[{i}]") for i, tool in enumerate(request.tools)]
    if kept := [tool for tool in tools if tool is not None]:
        body["tools"] = kept
    if request.tool_choice is not None:
        definitions = [tool for tool in request.tools if isinstance(tool, ToolDefinition)]
        custom = {tool.name for tool in definitions if tool.type == "custom"}
        body["tool_choice"] = _encode_choice(request.tool_choice, custom)
    if request.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = request.parallel_tool_calls


def decode_tools(fields: Fields) -> dict[str, Any]:
    """The request's `tools`, `tool_choice` and `parallel_tool_calls`."""
    settings: dict[str, Any] = {
        "tool_choice": _decode_choice(fields),
        "parallel_tool_calls": fields.flag("parallel_tool_calls"),
    }
    tools = fields.items("tools")
    if tools:
        settings["tools"] = tuple(_decode_tool(tool, f"tools[{i}]") for i, tool in enumerate(tools))
    return settings


def _encode_tool(tool: ToolSpec, warnings: WarningList, path: str) -> Json:
    if isinstance(tool, BuiltinTool):
        if tool.dialect == NAME:
            return tool.data
        warnings.add("builtin_tool_dropped", path, owner=tool.dialect)
        return None
    wire: dict[str, Json] = {"type": tool.type, "name": tool.name}
    if tool.description is not None:
        wire["description"] = tool.description
    strict = tool.strict
    is_function = tool.type == "function"
    if is_function and (tool.parameters is not None or "parameters" not in extra_of(tool, NAME)):
        schema = _NO_INPUT if tool.parameters is None else tool.parameters
        wire["parameters"], strict = encode_parameters(
            schema, STRICT_SCHEMA, warnings, f"{path}.parameters", strict=strict
        )
    if strict is not None or (is_function and NAME not in tool.extra):
        wire["strict"] = strict  # the API's types require it
    return restore(wire, tool, NAME)


def _decode_tool(tool: Json, path: str) -> ToolSpec:
    if not isinstance(tool, dict):
        raise wrong_type(path, "an object", tool)
    kind = tool.get("type")
    if kind not in ("function", "custom") or "name" not in tool:
        return BuiltinTool(dialect=NAME, data=tool)
    fields = Fields(tool, path)
    fields.take("type")
    name = fields.need("name")
    description = fields.text("description")
    parameters = strict = None
    if kind == "function":
        parameters = fields.object("parameters")
        strict = fields.flag("strict")
        if parameters is None:
            fields.left["parameters"] = None  # otherwise it would be encoded as an empty schema
    # With an empty `extra`, `strict` is encoded only if it is set.
    is_unset = kind == "function" and strict is None
    return ToolDefinition(
        name=name,
        description=description,
        parameters=parameters,
        strict=strict,
        type=kind,
        extra={NAME: fields.left} if is_unset else extra_for(fields.left),
    )


def _encode_choice(choice: ToolChoice, custom: set[str]) -> Json:
    if choice.mode == "named" and choice.tool_name is not None:
        kind = extra_of(choice, NAME).get("type") or _type_of(choice.tool_name, custom)
        return {"type": kind, "name": choice.tool_name}
    if choice.allowed is not None and choice.mode in ("auto", "required"):
        tools = [{"type": _type_of(name, custom), "name": name} for name in choice.allowed]
        return {"type": "allowed_tools", "mode": choice.mode, "tools": tools}
    return "required" if choice.mode == "named" else choice.mode


def _type_of(name: str, custom: set[str]) -> str:
    return "custom" if name in custom else "function"


def _decode_choice(fields: Fields) -> ToolChoice | None:
    """The tool choice; one without a canonical form is left in `fields`."""
    wire: Json = fields.left.get("tool_choice")
    choice: ToolChoice | None = None
    match wire:
        case "auto" | "none" | "required":
            choice = ToolChoice(mode=wire)
        case {"type": "function", "name": str(name), **rest} if not rest:
            choice = ToolChoice(mode="named", tool_name=name)
        case {"type": "custom", "name": str(name), **rest} if not rest:
            choice = ToolChoice(mode="named", tool_name=name, extra={NAME: {"type": "custom"}})
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode, "tools": list(tools)}:
            names = [_allowed_name(tool) for tool in tools]
            if len(wire) == 3 and None not in names:
                choice = ToolChoice(mode=mode, allowed=tuple(map(str, names)))
        case None | str() | dict():
            pass
        case _:
            raise wrong_type(fields.at("tool_choice"), "text or an object", wire)
    if choice is not None:
        fields.take("tool_choice")
    return choice


def _allowed_name(tool: Json) -> str | None:
    match tool:
        case {"type": "function", "name": str(name), **rest} if not rest:
            return name
    return None
