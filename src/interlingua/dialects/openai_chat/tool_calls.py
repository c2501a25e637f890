"""Tool calls <-> `tool_calls` and the deprecated `function_call`; results <-> their messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from interlingua.dialects.openai_chat.content import decode_content
from interlingua.dialects.openai_chat.facts import (
    ARGUMENTS,
    LEGACY,
    NAME,
    POSITION,
    RECEIVED,
    SENT,
    SENT_AS,
    absent,
    complete,
    extra_for,
    take_usual,
    wire_type,
)
from interlingua.dialects.openai_shared.rules import without_none
from interlingua.spec.content import (
    Json,
    Opaque,
    Part,
    Text,
    ToolCall,
    ToolResult,
    ToolType,
)
from interlingua.wire.fields import Fields, extra_of, text_of, wrong_type
from interlingua.wire.json_text import dump_text, loads_object

MakeId: TypeAlias = Callable[[], str]

LEGACY_RESULT = "function"  # the role of a message with the result of a `function_call`
_TYPES = (None, "", *ARGUMENTS)  # half of Mistral's recorded tool calls have no type


def decode_tool_calls(fields: Fields, make_id: MakeId, mark: str) -> list[Part]:
    """
    The tool calls of an assistant message.

    A tool call without an id gets one from `make_id`; `mark` is the mark for that.
    """
    parts: list[Part] = []
    items = fields.left.get("tool_calls")
    if isinstance(items, list) and items:
        for i, item in enumerate(fields.take("tool_calls")):
            path = f"{fields.at('tool_calls')}[{i}]"
            parts.append(_decode_tool_call(item, path, make_id, mark, strict=fields.strict))
    elif items and fields.strict:
        raise wrong_type(fields.at("tool_calls"), "an array", items)
    function = fields.left.get(LEGACY)
    if isinstance(function, dict) and text_of(function.get("name")):
        item = {"type": "function", "function": fields.take(LEGACY), SENT_AS: LEGACY}
        parts.append(_decode_tool_call(item, "", make_id, mark, strict=False))
    return parts


def _decode_tool_call(item: Json, path: str, make_id: MakeId, mark: str, *, strict: bool) -> Part:
    if strict and not isinstance(item, dict):
        raise wrong_type(path, "an object", item)
    if not isinstance(item, dict) or item.get("type") not in _TYPES:
        return opaque_tool_call(item)
    kind: ToolType = "custom" if item.get("type") == "custom" else "function"
    fields = Fields(item, path, strict=strict)
    inner = fields.fields(kind)
    name = inner.text("name") if inner else None
    if inner is None or name is None:
        return opaque_tool_call(item)
    unread = fields.left
    missing = take_usual(unread, {"type": kind})
    call_id = _take_id(unread, "id", mark) or make_id()
    if "index" in unread:  # OpenRouter, DeepSeek, Mistral and Ollama number whole ones too
        unread[POSITION] = unread.pop("index")
    field = ARGUMENTS[kind]
    arguments, raw = inner.left.get(field), None
    if isinstance(arguments, str):
        raw = inner.take(field)
        arguments = None if kind == "custom" else loads_object(raw)
    elif isinstance(arguments, dict) and kind == "function":  # as in Ollama's own API
        arguments = inner.take(field)
        unread.setdefault(SENT_AS, "object")
    else:
        arguments = None
        missing += absent(inner.left, field, inside=kind)
    if inner.left:
        unread[kind] = inner.left
    extra = extra_for(unread, missing)
    return ToolCall(
        id=call_id, name=name, type=kind, arguments=arguments or {}, raw_arguments=raw, extra=extra
    )


def opaque_tool_call(item: Json) -> Opaque:
    """An item of `tool_calls` that is not a tool call we can decode."""
    return Opaque(dialect=NAME, data=item, extra={NAME: {SENT_AS: "tool_call"}})


def _take_id(unread: dict[str, Json], field: str, mark: str) -> str:
    """The id; if it is missing, the mark keeps what the field had instead."""
    value = unread.get(field)
    if not isinstance(value, str) or not value:
        unread[mark] = {field: value} if field in unread else {}
    unread.pop(field, None)
    return text_of(value)


def encode_tool_call(tool_call: ToolCall, *, answer: bool) -> dict[str, Json]:
    """
    One item of `tool_calls`.

    An id that was made for a tool call in a response is sent back to the server, since the result
    refers to it. A tool call without an id in a request is encoded without one.
    """
    extra, name, kind = extra_of(tool_call, NAME), tool_call.name, wire_type(tool_call.type)
    if not extra:
        raw = tool_call.raw_arguments
        text = dump_text(tool_call.arguments) if raw is None else raw
        return {"id": tool_call.id, "type": kind, kind: {"name": name, ARGUMENTS[kind]: text}}
    inner: dict[str, Json] = {"name": name, **_encode_arguments(tool_call, extra)}
    described = {} if "type" in extra else {"type": kind}
    wire = complete({"id": tool_call.id, **described, kind: inner}, tool_call)
    if POSITION in extra:
        wire["index"] = extra[POSITION]
    id_field = extra.get(RECEIVED, extra.get(SENT)) if answer else extra.get(SENT)
    if isinstance(id_field, dict):
        del wire["id"]
        wire.update(id_field)
    return wire


def _encode_arguments(tool_call: ToolCall, extra: Mapping[str, Json]) -> dict[str, Json]:
    field = ARGUMENTS[wire_type(tool_call.type)]
    raw = tool_call.raw_arguments
    inner = extra.get(tool_call.type)
    if raw is None and not tool_call.arguments and isinstance(inner, dict) and field in inner:
        return {}  # an unread value, e.g. null, which `complete` restores
    is_object = extra.get(SENT_AS) == "object" and (tool_call.arguments or raw is None)
    if is_object and tool_call.type == "function":
        return {field: tool_call.arguments}
    return {field: dump_text(tool_call.arguments) if raw is None else raw}


def decode_result(fields: Fields, next_id: MakeId, *, legacy: bool) -> ToolResult:
    """The result in a tool message; `next_id` is for a message without a `tool_call_id`."""
    unread = fields.left
    call_id = unread.get("tool_call_id")
    if call_id is not None and not isinstance(call_id, str):
        raise wrong_type(fields.at("tool_call_id"), "a string", call_id)
    call_id = _take_id(unread, "tool_call_id", SENT) or next_id()
    missing = absent(unread, "content")
    content: str | tuple[Part, ...] = decode_content(fields)
    match content:
        case (Text(text=text, extra=text_extra),) if not text_extra:
            content = text
        case () if not isinstance(unread.get("content"), list):
            content = ""
    name = fields.text("name")
    if name is not None:
        unread["name"] = name  # sent back, but not sent otherwise: OpenAI does not document it
    extra = extra_for(unread, missing, sent_as=LEGACY_RESULT if legacy else None)
    return ToolResult(tool_call_id=call_id, content=content, name=name, extra=extra)


def encode_result(result: ToolResult, content: Json) -> dict[str, Json]:
    """The message for a result, given its encoded content."""
    extra = extra_of(result, NAME)
    if not extra:
        return {"role": "tool", "tool_call_id": result.tool_call_id, "content": content}
    role = LEGACY_RESULT if extra.get(SENT_AS) == LEGACY_RESULT else "tool"
    wire: dict[str, Json] = {"role": role, "tool_call_id": result.tool_call_id}
    if role == LEGACY_RESULT:
        wire |= without_none(name=result.name)
    if content or "content" not in extra:
        wire["content"] = content
    wire = complete(wire, result)
    if isinstance(extra.get(SENT), dict):
        del wire["tool_call_id"]
        wire.update(extra[SENT])
    return wire


def number_tool_call(tool_call: Json, index: int) -> Json:
    """A tool call of a whole message as one of a delta, where `index` says which one it is."""
    return {**tool_call, "index": index} if isinstance(tool_call, dict) else tool_call


def unnumber_tool_call(tool_call: Json) -> Json:
    """The reverse of `number_tool_call`."""
    if not isinstance(tool_call, dict):
        return tool_call
    return {name: tool_call[name] for name in tool_call if name != "index"}
