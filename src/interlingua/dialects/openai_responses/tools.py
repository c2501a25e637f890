"""Tools and the tool choice <-> body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from msgspec import to_builtins
from msgspec.structs import replace

from interlingua.dialects.openai_responses.facts import GROUP, LOADED, NAME, SEARCH, extra_for
from interlingua.dialects.openai_responses.hosted import HOSTED, decode_hosted
from interlingua.dialects.openai_shared.rules import STRICT_SCHEMA
from interlingua.prepare.schema.narrow import encode_parameters
from interlingua.prepare.tool_forms import encode_hosted
from interlingua.spec.content import Json, Opaque, ToolResult
from interlingua.spec.messages import Message
from interlingua.spec.request import (
    BuiltinTool,
    DeferredBy,
    Grammar,
    Request,
    ToolChoice,
    ToolDefinition,
    ToolSpec,
    tool_key,
)
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, restore, wrong_type

# `parameters` is required in the SDK's `FunctionToolParam`.
_NO_INPUT = {"type": "object", "properties": {}}
_DECLARED = ("function", "custom")
_NAMESPACE = "namespace"


def encode_tools(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    """`tools`, `tool_choice` and `parallel_tool_calls`."""
    if tools := _encode_list(request.tools, warnings):
        body["tools"] = tools
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
    if tools := _decode_list(fields.items("tools"), fields.at("tools")):
        settings["tools"] = tools
    return settings


def found_tools(
    messages: tuple[Message, ...], declared: tuple[ToolSpec, ...]
) -> tuple[ToolSpec, ...]:
    """
    The tools that only the history defines.

    Searches of the caller have found them, or an item has added them: Codex sends all of its tools
    in such an item.
    """
    known = {tool_key(tool) for tool in declared}
    found: dict[tuple[str | None, str], ToolSpec] = {}
    for tools, deferred in _lists_in(messages):
        for tool in _decode_list(tools, "tools"):
            if isinstance(tool, ToolDefinition) and tool_key(tool) not in known:
                extra = {NAME: {**extra_of(tool, NAME), LOADED: True}}
                found[tool_key(tool)] = replace(tool, deferred=deferred, extra=extra)
    return tuple(found.values())


def _lists_in(messages: tuple[Message, ...]) -> Iterator[tuple[list[Json], DeferredBy | None]]:
    """The lists of tools in results of searches and in items, and who has to load these tools."""
    for part in (part for message in messages for part in message.content):
        if type(part) is ToolResult:
            for inner in part.parts or ():
                if type(inner) is Opaque and inner.dialect == NAME and type(inner.data) is list:
                    yield inner.data, "client"
        elif type(part) is Opaque and part.dialect == NAME:
            match part.data:
                case {"type": "additional_tools", "tools": list(tools)}:
                    yield tools, None


def _encode_list(tools: tuple[ToolSpec, ...], warnings: WarningList) -> list[Json]:
    """The tools; consecutive ones of one namespace are in one object."""
    wire: list[Json] = []
    open_namespace, group = None, wire
    for i, tool in enumerate(tools):
        own = extra_of(tool, NAME) if isinstance(tool, ToolDefinition) and tool.extra else {}
        if LOADED in own:
            continue
        namespace = tool.namespace if isinstance(tool, ToolDefinition) else None
        if namespace is None:
            group = wire
        elif namespace != open_namespace or GROUP in own:
            group = []
            # A description is required in the SDK's `NamespaceToolParam`.
            fields = {"description": f"Tools of {namespace}.", **own.get(GROUP, {})}
            wire.append({"type": _NAMESPACE, "name": namespace, **fields, "tools": group})
        open_namespace = namespace
        item = _encode_tool(tool, warnings, f"tools[{i}]")
        if item is not None:
            group.append(item)
    return wire


def _decode_list(tools: list[Json], path: str) -> tuple[ToolSpec, ...]:
    """The tools, with the tools of namespaces among them."""
    # The tool that searches says who runs it, and so who loads the deferred tools.
    searches = [tool for tool in tools if isinstance(tool, dict) and tool.get("type") == SEARCH]
    is_client = any(tool.get("execution") == "client" for tool in searches)
    by: DeferredBy = "client" if is_client else "server"
    specs: list[ToolSpec] = []
    for i, tool in enumerate(tools):
        if _is_namespace(tool):
            specs += _decode_namespace(tool, f"{path}[{i}]", by)
        else:
            specs.append(_decode_tool(tool, f"{path}[{i}]", by))
    return tuple(specs)


def _is_namespace(tool: Json) -> TypeGuard[dict[str, Json]]:
    """Whether it is a namespace all of whose tools have a canonical form."""
    match tool:
        case {"type": "namespace", "name": str(), "tools": [_, *_] as inner}:
            return all(
                isinstance(each, dict) and each.get("type") in _DECLARED and "name" in each
                for each in inner
            )
    return False


def _decode_namespace(tool: dict[str, Json], path: str, by: DeferredBy) -> list[ToolSpec]:
    fields = Fields(tool, path)
    fields.take("type")
    name, inner = fields.need("name"), fields.take("tools")
    specs = [
        replace(spec, namespace=name)
        for i, each in enumerate(inner)
        if isinstance(spec := _decode_tool(each, f"{path}.tools[{i}]", by), ToolDefinition)
    ]
    first = specs[0]
    specs[0] = replace(first, extra={NAME: {**extra_of(first, NAME), GROUP: fields.left}})
    return list(specs)


def _encode_tool(tool: ToolSpec, warnings: WarningList, path: str) -> Json:
    if isinstance(tool, BuiltinTool):
        hosted: Json = encode_hosted(tool, NAME, HOSTED, warnings, path)
        return hosted
    wire: dict[str, Json] = {"type": tool.type, "name": tool.name}
    if tool.type == "search":
        wire = {"type": SEARCH, "execution": "client", "parameters": tool.parameters}
    if tool.description is not None:
        wire["description"] = tool.description
    if tool.grammar is not None and tool.type == "custom":
        wire["format"] = {"type": "grammar", **to_builtins(tool.grammar)}
    strict = tool.strict
    is_function = tool.type == "function"
    if is_function and (tool.parameters is not None or "parameters" not in extra_of(tool, NAME)):
        schema = _NO_INPUT if tool.parameters is None else tool.parameters
        wire["parameters"], strict = encode_parameters(
            schema, STRICT_SCHEMA, warnings, f"{path}.parameters", strict=strict
        )
    if strict is not None or (is_function and NAME not in tool.extra):
        # Required in the SDK's `FunctionToolParam`, where null leaves the choice to the API.
        wire["strict"] = strict
    restore(wire, tool, NAME).pop(GROUP, None)
    return wire


def _decode_tool(tool: Json, path: str, by: DeferredBy) -> ToolSpec:
    if not isinstance(tool, dict):
        raise wrong_type(path, "an object", tool)
    kind = tool.get("type")
    if kind == SEARCH and tool.get("execution") == "client":
        return _decode_search(Fields(tool, path))
    if kind not in _DECLARED or "name" not in tool:
        return decode_hosted(tool)
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
    grammar = None if kind == "function" else _decode_grammar(fields)
    return ToolDefinition(
        name=name,
        description=description,
        parameters=parameters,
        strict=strict,
        type=kind,
        grammar=grammar,
        deferred=by if fields.left.get("defer_loading") is True else None,
        extra={NAME: fields.left} if is_unset else extra_for(fields.left),
    )


def _decode_grammar(fields: Fields) -> Grammar | None:
    match fields.left.get("format"):
        case {"type": "grammar", "syntax": str(syntax), "definition": str(definition), **rest} if (
            not rest
        ):
            del fields.left["format"]
            return Grammar(syntax=syntax, definition=definition)
    return None


def _decode_search(fields: Fields) -> ToolSpec:
    """A search for tools that the caller runs."""
    fields.take("type")
    fields.take("execution")
    description, parameters = fields.text("description"), fields.object("parameters")
    if parameters is None:
        fields.left["parameters"] = None
    return ToolDefinition(
        name=SEARCH,
        description=description,
        parameters=parameters,
        type="search",
        extra={NAME: fields.left},
    )


def _encode_choice(choice: ToolChoice, custom: set[str]) -> Json:
    if choice.mode == "named" and choice.tool_name is not None:
        kind = extra_of(choice, NAME).get("type") or _type_of(choice.tool_name, custom)
        return {"type": kind, "name": choice.tool_name}
    if choice.allowed is not None and choice.mode in ("auto", "required"):
        tools = [{"type": _type_of(name, custom), "name": name} for name in choice.allowed]
        return {"type": "allowed_tools", "mode": choice.mode, "tools": tools}
    # A named choice without a name is at least a tool call.
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
        case {
            "type": "allowed_tools",
            "mode": "auto" | "required" as mode,
            "tools": list(tools),
            **rest,
        } if not rest:
            names = [_allowed_name(tool) for tool in tools]
            if None not in names:
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
