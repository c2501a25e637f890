"""ToolCall <-> `functionCall`, ToolResult <-> `functionResponse`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interlingua.dialects.gemini_generate.links import Links
from interlingua.dialects.gemini_generate.media import decode_media, encode_media, take_nested
from interlingua.dialects.gemini_generate.wire import ABSENT, NAME
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Json,
    Opaque,
    Part,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from interlingua.wire.carry import Losses
from interlingua.wire.jsontext import dump_text
from interlingua.wire.shape import Fields, extra_of, wrong_type

_RESPONSE = "response"


def decode_call(part: dict[str, Any], links: Links, path: str = "") -> ToolCall:
    """A call; one without an id is given one, which is not sent back."""
    fields = Fields(part, path)
    call = fields.fields("functionCall") or Fields({}, path)
    name = call.need("name")
    absent = [key for key in ("args", "id") if key not in call.left]
    arguments = call.object("args") or {}
    call_id = _take_id(call)
    return ToolCall(
        id=links.call(name, call_id),
        name=name,
        arguments=arguments,
        extra=_keep(fields, "functionCall", call.left, absent),
    )


def encode_call(call: ToolCall) -> dict[str, Any]:
    """Arguments are an object here: text that is none goes in one under `input`."""
    kept, inner, absent = _kept(call, "functionCall")
    arguments = call.arguments
    if call.type == "custom" or not (arguments or call.is_valid):
        arguments = {"input": call.raw_arguments}
    wire: dict[str, Any] = {**inner, "name": call.name}
    if arguments or not ("args" in absent or "args" in inner):
        wire["args"] = arguments
    if not ("id" in absent or "id" in inner):
        wire["id"] = call.id
    return {"functionCall": wire, **kept}


def decode_result(part: dict[str, Any], links: Links, path: str = "") -> ToolResult:
    """A result; one without an id answers the first call of its name that still waits."""
    fields = Fields(part, path)
    inner = fields.fields("functionResponse") or Fields({}, path)
    absent = [key for key in ("id", "name", _RESPONSE) if key not in inner.left]
    name, call_id = inner.text("name"), _take_id(inner)
    response = inner.object(_RESPONSE)
    items = inner.array("parts")
    content, is_error = _read_response(response)
    if items:
        content = _decode_parts(response, content, items, inner.at("parts"))
    elif items is not None:
        inner.left["parts"] = items
    call_id = links.answer(name, call_id)
    if name is not None and links.name_of(call_id) not in (None, name):
        inner.left["name"] = name  # it names another function than the call it answers
    result = ToolResult(tool_call_id=call_id, content=content, is_error=is_error, name=name)
    if response is not None and not items and _write_response(result) != response:
        inner.left[_RESPONSE] = response  # a list that reads as our own parts
    return ToolResult(
        tool_call_id=call_id,
        content=content,
        is_error=is_error,
        name=name,
        extra=_keep(fields, "functionResponse", inner.left, absent),
    )


def encode_result(
    result: ToolResult, calls: Mapping[str, ToolCall], losses: Losses, path: str
) -> dict[str, Any]:
    """`name` is that of the call it answers; its id is sent if the call's was."""
    kept, inner, absent = _kept(result, "functionResponse")
    call = calls.get(result.tool_call_id)
    name = call.name if call else result.name
    wire: dict[str, Any] = {}
    if not ("id" in absent or "id" in inner) and (call is None or _sends_id(call)):
        wire["id"] = result.tool_call_id
    if "name" in inner:
        wire["name"] = inner.pop("name")
    elif "name" not in absent:
        wire["name"] = name or result.tool_call_id
    wire.update(_encode_response(result, inner, absent, losses, path))
    return {"functionResponse": {**inner, **wire}, **kept}


def _encode_response(
    result: ToolResult,
    inner: dict[str, Any],
    absent: Iterable[str],
    losses: Losses,
    path: str,
) -> dict[str, Any]:
    """`response` and `parts`; as they came where that says the same."""
    was_there = _RESPONSE in inner
    exact = inner.pop(_RESPONSE, None)
    if was_there and _says(exact, result):
        return {_RESPONSE: exact}
    wire: dict[str, Any] = {}
    if result.parts is None:
        wire[_RESPONSE] = _write_response(result)
    else:
        wire = _encode_parts(result, result.parts, losses, path)
    if _RESPONSE in absent and (result.content == "" or not wire[_RESPONSE]):
        del wire[_RESPONSE]
    elif was_there and exact is None and not wire[_RESPONSE]:
        wire[_RESPONSE] = None
    return wire


# The `response` object. `{"output": x}` and `{"error": x}` are the documented wrappings; any
# other object is the result itself. An object that would be taken for a wrapping is wrapped.


def _read_response(response: Json) -> tuple[Any, bool]:
    if response is None:
        return "", False
    if not _is_wrapping(response):
        return response, False
    if "error" in response:
        return response["error"], True
    output = response["output"]
    if isinstance(output, dict) and not _is_wrapping(output):
        return response, False
    return output, False


def _write_response(result: ToolResult) -> dict[str, Any]:
    content = result.content
    if isinstance(content, tuple):
        content = ""
    if result.is_error:
        return {"error": content}
    if isinstance(content, dict) and _read_response(content)[0] is content:
        return content
    return {"output": content}


def _says(response: Json, result: ToolResult) -> bool:
    content, is_error = _read_response(response)
    read = ToolResult(tool_call_id="", content=content)
    return is_error is result.is_error and read.content == result.content


def _is_wrapping(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and ("output" in value or "error" in value)


# Results with media: the text is in `response`, the media are in `parts`.


def _decode_parts(
    response: dict[str, Any] | None, content: Any, items: list[Any], path: str
) -> tuple[Part, ...]:
    parts: list[Part] = []
    if response and isinstance(content, str):
        parts.append(Text(text=content))
    elif response:  # readable to others, and itself again for this API
        parts.append(Text(text=dump_text(response), extra={NAME: {_RESPONSE: response}}))
    for position, item in enumerate(items):
        where = f"{path}[{position}]"
        if not isinstance(item, dict):
            raise wrong_type(where, "an object", item)
        known = [key for key in ("inlineData", "fileData") if item.get(key) is not None]
        whole = Opaque(dialect=NAME, data=item)
        parts.append(decode_media(item, where) if len(known) == 1 else whole)
    return tuple(parts)


def _encode_parts(
    result: ToolResult, parts: tuple[Part, ...], losses: Losses, path: str
) -> dict[str, Any]:
    texts: list[str] = []
    media: list[dict[str, Any]] = []
    response: dict[str, Any] | None = None
    for position, part in enumerate(parts):
        where = f"{path}.content[{position}]"
        if isinstance(part, (Text, Refusal)):
            kept = extra_of(part, NAME).get(_RESPONSE)
            if isinstance(kept, dict) and not texts and dump_text(kept) == part.text:
                response = kept
            else:
                texts.append(part.text)
        elif isinstance(part, (Image, Audio, Document)):
            shown = encode_media(part, losses, where)
            media += [shown] if shown else []
        elif isinstance(part, Opaque) and part.dialect == NAME and isinstance(part.data, dict):
            media.append(part.data)
        else:
            losses.dropped(f"{part.kind} in a tool result", NAME, where)
    wire: dict[str, Any] = {_RESPONSE: _join_response(result, response, texts)}
    if media:
        wire["parts"] = media
    return wire


def _join_response(
    result: ToolResult, response: dict[str, Any] | None, texts: list[str]
) -> dict[str, Any]:
    if response is not None and not texts:
        return response
    if not texts and response is None and not result.is_error:
        return {}
    lines = [dump_text(response)] if response is not None else []
    return {"error" if result.is_error else "output": "\n".join([*lines, *texts])}


# What is kept.


def _take_id(fields: Fields) -> str | None:
    found = fields.text("id")
    if found == "":
        fields.left["id"] = ""
    return found or None


def _keep(fields: Fields, key: str, inner: dict[str, Any], absent: list[str]) -> dict[str, Any]:
    left = fields.left
    if inner:
        left[key] = inner
    if absent:
        left[ABSENT] = absent
    return {NAME: left} if left else {}


def _kept(
    part: ToolCall | ToolResult, key: str
) -> tuple[dict[str, Any], dict[str, Any], Iterable[str]]:
    kept = dict(extra_of(part, NAME))
    inner = take_nested(kept, key)
    absent = kept.pop(ABSENT, ())
    return kept, inner, absent if isinstance(absent, (list, tuple)) else ()


def _sends_id(call: ToolCall) -> bool:
    _, inner, absent = _kept(call, "functionCall")
    return not ("id" in absent or "id" in inner)
