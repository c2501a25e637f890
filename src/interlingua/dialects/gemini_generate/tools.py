"""Tools and tool choice <-> `tools` and `toolConfig`."""

from __future__ import annotations

import msgspec

from interlingua.dialects.gemini_generate.facts import JSON_SCHEMA, NAME, SCHEMA, TOOL, extra_for
from interlingua.dialects.gemini_generate.hosted import HOSTED, KINDS, decode_hosted
from interlingua.prepare.hosted_tools import encode_hosted
from interlingua.prepare.schema import encode_parameters, from_openapi
from interlingua.spec.content import UncheckedJson
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ToolChoice,
    ToolChoiceMode,
    ToolDefinition,
    ToolSpec,
)
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of

_DECLARATIONS = "functionDeclarations"
_JSON_SCHEMA = "parametersJsonSchema"
_OPENAPI = "parameters"
_MODES: dict[str | int, ToolChoiceMode] = {
    "AUTO": "auto",
    "ANY": "required",
    "NONE": "none",
    1: "auto",  # numbers come from clients that send enums as integers
    2: "required",
    3: "none",
}
_MODE_NAMES = {"auto": "AUTO", "required": "ANY", "named": "ANY", "none": "NONE"}
_CALLING = "functionCallingConfig"
_NAMES = "allowedFunctionNames"
_VALIDATED = "VALIDATED"
_JOINED = "~with"
"""Our own key among the other fields of a tool: the hosted tools in the same object."""


def encode_tools(request: Request, body: dict[str, UncheckedJson], warnings: WarningList) -> None:
    """Adds `tools` and `toolConfig` to the body."""
    if request.tools and (tools := _encode_list(request.tools, warnings)):
        body["tools"] = tools
    if request.tool_choice is not None:
        body["toolConfig"] = {_CALLING: _encode_choice(request.tool_choice)}
    if request.parallel_tool_calls:
        warnings.setting_implied("parallel_tool_calls")  # calls are parallel by default
    elif request.parallel_tool_calls is not None:
        warnings.setting_dropped("parallel_tool_calls")


def decode_tools(fields: Fields) -> dict[str, UncheckedJson]:
    """The request's `tools` and `tool_choice`."""
    settings: dict[str, UncheckedJson] = {}
    tools = fields.items("tools")
    if tools:
        specs: list[ToolSpec] = []
        after_group = False
        for position, tool in enumerate(tools):
            path = f"{fields.at('tools')}[{position}]"
            group = _decode_tool(tool, path, after_group=after_group)
            after_group = after_group or isinstance(group[0], ToolDefinition)
            specs += group
        settings["tools"] = tuple(specs)
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


def _encode_list(
    tools: tuple[ToolSpec, ...], warnings: WarningList
) -> list[dict[str, UncheckedJson]]:
    wire: list[dict[str, UncheckedJson]] = []
    group: list[dict[str, UncheckedJson]] | None = None
    joined: dict[str, dict[str, UncheckedJson]] = {}  # hosted tools -> the object that they share
    for position, tool in enumerate(tools):
        path = f"tools[{position}]"
        if isinstance(tool, BuiltinTool):
            hosted = encode_hosted(tool, NAME, HOSTED, warnings, path)
            if isinstance(hosted, dict):
                shared = joined.pop("".join(hosted), None) if tool.dialect == NAME else None
                if shared is None:
                    wire.append(hosted)
                else:
                    shared.update(hosted)
            continue
        other_fields = extra_of(tool, NAME).get(TOOL)
        if group is None or isinstance(other_fields, dict):
            group = []
            others = dict(other_fields or {})
            names = others.pop(_JOINED, ())
            wire.append({_DECLARATIONS: group, **others})
            joined.update(dict.fromkeys(names, wire[-1]))
        group.append(_encode_declaration(tool, warnings, path))
    return wire


def _encode_declaration(
    tool: ToolDefinition, warnings: WarningList, path: str
) -> dict[str, UncheckedJson]:
    extra = dict(extra_of(tool, NAME))
    extra.pop(TOOL, None)
    openapi = extra.pop(SCHEMA, None)
    wire: dict[str, UncheckedJson] = {"name": tool.name}
    if tool.description is not None:
        wire["description"] = tool.description
    if openapi is not None and from_openapi(openapi) == tool.parameters:
        wire[_OPENAPI] = openapi
    elif tool.parameters is not None:
        wire[_JSON_SCHEMA], _ = encode_parameters(
            tool.parameters, JSON_SCHEMA, warnings, f"{path}.parameters", strict=tool.strict
        )
    if tool.strict:
        warnings.add("strict_dropped", f"{path}.strict", limit=0)
    return {**extra, **wire}


def _decode_tool(tool: UncheckedJson, path: str, *, after_group: bool) -> list[ToolSpec]:
    fields = Fields(tool, path)
    declarations = fields.array(_DECLARATIONS)
    if not declarations:
        return [decode_hosted(tool)]
    hosted = [name for name in fields.left if name in KINDS and fields.left[name] is not None]
    tools = [decode_hosted({name: fields.take(name)}) for name in hosted]
    if hosted:
        fields.left[_JOINED] = hosted
    # The first group without other fields needs no mark: encoding starts one group by itself.
    marks = {TOOL: fields.left} if fields.left or after_group else {}
    return [
        *(
            _decode_declaration(item, f"{path}.{_DECLARATIONS}[{i}]", {} if i else marks)
            for i, item in enumerate(declarations)
        ),
        *tools,
    ]


def _decode_declaration(
    item: UncheckedJson, path: str, marks: dict[str, UncheckedJson]
) -> ToolDefinition:
    fields = Fields(item, path)
    name, description = fields.need("name"), fields.text("description")
    if fields.left.get(_JSON_SCHEMA) is not None:
        parameters = fields.take(_JSON_SCHEMA)
    elif (openapi := fields.object(_OPENAPI)) is not None:
        parameters = from_openapi(openapi)
        marks = {SCHEMA: openapi, **marks}
    else:
        parameters = None
    extra = extra_for({**fields.left, **marks})
    return ToolDefinition(name=name, description=description, parameters=parameters, extra=extra)


def _encode_choice(choice: ToolChoice) -> dict[str, UncheckedJson]:
    wire: dict[str, UncheckedJson] = {"mode": _MODE_NAMES[choice.mode]}
    if choice.mode == "named":
        wire[_NAMES] = [] if choice.tool_name is None else [choice.tool_name]
    elif choice.allowed is not None and choice.mode != "none":
        wire[_NAMES] = list(choice.allowed)
        if choice.mode == "auto":  # the API takes a list of names only with ANY and VALIDATED
            wire["mode"] = _VALIDATED
    return {**wire, **extra_of(choice, NAME)}


def _decode_choice(config: Fields) -> ToolChoice | None:
    """None for a mode without a canonical form; then the body keeps it."""
    wire_mode = config.take("mode")
    mode = _MODES.get(wire_mode) if type(wire_mode) in (str, int) else None
    names = None if mode == "none" else config.texts(_NAMES)
    if wire_mode == _VALIDATED and names:
        mode = "auto"
    if mode is None:
        return None
    if mode == "required" and names is not None and len(names) == 1:
        choice = ToolChoice(mode="named", tool_name=names[0])
    else:
        choice = ToolChoice(mode=mode, allowed=names)
    if _encode_choice(choice)["mode"] != wire_mode:
        config.left["mode"] = wire_mode
    return msgspec.structs.replace(choice, extra=extra_for(config.left))
