"""
Tool calls <-> `tool_calls` and the deprecated `function_call`; results <-> their messages.

In a stream, tool calls are assembled from fragments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeGuard

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
from interlingua.dialects.openai_shared import without_none
from interlingua.spec.content import (
    Json,
    Opaque,
    Part,
    Text,
    ToolCall,
    ToolResult,
    ToolType,
    UncheckedJson,
)
from interlingua.spec.events import StreamEvent
from interlingua.streams.segments import ToolCallSegment
from interlingua.wire.fields import Fields, extra_of, text_of, wrong_type
from interlingua.wire.json_text import dump_text, loads_object

MakeId: TypeAlias = Callable[[], str]
NextIndex: TypeAlias = Callable[[], int]  # the index of the next part of the message

LEGACY_RESULT = "function"  # the role of a message with the result of a `function_call`
_TYPES = (None, "", *ARGUMENTS)  # half of Mistral's recorded tool calls have no type
_brackets = re.compile(r'\\.?|["{}\[\]]', re.DOTALL).findall
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}


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


def is_tool_call(item: UncheckedJson) -> TypeGuard[dict[str, Json]]:
    """Whether an item of a delta's `tool_calls` can be a fragment of a tool call."""
    if not isinstance(item, dict) or item.get("type") not in _TYPES:
        return False
    return item.get("index") is not None or any(isinstance(item.get(k), dict) for k in ARGUMENTS)


class ToolCallAssembler:
    """
    Finds the tool call that each fragment belongs to.

    `index` decides, if there is one; but another id, or a new object after a complete one, is
    another tool call even with the same index. Without an index the id decides, and without
    either a fragment continues the last tool call.
    """

    def __init__(self, make_id: MakeId, next_index: NextIndex) -> None:
        self._make_id = make_id
        self._next_index = next_index
        self._by_key: dict[int | str, _ToolCall] = {}  # by index and by id
        self._last: _ToolCall | None = None
        self.tool_calls: list[_ToolCall] = []

    def feed(self, item: dict[str, Json], *, is_first: bool) -> list[StreamEvent]:
        """Add one item of `tool_calls`; `is_first` says that it is the first in its chunk."""
        fragment = _Fragment(item)
        tool_call = self._find(fragment, is_first=is_first)
        self._last = tool_call = tool_call or self._open(fragment)
        return tool_call.feed(fragment)

    def feed_plain(self, items: list[Json]) -> StreamEvent | None:
        """Fast path: one fragment of the arguments of a started tool call; otherwise None."""
        item = items[0] if len(items) == 1 else None
        if type(item) is not dict or len(item) != 2 or type(item.get("index")) is not int:
            return None
        tool_call, function = self._by_key.get(item["index"]), item.get("function")
        if tool_call is None or tool_call.segment is None or type(function) is not dict:
            return None
        text = function.get("arguments")
        if len(function) != 1 or type(text) is not str or not text or "{" in text:
            return None  # an opening brace may begin another tool call
        self._last = tool_call
        return tool_call.segment.delta(text)

    def feed_legacy(self, function: dict[str, Json]) -> list[StreamEvent]:
        """Add a fragment of `function_call`; a message has only one."""
        fragment = _Fragment({"function": function, SENT_AS: LEGACY})
        fragment.index = LEGACY
        tool_call = self._by_key.get(LEGACY) or self._open(fragment)
        return tool_call.feed(fragment)

    def finish(self) -> list[StreamEvent]:
        """End every tool call."""
        return [event for tool_call in self.tool_calls for event in tool_call.finish()]

    def _find(self, fragment: _Fragment, *, is_first: bool) -> _ToolCall | None:
        if fragment.index is None:
            if fragment.id:
                return self._by_key.get(fragment.id)
            last = self._last
            is_next = fragment.name and last and (not is_first or last.is_complete())
            return None if is_next else last
        tool_call = self._by_key.get(fragment.index)
        if tool_call is None:
            # some servers increase the index with each fragment of one tool call
            return self._by_key.get(fragment.id) if fragment.id and not fragment.name else None
        if fragment.id:
            return tool_call if tool_call.id in ("", fragment.id) else None
        return None if tool_call.is_followed_by(fragment) else tool_call

    def _open(self, fragment: _Fragment) -> _ToolCall:
        tool_call = _ToolCall(fragment, self._make_id, self._next_index)
        if self._last is not None and not fragment.name:
            tool_call.name = (
                self._last.name
            )  # some servers send the name only with the first tool call
        if fragment.index is not None:
            self._by_key[fragment.index] = tool_call
        if fragment.id:
            self._by_key[fragment.id] = tool_call
        self.tool_calls.append(tool_call)
        return tool_call


class _Fragment:
    """One item of `tool_calls` in a delta."""

    __slots__ = ("arguments", "extra", "id", "index", "kind", "name")

    def __init__(self, item: dict[str, Json]) -> None:
        index, function, custom = item.get("index"), item.get("function"), item.get("custom")
        self.index: int | str | None = index if isinstance(index, int) else None
        self.id = text_of(item.get("id"))
        is_custom = item.get("type") == "custom" or not isinstance(function, dict)
        self.kind: ToolType = "custom" if is_custom and isinstance(custom, dict) else "function"
        inner = custom if self.kind == "custom" else function
        inner = dict(inner) if isinstance(inner, dict) else {}
        self.name = text_of(inner.pop("name", None))
        arguments = inner.pop(ARGUMENTS[self.kind], None)
        read = ("index", "id", "type", self.kind)
        self.extra = {name: item[name] for name in item if name not in read}
        if inner:
            self.extra[self.kind] = inner
        if isinstance(arguments, dict):
            self.extra[SENT_AS] = "object"
            arguments = dump_text(arguments)
        self.arguments = text_of(arguments)


class _ToolCall:
    """A tool call in a stream; it starts when its name, and its id or some arguments, are known."""

    def __init__(self, fragment: _Fragment, make_id: MakeId, next_index: NextIndex) -> None:
        self.id = fragment.id
        self.name = fragment.name
        self._kind = fragment.kind
        self._make_id = make_id
        self._next_index = next_index
        self._extra: dict[str, Json] = {}
        self._waiting: list[str] = []
        self.segment: ToolCallSegment | None = None
        # how many pieces of the arguments `is_complete` has scanned, and its state after them
        self._scanned = 0
        self._depth = 0
        self._in_string = False
        self._escape = ""  # a backslash at the end of a piece

    def feed(self, fragment: _Fragment) -> list[StreamEvent]:
        self.name = self.name or fragment.name
        if fragment.extra:
            self._extra.update(fragment.extra)
        if self.segment is not None:
            return [self.segment.delta(fragment.arguments)] if fragment.arguments else []
        self.id = self.id or fragment.id
        if fragment.arguments:
            self._waiting.append(fragment.arguments)
        return self._start()[1] if self.name and (self.id or self._waiting) else []

    def finish(self) -> list[StreamEvent]:
        segment, events = self._start() if self.segment is None else (self.segment, [])
        segment.extra = dict(extra_for(self._extra))
        return [*events, segment.end()]

    def is_followed_by(self, fragment: _Fragment) -> bool:
        """Whether a fragment without an id belongs to the next tool call, not to this one."""
        begins = fragment.arguments.lstrip().startswith("{")
        is_renamed = bool(fragment.name) and fragment.name != self.name
        return (begins or is_renamed) and self.is_complete()

    def is_complete(self) -> bool:
        """Whether the arguments are a whole object; each piece is scanned once."""
        pieces = self.segment.pieces if self.segment is not None else self._waiting
        if not pieces or not pieces[-1].rstrip().endswith("}"):
            return False
        text = self._escape + "".join(pieces[self._scanned :])
        self._scanned, self._escape = len(pieces), ""
        for sign in _brackets(text):
            if sign == '"':
                self._in_string = not self._in_string
            elif sign == "\\":
                self._escape = sign
            elif not self._in_string:
                self._depth += _STEPS.get(sign, 0)
        return self._depth == 0 and not self._in_string

    def _start(self) -> tuple[ToolCallSegment, list[StreamEvent]]:
        if not self.id:
            self.id = self._make_id()
            self._extra.setdefault(RECEIVED, {})
        self.segment = segment = ToolCallSegment(
            self._next_index(),
            call_id=self.id,
            name=self.name,
            tool_type=self._kind,
            extra=extra_for(self._extra),
        )
        return segment, [segment.start(), *(segment.delta(piece) for piece in self._waiting)]
