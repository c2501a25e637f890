"""Tool calls put together from fragments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from interlingua.dialects.openai_chat.calls import LEGACY, MakeId
from interlingua.dialects.openai_chat.marks import RECEIVED, SENT_AS, keep
from interlingua.spec.content import ToolType
from interlingua.spec.events import StreamEvent
from interlingua.wire.jsontext import dump_text
from interlingua.wire.segments import ToolCallSegment

_OUTSIDE = re.compile(r'["{}\[\]]')
_INSIDE = re.compile(r'["\\]')
_STRUCTURE = ("index", "id", "type", "function", "custom")


class CallAssembler:
    """
    Finds the call each fragment belongs to.

    `index` tells, where there is one: but another id, or a new object after a complete one,
    is another call even under the same index. Without an index the id tells, and without
    either a fragment continues the last call.
    """

    def __init__(self, make_id: MakeId) -> None:
        self._make_id = make_id
        self._slots: dict[Any, _Call] = {}
        self._last: _Call | None = None
        self.calls: list[_Call] = []

    def feed(
        self, item: dict[str, Any], *, is_first: bool, place: Callable[[], int]
    ) -> list[StreamEvent]:
        """Take in one item of `tool_calls`; `place` gives the next index in the message."""
        fragment = _Fragment(item)
        call = self._find(fragment, is_first=is_first)
        if call is None:
            call = self._open(fragment)
        self._last = call
        return call.feed(fragment, place)

    def feed_legacy(self, function: dict[str, Any], place: Callable[[], int]) -> list[StreamEvent]:
        """Take in a fragment of the older `function_call`, of which there is one."""
        fragment = _Fragment({"function": function})
        call = self._slots.get(LEGACY)
        if call is None:
            call = _Call(fragment, self._make_id, {SENT_AS: LEGACY})
            self._slots[LEGACY] = call
            self.calls.append(call)
        return call.feed(fragment, place)

    def finish(self, place: Callable[[], int]) -> list[StreamEvent]:
        """End every call."""
        return [event for call in self.calls for event in call.finish(place)]

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
        call = _Call(fragment, self._make_id)
        if self._last is not None and not fragment.name:
            call.name = self._last.name  # a server that says it once for all
        if fragment.index is not None:
            self._slots[fragment.index] = call
        if fragment.id:
            self._slots[fragment.id] = call
        self.calls.append(call)
        return call


class _Fragment:
    """What one item of `tool_calls` says."""

    __slots__ = ("arguments", "extra", "id", "index", "kind", "name")

    def __init__(self, item: dict[str, Any]) -> None:
        index, call_id = item.get("index"), item.get("id")
        self.index = index if isinstance(index, int) else None
        self.id = call_id if isinstance(call_id, str) else ""
        is_custom = item.get("type") == "custom" or not isinstance(item.get("function"), dict)
        custom = item.get("custom")
        self.kind: ToolType = "custom" if is_custom and isinstance(custom, dict) else "function"
        inner = item.get(self.kind)
        inner = inner if isinstance(inner, dict) else {}
        name = inner.get("name")
        self.name = name if isinstance(name, str) else ""
        field = "input" if self.kind == "custom" else "arguments"
        given = inner.get(field)
        self.extra = {key: value for key, value in item.items() if key not in _STRUCTURE}
        others = {key: value for key, value in inner.items() if key not in ("name", field)}
        if others:
            self.extra[self.kind] = others
        if isinstance(given, dict):
            self.extra[SENT_AS] = "object"
            given = dump_text(given)
        self.arguments = given if isinstance(given, str) else ""
        other = "function" if self.kind == "custom" else "custom"
        if other in item:
            self.extra[other] = item[other]


class _Call:
    """A call on its way; it starts when its name, and its id or some arguments, are known."""

    def __init__(
        self, fragment: _Fragment, make_id: MakeId, extra: dict[str, Any] | None = None
    ) -> None:
        self.id = fragment.id
        self.name = fragment.name
        self._kind = fragment.kind
        self._make_id = make_id
        self._extra = dict(extra or {})
        self._waiting: list[str] = []
        self._segment: ToolCallSegment | None = None
        self._depth = _Depth()

    def feed(self, fragment: _Fragment, place: Callable[[], int]) -> list[StreamEvent]:
        self.name = self.name or fragment.name
        if fragment.extra:
            self._extra = {**self._extra, **fragment.extra}
        segment = self._segment
        if segment is not None:
            return [segment.delta(fragment.arguments)] if fragment.arguments else []
        self.id = self.id or fragment.id
        if fragment.arguments:
            self._waiting.append(fragment.arguments)
        if self.name and (self.id or self._waiting):
            return self._start(place)
        return []

    def finish(self, place: Callable[[], int]) -> list[StreamEvent]:
        events = self._start(place) if self._segment is None else []
        segment = self._segment
        if segment is not None:
            segment.extra = keep(self._extra)  # type: ignore[assignment]
            events.append(segment.end())
        return events

    def is_followed_by(self, fragment: _Fragment) -> bool:
        """Whether a fragment without an id is the next call's, not this one's."""
        begins = fragment.arguments.lstrip().startswith("{")
        renamed = bool(fragment.name) and fragment.name != self.name
        return (begins or renamed) and self.is_complete()

    def is_complete(self) -> bool:
        """Whether its arguments are a whole object."""
        pieces = self._segment.pieces if self._segment is not None else self._waiting
        if not pieces or not pieces[-1].rstrip().endswith("}"):
            return False
        return self._depth.is_closed(pieces)

    def _start(self, place: Callable[[], int]) -> list[StreamEvent]:
        if not self.id:
            self.id = self._make_id()
            self._extra.setdefault(RECEIVED, {})
        segment = ToolCallSegment(
            place(),
            call_id=self.id,
            name=self.name,
            tool_type=self._kind,
            extra=keep(dict(self._extra)),
        )
        self._segment = segment
        events: list[StreamEvent] = [segment.start()]
        events += [segment.delta(piece) for piece in self._waiting]
        return events


class _Depth:
    """How deep in a JSON text we are; each piece is looked at once."""

    def __init__(self) -> None:
        self._seen = 0
        self._depth = 0
        self._inside = False
        self._escaped = False

    def is_closed(self, pieces: list[str]) -> bool:
        for piece in pieces[self._seen :]:
            self._scan(piece)
        self._seen = len(pieces)
        return self._depth == 0 and not self._inside

    def _scan(self, text: str) -> None:
        at = 0
        while at < len(text):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            found = (_INSIDE if self._inside else _OUTSIDE).search(text, at)
            if found is None:
                return
            at = found.end()
            match found.group():
                case '"':
                    self._inside = not self._inside
                case "\\":
                    self._escaped = True
                case "{" | "[":
                    self._depth += 1
                case _:
                    self._depth -= 1
