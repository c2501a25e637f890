"""Tools and the tool choice <-> body."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from interlingua.dialects.openai_chat.facts import (
    LEGACY,
    NAME,
    SENT_AS,
    ChatQuirks,
    complete,
    extra_for,
    mark_of,
    take_usual,
)
from interlingua.dialects.openai_shared.rules import STRICT_SCHEMA, without_none
from interlingua.prepare.schema.narrow import encode_parameters
from interlingua.prepare.tool_forms import encode_hosted
from interlingua.spec.content import Json, ToolType, UncheckedJson
from interlingua.spec.request import (
    BuiltinTool,
    Grammar,
    Request,
    ToolChoice,
    ToolChoiceMode,
    ToolDefinition,
    ToolSpec,
)
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, wrong_type

_LEGACY_TOOLS = "functions"  # deprecated, as `function_call`
_MODES: dict[str, ToolChoiceMode] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",  # Mistral's word, see `required_word`
}


def decode_tools(fields: Fields) -> dict[str, Any]:
    """The request's `tools`, `tool_choice` and `parallel_tool_calls`."""
    settings: dict[str, Any] = {"parallel_tool_calls": fields.flag("parallel_tool_calls")}
    tools = fields.items("tools")
    legacy = fields.items(_LEGACY_TOOLS)
    if tools or legacy:
        settings["tools"] = (
            *(_decode_tool(tool, f"tools[{i}]") for i, tool in enumerate(tools)),
            *(_decode_legacy(tool, f"functions[{i}]") for i, tool in enumerate(legacy)),
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


def _decode_tool(tool: UncheckedJson, path: str) -> ToolSpec:
    fields = Fields(tool, path)
    kind: ToolType = "custom" if tool.get("type") == "custom" else "function"
    if tool.get("type", kind) != kind or not isinstance(tool.get(kind), dict):
        return BuiltinTool(dialect=NAME, data=tool)
    missing = take_usual(fields.left, {"type": kind})
    inner = Fields(fields.take(kind), f"{path}.{kind}")
    definition = _decode_definition(inner, kind)
    if inner.left:
        fields.left[kind] = inner.left
    return replace(definition, extra=extra_for(fields.left, missing))


def _decode_legacy(tool: UncheckedJson, path: str) -> ToolSpec:
    inner = Fields(tool, path)
    definition = _decode_definition(inner, "function")
    extra = extra_for({}, sent_as=_LEGACY_TOOLS, function=inner.left)
    return replace(definition, extra=extra)


def _decode_definition(inner: Fields, kind: ToolType) -> ToolDefinition:
    name, description = inner.need("name"), inner.text("description")
    if kind == "custom":
        grammar = _decode_grammar(inner)
        return ToolDefinition(type=kind, name=name, description=description, grammar=grammar)
    return ToolDefinition(
        name=name,
        description=description,
        parameters=inner.object("parameters"),
        strict=inner.flag("strict"),
    )


def _decode_grammar(inner: Fields) -> Grammar | None:
    match inner.left.get("format"):
        case {
            "type": "grammar",
            "grammar": {"syntax": str(syntax), "definition": str(text), **unknown},
            **others,
        } if not unknown and not others:
            del inner.left["format"]
            return Grammar(syntax=syntax, definition=text)
    return None


def _decode_choice(wire: UncheckedJson, *, legacy: bool) -> ToolChoice | None:
    """None for an unknown form, which is carried verbatim."""
    form = LEGACY if legacy else None
    match wire:
        case str() if wire in _MODES:
            extra = extra_for({}, sent_as=wire if wire == "any" else form)
            return ToolChoice(mode=_MODES[wire], extra=extra)
        case {"name": str(name), **rest} if legacy and not rest:
            return ToolChoice(mode="named", tool_name=name, extra=extra_for({}, sent_as=form))
        case {"allowed_tools": {"mode": "auto" | "required" as mode, "tools": list(tools)}}:
            choice = ToolChoice(mode=mode, allowed=tuple(_allowed_name(tool) for tool in tools))
            # A list with custom tools has no canonical form: names alone would lose their type.
            return choice if _encode_allowed(choice) == wire else None
        case {"type": "custom", "custom": {"name": str(name)}}:
            return _decode_named(wire, name, "custom")
        case {"function": {"name": str(name)}} if wire.get("type", "function") == "function":
            return _decode_named(wire, name, "function")
    return None


def _decode_named(wire: dict[str, UncheckedJson], name: str, kind: ToolType) -> ToolChoice:
    unread = dict(wire)
    inner = {key: value for key, value in unread.pop(kind).items() if key != "name"}
    missing = take_usual(unread, {"type": kind})
    form = kind if kind == "custom" else None
    extra = extra_for(unread, missing, sent_as=form, **{kind: inner})
    return ToolChoice(mode="named", tool_name=name, extra=extra)


def _allowed_name(tool: Json) -> str:
    match tool:
        case {"function": {"name": str(name)}}:
            return name
    return ""


def encode_tools(
    request: Request, body: dict[str, Json], quirks: ChatQuirks, warnings: WarningList
) -> None:
    """Write `tools`, `tool_choice` and `parallel_tool_calls`, or the deprecated `functions`."""
    tools: list[Json] = []
    legacy: list[Json] = []
    for i, tool in enumerate(request.tools):
        if isinstance(tool, ToolDefinition):
            wire = _encode_tool(tool, quirks, warnings, f"tools[{i}]")
            if mark_of(tool, SENT_AS) == _LEGACY_TOOLS:
                legacy.append(wire["function"])
            else:
                tools.append(wire)
        elif hosted := encode_hosted(tool, NAME, {}, warnings, f"tools[{i}]"):
            tools.append(hosted)
    if tools:
        body["tools"] = tools
    if legacy:
        body[_LEGACY_TOOLS] = legacy
    body |= without_none(parallel_tool_calls=request.parallel_tool_calls)
    choice = request.tool_choice
    if choice is not None:
        key = LEGACY if mark_of(choice, SENT_AS) == LEGACY else "tool_choice"
        body[key] = _encode_choice(choice, request, quirks)


def _encode_tool(
    tool: ToolDefinition, quirks: ChatQuirks, warnings: WarningList, path: str
) -> dict[str, Json]:
    inner = without_none(name=tool.name, description=tool.description)
    if tool.type == "function":
        schema, strict = tool.parameters, tool.strict
        # Where any schema is accepted, a reference at the root is sent as it is.
        is_reference = quirks.any_schema and "$ref" in (schema or ())
        if schema is not None and not is_reference:
            checked = strict and not quirks.any_schema
            schema, sent = encode_parameters(
                schema, STRICT_SCHEMA, warnings, f"{path}.parameters", strict=checked
            )
            strict = sent if checked else strict
        inner |= without_none(parameters=schema, strict=strict)
    elif tool.grammar is not None:
        inner["format"] = {"type": "grammar", "grammar": to_builtins(tool.grammar)}
    return complete({"type": tool.type, tool.type: inner}, tool)


def _encode_choice(choice: ToolChoice, request: Request, quirks: ChatQuirks) -> Json:
    form = mark_of(choice, SENT_AS)
    # The SDK's `ChatCompletionAllowedToolChoiceParam` has these two modes.
    if choice.allowed is not None and choice.mode in ("auto", "required"):
        return _encode_allowed(choice)
    if choice.mode == "required":
        return "any" if form == "any" else quirks.required_word
    if choice.mode != "named":
        return choice.mode
    if form == LEGACY:
        return {"name": choice.tool_name}
    is_custom = form == "custom" or any(
        isinstance(tool, ToolDefinition) and tool.type == "custom" and tool.name == choice.tool_name
        for tool in request.tools
    )
    kind = "custom" if is_custom else "function"
    return complete({"type": kind, kind: {"name": choice.tool_name}}, choice)


def _encode_allowed(choice: ToolChoice) -> Json:
    tools: list[Json] = [
        {"type": "function", "function": {"name": name}} for name in choice.allowed or ()
    ]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
