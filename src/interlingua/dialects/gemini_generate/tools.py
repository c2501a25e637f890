"""Tools and tool choice <-> `tools` and `toolConfig`: of the caller, and run by Gemini."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.dialects.gemini_generate.facts import JSON_SCHEMA, NAME, SCHEMA, TOOL, extra_for
from interlingua.prepare.schema.narrow import encode_parameters
from interlingua.prepare.schema.openapi import from_openapi
from interlingua.prepare.settings import warn_not_strict
from interlingua.prepare.tool_forms import HostedForm, encode_hosted, rename, take
from interlingua.spec.content import Json, Opaque, UncheckedJson
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ToolChoice,
    ToolChoiceMode,
    ToolDefinition,
    ToolSpec,
)
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, text_or_none

KINDS = {
    "googleSearch": "web_search",
    "codeExecution": "code_execution",
    "urlContext": "url_context",
    "fileSearch": "file_search",
    "computerUse": "computer",
}
"""The canonical name of each hosted tool."""
_STORES = {"stores": "fileSearchStoreNames", "max_results": "topK"}
_BROWSER = "ENVIRONMENT_BROWSER"
# Of `toolCall` and `toolResponse`, which the API sends with `includeServerSideToolInvocations`.
_TYPES = {
    "GOOGLE_SEARCH_WEB": "web_search",
    "URL_CONTEXT": "url_context",
    "FILE_SEARCH": "file_search",
}
_WIRE_TYPES = {name: kind for kind, name in _TYPES.items()}
_DECLARATIONS = "functionDeclarations"
_JSON_SCHEMA = "parametersJsonSchema"
_OPENAPI = "parameters"
_MODES: dict[str | int, ToolChoiceMode] = {
    "AUTO": "auto",
    "ANY": "required",
    "NONE": "none",
    # recorded: clients that send enums as integers
    1: "auto",
    2: "required",
    3: "none",
}
_MODE_NAMES = {"auto": "AUTO", "required": "ANY", "named": "ANY", "none": "NONE"}
_CALLING = "functionCallingConfig"
_NAMES = "allowedFunctionNames"
_VALIDATED = "VALIDATED"  # as AUTO, but tool calls fit their schemas
_JOINED = "~with"
"""Our own key among the other fields of a tool: the hosted tools in the same object."""


def encode_tools(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    """Adds `tools` and `toolConfig` to the body."""
    if request.tools and (tools := _encode_list(request.tools, warnings)):
        body["tools"] = tools
    if request.tool_choice is not None:
        body["toolConfig"] = {_CALLING: _encode_choice(request.tool_choice)}
    if request.parallel_tool_calls:
        warnings.setting_implied("parallel_tool_calls")  # always: the API has no switch
    elif request.parallel_tool_calls is not None:
        warnings.setting_dropped("parallel_tool_calls")


def decode_tools(fields: Fields) -> dict[str, Any]:
    """The request's `tools` and `tool_choice`."""
    settings: dict[str, Any] = {}
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


def _encode_list(tools: tuple[ToolSpec, ...], warnings: WarningList) -> list[dict[str, Json]]:
    wire: list[dict[str, Json]] = []
    group: list[dict[str, Json]] | None = None
    joined: dict[str, dict[str, Json]] = {}  # hosted tools -> the object that they share
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
    # Only the mode VALIDATED enforces schemas, for all tools together.
    strict = [i for i, tool in enumerate(tools) if isinstance(tool, ToolDefinition) and tool.strict]
    if strict:
        warn_not_strict(tools, strict, 0, warnings)
    return wire


def _encode_declaration(tool: ToolDefinition, warnings: WarningList, path: str) -> dict[str, Json]:
    extra = dict(extra_of(tool, NAME))
    extra.pop(TOOL, None)
    openapi = extra.pop(SCHEMA, None)
    wire: dict[str, Json] = {"name": tool.name}
    if tool.description is not None:
        wire["description"] = tool.description
    if openapi is not None and from_openapi(openapi) == tool.parameters:
        wire[_OPENAPI] = openapi
    elif tool.parameters is not None:  # «mutually exclusive with `parameters`»
        wire[_JSON_SCHEMA], _ = encode_parameters(
            tool.parameters, JSON_SCHEMA, warnings, f"{path}.parameters", strict=tool.strict
        )
    return {**extra, **wire}


def _decode_tool(tool: Json, path: str, *, after_group: bool) -> list[ToolSpec]:
    fields = Fields(tool, path)
    declarations = fields.array(_DECLARATIONS)
    if not declarations:
        return [decode_hosted(tool)]
    # `Tool` may hold declarations and hosted tools in one object; ours are one by one.
    hosted = [name for name in fields.left if name in KINDS and fields.left[name] is not None]
    tools = [decode_hosted({name: fields.take(name)}) for name in hosted]
    if hosted:
        fields.left[_JOINED] = hosted
    # The first group without other fields needs no mark: encoding starts one group by itself.
    marks: dict[str, Json] = {TOOL: fields.left} if fields.left or after_group else {}
    return [
        *(
            _decode_declaration(item, f"{path}.{_DECLARATIONS}[{i}]", {} if i else marks)
            for i, item in enumerate(declarations)
        ),
        *tools,
    ]


def _decode_declaration(item: Json, path: str, marks: dict[str, Json]) -> ToolDefinition:
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


def _encode_choice(choice: ToolChoice) -> dict[str, Json]:
    wire: dict[str, Json] = {"mode": _MODE_NAMES[choice.mode]}
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


# Tools that Gemini runs.


def _file_search(options: dict[str, Json]) -> dict[str, Json]:
    return {"fileSearch": take(options, **_STORES)}


def _computer_use(options: dict[str, Json]) -> dict[str, Json]:
    if options.get("environment") == "browser":  # the only one that the API has
        del options["environment"]
    return {"computerUse": {"environment": _BROWSER}}


def _plain(kind: str) -> HostedForm:
    return lambda _: {kind: {}}


HOSTED: dict[str, HostedForm] = {
    "code_execution": _plain("codeExecution"),
    "computer": _computer_use,
    "file_search": _file_search,
    "url_context": _plain("urlContext"),
    "web_search": _plain("googleSearch"),
}


def decode_hosted(tool: UncheckedJson) -> BuiltinTool:
    """The tool verbatim, with its canonical name and options if it is one alone."""
    names = [KINDS[key] for key in tool if key in KINDS] if isinstance(tool, dict) else []
    if len(names) != 1 or len(tool) != 1:
        return BuiltinTool(dialect=NAME, data=tool)
    inner = next(iter(tool.values()))
    options = dict(inner) if isinstance(inner, dict) else {}
    rename(options, **_STORES)
    rename(options, stores="file_search_store_names", max_results="top_k")
    if options.get("environment") == _BROWSER:
        options["environment"] = "browser"
    return BuiltinTool(dialect=NAME, data=tool, name=names[0], options=options)


# Calls and results.


def hosted_use(part: dict[str, Json]) -> Opaque:
    """A part without a canonical form; the tool call or result of a hosted tool is described."""
    use: dict[str, Any] = {}
    match part:
        case {"executableCode": dict(code)}:
            use = {"tool": "code_execution", "input": {"code": code.get("code")}}
            use["tool_call_id"] = text_or_none(code.get("id"))
        case {"codeExecutionResult": dict(result)}:
            use = {"tool": "code_execution", "output": result.get("output") or ""}
            use["tool_call_id"] = text_or_none(result.get("id"))
        case {"toolCall": dict(call)}:
            use = {"tool": _tool_of(call), "tool_call_id": text_or_none(call.get("id"))}
            use["input"] = call.get("args") or {}
        case {"toolResponse": dict(result)}:
            use = {"tool": _tool_of(result), "tool_call_id": text_or_none(result.get("id"))}
            use["output"] = result.get("response") or {}
    return Opaque(dialect=NAME, data=part, **use)


def _tool_of(fields: dict[str, Json]) -> str | None:
    kind = text_or_none(fields.get("toolType"))
    return None if kind is None else _TYPES.get(kind, kind.lower())


def hosted_parts(part: Opaque) -> tuple[Opaque, ...]:
    """The parts of a hosted tool call and its result that a script describes."""
    arguments = part.input if isinstance(part.input, dict) else {}
    if part.tool == "code_execution":
        code = {"language": "PYTHON", "code": arguments.get("code", "")}
        result = {"outcome": "OUTCOME_OK", "output": part.output or ""}
        return hosted_use({"executableCode": code}), hosted_use({"codeExecutionResult": result})
    if part.tool not in _WIRE_TYPES:
        return ()
    head = {"id": part.tool_call_id, "toolType": _WIRE_TYPES[part.tool]}
    answer = {"results": part.output or []}
    return (
        hosted_use({"toolCall": {**head, "args": arguments}}),
        hosted_use({"toolResponse": {**head, "response": answer}}),
    )
