"""Tool calls <-> `tool_calls` and the older `function_call`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from interlingua.dialects.openai_chat.marks import (
    POSITION,
    RECEIVED,
    SENT,
    SENT_AS,
    WITHOUT,
    complete,
    keep,
    mark_of,
    note_absent,
)
from interlingua.dialects.openai_chat.wire import NAME
from interlingua.spec.content import Json, Opaque, Part, ToolCall, ToolType
from interlingua.wire.jsontext import dump_text, loads_object
from interlingua.wire.shape import Fields, extra_of, wrong_type

MakeId: TypeAlias = Callable[[], str]
LEGACY = "function_call"


def decode_calls(fields: Fields, make_id: MakeId, mark: str) -> list[Part]:
    """
    The calls of an assistant message.

    A call without an id gets one from `make_id`; `mark` is where what it had is kept.
    """
    parts: list[Part] = []
    items = fields.left.get("tool_calls")
    if isinstance(items, list) and items:
        del fields.left["tool_calls"]
        path = fields.at("tool_calls")
        for i, item in enumerate(items):
            parts.append(_decode_call(item, f"{path}[{i}]", make_id, mark, strict=fields.strict))
    elif items and fields.strict:
        raise wrong_type(fields.at("tool_calls"), "an array", items)
    legacy = fields.left.get(LEGACY)
    if isinstance(legacy, dict) and legacy.get("name"):
        del fields.left[LEGACY]
        parts.append(_decode_legacy(legacy, fields.at(LEGACY), make_id, mark))
    return parts


def _decode_call(item: Json, path: str, make_id: MakeId, mark: str, *, strict: bool) -> Part:
    if not isinstance(item, dict):
        if strict:
            raise wrong_type(path, "an object", item)
        return _opaque(item)
    if item.get("type") not in (None, "", "function", "custom"):
        return _opaque(item)
    kind: ToolType = "custom" if item.get("type") == "custom" else "function"
    fields = Fields(item, path, strict=strict)
    inner = fields.fields(kind)
    name = inner.text("name") if inner else None
    if inner is None or name is None:
        return _opaque(item)
    missing = note_absent(fields.left, "type")
    if fields.left.get("type") == kind:
        del fields.left["type"]
    extra = fields.left
    call_id = _take_id(extra, make_id, mark)
    values = _take_arguments(inner, extra, missing, kind)
    if "index" in extra:
        extra[POSITION] = extra.pop("index")
    if inner.left:
        extra[kind] = inner.left
    if missing:
        extra[WITHOUT] = missing
    return ToolCall(id=call_id, name=name, type=kind, extra=keep(extra), **values)


def _decode_legacy(legacy: dict[str, Any], path: str, make_id: MakeId, mark: str) -> Part:
    inner = Fields(legacy, path, strict=False)
    name = inner.text("name")
    if name is None:
        return Opaque(dialect=NAME, data=legacy, extra={NAME: {SENT_AS: LEGACY}})
    extra: dict[str, Any] = {SENT_AS: LEGACY, mark: {}}
    missing: list[str] = []
    values = _take_arguments(inner, extra, missing, "function")
    if inner.left:
        extra["function"] = inner.left
    if missing:
        extra[WITHOUT] = missing
    return ToolCall(id=make_id(), name=name, extra={NAME: extra}, **values)


def _take_id(extra: dict[str, Any], make_id: MakeId, mark: str) -> str:
    found = extra.get("id")
    if isinstance(found, str) and found:
        del extra["id"]
        return found
    extra[mark] = {"id": extra.pop("id")} if "id" in extra else {}
    return make_id()


def _take_arguments(
    inner: Fields, extra: dict[str, Any], missing: list[str], kind: str
) -> dict[str, Any]:
    field = "input" if kind == "custom" else "arguments"
    given = inner.left.get(field)
    if isinstance(given, str):
        del inner.left[field]
        parsed = None if kind == "custom" else loads_object(given)
        return {"raw_arguments": given, "arguments": parsed or {}}
    if isinstance(given, dict) and kind == "function":
        del inner.left[field]
        extra.setdefault(SENT_AS, "object")
        return {"arguments": given}
    missing += note_absent(inner.left, field, inside=kind)
    return {}


def _opaque(item: Json) -> Opaque:
    return Opaque(dialect=NAME, data=item, extra={NAME: {SENT_AS: "tool_call"}})


def encode_call(call: ToolCall, *, answer: bool) -> dict[str, Any]:
    """
    One item of `tool_calls`.

    An id that was made for a call without one is sent with its result to the server that
    left it out; only whoever sent the same message before gets it back without.
    """
    kind = call.type
    kept = extra_of(call, NAME)
    inner: dict[str, Any] = {"name": call.name}
    _put_arguments(inner, call, kept.get(kind))
    typed = {} if "type" in kept else {"type": kind}
    wire = complete({"id": call.id, **typed, kind: inner}, call)
    if POSITION in kept:
        wire["index"] = kept[POSITION]
    made = kept.get(RECEIVED, kept.get(SENT)) if answer else kept.get(SENT)
    if isinstance(made, dict):
        del wire["id"]
        wire.update(made)
    return wire


def encode_legacy(call: ToolCall) -> dict[str, Any]:
    """The `function_call` of a message."""
    kept = extra_of(call, NAME)
    inner: dict[str, Any] = {"name": call.name}
    _put_arguments(inner, call, kept.get("function"))
    whole = complete({"function": inner}, call)["function"]
    return whole if isinstance(whole, dict) else inner


def _put_arguments(inner: dict[str, Any], call: ToolCall, kept: Any) -> None:
    field = "input" if call.type == "custom" else "arguments"
    raw = call.raw_arguments
    if raw is None and not call.arguments and isinstance(kept, dict) and field in kept:
        return  # something else stood there, and is put back
    if call.type == "custom":
        inner[field] = raw if raw is not None else dump_text(call.arguments)
    elif mark_of(call, SENT_AS) == "object" and (call.arguments or raw is None):
        inner[field] = call.arguments
    else:
        inner[field] = dump_text(call.arguments) if raw is None else raw


def number_calls(message: Json) -> Json:
    """A whole message as a delta: its calls have an index, which says nothing new."""
    return _with_calls(
        message,
        lambda i, call: {
            **({POSITION: call["index"]} if "index" in call else {}),
            **call,
            "index": i,
        },
    )


def unnumber_calls(message: Json) -> Json:
    """The reverse of `number_calls`."""
    return _with_calls(
        message,
        lambda _, call: {
            **{name: call[name] for name in call if name not in ("index", POSITION)},
            **({"index": call[POSITION]} if POSITION in call else {}),
        },
    )


def _with_calls(message: Json, change: Callable[[int, dict[str, Any]], dict[str, Any]]) -> Json:
    if not isinstance(message, dict) or not isinstance(message.get("tool_calls"), list):
        return message
    calls = [
        change(i, call) if isinstance(call, dict) else call
        for i, call in enumerate(message["tool_calls"])
    ]
    return {**message, "tool_calls": calls}
