"""Tools and the tool choice <-> body: tools of the caller, and tools that Anthropic runs."""

from __future__ import annotations

import re
from typing import Any

from interlingua.dialects.anthropic_messages.facts import NAME, STRICT_SCHEMA, extra_for
from interlingua.prepare.schema.narrow import encode_parameters
from interlingua.prepare.tool_forms import (
    HostedForm,
    encode_hosted,
    read_location,
    rename,
    take,
    take_location,
)
from interlingua.spec.content import Json, Opaque, UncheckedJson
from interlingua.spec.request import (
    BuiltinTool,
    DeferredBy,
    Request,
    ToolChoice,
    ToolDefinition,
    ToolSpec,
)
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, restore, text_or_none, wrong_type

# Tools that the API runs, by the names before their dates.
# https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools
_KINDS = {
    "web_search": "web_search",
    "web_fetch": "url_context",
    "code_execution": "code_execution",
    "computer": "computer",
}
_DATED = re.compile(rf"({'|'.join(_KINDS)})_\d{{8}}")
# The names in `server_tool_use`: code execution and the search for tools have several.
_USES = {
    **_KINDS,
    "bash_code_execution": "code_execution",
    "text_editor_code_execution": "code_execution",
    "tool_search_tool_bm25": "tool_search",
    "tool_search_tool_regex": "tool_search",
}
_WIRE_USES = {"url_context": "web_fetch", "tool_search": "tool_search_tool_regex"}
_SCRIPTED = ("web_search", "url_context", "code_execution", "tool_search")
# The only one of our forms that is not in the types without a beta.
_COMPUTER_BETA = "computer-use-2025-11-24"
_LIMITS = {"max_uses": "max_uses", "allowed_domains": "allowed_domains"}
_SCREEN = {"width": "display_width_px", "height": "display_height_px"}
_RESULT = "_tool_result"  # the end of the types of all results
# recorded: «tools.0.custom.input_schema.type: Field required» for a schema without it
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
    if allowed is not None:  # the API has no such list, so the other tools are not sent
        warnings.add("allowed_tools_narrowed", "tool_choice.allowed")
    if choice is not None or request.parallel_tool_calls is not None:
        # `disable_parallel_tool_use` is a field of the choice, which then needs its type as well.
        body["tool_choice"] = _encode_choice(choice, request.parallel_tool_calls)


def decode_tools(fields: Fields) -> dict[str, Any]:
    """The request's `tools`, `tool_choice` and `parallel_tool_calls`."""
    settings: dict[str, Any] = {}
    tools = fields.items("tools")
    if tools:
        # Without a search that the API runs, the caller answers with references to the tools.
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


# Tools that Anthropic runs.


def _web_search(options: dict[str, Json]) -> dict[str, Json]:
    limits = take(options, **_LIMITS, blocked_domains="blocked_domains")
    location = take_location(options)
    return {"type": "web_search_20250305", "name": "web_search", **limits, **location}


def _code_execution(_: dict[str, Json]) -> dict[str, Json]:
    return {"type": "code_execution_20250825", "name": "code_execution"}


def _web_fetch(options: dict[str, Json]) -> dict[str, Json]:
    limits = take(options, **_LIMITS, blocked_domains="blocked_domains")
    return {"type": "web_fetch_20250910", "name": "web_fetch", **limits}


def _computer(options: dict[str, Json]) -> dict[str, Json]:
    options.pop("environment", None)  # the API does not ask what the screen shows
    # `display_width_px` and `display_height_px` are required; 1024 x 768 is our choice.
    size = {"display_width_px": 1024, "display_height_px": 768} | take(options, **_SCREEN)
    return {"type": "computer_20251124", "name": "computer", **size}


HOSTED: dict[str, HostedForm] = {
    "code_execution": _code_execution,
    "computer": _computer,
    "url_context": _web_fetch,
    "web_search": _web_search,
}


def betas_of(request: Request) -> list[str]:
    """The beta flags that our forms of the tools need."""
    names = [
        tool.name
        for tool in request.tools
        if isinstance(tool, BuiltinTool) and tool.dialect != NAME
    ]
    return [_COMPUTER_BETA] if "computer" in names else []


def decode_hosted(tool: dict[str, Json]) -> BuiltinTool:
    """The tool verbatim, with its canonical name and options if it has them."""
    kind = tool.get("type")
    match = _DATED.fullmatch(kind) if isinstance(kind, str) else None
    if match is None:
        return BuiltinTool(dialect=NAME, data=tool)
    unread = ("type", "name", "cache_control")
    options = {key: value for key, value in tool.items() if key not in unread}
    read_location(options)
    rename(options, **_SCREEN)
    return BuiltinTool(dialect=NAME, data=tool, name=_KINDS[match[1]], options=options)


# Calls and results.


def hosted_use(block: dict[str, Json]) -> Opaque:
    """A block without a canonical form; the tool call or result of a hosted tool is described."""
    kind = block.get("type")
    use: dict[str, Any] = {}
    if kind == "server_tool_use":
        name = block.get("name")
        use = {
            "tool": _USES.get(name, name) if isinstance(name, str) else None,
            "tool_call_id": text_or_none(block.get("id")),
            "input": block.get("input"),
        }
    elif kind == "mcp_tool_use":
        arguments = {key: block.get(key) for key in ("server_name", "name", "input")}
        call_id = text_or_none(block.get("id"))
        use = {"tool": "mcp", "tool_call_id": call_id, "input": arguments}
    elif isinstance(kind, str) and kind.endswith(_RESULT) and "tool_use_id" in block:
        name = kind.removesuffix(_RESULT)
        use = {
            "tool": _USES.get(name, name),
            "tool_call_id": text_or_none(block.get("tool_use_id")),
            "output": _output(block.get("content")),
        }
    return Opaque(dialect=NAME, data=block, **use)


def _output(content: UncheckedJson) -> UncheckedJson:
    """Return what a tool returned, for readers; a result without a simpler form stays as it is."""
    match content:
        case list(items):
            return [_output(item) for item in items]
        case {"type": "web_search_result"} | {"type": "web_fetch_result"}:
            return {"url": content.get("url"), "title": _title(content)}
        case {"type": "text", "text": str(text)}:
            return text
        case {"stdout": str(out), **rest}:
            errors = rest.get("stderr")
            return out + errors if isinstance(errors, str) else out
        case {"type": "tool_search_tool_search_result", "tool_references": list(found)}:
            return [each.get("tool_name") for each in found if isinstance(each, dict)]
    return content


def _title(result: dict[str, Json]) -> Json:
    inner = result.get("content")
    return result.get("title") or (inner.get("title") if isinstance(inner, dict) else None)


def hosted_parts(part: Opaque) -> tuple[Opaque, ...]:
    """The blocks of a hosted tool call and its result that a script describes."""
    if part.tool not in _SCRIPTED:
        return ()
    call_id = f"srvtoolu_{part.tool_call_id}"
    name = _WIRE_USES.get(part.tool or "", part.tool)
    call = {"type": "server_tool_use", "id": call_id, "name": name, "input": part.input or {}}
    content = _content(part)
    kind = "tool_search" if part.tool == "tool_search" else name
    result = {"type": f"{kind}{_RESULT}", "tool_use_id": call_id, "content": content}
    return hosted_use(call), hosted_use(result)


def _content(part: Opaque) -> Json:
    sources = part.output if isinstance(part.output, list) else []
    if part.tool == "web_search":
        # Clients return `encrypted_content`; here it says that it is simulated.
        fields = {"type": "web_search_result", "encrypted_content": "c2ltdWxhdGVk"}
        return [{**fields, "page_age": None, **source} for source in sources]
    if part.tool == "tool_search":
        references = [{"type": "tool_reference", "tool_name": each["name"]} for each in sources]
        return {"type": "tool_search_tool_search_result", "tool_references": references}
    if part.tool == "url_context":
        source = sources[0] if sources else {}
        data = {"type": "text", "media_type": "text/plain", "data": ""}
        document = {"type": "document", "source": data, "title": source.get("title")}
        return {"type": "web_fetch_result", "url": source.get("url", ""), "content": document}
    return {
        "type": "code_execution_result",
        "stdout": part.output or "",
        "stderr": "",
        "return_code": 0,
        "content": [],
    }
