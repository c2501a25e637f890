"""
Checks a request before anything is sent; each error names the path of the wrong value.

Constructors convert but do not check, because decoders build many parts. A client checks a request
once per call, and the high-level functions once per run. A checked request has only plain strings:
a subclass of `str` may give other texts than its own when it is joined or formatted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    assert_never,
    get_args,
    get_origin,
)

import msgspec
from msgspec.structs import fields

from interlingua.spec.check import (
    MAX_CHECKED,
    Place,
    Row,
    check_fields,
    check_value,
    path_of,
    plain_fields,
    refuse,
    row_for,
)
from interlingua.spec.content import (
    MEDIA_TYPES,
    Audio,
    Document,
    Image,
    Json,
    Opaque,
    Part,
    Record,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import (
    HOSTED_NAMES,
    BuiltinTool,
    Request,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
)

if TYPE_CHECKING:
    from interlingua.spec.operations import OperationInput


def check_request(request: Request) -> Request:
    """
    Raise `ConfigurationError`, with the path, for a value that cannot be right.

    Returns the request; a copy with plain strings, if some are of a subclass of `str`.
    """
    if type(request) is not Request:
        refuse("request", "a Request", request)
    is_plain = check_fields(request, None)
    if not request.messages and not request.provider_options:
        raise ConfigurationError("messages is empty: there is nothing to answer.")
    if not request.model.isascii():
        _check_text(request.model, "model")
    if not is_plain:
        return check_request(plain_fields(request))
    try:
        _check_messages(request.messages)
        if request.tools or request.tool_choice:
            _check_tools(request)
        if request.response_format or request.provider_options or request.metadata:
            _check_values(request)
    except _SubclassFoundError:
        return check_request(plain_fields(request))
    return request


class _SubclassFoundError(Exception):
    """A string of a subclass of `str` was found."""


Input = TypeVar("Input", bound="OperationInput")


def check_input(value: Input) -> Input:
    """Check the texts, numbers and choices in the value of an operation; returns it likewise."""
    kind = type(value)
    rows = _INPUT_ROWS.get(kind)
    if rows is None:
        simple = (row_for(each.name, each.type) for each in fields(kind) if _is_simple(each.type))
        rows = _INPUT_ROWS[kind] = tuple(filter(None, simple))
    for row in rows:
        name, is_optional, types, rule, _ = row
        field = getattr(value, name)
        if field is None and is_optional:
            continue
        if not isinstance(field, types) or (rule is not None and not rule(field)):
            check_value(row, field)
    if not value.model.isascii():
        _check_text(value.model, "model")
    return plain_fields(value)


_INPUT_ROWS: dict[type, tuple[Row, ...]] = {}


def _is_simple(annotation: object) -> bool:
    """Whether it is a text, a number, True or False, or a choice between names; or None."""
    options = (
        get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    )
    kinds = [get_origin(option) or option for option in options if option is not NoneType]
    return len(kinds) == 1 and kinds[0] in (str, int, float, bool, Literal, Annotated)


def _check_fields(value: Record, place: Place) -> None:
    if not check_fields(value, place):
        raise _SubclassFoundError


def _check_messages(messages: tuple[Message, ...]) -> None:
    values: list[Json] = []
    for i, message in enumerate(messages):
        is_named = message.name is not None or message.id is not None
        if (is_named or message.metadata or message.extra) and not _is_usual_label(message):
            _check_fields(message, ("messages", i))
        for part in message.content:
            if type(part) is Text:
                has_more = part.extra or part.citations != () or part.logprobs != ()
                if type(part.text) is str and not has_more:
                    continue
            elif _is_usual(part, values):
                continue
            if not _is_right(part):
                _check_parts(message, i)
    if values and not _are_json(values):
        for i, message in enumerate(messages):
            _check_parts(message, i)


def _is_usual_label(message: Message) -> bool:
    """Whether nothing but the content of the message can be wrong."""
    return (
        (message.name is None or type(message.name) is str)
        and (message.id is None or type(message.id) is str)
        and type(message.metadata) is dict
        and type(message.extra) is dict
    )


def _is_right(part: Part) -> bool:
    try:
        _check_part(part, None)
    except ConfigurationError:
        return False
    return True


def _check_parts(message: Message, i: int) -> None:
    """Raise the error about the first wrong part, with its place."""
    for j, part in enumerate(message.content):
        _check_part(part, ((("messages", i), "content"), j))


def _is_usual(part: Part, values: list[Json]) -> bool:
    """Whether nothing but the JSON in the part, which is added to `values`, can be wrong."""
    if type(part.extra) is not dict:
        return False
    if type(part) is ToolCall:
        arguments, raw = part.arguments, part.raw_arguments
        values.append(arguments)
        return (
            type(part.id) is type(part.name) is str
            and part.name != ""
            and type(arguments) is dict
            and (raw is None or type(raw) is str)
            and part.type == "function"
            and part.namespace is None
            and type(part.is_cut) is bool
        )
    if type(part) is not ToolResult or type(part.content) is tuple:
        return False
    if type(part.content) is not str:
        values.append(part.content)
    return (
        type(part.tool_call_id) is str
        and (part.name is None or type(part.name) is str)
        and type(part.is_error) is bool
    )


def _needs_a_look(encoded: bytes) -> bool:
    """Whether it may have been NaN, which is written as null, or be nested too deeply."""
    return b"null" in encoded or encoded.count(b"[") + encoded.count(b"{") > _MAX_DEPTH


def _are_json(values: list[Json]) -> bool:
    """Whether all are JSON."""
    try:
        if _needs_a_look(msgspec.json.encode(values)):
            for value in values:
                if _needs_a_look(msgspec.json.encode(value)):
                    _check_json(value, None)
    except (TypeError, ValueError, RecursionError, ConfigurationError):
        return False
    return True


def _check_text(text: str, name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:  # it may be part of a URL or a header, which cannot hold it
        raise ConfigurationError(f"{name} contains a lone surrogate: {text!r:.60}.") from None


def _check_values(request: Request) -> None:
    if request.response_format is not None:
        _check_format(request.response_format)
    for name in request.provider_options:
        if not isinstance(name, str):
            refuse("provider_options", "a mapping by provider or dialect", request.provider_options)
    _check_json(request.provider_options, "provider_options")
    _check_json(request.metadata, "metadata")


def _check_json(value: Any, place: Place) -> None:
    """Raise for NaN, an infinity, what has no form in JSON, and what is nested too deeply."""
    waiting: list[tuple[Any, Place]] = [(value, place)]
    seen: set[int] = set()  # a value may contain itself, which never ends
    may_be_deep = has_subclass = False
    while waiting:
        item, here = waiting.pop()
        kind = type(item)
        if kind is str or kind is int or kind is bool or item is None:
            continue
        if id(item) in seen:
            may_be_deep = True
            continue
        seen.add(id(item))
        if kind is dict or isinstance(item, Mapping):
            waiting += [(inner, (here, key)) for key, inner in item.items()]
        elif kind is list or kind is tuple:
            waiting += [(inner, (here, i)) for i, inner in enumerate(item)]
        elif isinstance(item, str):
            has_subclass = True
        elif not _is_json(item):
            refuse(here, "a JSON value", item)
    if (may_be_deep or len(seen) > _SURELY_FLAT) and _is_deep(value):
        raise ConfigurationError(f"{path_of(place)} is nested too deeply, or contains itself.")
    if has_subclass:
        raise _SubclassFoundError


_SURELY_FLAT = 300
_MAX_DEPTH = 800
"""Of arrays and objects in each other. Python stops at 1,000 calls, or when its stack is full."""


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        inner: dict[int, Any] = {}  # by identity: a value that occurs twice is looked at once
        for item in level:
            values = item.values() if isinstance(item, Mapping) else item
            inner.update((id(each), each) for each in values if isinstance(each, _CONTAINERS))
        if not inner:
            return False
        level = [*inner.values()]
    return True


_CONTAINERS = (Mapping, list, tuple)


def _is_json(value: object) -> bool:
    if isinstance(value, float):
        return -inf < value < inf
    try:
        msgspec.json.encode(value)  # such as a date, or a Struct
    except (TypeError, ValueError, RecursionError):
        return False
    return True


# Parts.

_SOURCES = ("url", "data", "file_id", "path", "text")


def _check_part(part: Part, place: Place) -> None:
    _check_fields(part, place)
    if isinstance(part, ToolCall):
        if not part.name:
            raise ConfigurationError(f"{path_of((place, 'name'))} is empty.")
        _check_json(part.arguments, (place, "arguments"))
    elif isinstance(part, Opaque):
        for name in ("data", "input", "output"):
            _check_json(getattr(part, name), (place, name))
    elif isinstance(part, ToolResult):
        if part.parts is None:
            _check_json(part.content, (place, "content"))
        for i, inner in enumerate(part.parts or ()):
            _check_part(inner, ((place, "content"), i))
    elif isinstance(part, MEDIA_TYPES):
        _check_source(part, place)
    elif not isinstance(part, (Text, Thinking, Refusal)):
        assert_never(part)


def check_part(part: Part, name: str) -> None:
    """The same for one part, such as the audio of an operation; `name` is its place."""
    _check_part(part, name)


def _check_source(part: Image | Audio | Document, place: Place) -> None:
    sources = [name for name in _SOURCES if hasattr(part, name)]
    given = [name for name in sources if getattr(part, name) is not None]
    if len(given) != 1:
        raise ConfigurationError(
            f"{path_of(place)} must have exactly one of {', '.join(sources)}; "
            f"it has {' and '.join(given) or 'none'}."
        )
    if not getattr(part, given[0]) and given[0] != "text":
        raise ConfigurationError(f"{path_of((place, given[0]))} is empty.")


# Tools and formats.

TOOL_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
"""The names of tools that at least one provider accepts."""

_checked: dict[int, ToolDefinition] = {}
"""Definitions that were checked, by `id`: a schema is large, and is sent in many requests."""


def _check_tools(request: Request) -> None:
    names: dict[str, int] = {}
    hosted: list[str] = []
    is_closed = not request.provider_options  # which may hold tools too
    for i, tool in enumerate(request.tools):
        if isinstance(tool, BuiltinTool):
            is_closed = is_closed and not tool.dialect  # a tool of a dialect may have any name
            hosted.append(tool.name)
            _check_fields(tool, ("tools", i))
            if not tool.dialect and tool.name not in HOSTED_NAMES:
                refuse((("tools", i), "name"), f"one of {', '.join(HOSTED_NAMES)}", tool.name)
            continue
        if _checked.get(id(tool)) is not tool:
            _check_definition(tool, ("tools", i))
        if names.setdefault(tool.name, i) != i:
            raise ConfigurationError(
                f"tools[{names[tool.name]}] and tools[{i}] have the same name {tool.name!r}."
            )
    if request.tool_choice is not None:
        _check_choice(request.tool_choice, (*names, *hosted) if is_closed else None)


def _check_definition(tool: ToolDefinition, place: Place) -> None:
    _check_fields(tool, place)
    if not TOOL_NAME.fullmatch(tool.name):
        refuse((place, "name"), "1 to 128 letters, digits, or any of _ . : / -", tool.name)
    schema = tool.parameters
    if schema is not None:
        if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
            refuse((place, "parameters"), "a JSON Schema of type 'object'", schema)
        _check_json(schema, (place, "parameters"))
    if len(_checked) >= MAX_CHECKED:
        _checked.clear()
    _checked[id(tool)] = tool


def _check_choice(choice: ToolChoice, names: tuple[str, ...] | None) -> None:
    """Raise for a choice that is not complete; `names` are the tools, if all are known."""
    _check_fields(choice, "tool_choice")
    if choice.mode == "named" and not choice.tool_name:
        raise ConfigurationError("tool_choice.tool_name is missing: mode 'named' needs it.")
    chosen = [] if choice.tool_name is None else [choice.tool_name]
    for name in (*chosen, *(choice.allowed or ())):
        if names is not None and name not in names:
            known = f"Tools: {', '.join(names)}." if names else "There are no tools: pass tools=."
            raise ConfigurationError(
                f"tool_choice names {name!r}, which is neither a mode nor a tool. {known}"
            )


def _check_format(form: ResponseFormat) -> None:
    _check_fields(form, "response_format")
    schema = form.json_schema
    if form.type == "json_schema" and schema is None:
        raise ConfigurationError(
            "response_format.json_schema is missing: type 'json_schema' needs it."
        )
    if schema is not None:
        if not isinstance(schema, (Mapping, bool)):
            refuse("response_format.json_schema", "a JSON Schema", schema)
        _check_json(schema, "response_format.json_schema")
