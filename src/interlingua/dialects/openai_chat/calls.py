"""
Tool calls <-> `tool_calls` and the older `function_call`; results <-> their messages.

In a stream, calls are put together from fragments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from interlingua.dialects.openai_chat.facts import ARGUMENTS, LEGACY, NAME
from interlingua.dialects.openai_chat.marks import (
    POSITION,
    RECEIVED,
    SENT,
    SENT_AS,
    complete,
    extra_for,
    given,
    note_absent,
    take_usual,
    text_of,
)
from interlingua.spec.content import Json, Opaque, Part, Text, ToolCall, ToolResult, ToolType
from interlingua.spec.events import StreamEvent
from interlingua.streams.segments import ToolCallSegment
from interlingua.wire.fields import Fields, extra_of, wrong_type
from interlingua.wire.json_text import dump_text, loads_object

MakeId: TypeAlias = Callable[[], str]
Place: TypeAlias = Callable[[], int]  # the next index in the message
DecodeContent: TypeAlias = Callable[[Fields], tuple[Part, ...]]

LEGACY_RESULT = "function"  # the role of a message with the result of a `function_call`
_KINDS = (None, "", *ARGUMENTS)
_brackets = re.compile(r'\\.?|["{}\[\]]', re.DOTALL).findall
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}


def decode_calls(fields: Fields, make_id: MakeId, mark: str) -> list[Part]:
    """
    The calls of an assistant message.

    A call without an id gets one from `make_id`; `mark` is where what it had is kept.
    """
    parts: list[Part] = []
    items = fields.left.get("tool_calls")
    if isinstance(items, list) and items:
        for i, item in enumerate(fields.take("tool_calls")):
            path = f"{fields.at('tool_calls')}[{i}]"
            parts.append(_decode_call(item, path, make_id, mark, strict=fields.strict))
    elif items and fields.strict:
        raise wrong_type(fields.at("tool_calls"), "an array", items)
    function = fields.left.get(LEGACY)
    if isinstance(function, dict) and text_of(function.get("name")):
        item = {"type": "function", "function": fields.take(LEGACY), SENT_AS: LEGACY}
        parts.append(_decode_call(item, "", make_id, mark, strict=False))
    return parts


def _decode_call(item: Json, path: str, make_id: MakeId, mark: str, *, strict: bool) -> Part:
    if strict and not isinstance(item, dict):
        raise wrong_type(path, "an object", item)
    if not isinstance(item, dict) or item.get("type") not in _KINDS:
        return odd_call(item)
    kind: ToolType = "custom" if item.get("type") == "custom" else "function"
    fields = Fields(item, path, strict=strict)
    inner = fields.fields(kind)
    name = inner.text("name") if inner else None
    if inner is None or name is None:
        return odd_call(item)
    left = fields.left
    missing = take_usual(left, type=kind)
    call_id = _take_id(left, "id", mark) or make_id()
    if "index" in left:
        left[POSITION] = left.pop("index")
    found = _take_arguments(inner, left, kind)
    if not found:
        missing += note_absent(inner.left, ARGUMENTS[kind], inside=kind)
    if inner.left:
        left[kind] = inner.left
    return ToolCall(id=call_id, name=name, type=kind, extra=extra_for(left, missing), **found)


def odd_call(item: Json) -> Opaque:
    """An item of `tool_calls` that cannot be read as a call."""
    return Opaque(dialect=NAME, data=item, extra={NAME: {SENT_AS: "tool_call"}})


def _take_id(left: dict[str, Any], field: str, mark: str) -> str:
    """The id; empty if it is missing, and then what stood there is kept under the mark."""
    found = text_of(left.get(field))
    if not found:
        left[mark] = {field: left[field]} if field in left else {}
    left.pop(field, None)
    return found


def _take_arguments(inner: Fields, left: dict[str, Any], kind: ToolType) -> dict[str, Any]:
    field = ARGUMENTS[kind]
    found = inner.left.get(field)
    if isinstance(found, str):
        del inner.left[field]
        parsed = None if kind == "custom" else loads_object(found)
        return {"raw_arguments": found, "arguments": parsed or {}}
    if isinstance(found, dict) and kind == "function":
        del inner.left[field]
        left.setdefault(SENT_AS, "object")
        return {"arguments": found}
    return {}


def encode_call(call: ToolCall, *, answer: bool) -> dict[str, Any]:
    """
    One item of `tool_calls`.

    An id that was made for a call without one is sent with its result to the server that
    left it out; only whoever sent the same message before gets it back without.
    """
    kept = extra_of(call, NAME)
    if not kept:
        raw = call.raw_arguments
        text = dump_text(call.arguments) if raw is None else raw
        inner = {"name": call.name, ARGUMENTS[call.type]: text}
        return {"id": call.id, "type": call.type, call.type: inner}
    inner = {"name": call.name, **_encode_arguments(call, kept)}
    typed = {} if "type" in kept else {"type": call.type}
    wire = complete({"id": call.id, **typed, call.type: inner}, call)
    if POSITION in kept:
        wire["index"] = kept[POSITION]
    made = kept.get(RECEIVED, kept.get(SENT)) if answer else kept.get(SENT)
    if isinstance(made, dict):
        del wire["id"]
        wire.update(made)
    return wire


def encode_legacy(call: ToolCall) -> Json:
    """The `function_call` of a message."""
    return encode_call(call, answer=False).get(call.type)


def _encode_arguments(call: ToolCall, kept: Mapping[str, Any]) -> dict[str, Any]:
    field = ARGUMENTS[call.type]
    raw = call.raw_arguments
    inner = kept.get(call.type)
    if raw is None and not call.arguments and isinstance(inner, dict) and field in inner:
        return {}  # something else stood there, and is put back
    is_object = kept.get(SENT_AS) == "object" and (call.arguments or raw is None)
    if is_object and call.type == "function":
        return {field: call.arguments}
    return {field: dump_text(call.arguments) if raw is None else raw}


def decode_result(
    fields: Fields, decode_content: DecodeContent, next_id: MakeId, *, legacy: bool
) -> ToolResult:
    """The result a tool message holds; `next_id` tells the call if the message does not."""
    left = fields.left
    call_id = left.get("tool_call_id")
    if call_id is not None and not isinstance(call_id, str):
        raise wrong_type(fields.at("tool_call_id"), "a string", call_id)
    call_id = _take_id(left, "tool_call_id", SENT) or next_id()
    missing = note_absent(left, "content")
    content: Any = decode_content(fields)
    match content:
        case (Text(text=text, extra=kept),) if not kept:
            content = text
        case () if not isinstance(left.get("content"), list):
            content = ""
    name = fields.text("name")
    if name is not None:
        left["name"] = name  # only some servers take one
    extra = extra_for(left, missing, sent_as=LEGACY_RESULT if legacy else None)
    return ToolResult(tool_call_id=call_id, content=content, name=name, extra=extra)


def encode_result(result: ToolResult, content: Json) -> dict[str, Any]:
    """The message of a result whose content is encoded."""
    kept = extra_of(result, NAME)
    role = LEGACY_RESULT if kept.get(SENT_AS) == LEGACY_RESULT else "tool"
    wire = {"role": role, "tool_call_id": result.tool_call_id}
    if role == LEGACY_RESULT:
        wire |= given(name=result.name)
    if content or "content" not in kept:
        wire["content"] = content
    wire = complete(wire, result)
    if isinstance(kept.get(SENT), dict):
        del wire["tool_call_id"]
        wire.update(kept[SENT])
    return wire


def number_call(call: Json, index: int) -> Json:
    """A call of a whole message as one of a delta: there its index is where it belongs."""
    return {**_moved(call, "index", POSITION), "index": index} if isinstance(call, dict) else call


def unnumber_call(call: Json) -> Json:
    """The reverse of `number_call`."""
    return _moved(call, POSITION, "index") if isinstance(call, dict) else call


def _moved(call: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    rest = {name: call[name] for name in call if name not in (old, new)}
    return {**rest, new: call[old]} if old in call else rest


class CallAssembler:
    """
    Finds the call each fragment belongs to.

    `index` tells, where there is one: but another id, or a new object after a complete one,
    is another call even under the same index. Without an index the id tells, and without
    either a fragment continues the last call.
    """

    def __init__(self, make_id: MakeId, place: Place) -> None:
        self._make_id = make_id
        self._place = place
        self._slots: dict[Any, _Call] = {}
        self._last: _Call | None = None
        self.calls: list[_Call] = []

    def feed(self, item: Json, *, is_first: bool) -> list[StreamEvent]:
        """Take in one item of `tool_calls`, the first in its chunk or not."""
        fragment = _Fragment(item)
        call = self._find(fragment, is_first=is_first)
        self._last = call = call or self._open(fragment)
        return call.feed(fragment)

    def feed_plain(self, items: list[Json]) -> StreamEvent | None:
        """The common case at once: one more fragment of a call that is on its way."""
        item = items[0] if len(items) == 1 else None
        if type(item) is not dict or len(item) != 2 or type(item.get("index")) is not int:
            return None
        call, function = self._slots.get(item["index"]), item.get("function")
        if call is None or call.segment is None or type(function) is not dict:
            return None
        text = function.get("arguments")
        if len(function) != 1 or type(text) is not str or not text or "{" in text:
            return None  # an opening bracket may begin another call
        self._last = call
        return call.segment.delta(text)

    def feed_legacy(self, function: dict[str, Any]) -> list[StreamEvent]:
        """Take in a fragment of the older `function_call`, of which there is one."""
        fragment = _Fragment({"function": function, SENT_AS: LEGACY})
        fragment.index = LEGACY
        call = self._slots.get(LEGACY) or self._open(fragment)
        return call.feed(fragment)

    def finish(self) -> list[StreamEvent]:
        """End every call."""
        return [event for call in self.calls for event in call.finish()]

    def _find(self, fragment: _Fragment, *, is_first: bool) -> _Call | None:
        if fragment.index is None:
            return self._find_unnumbered(fragment, is_first=is_first)
        call = self._slots.get(fragment.index)
        if call is None:
            # an index that grows with the fragments of one call
            return self._slots.get(fragment.id) if fragment.id and not fragment.name else None
        if fragment.id:
            return call if call.id in ("", fragment.id) else None
        return None if call.is_followed_by(fragment) else call

    def _find_unnumbered(self, fragment: _Fragment, *, is_first: bool) -> _Call | None:
        if fragment.id:
            return self._slots.get(fragment.id)
        last = self._last
        if last is None or not fragment.name:
            return last
        return None if not is_first or last.is_complete() else last

    def _open(self, fragment: _Fragment) -> _Call:
        call = _Call(fragment, self._make_id, self._place)
        if self._last is not None and not fragment.name:
            call.name = self._last.name  # a server that says it once for all
        if fragment.index is not None:
            self._slots[fragment.index] = call
        if fragment.id:
            self._slots[fragment.id] = call
        self.calls.append(call)
        return call


def is_call(item: Json) -> bool:
    """Whether an item of a delta's `tool_calls` can be a fragment of a call."""
    if not isinstance(item, dict) or item.get("type") not in _KINDS:
        return False
    return item.get("index") is not None or any(isinstance(item.get(k), dict) for k in ARGUMENTS)


class _Fragment:
    """What one item of `tool_calls` says."""

    __slots__ = ("arguments", "extra", "id", "index", "kind", "name")

    def __init__(self, item: dict[str, Any]) -> None:
        index, function, custom = item.get("index"), item.get("function"), item.get("custom")
        self.index: int | str | None = index if isinstance(index, int) else None
        self.id = text_of(item.get("id"))
        is_custom = item.get("type") == "custom" or not isinstance(function, dict)
        self.kind: ToolType = "custom" if is_custom and isinstance(custom, dict) else "function"
        inner = custom if self.kind == "custom" else function
        inner = dict(inner) if isinstance(inner, dict) else {}
        self.name = text_of(inner.pop("name", None))
        given_arguments = inner.pop(ARGUMENTS[self.kind], None)
        taken = ("index", "id", "type", self.kind)
        self.extra = {name: item[name] for name in item if name not in taken}
        if inner:
            self.extra[self.kind] = inner
        if isinstance(given_arguments, dict):
            self.extra[SENT_AS] = "object"
            given_arguments = dump_text(given_arguments)
        self.arguments = text_of(given_arguments)


class _Call:
    """A call on its way; it starts when its name, and its id or some arguments, are known."""

    def __init__(self, fragment: _Fragment, make_id: MakeId, place: Place) -> None:
        self.id = fragment.id
        self.name = fragment.name
        self._kind = fragment.kind
        self._make_id = make_id
        self._place = place
        self._extra: dict[str, Any] = {}
        self._waiting: list[str] = []
        self.segment: ToolCallSegment | None = None
        self._seen = 0  # how many pieces of the arguments were looked at, and what was found
        self._depth = 0
        self._in_string = False
        self._escape = ""  # a backslash that waits for its other half

    def feed(self, fragment: _Fragment) -> list[StreamEvent]:
        self.name = self.name or fragment.name
        if fragment.extra:
            self._extra = {**self._extra, **fragment.extra}
        if self.segment is not None:
            return [self.segment.delta(fragment.arguments)] if fragment.arguments else []
        self.id = self.id or fragment.id
        if fragment.arguments:
            self._waiting.append(fragment.arguments)
        if self.name and (self.id or self._waiting):
            return self._start()[1]
        return []

    def finish(self) -> list[StreamEvent]:
        segment, events = self._start() if self.segment is None else (self.segment, [])
        segment.extra = dict(extra_for(self._extra))
        return [*events, segment.end()]

    def is_followed_by(self, fragment: _Fragment) -> bool:
        """Whether a fragment without an id is the next call's, not this one's."""
        begins = fragment.arguments.lstrip().startswith("{")
        renamed = bool(fragment.name) and fragment.name != self.name
        return (begins or renamed) and self.is_complete()

    def is_complete(self) -> bool:
        """Whether its arguments are a whole object; each piece is looked at once."""
        pieces = self.segment.pieces if self.segment is not None else self._waiting
        if not pieces or not pieces[-1].rstrip().endswith("}"):
            return False
        text = self._escape + "".join(pieces[self._seen :])
        self._seen, self._escape = len(pieces), ""
        for found in _brackets(text):
            if found == '"':
                self._in_string = not self._in_string
            elif found == "\\":
                self._escape = found
            elif not self._in_string:
                self._depth += _STEPS.get(found, 0)
        return self._depth == 0 and not self._in_string

    def _start(self) -> tuple[ToolCallSegment, list[StreamEvent]]:
        if not self.id:
            self.id = self._make_id()
            self._extra.setdefault(RECEIVED, {})
        self.segment = segment = ToolCallSegment(
            self._place(),
            call_id=self.id,
            name=self.name,
            tool_type=self._kind,
            extra=extra_for(self._extra),
        )
        return segment, [segment.start(), *(segment.delta(piece) for piece in self._waiting)]
