"""Tools that OpenAI runs."""

from __future__ import annotations

from interlingua.dialects.openai_responses.facts import NAME
from interlingua.prepare.tool_forms import HostedForm, read_location, rename, take, take_location
from interlingua.spec.content import Json
from interlingua.spec.request import BuiltinTool

# The dated and the preview names of a tool stay valid; all of them are in the SDK's `ToolParam`.
_KINDS = {
    "web_search": "web_search",
    "web_search_2025_08_26": "web_search",
    "web_search_preview": "web_search",
    "web_search_preview_2025_03_11": "web_search",
    "code_interpreter": "code_execution",
    "file_search": "file_search",
    "computer": "computer",
    "computer_use_preview": "computer",
}
_STORES = {"stores": "vector_store_ids", "max_results": "max_num_results"}
_SCREEN = {"width": "display_width", "height": "display_height"}
_AUTO = {"type": "auto"}  # the SDK: `container` is required, an id or this object


def _web_search(options: dict[str, Json]) -> dict[str, Json]:
    domains = take(options, allowed_domains="allowed_domains")
    filters = {"filters": domains} if domains else {}
    return {"type": "web_search", **filters, **take_location(options)}


def _code_interpreter(_: dict[str, Json]) -> dict[str, Json]:
    return {"type": "code_interpreter", "container": _AUTO}


def _file_search(options: dict[str, Json]) -> dict[str, Json]:
    return {"type": "file_search", **take(options, **_STORES)}


def _computer(_: dict[str, Json]) -> dict[str, Json]:
    return {"type": "computer"}


HOSTED: dict[str, HostedForm] = {
    "code_execution": _code_interpreter,
    "computer": _computer,
    "file_search": _file_search,
    "web_search": _web_search,
}


def decode_hosted(tool: dict[str, Json]) -> BuiltinTool:
    """The tool verbatim, with its canonical name and options if it has them."""
    kind = tool.get("type")
    name = _KINDS.get(kind) if isinstance(kind, str) else None
    if name is None:
        return BuiltinTool(dialect=NAME, data=tool)
    options = {key: value for key, value in tool.items() if key != "type"}
    read_location(options)
    rename(options, **_STORES, **_SCREEN)
    if options.get("container") == _AUTO:
        del options["container"]
    filters = options.get("filters")
    if isinstance(filters, dict) and name == "web_search":
        del options["filters"]
        options |= filters
    return BuiltinTool(dialect=NAME, data=tool, name=name, options=options)
