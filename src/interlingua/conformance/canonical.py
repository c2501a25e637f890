"""
Laws 4 and 9: what a request says survives a dialect, or a warning says what does not.

Law 4: a canonical value that is encoded and decoded again is the same. Law 9: A -> canonical -> B
-> canonical keeps texts, calls, results, their links, and tools. A warning permits the one change
that its code stands for (see `allowed`), and nothing else.

Some differences are not losses and are not compared: argument text (its parsed value is compared),
the `name` of a result (the call has it), the `detail` of an image, the name and strictness of a
response format, a JSON result as JSON text, metadata and ids of the application.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

import msgspec

from interlingua.conformance.allowed import UNLINKED, Expected, HistoryItem, items_of, tools_of
from interlingua.conformance.equality import differences, same_schema
from interlingua.conformance.laws import Case, Law
from interlingua.prepare.history.messages import is_blank
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Json,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.contracts import NEUTRAL_PROFILE, Dialect, Profile
from interlingua.spec.request import (
    NEVER_SENT,
    BuiltinTool,
    Request,
    ResponseFormat,
    ToolChoice,
    ToolSpec,
)
from interlingua.spec.response import Response, Warning
from interlingua.wire.json_text import dump_text

# These are compared in their own way, or belong to the caller.
_APART = NEVER_SENT | {"messages", "tools", "response_format", "max_tokens", "provider"}
_SETTINGS = tuple(name for name in Request.__struct_fields__ if name not in _APART)


def request_survives(dialect: Dialect, request: Request) -> list[str]:
    """List what a request loses, without a warning, when it is encoded and decoded again."""
    call = dialect.encode_request(request, stream=False)
    back = dialect.decode_request(call)
    warned = tuple(warning.path for warning in call.warnings if warning.path)
    broken = settings_survive(request, back, warned)
    tools = [
        _tool(tool) for i, tool in enumerate(request.tools) if not _covered(f"tools[{i}]", warned)
    ]
    returned = [_tool(tool) for tool in back.tools]
    if not _within(tools, returned):
        broken.append(f"tools: {tools!r} came back as {returned!r}")
    return broken + _parts_survive(request, back, warned)


def settings_survive(request: Request, back: Request, warned: tuple[str, ...]) -> list[str]:
    """List the settings that changed, except settings whose paths have a warning."""
    ours, theirs = _plain_settings(request), _plain_settings(back)
    broken = [
        f"{name}: {ours[name]!r} came back as {theirs[name]!r}"
        for name in _SETTINGS
        if not _covered(name, warned) and ours[name] != theirs[name]
    ]
    if request.max_tokens is not None and request.max_tokens != back.max_tokens:
        broken += [] if _covered("max_tokens", warned) else ["max_tokens changed"]
    if not _covered("response_format", warned):
        sent, returned = _format(request), _format(back)
        if same_schema(sent["json_schema"], returned["json_schema"]):
            sent["json_schema"] = returned["json_schema"]
        broken += differences(sent, returned, "response_format")
    return broken


def _plain_settings(request: Request) -> dict[str, object]:
    """The settings, with equivalent values in one form."""
    settings = {name: _bare(getattr(request, name)) for name in _SETTINGS}
    settings["tool_choice"] = _plain_choice(settings["tool_choice"])
    if request.reasoning_effort == "none" and request.thinking_budget is None:
        settings |= {"reasoning_effort": None, "thinking_budget": 0}
    return settings


def _plain_choice(choice: ToolChoice | None) -> ToolChoice | None:
    """None for the default; a single tool that is allowed and required is `named`."""
    if choice == ToolChoice():
        return None
    allowed = (choice.allowed if choice else None) or ()
    if choice is not None and choice.mode == "required" and len(allowed) == 1:
        return ToolChoice(mode="named", tool_name=allowed[0])
    return choice


def response_survives(dialect: Dialect, response: Response) -> list[str]:
    """List what a response loses of its text, tool calls and token counts."""
    back = dialect.decode_response(dialect.encode_response(response))
    broken: list[str] = []
    if _text(back) != _text(response):
        broken.append(f"text: {_text(response)!r} came back as {_text(back)!r}")
    calls = [(call.id, call.name, call.arguments) for call in response.tool_calls]
    again = [(call.id, call.name, call.arguments) for call in back.tool_calls]
    if calls != again:
        broken.append(f"calls: {calls!r} came back as {again!r}")
    broken += [
        f"usage.{name} changed"
        for name in ("input_tokens", "output_tokens", "total_tokens")
        if getattr(response.usage, name) != getattr(back.usage, name)
    ]
    return broken


def _text(response: Response) -> str:
    """Texts and refusals: a dialect without refusals writes them as text."""
    parts = response.message.content
    return "".join(part.text for part in parts if isinstance(part, (Text, Refusal)))


def _parts_survive(request: Request, back: Request, warned: tuple[str, ...]) -> list[str]:
    sent = [
        _part(part)
        for i, message in enumerate(request.messages)
        for j, part in enumerate(message.content)
        if not _covered(f"messages[{i}].content[{j}]", warned)
        and not (message.role == "system" and is_blank(part))  # it says nothing, and is left out
    ]
    returned = [_part(part) for message in back.messages for part in message.content]
    if _within(sent, returned):
        return []
    missing = [part for part in sent if part not in returned]
    return [f"parts: {missing or sent!r} not found, in order, in {returned!r}"]


def _within(wanted: Sequence[object], actual: Sequence[object]) -> bool:
    """Whether `wanted` is a subsequence of `actual`."""
    rest = iter(actual)
    return all(any(item == candidate for candidate in rest) for item in wanted)


def _covered(path: str, warned: tuple[str, ...]) -> bool:
    return any(
        path == place
        or path.startswith((f"{place}.", f"{place}["))
        or place.startswith((f"{path}.", f"{path}["))
        for place in warned
    )


def _bare(value: Any) -> Any:
    return msgspec.structs.replace(value, extra={}) if hasattr(value, "extra") else value


def _format(request: Request) -> dict[str, Json]:
    form = request.response_format or ResponseFormat()
    return {"type": form.type, "json_schema": form.json_schema}


def _tool(tool: ToolSpec) -> object:
    if isinstance(tool, BuiltinTool):
        return tool.name or msgspec.to_builtins(tool)
    schema = tool.parameters or {"type": "object", "properties": {}}
    return (tool.name, tool.description, tool.type, schema if tool.type == "function" else None)


def _part(part: Part) -> Part:
    """The part without what a dialect may drop or add: the parts of two requests are compared."""
    bare = msgspec.structs.replace(part, extra={})
    match bare:
        case ToolCall():
            is_parsed = bare.type == "function" and bare.is_valid
            return msgspec.structs.replace(bare, raw_arguments=None) if is_parsed else bare
        case Image():
            return msgspec.structs.replace(bare, detail=None)
        case ToolResult():
            return msgspec.structs.replace(bare, name=None, content=_result(bare))
        case Text() | Audio() | Document() | Thinking() | Refusal() | Opaque():
            return bare
    assert_never(bare)


def _result(result: ToolResult) -> str | tuple[Part, ...]:
    parts = result.parts
    if parts is None:
        content = result.content
        return content if isinstance(content, str) else dump_text(content)
    if all(isinstance(part, Text) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, Text))
    return tuple(_part(part) for part in parts)


_NOT_COMPARED = ("path", "document_text", "is_moved")


def crossing(source: Dialect, target: Dialect, case: Case) -> list[str]:
    """Law 9: the request survives the target dialect, or a warning names what does not."""
    if case.call is None:
        return []
    return crosses(target, source.decode_request(case.call))


def crossings(targets: Iterable[Dialect]) -> dict[str, Law]:
    """Make Law 9 for each of these targets, as laws for `check`."""
    return {f"9 crossing to {target.NAME}": _to(target) for target in targets}


def _to(target: Dialect) -> Law:
    return lambda source, case: [] if source.NAME == target.NAME else crossing(source, target, case)


def crosses(target: Dialect, request: Request, profile: Profile = NEUTRAL_PROFILE) -> list[str]:
    """What a request loses, beyond what warnings permit, when it is encoded and decoded again."""
    call = target.encode_request(request, profile, stream=False)
    return compare(request, target.decode_request(call), call.warnings)


def compare(request: Request, back: Request, warnings: tuple[Warning, ...]) -> list[str]:
    """List how `back` differs from the request, beyond what these warnings permit."""
    expected = Expected(request)
    for warning in warnings:
        expected.apply(warning)
    sent = _plain(expected.items, free=expected.free)
    returned = _plain(items_of(back.messages), free=expected.free)
    warned = tuple(warning.path for warning in warnings if warning.path)
    return [
        *differences(sent, returned, "$.history"),
        *_same_tools(expected.tools(), tools_of(back)),
        *settings_survive(request, back, warned),
    ]


def _plain(items: list[HistoryItem], *, free: bool) -> list[object]:
    """The fields to compare; if results may have moved, they are last, in the order of calls."""
    if free:
        results = [item for item in items if item.kind == "result"]
        others = [item for item in items if item.kind != "result"]
        items = others + sorted(results, key=lambda item: item.call or 0)
    return [_fields(item) for item in items]


def _fields(item: HistoryItem) -> dict[str, object]:
    names = (name for name in item.__struct_fields__ if name not in _NOT_COMPARED)
    fields = {name: getattr(item, name) for name in names}
    fields["media"] = [_fields(inner) for inner in item.media]
    if item.kind == "result" and item.call == UNLINKED:
        fields["call"] = None
    return fields


def _same_tools(expected: list[dict[str, Json]], actual: list[dict[str, Json]]) -> list[str]:
    for item, other in zip(expected, actual, strict=False):
        if same_schema(item.get("parameters"), other.get("parameters")):
            item["parameters"] = other.get("parameters")
    return differences(expected, actual, "$.tools")
