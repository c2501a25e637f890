"""Tools and the choice among them <-> body."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.dialects.gemini_generate.facts import JSON_SCHEMA, NAME, keep
from interlingua.prepare.schema import encode_parameters, from_openapi
from interlingua.spec.content import Json
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ToolChoice,
    ToolChoiceMode,
    ToolDefinition,
    ToolSpec,
)
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, wrong_type

_FREE_TEXT = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
_DECLARATIONS = "functionDeclarations"
_JSON_SCHEMA = "parametersJsonSchema"
_OPENAPI = "parameters"
# Marks in a definition's extra: `~tool`, what stood beside the declarations of a wire tool that
# begins here; `~schema`, its parameters as they were in the OpenAPI form, which goes back if the
# canonical schema still is what was read from it.
_TOOL = "~tool"
_SCHEMA = "~schema"

_MODES: dict[str | int, ToolChoiceMode] = {
    "AUTO": "auto",
    "ANY": "required",
    "NONE": "none",
    1: "auto",  # the numbers are for clients that asked for enums as integers
    2: "required",
    3: "none",
}
_MODE_NAMES: dict[ToolChoiceMode, str] = {
    "auto": "AUTO",
    "required": "ANY",
    "named": "ANY",
    "none": "NONE",
}
_CALLING = "functionCallingConfig"
_NAMES = "allowedFunctionNames"
_VALIDATED = "VALIDATED"


def encode_tools(request: Request, body: dict[str, Any], warnings: WarningList) -> None:
    """`tools` and `toolConfig`."""
    if request.tools is not None:
        body["tools"] = _encode_list(request.tools, warnings)
    if request.tool_choice is not None:
        body["toolConfig"] = {_CALLING: _encode_choice(request.tool_choice)}
    if request.parallel_tool_calls is not None:
        warnings.setting_dropped("parallel_tool_calls")


def decode_tools(fields: Fields) -> dict[str, Any]:
    """The request's `tools` and `tool_choice`."""
    settings: dict[str, Any] = {}
    tools = fields.array("tools")
    if tools is not None:
        found: list[ToolSpec] = []
        grouped = False
        for position, tool in enumerate(tools):
            specs = _decode_tool(tool, f"{fields.at('tools')}[{position}]", after_group=grouped)
            grouped = grouped or isinstance(specs[0], ToolDefinition)
            found += specs
        settings["tools"] = tuple(found)
    config = fields.fields("toolConfig")
    if config is not None:
        calling = config.left.get(_CALLING)
        inner = config.fields(_CALLING)
        choice = None if inner is None else _decode_choice(inner)
        if choice is None and inner is not None:
            config.left[_CALLING] = calling
        settings["tool_choice"] = choice
        if config.left or choice is None:
            fields.left["toolConfig"] = config.left
    return settings


def _encode_list(tools: tuple[ToolSpec, ...], warnings: WarningList) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = []
    group: list[dict[str, Any]] | None = None
    for position, tool in enumerate(tools):
        path = f"tools[{position}]"
        if isinstance(tool, BuiltinTool):
            if tool.dialect == NAME and isinstance(tool.data, dict):
                wire.append(tool.data)
            else:
                warnings.add("builtin_tool_dropped", path, owner=tool.dialect)
            continue
        beside = extra_of(tool, NAME).get(_TOOL)
        if group is None or isinstance(beside, dict):
            group = []
            wire.append({_DECLARATIONS: group, **(beside or {})})
        group.append(_encode_declaration(tool, warnings, path))
    return wire


def _encode_declaration(tool: ToolDefinition, warnings: WarningList, path: str) -> dict[str, Any]:
    kept = dict(extra_of(tool, NAME))
    kept.pop(_TOOL, None)
    theirs = kept.pop(_SCHEMA, None)
    wire: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        wire["description"] = tool.description
    if tool.type == "custom":
        warnings.add("custom_tool_as_function", path)
        wire[_JSON_SCHEMA] = _FREE_TEXT
    elif theirs is not None and from_openapi(theirs) == tool.parameters:
        wire[_OPENAPI] = theirs
    elif tool.parameters is not None:
        wire[_JSON_SCHEMA], _ = encode_parameters(
            tool.parameters, JSON_SCHEMA, warnings, f"{path}.parameters", strict=tool.strict
        )
    if tool.strict:
        warnings.add("strict_dropped", f"{path}.strict", limit=0)
    return {**kept, **wire}


def _decode_tool(tool: Json, path: str, *, after_group: bool) -> list[ToolSpec]:
    if not isinstance(tool, dict):
        raise wrong_type(path, "an object", tool)
    fields = Fields(tool, path)
    declarations = fields.array(_DECLARATIONS)
    if not declarations:
        return [BuiltinTool(dialect=NAME, data=tool)]
    found: list[ToolSpec] = []
    for position, declaration in enumerate(declarations):
        beside = fields.left if position == 0 and (fields.left or after_group) else None
        where = f"{path}.{_DECLARATIONS}[{position}]"
        found.append(_decode_declaration(declaration, where, beside))
    return found


def _decode_declaration(
    declaration: Json, path: str, beside: dict[str, Any] | None
) -> ToolDefinition:
    fields = Fields(declaration, path)
    name, description = fields.need("name"), fields.text("description")
    extra: dict[str, Any] = {}
    parameters = fields.left.get(_JSON_SCHEMA)
    if parameters is not None:
        fields.take(_JSON_SCHEMA)
    else:
        theirs = fields.object(_OPENAPI)
        if theirs is not None:
            parameters = from_openapi(theirs)
            extra[_SCHEMA] = theirs
    if beside is not None:
        extra[_TOOL] = beside
    return ToolDefinition(
        name=name,
        description=description,
        parameters=parameters,
        extra=keep({**fields.left, **extra}),
    )


def _encode_choice(choice: ToolChoice) -> dict[str, Any]:
    wire: dict[str, Any] = {"mode": _MODE_NAMES[choice.mode]}
    if choice.mode == "named":
        wire[_NAMES] = [] if choice.tool_name is None else [choice.tool_name]
    elif choice.allowed is not None and choice.mode != "none":
        wire[_NAMES] = list(choice.allowed)
        if choice.mode == "auto":  # a list goes only with a mode that checks it
            wire["mode"] = _VALIDATED
    return {**wire, **extra_of(choice, NAME)}


def _decode_choice(config: Fields) -> ToolChoice | None:
    """None for a mode that has no canonical form; then the body keeps it."""
    mode = config.take("mode")
    found = _MODES.get(mode) if type(mode) in (str, int) else None
    names = None if found == "none" else config.texts(_NAMES)
    if mode == _VALIDATED and names:
        found = "auto"
    if found is None:
        return None
    if found == "required" and names is not None and len(names) == 1:
        choice = ToolChoice(mode="named", tool_name=names[0])
    else:
        choice = ToolChoice(mode=found, allowed=names)
    if _encode_choice(choice)["mode"] != mode:
        config.left["mode"] = mode
    return msgspec.structs.replace(choice, extra=keep(config.left))
