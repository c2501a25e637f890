"""Tools that Anthropic runs, and their calls and results."""

from __future__ import annotations

import re
from typing import Any

from interlingua.dialects.anthropic_messages.facts import NAME
from interlingua.prepare.hosted_tools import (
    HostedForm,
    read_location,
    rename,
    take,
    take_location,
)
from interlingua.spec.content import Opaque, UncheckedJson
from interlingua.spec.request import BuiltinTool, Request
from interlingua.wire.fields import text_or_none

_KINDS = {
    "web_search": "web_search",
    "web_fetch": "url_context",
    "code_execution": "code_execution",
    "computer": "computer",
}
_DATED = re.compile(rf"({'|'.join(_KINDS)})_\d{{8}}")
_USES = {
    **_KINDS,
    "bash_code_execution": "code_execution",
    "text_editor_code_execution": "code_execution",
    "tool_search_tool_bm25": "tool_search",
    "tool_search_tool_regex": "tool_search",
}
_WIRE_USES = {"url_context": "web_fetch", "tool_search": "tool_search_tool_regex"}
_SCRIPTED = ("web_search", "url_context", "code_execution", "tool_search")
_COMPUTER_BETA = "computer-use-2025-11-24"
_LIMITS = {"max_uses": "max_uses", "allowed_domains": "allowed_domains"}
_SCREEN = {"width": "display_width_px", "height": "display_height_px"}
_RESULT = "_tool_result"


def _web_search(options: dict[str, UncheckedJson]) -> dict[str, UncheckedJson]:
    limits = take(options, **_LIMITS, blocked_domains="blocked_domains")
    location = take_location(options)
    return {"type": "web_search_20250305", "name": "web_search", **limits, **location}


def _code_execution(_: dict[str, UncheckedJson]) -> dict[str, UncheckedJson]:
    return {"type": "code_execution_20250825", "name": "code_execution"}


def _web_fetch(options: dict[str, UncheckedJson]) -> dict[str, UncheckedJson]:
    limits = take(options, **_LIMITS, blocked_domains="blocked_domains")
    return {"type": "web_fetch_20250910", "name": "web_fetch", **limits}


def _computer(options: dict[str, UncheckedJson]) -> dict[str, UncheckedJson]:
    options.pop("environment", None)  # any: the caller describes it
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


def decode_hosted(tool: dict[str, UncheckedJson]) -> BuiltinTool:
    """The tool verbatim, with its canonical name and options if it has them."""
    kind = tool.get("type")
    found = _DATED.fullmatch(kind) if isinstance(kind, str) else None
    if found is None:
        return BuiltinTool(dialect=NAME, data=tool)
    unread = ("type", "name", "cache_control")
    options = {key: value for key, value in tool.items() if key not in unread}
    read_location(options)
    rename(options, **_SCREEN)
    return BuiltinTool(dialect=NAME, data=tool, name=_KINDS[found[1]], options=options)


# Calls and results.


def hosted_use(block: dict[str, UncheckedJson]) -> Opaque:
    """A block without a canonical form; the call or result of a hosted tool is described."""
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
        called = {key: block.get(key) for key in ("server_name", "name", "input")}
        call_id = text_or_none(block.get("id"))
        use = {"tool": "mcp", "tool_call_id": call_id, "input": called}
    elif isinstance(kind, str) and kind.endswith(_RESULT) and "tool_use_id" in block:
        name = kind.removesuffix(_RESULT)
        use = {
            "tool": _USES.get(name, name),
            "tool_call_id": text_or_none(block.get("tool_use_id")),
            "output": _output(block.get("content")),
        }
    return Opaque(dialect=NAME, data=block, **use)


def _output(content: UncheckedJson) -> UncheckedJson:
    """What a tool returned, for readers; what has no simpler form is left as it is."""
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


def _title(result: dict[str, UncheckedJson]) -> UncheckedJson:
    inner = result.get("content")
    return result.get("title") or (inner.get("title") if isinstance(inner, dict) else None)


def hosted_parts(part: Opaque) -> tuple[Opaque, ...]:
    """The blocks of a call and its result that a script describes."""
    if part.tool not in _SCRIPTED:
        return ()
    call_id = f"srvtoolu_{part.tool_call_id}"
    name = _WIRE_USES.get(part.tool or "", part.tool)
    call = {"type": "server_tool_use", "id": call_id, "name": name, "input": part.input or {}}
    content = _content(part)
    kind = "tool_search" if part.tool == "tool_search" else name
    result = {"type": f"{kind}{_RESULT}", "tool_use_id": call_id, "content": content}
    return hosted_use(call), hosted_use(result)


def _content(part: Opaque) -> UncheckedJson:
    sources = part.output if isinstance(part.output, list) else []
    if part.tool == "web_search":
        fields = {"type": "web_search_result", "encrypted_content": "c2ltdWxhdGVk"}
        return [{**fields, "page_age": None, **source} for source in sources]
    if part.tool == "tool_search":
        found = [{"type": "tool_reference", "tool_name": each["name"]} for each in sources]
        return {"type": "tool_search_tool_search_result", "tool_references": found}
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
