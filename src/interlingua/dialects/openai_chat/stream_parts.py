"""Deltas -> parts: the boundaries this wire does not draw."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_chat.calls import LEGACY, MakeId
from interlingua.dialects.openai_chat.content import read_part
from interlingua.dialects.openai_chat.marks import FIELDS, SENT_AS, TAGS
from interlingua.dialects.openai_chat.stream_calls import CallAssembler
from interlingua.dialects.openai_chat.thinking import DETAILS, TagSplitter, detail_text
from interlingua.dialects.openai_chat.wire import NAME, REASONING_FIELDS
from interlingua.spec.content import Json, Opaque, Part, Refusal, Text
from interlingua.spec.events import ProviderEvent, StreamEvent
from interlingua.wire.jsontext import dump_text
from interlingua.wire.options import merge
from interlingua.wire.segments import ReasoningSegment, TextSegment

_THINKING = frozenset((*REASONING_FIELDS, DETAILS))
_KNOWN = frozenset(("role", "content", "refusal", "tool_calls", LEGACY, *_THINKING))


class PartAssembler:
    """
    Feed it deltas of one choice; it gives the events of parts.

    Text ends where a thought or call begins, a thought where text or a call begins. Calls
    stay open to the end, since their fragments may interleave.
    """

    def __init__(self, make_id: MakeId, *, think_tags: bool) -> None:
        self.text: TextSegment | None = None
        """The open text, to which a plain delta can go directly."""
        self.extra: dict[str, Any] = {}
        """Other fields of the message."""
        self._thought: _Thought | None = None
        self._calls = CallAssembler(make_id)
        self._tags = TagSplitter() if think_tags else None
        self._refusal: list[str] = []
        self._next = 0
        self._is_empty_text = False  # content came, but so far without a word
        self._had_text = False
        self._had_tags = False
        self._had_fields: set[str] = set()

    @property
    def has_calls(self) -> bool:
        """Whether a call has begun."""
        return bool(self._calls.calls)

    @property
    def has_content(self) -> bool:
        """Whether any part has begun."""
        return self._next > 0

    def feed(self, delta: dict[str, Any]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if not _THINKING.isdisjoint(delta):
            events += self._feed_thinking(delta)
        if "content" in delta:
            events += self._feed_content(delta["content"])
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refusal.append(refusal)
            self._had_fields.add("refusal")
        elif "refusal" in delta:
            self._note("refusal", refusal)
        if "tool_calls" in delta:
            events += self._feed_calls(delta["tool_calls"])
        if LEGACY in delta:
            events += self._feed_legacy(delta[LEGACY])
        for name in delta.keys() - _KNOWN:
            self._keep(name, delta[name])
        role = delta.get("role")
        if role is not None and role not in ("", "assistant"):
            self.extra["role"] = role
        return events

    def finish(self) -> list[StreamEvent]:
        """End every part."""
        events: list[StreamEvent] = []
        if self._tags is not None:
            events += self._add_split(self._tags.finish())
        events += self._before_calls()
        events += self._calls.finish(self._place)
        if self._calls.calls:
            self._had_fields.add("tool_calls")
        for name in self._had_fields:
            self.extra.pop(name, None)
        return events

    def _place(self) -> int:
        self._next += 1
        return self._next - 1

    def _whole(self, part: Part) -> list[StreamEvent]:
        events = self._close()
        events.append(ProviderEvent(dialect=NAME, part=part, index=self._place()))
        return events

    def _close(self) -> list[StreamEvent]:
        """End the text or thought that is open."""
        events: list[StreamEvent] = []
        if self.text is not None:
            events.append(self.text.end())
            self.text = None
        if self._thought is not None:
            events.append(self._thought.end(self._tags))
            self._thought = None
        return events

    def _before_calls(self) -> list[StreamEvent]:
        """What comes before calls in a whole message: all that is not a call."""
        events = self._close()
        if self._is_empty_text and not self._had_text:
            segment = TextSegment(self._place())
            events += [segment.start(), segment.end()]
            self._had_fields.add("content")
        self._is_empty_text = False
        if self._refusal:
            refusal = Refusal(text="".join(self._refusal))
            events.append(ProviderEvent(dialect=NAME, part=refusal, index=self._place()))
            self._refusal = []
        return events

    # Content.

    def _feed_content(self, content: Json) -> list[StreamEvent]:
        if isinstance(content, str):
            if not content:
                self._is_empty_text = self._is_empty_text or not self.has_calls
                return []
            if self._tags is None or self._tags.is_past:
                return self._add_text(content)
            return self._add_split(self._tags.feed(content))
        if isinstance(content, list) and content:
            return [event for item in content for event in self._feed_item(item)]
        if isinstance(content, dict):
            self._had_text = True
            return self._whole(Text(text=dump_text(content), extra={NAME: {SENT_AS: "json"}}))
        if content is not None:
            self._note("content", content)
        return []

    def _feed_item(self, item: Json) -> list[StreamEvent]:
        match item:
            case {"type": "text", "text": str(text), **rest} if not rest:
                return self._add_text(text) if text else []
            case {"type": "thinking", "thinking": [{"type": "text", "text": str(text)}], **rest}:
                return self._add_thought(text, {SENT_AS: "part", **_plain(rest)})
            case {"type": "thinking", "thinking": [], **rest}:
                return self._add_thought("", {SENT_AS: "part", **_plain(rest)})
        self._had_text = True
        return self._whole(read_part(item))

    def _add_text(self, text: str) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if self.text is None:
            events += self._close()
            self.text = TextSegment(self._place())
            self._had_text = True
            self._had_fields.add("content")
            events.append(self.text.start())
        events.append(self.text.delta(text))
        return events

    # Thoughts.

    def _feed_thinking(self, delta: dict[str, Any]) -> list[StreamEvent]:
        text = ""
        names: list[str] = []
        for name in REASONING_FIELDS:
            found = delta.get(name)
            if isinstance(found, str) and found and text in ("", found):
                text = found
                names.append(name)
            elif name in delta:
                self._note(name, found)
        given = delta.get(DETAILS)
        details: list[Any] = given if isinstance(given, list) else []
        if DETAILS in delta and not details:
            self._note(DETAILS, given)
        if not names and not details:
            return []
        self._had_fields.update(names, (DETAILS,) if details else ())
        return self._add_thought(text, {}, names, details)

    def _add_split(self, pieces: list[tuple[bool, str]]) -> list[StreamEvent]:
        """Text that was looked through for tags; a thought may be empty."""
        events: list[StreamEvent] = []
        tags = self._tags.tags if self._tags is not None else None
        if tags is not None and not self._had_tags:
            self._had_tags = True
            events += self._add_thought("", {TAGS: tags})
        for is_thought, text in pieces:
            if is_thought:
                events += self._add_thought(text, {TAGS: tags})
            else:
                events += self._add_text(text)
        return events

    def _add_thought(
        self,
        text: str,
        about: dict[str, Any],
        names: list[str] | None = None,
        details: list[Any] | None = None,
    ) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        thought = self._thought
        if thought is None:
            events += self._close()
            thought = self._thought = _Thought(self._place(), about, names)
            events.append(thought.segment.start())
        text = thought.learn(text, about, names, details)
        if text:
            events.append(thought.segment.delta(text))
        return events

    # Calls.

    def _feed_calls(self, items: Json) -> list[StreamEvent]:
        if not isinstance(items, list) or not items:
            self._note("tool_calls", items)
            return []
        events = [] if self.has_calls else self._before_calls()
        if self.text is not None or self._thought is not None:
            events += self._close()
        for i, item in enumerate(items):
            if isinstance(item, dict) and _is_call(item):
                events += self._calls.feed(item, is_first=i == 0, place=self._place)
            else:
                extra = {NAME: {SENT_AS: "tool_call"}}
                data = _unnumbered(item)
                events += self._whole(Opaque(dialect=NAME, data=data, extra=extra))
        return events

    def _feed_legacy(self, function: Json) -> list[StreamEvent]:
        if not isinstance(function, dict) or not any(function.values()):
            self._note(LEGACY, function)
            return []
        events = [] if self.has_calls else self._before_calls()
        self._had_fields.add(LEGACY)
        return events + self._calls.feed_legacy(function, self._place)

    # Other fields.

    def _note(self, name: str, value: Json) -> None:
        """A field with nothing in it: kept if nothing ever comes."""
        if self.extra.get(name) is None:
            self.extra[name] = value

    def _keep(self, name: str, value: Json) -> None:
        before = self.extra.get(name)
        if isinstance(before, list) and isinstance(value, list):
            before.extend(value)
            return
        if isinstance(before, dict) and isinstance(value, dict):
            value = _join_sound(before, value) if name == "audio" else merge(before, value)
        elif value is None and name in self.extra:
            return
        self.extra[name] = list(value) if isinstance(value, list) else value


class _Thought:
    """A thought on its way, and where it came from."""

    def __init__(self, index: int, about: dict[str, Any], names: list[str] | None) -> None:
        self._about = dict(about)
        self._names = names
        self._details: list[_Detail] = []
        extra = about if names is None else {**about, FIELDS: list(names)}
        self.segment = ReasoningSegment(index, {NAME: extra})

    def learn(
        self,
        text: str,
        about: dict[str, Any],
        names: list[str] | None,
        details: list[Any] | None,
    ) -> str:
        """Take in a fragment; the text it adds."""
        self._about.update(about)
        if names is not None:
            self._names = [
                *(self._names or ()),
                *(n for n in names if n not in (self._names or ())),
            ]
        if details:
            self._add_details(details)
            if not self._names:
                text = "".join(detail_text(detail) for detail in details)
        return text

    def end(self, tags: TagSplitter | None) -> StreamEvent:
        extra = dict(self._about)
        if self._names is not None:
            extra[FIELDS] = self._names
        if TAGS in extra and tags is not None:
            extra[TAGS] = tags.tags
        if self._details:
            extra[DETAILS] = [detail.join() for detail in self._details]
        self.segment.extra = {NAME: extra}
        return self.segment.end()

    def _add_details(self, details: list[Any]) -> None:
        earlier = {detail.key: detail for detail in self._details if detail.key is not None}
        for data in details:
            detail = _Detail(data)
            before = earlier.get(detail.key) if detail.key is not None else None
            if before is None:
                self._details.append(detail)
            else:
                before.add(data)


class _Detail:
    """An item of `reasoning_details`: text and summary come in fragments, by index."""

    __slots__ = ("_data", "_field", "_pieces", "key")

    def __init__(self, data: Any) -> None:
        self._data = data
        self._field = ""
        self._pieces: list[str] = []
        self.key: tuple[str, int] | None = None
        match data:
            case {"type": "reasoning.text" | "reasoning.summary" as kind, "index": int(index)}:
                self.key = (kind, index)
                self._field = kind.rpartition(".")[2]
                self._data = {}
                self.add(data)

    def add(self, data: dict[str, Any]) -> None:
        for name, value in data.items():
            if name == self._field and isinstance(value, str):
                self._pieces.append(value)
            if value is not None or name not in self._data:
                self._data[name] = value

    def join(self) -> Any:
        if not self._pieces:
            return self._data
        return {**self._data, self._field: "".join(self._pieces)}


def _is_call(item: dict[str, Any]) -> bool:
    if item.get("type") not in (None, "", "function", "custom"):
        return False
    return (
        isinstance(item.get("function"), dict)
        or isinstance(item.get("custom"), dict)
        or (item.get("index") is not None)
    )


def _unnumbered(item: Json) -> Json:
    if not isinstance(item, dict):
        return item
    return {name: value for name, value in item.items() if name != "index"}


def _plain(rest: dict[Any, Any]) -> dict[str, Any]:
    return {name: value for name, value in rest.items() if name not in ("type", "thinking")}


def _join_sound(before: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Audio comes in fragments of base64 and of its transcript."""
    joined = {**before, **more}
    for name in ("data", "transcript"):
        if isinstance(before.get(name), str) and isinstance(more.get(name), str):
            joined[name] = before[name] + more[name]
    return joined
