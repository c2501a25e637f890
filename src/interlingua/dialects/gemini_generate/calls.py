"""ToolCall <-> `functionCall`, ToolResult <-> `functionResponse`."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from interlingua.dialects.gemini_generate.facts import ABSENT, NAME, keep, take_nested, take_text
from interlingua.dialects.gemini_generate.media import decode_media, encode_media
from interlingua.spec.content import (
    Audio,
    Document,
    Extra,
    Image,
    Json,
    Opaque,
    Part,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from interlingua.spec.contracts import NewId
from interlingua.spec.warnings import Losses
from interlingua.wire.fields import Fields, extra_of
from interlingua.wire.json_text import dump_text
from interlingua.wire.tool_calls import call_ids, counting_ids, input_object

_RESPONSE = "response"


def decode_call(part: dict[str, Any], links: Links, path: str = "") -> ToolCall:
    """A call; one without an id is given one, which is not sent back."""
    fields = Fields(part, path)
    call = fields.fields("functionCall") or Fields({}, path)
    name = call.need("name")
    absent = [key for key in ("args", "id") if key not in call.left]
    arguments = call.object("args") or {}
    call_id = links.call(name, take_text(call, "id"))
    extra = _keep(fields, "functionCall", call.left, absent)
    return ToolCall(id=call_id, name=name, arguments=arguments, extra=extra)


def encode_call(call: ToolCall) -> dict[str, Any]:
    """Arguments are an object here: text that is none goes in one under `input`."""
    arguments = input_object(call)
    if not call.extra:  # as with most
        return {"functionCall": {"name": call.name, "args": arguments, "id": call.id}}
    kept, inner, absent = _kept(call, "functionCall")
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
    name, call_id = inner.text("name"), take_text(inner, "id")
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
    extra = _keep(fields, "functionResponse", inner.left, absent)
    return msgspec.structs.replace(result, extra=extra) if extra else result


def encode_result(
    result: ToolResult, calls: Mapping[str, ToolCall], losses: Losses, path: str
) -> dict[str, Any]:
    """`name` is that of the call it answers; its id is sent if the call's was."""
    kept, inner, absent = _kept(result, "functionResponse")
    call = calls.get(result.tool_call_id)
    wire: dict[str, Any] = {}
    if not ("id" in absent or "id" in inner) and (call is None or _sends_id(call)):
        wire["id"] = result.tool_call_id
    if "name" in inner:
        wire["name"] = inner.pop("name")
    elif "name" not in absent:
        wire["name"] = (call.name if call else result.name) or result.tool_call_id
    wire.update(_encode_response(result, inner, absent, losses, path))
    return {"functionResponse": {**inner, **wire}, **kept}


def encode_plain_result(result: ToolResult, calls: Mapping[str, ToolCall]) -> dict[str, Any]:
    """The same for a text of success that nothing is told beside."""
    call = calls.get(result.tool_call_id)
    wire: dict[str, Any] = {}
    if call is None or _sends_id(call):
        wire["id"] = result.tool_call_id
    wire["name"] = (call.name if call else result.name) or result.tool_call_id
    wire[_RESPONSE] = {"output": result.content}
    return {"functionResponse": wire}


def _encode_response(
    result: ToolResult, inner: dict[str, Any], absent: Iterable[str], losses: Losses, path: str
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
    content = "" if result.parts is not None else result.content
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
    media = [decode_media(item, f"{path}[{i}]") for i, item in enumerate(items)]
    if not response:
        return tuple(media)
    if isinstance(content, str):
        return (Text(text=content), *media)
    # readable to others, and itself again for this API
    return (Text(text=dump_text(response), extra={NAME: {_RESPONSE: response}}), *media)


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
            losses.dropped(f"{part.kind} in a tool result", NAME, where, code=part.kind)
    wire: dict[str, Any] = {_RESPONSE: _join_response(result, response, texts, shown=bool(media))}
    if media:
        wire["parts"] = media
    return wire


def _join_response(
    result: ToolResult, response: dict[str, Any] | None, texts: list[str], *, shown: bool
) -> dict[str, Any]:
    if not texts and response is not None:
        return response
    if not texts and shown and not result.is_error:
        return {}
    lines = [] if response is None else [dump_text(response)]
    return {"error" if result.is_error else "output": "\n".join([*lines, *texts])}


# What is kept.


def _keep(fields: Fields, key: str, inner: dict[str, Any], absent: list[str]) -> Extra:
    if inner:
        fields.left[key] = inner
    if absent:
        fields.left[ABSENT] = absent
    return keep(fields.left)


def _kept(
    part: ToolCall | ToolResult, key: str
) -> tuple[dict[str, Any], dict[str, Any], Iterable[str]]:
    kept = dict(extra_of(part, NAME))
    inner = take_nested(kept, key)
    absent = kept.pop(ABSENT, ())
    return kept, inner, absent if isinstance(absent, (list, tuple)) else ()


def _sends_id(call: ToolCall) -> bool:
    if not call.extra:
        return True
    _, inner, absent = _kept(call, "functionCall")
    return not ("id" in absent or "id" in inner)


# Ids. Calls and results may both come without one.


class Links:
    """
    Names calls that have no id, and finds the call that a result without one answers.

    Feed it the calls and results of a conversation in their order; `turn()` starts each
    content.
    """

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._turn = 0
        self._names: dict[str, str] = {}
        self._answered: set[str] = set()
        # of each function, the turns that called it and the ids they called it by
        self._waiting: dict[str, list[tuple[int, deque[str]]]] = {}

    def turn(self) -> None:
        """The next content begins."""
        self._turn += 1

    def call(self, name: str, given: str | None) -> str:
        """The id of a call."""
        call_id = given or self._new()
        self._names[call_id] = name
        self._answered.discard(call_id)  # an id may be used again in a later turn
        turns = self._waiting.setdefault(name, [])
        if not turns or turns[-1][0] != self._turn:
            turns.append((self._turn, deque()))
        turns[-1][1].append(call_id)
        return call_id

    def answer(self, name: str | None, given: str | None) -> str:
        """The id of the call a result answers: the nearest turn's first that still waits."""
        call_id = given or self._next_waiting(name) or self._new()
        self._answered.add(call_id)
        return call_id

    def name_of(self, call_id: str) -> str | None:
        """The function a call was for."""
        return self._names.get(call_id)

    def _next_waiting(self, name: str | None) -> str | None:
        turns = self._waiting.get(name or "", [])
        while turns:
            calls = turns[-1][1]
            while calls:
                call_id = calls.popleft()
                if call_id not in self._answered:
                    return call_id
            turns.pop()
        return None

    def _new(self) -> str:
        while (made := self._make()) in self._names:
            pass
        return made


def request_links() -> Links:
    """Ids by place: the same request gives the same ids, and a longer one the same prefix."""
    number = counting_ids()
    return Links(lambda: f"call_unnamed_{number()}")


def response_links(new_id: NewId | None) -> Links:
    """Ids from the caller's source, which are unlike those of earlier answers."""
    return Links(call_ids(new_id or counting_ids()))


# Arguments that a stream brings piece by piece, each with the path of its place: RFC 9535 as
# far as it names one, `$.a.b[0]`, `$['a b']`.

_find_steps = re.compile(r"""\.?([^.\[\]]+)|\[(\d{1,9})\]|\[(?:'([^']*)'|"([^"]*)")\]""").finditer


class PartialArguments:
    """
    Puts the pieces of a call's arguments together.

    Text grows in a queue and is joined once: the work is linear in what comes.
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}  # by path; of text, its pieces in a deque

    def feed(self, piece: Any) -> None:
        """One `partialArgs` item; what is no piece says nothing."""
        path = piece.get("jsonPath") if isinstance(piece, dict) else None
        if not isinstance(path, str):
            return
        text = piece.get("stringValue")
        if isinstance(text, str):
            known = self._values.get(path)
            if isinstance(known, deque):
                known.append(text)
            else:
                self._values[path] = deque((text,))
        elif "numberValue" in piece or "boolValue" in piece:
            self._values[path] = piece.get("numberValue", piece.get("boolValue"))
        elif "nullValue" in piece:
            self._values[path] = None

    def finish(self) -> dict[str, Any]:
        """The arguments, whole."""
        arguments: dict[str, Any] = {}
        for path, value in self._values.items():
            steps = [
                int(found[2]) if found[2] else found[found.lastindex or 0]
                for found in _find_steps(path.removeprefix("$"))
            ]
            if steps:
                _put(arguments, steps, "".join(value) if isinstance(value, deque) else value)
        return arguments


def _put(arguments: dict[str, Any], steps: list[str | int], value: Any) -> None:
    holder: Any = arguments
    for step, following in pairwise(steps):
        holder = _enter(holder, step, [] if isinstance(following, int) else {})
    _enter(holder, steps[-1], value, replace=True)


def _enter(holder: Any, step: str | int, fresh: Any, *, replace: bool = False) -> Any:
    """The value at a step, made if it is not there; an index too far is the next one."""
    if isinstance(holder, list):
        place = step if isinstance(step, int) and step < len(holder) else len(holder)
        if place == len(holder):
            holder.append(fresh)
        elif replace:
            holder[place] = fresh
        return holder[place]
    if not isinstance(holder, dict):
        return fresh  # a value stands where a path goes through; the path's is lost
    if replace:
        holder[str(step)] = fresh
    return holder.setdefault(str(step), fresh)
