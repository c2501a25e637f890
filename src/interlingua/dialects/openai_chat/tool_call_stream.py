"""Tool calls in a stream, which are assembled from fragments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias, TypeGuard

from interlingua.dialects.openai_chat.facts import (
    ARGUMENTS,
    LEGACY,
    RECEIVED,
    SENT_AS,
    extra_for,
)
from interlingua.dialects.openai_chat.tool_calls import MakeId
from interlingua.spec.content import Json, ToolType, UncheckedJson
from interlingua.spec.events import StreamEvent
from interlingua.streams.segments import ToolCallSegment
from interlingua.wire.fields import text_of
from interlingua.wire.json_text import dump_text

NextIndex: TypeAlias = Callable[[], int]  # the index of the next part of the message

_TYPES = (None, "", *ARGUMENTS)  # half of Mistral's recorded tool calls have no type
_brackets = re.compile(r'\\.?|["{}\[\]]', re.DOTALL).findall
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}


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
