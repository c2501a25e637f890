"""
Tools in the form that their target has.

A custom tool becomes a function with one text, and a search for tools a function. A tool in
a namespace gets another name. A deferred tool is left out until a result has named it. The tool
calls come back as calls of the declared tools: `streams/declared_calls.py`.

A tool that the provider runs has a form in each dialect that has such a tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from interlingua.prepare.settings import list_names
from interlingua.spec.content import Json, Opaque, ToolCall, ToolResult
from interlingua.spec.facts import Facts, HistoryRules
from interlingua.spec.messages import Message
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ToolChoice,
    ToolDefinition,
    ToolSpec,
    tool_key,
)
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import extra_of
from interlingua.wire.tool_names import flat_name, may_change_form, sent_names

INPUT = "input"
"""The parameter that holds the text of a custom tool."""
FREE_TEXT: dict[str, Json] = {
    "type": "object",
    "properties": {INPUT: {"type": "string"}},
    "required": [INPUT],
}
# A function has no grammar, so the model is told it in words, and nothing enforces it.
_GRAMMAR = "The text must match this grammar ({syntax}):\n\n{definition}"
_read_path = re.compile(r"tools\[(\d+)\](.*)").fullmatch


def has_special_tools(tools: tuple[ToolSpec, ...]) -> bool:
    """Whether there are tools that some dialects do not have."""
    return any(
        may_change_form(tool) or (type(tool) is ToolDefinition and tool.deferred is not None)
        for tool in tools
    )


def adapt_tools(
    request: Request,
    history: tuple[Message, ...],
    facts: Facts,
    rules: HistoryRules,
    warnings: WarningList,
) -> Request:
    """The request with tools that the target has; `history` is that of the caller."""
    places = _sent_places(request, history, facts, warnings)
    names = {} if rules.namespaces else sent_names(request.tools)
    tools = tuple(_adapt(request.tools[i], i, names, rules, warnings) for i in places)
    if len(places) < len(request.tools):
        warnings.origin = partial(_original_path, places, warnings.origin)
    choice = request.tool_choice
    if choice is not None and names:
        choice = _adapt_choice(choice, request.tools, names)
    return replace(request, tools=tools, tool_choice=choice)


def _original_path(
    places: list[int], origin: Callable[[str], str | None] | None, path: str
) -> str | None:
    """The path in the caller's request, of a path in the request as it is sent."""
    match = _read_path(path)
    if match is not None:
        return f"tools[{places[int(match[1])]}]{match[2]}"
    mapped: str | None = path if origin is None else origin(path)
    return mapped


# Deferred tools.


def _sent_places(
    request: Request, history: tuple[Message, ...], facts: Facts, warnings: WarningList
) -> list[int]:
    """The indexes of the tools that are sent now."""
    withheld: list[int] = []
    offered: list[int] = []
    loaded: Collection[str] | None = None
    for i, tool in enumerate(request.tools):
        if not isinstance(tool, ToolDefinition) or tool.deferred is None:
            continue
        if facts.defers and facts.defers in extra_of(tool, facts.name):
            continue  # the target defers it itself
        # The provider that would have searched is not the target, so nobody would ever load it.
        if tool.deferred == "server":
            offered.append(i)
            continue
        loaded = set(_loaded_tools(request, history)) if loaded is None else loaded
        if flat_name(*tool_key(tool)) not in loaded:
            withheld.append(i)
    for code, indexes in (("deferred_tools_withheld", withheld), ("deferred_tools_sent", offered)):
        if indexes:
            names = list_names(request.tools, indexes)
            warnings.add(code, f"tools[{indexes[0]}]", count=len(indexes), names=names)
    return [i for i in range(len(request.tools)) if i not in set(withheld)]


def _loaded_tools(request: Request, history: tuple[Message, ...]) -> Iterator[str]:
    """The tools that a result has named, that were called, or that the tool choice names."""
    # A tool that was called stays declared, so that the model can call it again.
    choice = request.tool_choice
    if choice is not None:
        yield from filter(None, (choice.tool_name, *(choice.allowed or ())))
    for message in history:
        for part in message.content:
            if isinstance(part, ToolCall):
                yield flat_name(part.namespace, part.name)
            parts = part.parts or () if isinstance(part, ToolResult) else (part,)
            for inner in parts:
                if isinstance(inner, Opaque):
                    yield from inner.loaded_tools


# Custom tools, searches and namespaces.


def _adapt(
    tool: ToolSpec,
    index: int,
    names: dict[tuple[str | None, str], str],
    rules: HistoryRules,
    warnings: WarningList,
) -> ToolSpec:
    if not isinstance(tool, ToolDefinition):
        return tool
    changes: dict[str, object] = {}
    path = f"tools[{index}]"
    if tool.namespace is not None and not rules.namespaces:
        name = names[tool_key(tool)]
        warnings.add("namespace_as_name", path, tool=tool.name, sent=name)
        changes |= {"name": name, "namespace": None}
    if tool.type not in rules.tool_types:
        # Fields of the other type mean nothing for a function.
        changes |= {"type": "function", "strict": None, "extra": {}}
        if tool.type == "custom":
            warnings.add("custom_tool_as_function", path)
            changes |= {"parameters": FREE_TEXT, "grammar": None, "description": _described(tool)}
        else:
            warnings.add("tool_search_as_function", path)
    return replace(tool, **changes) if changes else tool


def _described(tool: ToolDefinition) -> str | None:
    """The description, with the grammar that the text must match."""
    if tool.grammar is None:
        return tool.description
    grammar = _GRAMMAR.format(syntax=tool.grammar.syntax, definition=tool.grammar.definition)
    return f"{tool.description}\n\n{grammar}" if tool.description else grammar


def _adapt_choice(
    choice: ToolChoice, tools: tuple[ToolSpec, ...], names: dict[tuple[str | None, str], str]
) -> ToolChoice:
    """The choice with the names that are sent; it has only names, and no namespaces."""
    sent = {name: names[key] for key in map(tool_key, reversed(tools)) if (name := key[1])}
    return replace(
        choice,
        tool_name=sent.get(choice.tool_name or "", choice.tool_name),
        allowed=None
        if choice.allowed is None
        else tuple(sent.get(name, name) for name in choice.allowed),
    )


# Tools that the provider runs.

HostedForm: TypeAlias = Callable[[dict[str, Json]], dict[str, Json]]
"""The wire form of a tool from its options; the options that it uses are removed."""

HOSTED_BY = {
    "code_execution": "Anthropic's Messages, OpenAI's Responses, Gemini and Bedrock's Converse",
    "computer": "Anthropic's Messages, OpenAI's Responses and Gemini",
    "file_search": "OpenAI's Responses and Gemini",
    "url_context": "Anthropic's Messages and Gemini",
    "web_search": "Anthropic's Messages, OpenAI's Responses, Gemini and Bedrock's Converse",
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
