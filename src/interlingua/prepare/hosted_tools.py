"""Tools that the provider runs, in the form of each dialect that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from interlingua.spec.content import Json
from interlingua.spec.request import BuiltinTool
from interlingua.spec.warnings import WarningList

HostedForm: TypeAlias = Callable[[dict[str, Json]], dict[str, Json]]
"""The wire form of a tool from its options; the options that it uses are removed."""

HOSTED_BY = {
    "code_execution": "Anthropic's Messages, OpenAI's Responses and Gemini",
    "computer": "Anthropic's Messages, OpenAI's Responses and Gemini",
    "file_search": "OpenAI's Responses and Gemini",
    "url_context": "Anthropic's Messages and Gemini",
    "web_search": "Anthropic's Messages, OpenAI's Responses and Gemini",
}
"""The APIs that have each tool; the keys are all canonical names."""

# `vector_store_ids` of OpenAI and `fileSearchStoreNames` of Gemini name stores of the account.
_OF_ONE_PROVIDER = ("file_search",)
"""Tools whose options name what only one provider stores."""


def encode_hosted(
    tool: BuiltinTool,
    dialect: str,
    forms: Mapping[str, HostedForm],
    warnings: WarningList,
    path: str,
) -> Json:
    """The tool in the form of a dialect; None, with a warning, if `forms` has none for it."""
    if tool.dialect == dialect:
        data: Json = tool.data
        return data
    is_bound = tool.dialect != "" and tool.name in _OF_ONE_PROVIDER
    form = None if is_bound else forms.get(tool.name)
    if form is None:
        owner = tool.dialect if is_bound else HOSTED_BY.get(tool.name, tool.dialect)
        warnings.add("builtin_tool_dropped", path, tool=_title(tool), owner=owner)
        return None
    options = dict(tool.options)
    wire = form(options)
    for option, value in options.items():
        if value is not None:
            warnings.add("hosted_option_dropped", path, tool=tool.name, option=option)
    return wire


def _title(tool: BuiltinTool) -> str:
    if tool.name:
        return repr(tool.name)
    data = tool.data if isinstance(tool.data, dict) else {}
    name = data.get("type") or next(iter(data), "")
    return repr(name)[:60]


def take(options: dict[str, Json], **names: str) -> dict[str, Json]:
    """The options with their names in a dialect: `take(options, stores="vector_store_ids")`."""
    return {
        theirs: value
        for ours, theirs in names.items()
        if (value := options.pop(ours, None)) is not None
    }


def take_location(options: dict[str, Json]) -> dict[str, Json]:
    """`user_location`, which two dialects have in the same form."""
    # `UserLocationParam` of Anthropic's SDK and `WebSearchToolParam.user_location` of OpenAI's:
    # type, city, region, country and timezone.
    location = options.pop("location", None)
    if not isinstance(location, Mapping) or not location:
        return {}
    return {"user_location": {"type": "approximate", **location}}


def read_location(options: dict[str, Json]) -> None:
    """The inverse of `take_location`, in place."""
    location = options.pop("user_location", None)
    if isinstance(location, dict):
        fields = {key: value for key, value in location.items() if key != "type" and value}
        if fields:
            options["location"] = fields


def rename(options: dict[str, Json], **names: str) -> None:
    """The inverse of `take`, in place: the options with the canonical names."""
    for ours, theirs in names.items():
        if theirs in options:
            options[ours] = options.pop(theirs)
