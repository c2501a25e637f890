"""Tools and the tool choice <-> body."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.anthropic_messages.facts import NAME, STRICT_SCHEMA, extra_for
from interlingua.dialects.anthropic_messages.hosted import HOSTED, decode_hosted
from interlingua.prepare.hosted_tools import encode_hosted
from interlingua.prepare.schema import encode_parameters
from interlingua.spec.content import Json
from interlingua.spec.request import (
    BuiltinTool,
    DeferredBy,
    Request,
    ToolChoice,
    ToolDefinition,
    ToolSpec,
)
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, restore, wrong_type

_NO_INPUT = {"type": "object", "properties": {}}
_MODES = {"auto": "auto", "any": "required", "none": "none", "tool": "named"}
_MODE_NAMES = {ours: theirs for theirs, ours in _MODES.items()}


def encode_tools(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    """`tools` and `tool_choice`."""
    choice = request.tool_choice
    allowed = choice.allowed if choice else None
    tools = [_encode_tool(tool, warnings, f"tools[{i}]") for i, tool in enumerate(request.tools)]
    if sent := [tool for tool in tools if tool and _is_allowed(tool, allowed)]:
        body["tools"] = sent
    if allowed is not None:
        warnings.add("allowed_tools_narrowed", "tool_choice.allowed")
    if choice is not None or request.parallel_tool_calls is not None:
        body["tool_choice"] = _encode_choice(choice, request.parallel_tool_calls)


def decode_tools(fields: Fields) -> dict[str, Any]:
    """The request's `tools`, `tool_choice` and `parallel_tool_calls`."""
    settings: dict[str, Any] = {}
    tools = fields.items("tools")
    if tools:
        by: DeferredBy = "server" if any(map(_searches_tools, tools)) else "client"
        settings["tools"] = tuple(
            _decode_tool(tool, f"tools[{i}]", by) for i, tool in enumerate(tools)
        )
    choice = fields.fields("tool_choice")
    if choice is not None:
        mode = choice.text("type")
        if mode not in _MODES:
            fields.left["tool_choice"] = {**choice.left, **({"type": mode} if mode else {})}
            return settings
        disabled = choice.flag("disable_parallel_tool_use")
        settings["parallel_tool_calls"] = None if disabled is None else not disabled
        settings["tool_choice"] = ToolChoice(
            mode=_MODES[mode],  # type: ignore[arg-type]
            tool_name=choice.text("name"),
            extra=extra_for(choice.left),
        )
    return settings


def _encode_tool(tool: ToolSpec, warnings: WarningList, path: str) -> dict[str, Json] | None:
    if isinstance(tool, BuiltinTool):
        hosted = encode_hosted(tool, NAME, HOSTED, warnings, path)
        return hosted if isinstance(hosted, dict) else None
    wire: dict[str, Json] = {"name": tool.name}
    if tool.description is not None:
        wire["description"] = tool.description
    schema = _NO_INPUT if tool.parameters is None else tool.parameters
    wire["input_schema"], strict = encode_parameters(
        schema, STRICT_SCHEMA, warnings, f"{path}.parameters", strict=tool.strict
    )
    if strict is not None:
        wire["strict"] = strict
    return restore(wire, tool, NAME)


def _searches_tools(tool: Json) -> bool:
    """Whether it is a search for tools that the API runs itself."""
    kind = tool.get("type") if isinstance(tool, dict) else None
    return isinstance(kind, str) and kind.startswith("tool_search_tool_")


def _decode_tool(tool: Json, path: str, by: DeferredBy) -> ToolSpec:
    if not isinstance(tool, dict):
        raise wrong_type(path, "an object", tool)
    if tool.get("type") not in (None, "custom") or "input_schema" not in tool:
        return decode_hosted(tool)
    fields = Fields(tool, path)
    return ToolDefinition(
        name=fields.need("name"),
        description=fields.text("description"),
        parameters=fields.object("input_schema"),
        strict=fields.flag("strict"),
        deferred=by if fields.left.get("defer_loading") is True else None,
        extra=extra_for(fields.left),
    )


def _is_allowed(tool: dict[str, Json], allowed: tuple[str, ...] | None) -> bool:
    return allowed is None or "input_schema" not in tool or tool.get("name") in allowed


def _encode_choice(choice: ToolChoice | None, parallel: bool | None) -> dict[str, Json]:
    wire: dict[str, Json] = {"type": _MODE_NAMES[choice.mode] if choice else "auto"}
    if choice is not None and choice.tool_name is not None:
        wire["name"] = choice.tool_name
    if parallel is not None:
        wire["disable_parallel_tool_use"] = not parallel
    return {**wire, **(extra_of(choice, NAME) if choice else {})}
