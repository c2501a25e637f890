"""Tools and the tool choice <-> `toolConfig`."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from interlingua.dialects.bedrock_converse.content import HOSTED_NAMES
from interlingua.dialects.bedrock_converse.facts import (
    BESIDE,
    MARK,
    NAME,
    POINT,
    STRICT_SCHEMA,
    extra_for,
)
from interlingua.prepare.schema.narrow import encode_parameters
from interlingua.prepare.tool_forms import HostedForm, encode_hosted
from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.contracts import Profile
from interlingua.spec.request import BuiltinTool, Request, ToolChoice, ToolDefinition, ToolSpec
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, wrong_type

CONFIG = "toolConfig"
_SPEC = "toolSpec"
_SYSTEM = "systemTool"
_SCHEMA_BESIDE = "~schema_beside"
_OWN = (BESIDE, MARK, _SCHEMA_BESIDE)
_NO_INPUT = {"type": "object", "properties": {}}
# `ToolChoice` has no form for «none»: then the tools are not sent.
_MODES = {"auto": "auto", "any": "required", "tool": "named"}
_MODE_NAMES = {ours: theirs for theirs, ours in _MODES.items()}


def _code_execution(_: dict[str, Json]) -> dict[str, Json]:
    return {_SYSTEM: {"name": "nova_code_interpreter"}}


def _web_search(_: dict[str, Json]) -> dict[str, Json]:
    return {_SYSTEM: {"name": "nova_grounding"}}


# https://docs.aws.amazon.com/nova/latest/nova2-userguide/using-tools.html: `SystemTool` names the
# tools that Nova runs.
HOSTED: dict[str, HostedForm] = {"code_execution": _code_execution, "web_search": _web_search}


def encode_tools(
    request: Request,
    profile: Profile,
    body: dict[str, Json],
    warnings: WarningList,
    *,
    has_more: bool,
) -> None:
    """`toolConfig`; `has_more` is True if there are tools among the options of the request."""
    choice = request.tool_choice
    if request.parallel_tool_calls:
        warnings.setting_implied("parallel_tool_calls")
    elif request.parallel_tool_calls is not None:
        warnings.setting_dropped("parallel_tool_calls")
    if choice is not None and choice.mode == "none":
        if profile.dialect and request.tools:  # `prepare` has sent earlier tool calls as text
            warnings.add("tools_withheld", "tool_choice", when="")
            return
        _warn_of_choice(choice, warnings, has_tools=bool(request.tools))
        choice = None
    tools = _encode_list(request, choice, warnings)
    if choice is not None and not tools and not has_more:
        _warn_of_choice(choice, warnings, has_tools=False)
        choice = None
    config: dict[str, Json] = {"tools": tools} if tools else {}
    if choice is not None:
        config["toolChoice"] = _encode_choice(choice)
    if config:
        body[CONFIG] = config


def _warn_of_choice(choice: ToolChoice, warnings: WarningList, *, has_tools: bool) -> None:
    """Warn about a choice that is not sent."""
    if has_tools:
        warnings.add("tool_choice_relaxed", "tool_choice", mode=choice.mode, when="")
    elif choice.mode in ("auto", "none"):
        warnings.setting_implied("tool_choice")
    else:
        warnings.add("tool_choice_dropped", "tool_choice", mode=choice.mode)


def _encode_list(request: Request, choice: ToolChoice | None, warnings: WarningList) -> list[Json]:
    """The tools, each with the cache point that follows it."""
    allowed = choice.allowed if choice else None
    tools: list[Json] = []
    for i, tool in enumerate(request.tools):
        wire = _encode_tool(tool, warnings, f"tools[{i}]")
        is_allowed = allowed is None or isinstance(tool, BuiltinTool) or tool.name in allowed
        if wire is None or not is_allowed:
            continue
        tools.append(wire)
        if isinstance(tool, ToolDefinition) and MARK in extra_of(tool, NAME):
            tools.append({POINT: extra_of(tool, NAME)[MARK]})
    if allowed is not None:  # the API has no such list, so the other tools are not sent
        warnings.add("allowed_tools_narrowed", "tool_choice.allowed")
    return tools


def _encode_tool(tool: ToolSpec, warnings: WarningList, path: str) -> dict[str, Json] | None:
    if isinstance(tool, BuiltinTool):
        hosted = encode_hosted(tool, NAME, HOSTED, warnings, path)
        return hosted if isinstance(hosted, dict) else None
    extra = extra_of(tool, NAME)
    spec: dict[str, Json] = {"name": tool.name}
    if tool.description:  # `ToolSpecification.description` has at least one character
        spec["description"] = tool.description
    schema = _NO_INPUT if tool.parameters is None else tool.parameters
    parameters, strict = encode_parameters(
        schema, STRICT_SCHEMA, warnings, f"{path}.parameters", strict=tool.strict
    )
    spec["inputSchema"] = {"json": parameters, **extra.get(_SCHEMA_BESIDE, {})}
    if strict is not None:
        spec["strict"] = strict
    for key, value in extra.items():
        if key not in _OWN:
            spec.setdefault(key, value)
    return {_SPEC: spec, **extra.get(BESIDE, {})}


def _encode_choice(choice: ToolChoice) -> dict[str, Json]:
    extra = dict(extra_of(choice, NAME))
    beside = extra.pop(BESIDE, {})
    inner: dict[str, Json] = {} if choice.tool_name is None else {"name": choice.tool_name}
    return {_MODE_NAMES[choice.mode]: {**inner, **extra}, **beside}


def decode_tools(fields: Fields) -> dict[str, Any]:
    """The request's `tools` and `tool_choice`."""
    config = fields.fields(CONFIG)
    if config is None:
        return {}
    settings: dict[str, Any] = {}
    tools: list[ToolSpec] = []
    for i, tool in enumerate(config.items("tools")):
        path = f"{CONFIG}.tools[{i}]"
        if isinstance(tool, dict) and tool.keys() == {POINT} and tools and _can_mark(tools[-1]):
            tools[-1] = _marked(tools[-1], tool[POINT])
        else:
            tools.append(_decode_tool(tool, path))
    if tools:
        settings["tools"] = tuple(tools)
    choice = _decode_choice(config)
    if choice is not None:
        settings["tool_choice"] = choice
    if config.left:
        fields.left[CONFIG] = config.left
    return settings


def _can_mark(tool: ToolSpec) -> bool:
    return isinstance(tool, ToolDefinition) and MARK not in extra_of(tool, NAME)


def _marked(tool: ToolSpec, point: Json) -> ToolSpec:
    return replace(tool, extra={NAME: {**extra_of(tool, NAME), MARK: point}})


def _decode_tool(tool: UncheckedJson, path: str) -> ToolSpec:
    if not isinstance(tool, dict):
        raise wrong_type(path, "an object", tool)
    if _SPEC not in tool:
        return _decode_hosted(tool)
    outer = Fields(tool, path)
    fields = Fields(outer.take(_SPEC), f"{path}.{_SPEC}")
    schema = fields.fields("inputSchema")
    parameters = None if schema is None else schema.object("json")
    extra: dict[str, Json] = {}
    if schema is not None and schema.left:
        extra[_SCHEMA_BESIDE] = schema.left
    if outer.left:
        extra[BESIDE] = outer.left
    return ToolDefinition(
        name=fields.need("name"),
        description=fields.text("description"),
        parameters=parameters,
        strict=fields.flag("strict"),
        extra=extra_for({**fields.left, **extra}),
    )


def _decode_hosted(tool: dict[str, Json]) -> BuiltinTool:
    """The tool verbatim, with its canonical name if it has one."""
    match tool:
        case {"systemTool": {"name": str(name)}} if name in HOSTED_NAMES:
            return BuiltinTool(dialect=NAME, data=tool, name=HOSTED_NAMES[name])
    return BuiltinTool(dialect=NAME, data=tool)


def _decode_choice(config: Fields) -> ToolChoice | None:
    wire = config.left.get("toolChoice")
    mode = next((name for name in _MODES if name in wire), None) if isinstance(wire, dict) else None
    if mode is None or not isinstance(wire, dict) or not isinstance(wire[mode], dict):
        return None
    config.take("toolChoice")
    inner = Fields(wire[mode], f"{CONFIG}.toolChoice.{mode}")
    name = inner.text("name")
    beside = {key: value for key, value in wire.items() if key != mode}
    extra = {**inner.left, **({BESIDE: beside} if beside else {})}
    return ToolChoice(mode=_MODES[mode], tool_name=name, extra=extra_for(extra))  # type: ignore[arg-type]
