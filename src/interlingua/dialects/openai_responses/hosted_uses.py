"""The items of tool calls that OpenAI, or a compatible host, runs; they have the results too."""

from __future__ import annotations

from interlingua.dialects.openai_responses.facts import NAME, SEARCH, TOOL_CALLS
from interlingua.spec.content import Json, Opaque
from interlingua.spec.contracts import Profile
from interlingua.spec.request import Request, ToolDefinition
from interlingua.wire.fields import text_or_none
from interlingua.wire.json_text import loads_object

_USES = {
    "web_search_call": "web_search",
    "code_interpreter_call": "code_execution",
    "file_search_call": "file_search",
    "computer_call": "computer",
    "computer_call_output": "computer",
    "image_generation_call": "image_generation",
    "local_shell_call": "local_shell",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcp",
    "mcp_approval_request": "mcp",
    "tool_search_call": "tool_search",
    "tool_search_output": "tool_search",
}
# Each type of item has its own names for what went into a tool and what came out of it.
_INPUTS = ("action", "actions", "code", "queries", "arguments", "name", "server_label")
_OUTPUTS = ("outputs", "results", "output", "tools", "error")


class OwnCalls:
    """
    Reads tool calls that the provider has run itself, although they look like the program's.

    xAI sends a search of X as a `custom_tool_call` of a tool that no request declares. Its built-in
    tools «run on xAI's servers»: https://docs.x.ai/developers/tools/overview
    """

    __slots__ = ("_kinds", "_names")

    def __init__(self, profile: Profile, request: Request | None) -> None:
        types = () if request is None else profile.hosted_call_types
        self._kinds = [TOOL_CALLS[each] for each in types]
        self._names = _declared_names(request) if types and request else frozenset()

    def read(self, item: Json) -> Opaque | None:
        """The part of such a call; None for any other item."""
        if not self._kinds or not isinstance(item, dict) or item.get("type") not in self._kinds:
            return None
        name, text = item.get("name"), item.get("input", item.get("arguments"))
        if not isinstance(name, str) or name in self._names:
            return None
        arguments = loads_object(text) if isinstance(text, str) else None
        return Opaque(
            dialect=NAME,
            data=item,
            tool=name,
            tool_call_id=text_or_none(item.get("call_id")) or text_or_none(item.get("id")),
            input=text if arguments is None else arguments,
        )


def _declared_names(request: Request) -> frozenset[str]:
    """The names of the tools that the program runs, also of those among the options."""
    from interlingua.wire.tool_names import sent_names

    tools = [tool for tool in request.tools if isinstance(tool, ToolDefinition)]
    names = [*(tool.name for tool in tools), *sent_names(tools).values()]
    for options in request.provider_options.values():
        added = options.get("tools")
        for tool in added if isinstance(added, (list, tuple)) else ():
            name = tool.get("name") if isinstance(tool, dict) else None
            names += [name] if isinstance(name, str) else []
    return frozenset(names)


def hosted_use(item: Json) -> Opaque:
    """An item without a canonical form; the tool call of a hosted tool is described."""
    kind = item.get("type") if isinstance(item, dict) else None
    tool = _USES.get(kind) if isinstance(kind, str) else None
    if tool is None or not isinstance(item, dict):
        return Opaque(dialect=NAME, data=item)
    call_id = text_or_none(item.get("call_id")) or text_or_none(item.get("id"))
    return Opaque(
        dialect=NAME,
        data=item,
        tool=tool,
        tool_call_id=call_id,
        input=_input(item),
        output=_output(item),
    )


def _input(item: dict[str, Json]) -> Json:
    found = {key: item[key] for key in _INPUTS if item.get(key) is not None}
    action = found.pop("action", None)
    if isinstance(action, dict):
        found |= {key: value for key, value in action.items() if key != "sources"}
    elif action is not None:
        found["action"] = action
    return found or (None if _is_result(item) else {})


def _is_result(item: dict[str, Json]) -> bool:
    return str(item["type"]).endswith(("_output", "_list_tools"))


def _output(item: dict[str, Json]) -> Json:
    match item.get("action"):
        case {"sources": list(sources)}:
            return [_source(source) for source in sources]
    value = next((item[key] for key in _OUTPUTS if item.get(key) is not None), None)
    match item.get("type"), value:
        case "code_interpreter_call", [*outputs]:
            logs = [_log(output) for output in outputs]
            return value if None in logs else "".join(filter(None, logs))
        case "file_search_call", [*results]:
            return [_source(result) for result in results]
        case "image_generation_call", _:
            return None
    return value


def _log(output: Json) -> str | None:
    """The text of an output that is a log; None if it is something else, such as an image."""
    return text_or_none(output.get("logs")) if isinstance(output, dict) else None


def _source(source: Json) -> Json:
    if not isinstance(source, dict):
        return source
    return {"url": source.get("url"), "title": source.get("title", source.get("filename"))}


def hosted_parts(part: Opaque) -> tuple[Opaque, ...]:
    """The items of a tool call and its result that a script describes."""
    if part.tool == SEARCH:
        return _search_parts(part)
    called = part.input if isinstance(part.input, dict) else {}
    sources = [each for each in part.output or () if isinstance(each, dict)]
    fields: dict[str, Json]
    if part.tool == "web_search":
        urls = [{"type": "url", "url": each.get("url")} for each in sources]
        action = {"type": "search", "query": called.get("query", ""), "sources": urls}
        kind, prefix, fields = "web_search_call", "ws", {"action": action}
    elif part.tool == "file_search":
        results = [{"file_id": "file_simulated", "filename": each.get("title")} for each in sources]
        queries = [called.get("query", "")]
        kind, prefix, fields = "file_search_call", "fs", {"queries": queries, "results": results}
    elif part.tool == "code_execution":
        logs = [{"type": "logs", "logs": part.output or ""}]
        container = "cntr_simulated"
        fields = {"code": called.get("code", ""), "container_id": container, "outputs": logs}
        kind, prefix = "code_interpreter_call", "ci"
    else:
        return ()
    item_id = f"{prefix}_{part.tool_call_id}"
    return (hosted_use({"id": item_id, "type": kind, "status": "completed", **fields}),)


def _search_parts(part: Opaque) -> tuple[Opaque, ...]:
    """A search for deferred tools, which the server runs, and the definitions that it loads."""
    state = {"call_id": None, "execution": "server", "status": "completed"}
    loaded = [{"type": "function", "defer_loading": True, **each} for each in part.output or ()]
    call = {"type": "tool_search_call", "id": f"tsc_{part.tool_call_id}", **state}
    output = {"type": "tool_search_output", "id": f"tso_{part.tool_call_id}", **state}
    return (
        hosted_use({**call, "arguments": part.input or {}}),
        hosted_use({**output, "tools": loaded}),
    )
