"""Stream frames -> events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.dialects.openai_chat.calls import (
    CallAssembler,
    MakeId,
    is_call,
    odd_call,
    unnumber_call,
)
from interlingua.dialects.openai_chat.content import parsed_text, read_part
from interlingua.dialects.openai_chat.errors import read_error
from interlingua.dialects.openai_chat.facts import (
    CHOICE,
    DETAILS,
    LEGACY,
    NAME,
    REASONING_FIELDS,
    THOUGHTS,
)
from interlingua.dialects.openai_chat.marks import FIELDS, TAGS, extra_for, grow, text_of
from interlingua.dialects.openai_chat.quirks import ChatQuirks, quirks_of
from interlingua.dialects.openai_chat.response import decode_finish, decode_usage, find_usage
from interlingua.dialects.openai_chat.thinking import TagSplitter, Thought, find_text
from interlingua.spec.content import Json, Part, Refusal, Text, Thinking
from interlingua.spec.contracts import (
    NEUTRAL_PROFILE,
    Frame,
    NewId,
    Profile,
    StreamDecoder,
)
from interlingua.spec.errors import StreamError
from interlingua.spec.events import Finish, ProviderEvent, StreamEvent, StreamStart
from interlingua.streams.frames import DONE, read_frame
from interlingua.streams.segments import TextSegment
from interlingua.wire.fields import extra_of, merge
from interlingua.wire.tool_calls import call_ids, counting_ids

_KNOWN = frozenset(("role", "content", "refusal", "tool_calls", LEGACY, *THOUGHTS))
_PADDING = ("obfuscation", "p")  # so that the length of a chunk tells nothing
_FIXED = ("id", "model", "object", "usage", *_PADDING)


class Decoder:
    """
    `[DONE]` is the end.

    Servers that never send it are known to end with the usage: a finish reason with usage
    in the same or a later chunk is an end too. A finish reason alone is not, as the usage
    may have been cut off.
    """

    def __init__(self, new_id: NewId, quirks: ChatQuirks) -> None:
        self._parts = PartAssembler(call_ids(new_id), think_tags=quirks.think_tags)
        self._done_sentinel = quirks.done_sentinel
        # The last chunk without its choices, and its choice without its delta: a chunk that
        # is equal in both, as nearly all are, has nothing to say but its delta.
        self._last_envelope: dict[str, Any] | None = None
        self._last_choice: dict[str, Any] | None = None
        self._start: dict[str, Any] = {}
        self._late: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._others: list[Json] = []
        self._others_open: dict[int, bool] = {}  # those that come in fragments
        self._held: list[StreamEvent] = []  # events before the start
        self._started = False
        self._ended = False
        self._finish: str | None = None
        self._has_finish = False
        self._has_last_usage = False
        self._usage: dict[str, Any] | None = None

    def feed(self, frame: Frame) -> list[StreamEvent]:
        data = None if self._ended else read_frame(frame)
        if data is None:
            return self._end() if frame.data == DONE and not self._ended else []
        choices = data.pop("choices", None)
        data.pop("obfuscation", None)
        if data == self._last_envelope and type(choices) is list and len(choices) == 1:
            choice = choices[0]
            if type(choice) is dict and type(delta := choice.pop("delta", None)) is dict:
                if choice == self._last_choice:
                    text = self._parts.text
                    if text is not None and len(delta) == 1:
                        content = delta.get("content")
                        if type(content) is str and content:
                            return [text.delta(content)]
                    return self._parts.feed_plain(delta) or self._parts.feed(delta)
                choice["delta"] = delta
        return self._feed_chunk(frame, data, choices)

    def finish(self) -> list[StreamEvent]:
        if self._ended:
            return []
        is_told = self._has_last_usage or not self._done_sentinel
        if self._has_finish and is_told and not any(self._others_open.values()):
            return self._end()
        raise StreamError("the stream ended before [DONE]")

    def _feed_chunk(self, frame: Frame, data: dict[str, Any], choices: Json) -> list[StreamEvent]:
        """A chunk whose envelope or choice says something new."""
        if data.get("error") or frame.event == "error" or data.get("object") == "error":
            raise read_error(None, {}, data)
        if frame.event and choices is None and frame.event != "message":
            self._held.append(ProviderEvent(dialect=NAME, name=frame.event, data=data))
            return self._begin() if self._started else []
        self._last_envelope = data
        self._last_choice = None
        usage = find_usage({**data, "choices": choices})
        self._usage = self._usage if usage is None else usage
        self._learn(data)
        events: list[StreamEvent] = []
        if isinstance(choices, list) and choices:
            events += self._begin()
            others: list[Json] = []
            for choice in choices:
                if isinstance(choice, dict) and choice.get("index") in (None, 0):
                    events += self._feed_choice(choice)
                elif not self._is_whole(choice):
                    others.append(choice)
            if others:
                chunk = {**data, "choices": others}
                events.append(ProviderEvent(dialect=NAME, name=CHOICE, data=chunk))
        self._has_last_usage = self._has_last_usage or (self._has_finish and bool(usage))
        return events

    def _learn(self, envelope: dict[str, Any]) -> None:
        """Fields of the envelope: the first word goes to the start, later ones to the end."""
        if not self._started:
            unsaid = ("usage", *_PADDING)
            self._start |= {name: envelope[name] for name in envelope if name not in unsaid}
            return
        for name, value in envelope.items():
            known = self._late if name in self._late else self._start
            # null says nothing
            is_news = name not in known or (value is not None and known[name] != value)
            if is_news and name not in _FIXED:
                self._late[name] = value

    def _begin(self) -> list[StreamEvent]:
        """Say the start once: with the first choice, as what comes before is not all of it."""
        held, self._held = self._held, []
        if self._started:
            return held
        self._started = True
        left = {name: self._start[name] for name in self._start if name not in _FIXED}
        response_id, model = text_of(self._start.get("id")), text_of(self._start.get("model"))
        return [StreamStart(id=response_id, model=model, extra={NAME: left}), *held]

    def _feed_choice(self, choice: dict[str, Any]) -> list[StreamEvent]:
        delta = choice.pop("delta", None)
        message = choice.pop("message", None)  # all so far, at some servers
        if not isinstance(delta, dict):
            delta = message if isinstance(message, dict) and not self._parts.count else {}
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and (finish or self._finish is None):
            self._finish = finish
        if finish:
            self._has_finish = True
        else:
            self._last_choice = choice
        told = {name: choice[name] for name in choice if name not in ("index", "finish_reason")}
        if not isinstance(told.get("usage"), dict):
            told.pop("usage", None)
        if isinstance(told.get("logprobs"), dict):  # each chunk has those of its own tokens
            before = self._choice.get("logprobs")
            told["logprobs"] = dict(before) if isinstance(before, dict) else {}
            for name, value in choice["logprobs"].items():
                grow(told["logprobs"], name, value)
        self._choice = merge(self._choice, told)
        return self._parts.feed(delta)

    def _is_whole(self, choice: Json) -> bool:
        """Whether another choice is all in this chunk; if so it is kept as it is."""
        match choice:
            case {
                "index": int(index),
                "delta": {"role": str()} as message,
                "finish_reason": str(),
            } if index not in self._others_open:
                rest = {name: value for name, value in choice.items() if name != "delta"}
                calls = message.get("tool_calls")
                if isinstance(calls, list):
                    message = {**message, "tool_calls": [unnumber_call(call) for call in calls]}
                self._others.append({**rest, "message": message})
                return True
            case {"index": int(index)}:
                self._others_open[index] = not isinstance(choice.get("finish_reason"), str)
        return False

    def _end(self) -> list[StreamEvent]:
        self._ended = True
        events = [*self._begin(), *self._parts.finish()]
        body = self._start.get("body")  # of an answer that was none
        failed = isinstance(body, dict) and bool(body.get("error"))
        parts = self._parts
        reason = decode_finish(
            self._finish, has_calls=parts.has_calls, has_refusal=parts.has_refusal, failed=failed
        )
        extra = extra_for(self._late, choice=self._choice, choices=self._others)
        finish = Finish(
            finish_reason=reason,
            usage=decode_usage(self._usage),
            extra=extra or {NAME: {}},
            message_extra=extra_for(self._parts.extra),
        )
        return [*events, finish]


class PartAssembler:
    """
    Feed it deltas of one choice; it draws the boundaries of parts, which this wire does not.

    Text ends where a thought or call begins, a thought where text or a call begins. Calls
    stay open to the end, since their fragments may interleave.
    """

    def __init__(self, make_id: MakeId, *, think_tags: bool) -> None:
        self.text: TextSegment | None = None
        """The open text, to which a plain delta can go directly."""
        self.extra: dict[str, Any] = {}
        """Other fields of the message."""
        self.count: int = 0
        """How many parts have begun."""
        self.has_refusal: bool = False
        """Whether one of them declines."""
        self._thought: Thought | None = None
        self._calls = CallAssembler(make_id, self._place)
        self._tags = TagSplitter() if think_tags else None
        self._tagged: Thought | None = None  # the thought that came in tags
        self._refusal: list[str] = []
        self._is_empty_text = False  # content came, but so far without a word
        self._had: set[str] = set()  # fields with something in them

    @property
    def has_calls(self) -> bool:
        """Whether a call has begun."""
        return bool(self._calls.calls)

    def feed_plain(self, delta: dict[str, Any]) -> list[StreamEvent]:
        """A fragment of a call that is on its way; empty if it is anything else."""
        items = delta.get("tool_calls") if len(delta) == 1 else None
        if type(items) is not list or self.text is not None or self._thought is not None:
            return []
        event = self._calls.feed_plain(items)
        return [] if event is None else [event]

    def feed(self, delta: dict[str, Any]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if not THOUGHTS.isdisjoint(delta):
            events += self._feed_thinking(delta)
        if "content" in delta:
            events += self._feed_content(delta["content"])
        if "refusal" in delta and self._is_said("refusal", delta["refusal"], str):
            self._refusal.append(delta["refusal"])
        if "tool_calls" in delta and self._is_said("tool_calls", delta["tool_calls"], list):
            events += self._feed_calls(delta["tool_calls"])
        if LEGACY in delta and self._is_said(LEGACY, delta[LEGACY], dict):
            events += [] if self.has_calls else self._before_calls()
            events += self._calls.feed_legacy(delta[LEGACY])
        for name, value in delta.items():
            if name not in _KNOWN:
                grow(self.extra, name, value)
        if delta.get("role") not in (None, "", "assistant"):
            self.extra["role"] = delta["role"]
        return events

    def finish(self) -> list[StreamEvent]:
        """End every part."""
        events = self._add_split(self._tags.finish()) if self._tags is not None else []
        events += [*self._before_calls(), *self._calls.finish()]
        for name in self._had:
            self.extra.pop(name, None)
        return events

    def _place(self) -> int:
        self.count += 1
        return self.count - 1

    def _is_said(self, name: str, value: Json, wanted: type) -> bool:
        is_empty = isinstance(value, dict) and not any(value.values())
        if isinstance(value, wanted) and value and not is_empty:
            self._had.add(name)
            return True
        self._note(name, value)
        return False

    def _note(self, name: str, value: Json) -> None:
        """A field with nothing in it: kept, should nothing ever come."""
        if self.extra.get(name) is None:
            self.extra[name] = value

    def _whole(self, part: Part) -> list[StreamEvent]:
        self.has_refusal = self.has_refusal or type(part) is Refusal
        return [*self._close(), ProviderEvent(dialect=NAME, part=part, index=self._place())]

    def _close(self) -> list[StreamEvent]:
        """End the text or thought that is open."""
        events: list[StreamEvent] = []
        if self.text is not None:
            events.append(self.text.end())
        if self._thought is not None:
            events.append(self._thought.end())
        self.text = self._thought = None
        return events

    def _before_calls(self) -> list[StreamEvent]:
        """What comes before calls in a whole message: all that is not a call."""
        events = self._close()
        if self._is_empty_text and "content" not in self._had:
            segment = TextSegment(self._place())
            events += [segment.start(), segment.end()]
            self._had.add("content")
        self._is_empty_text = False
        if self._refusal:
            events += self._whole(Refusal(text="".join(self._refusal)))
            self._refusal = []
        return events

    def _feed_content(self, content: Json) -> list[StreamEvent]:
        if content == "":
            self._is_empty_text = self._is_empty_text or not self.has_calls
        elif isinstance(content, str):
            if self._tags is None or self._tags.is_past:
                return self._add_text(content)
            return self._add_split(self._tags.feed(content))
        elif isinstance(content, dict):
            return self._feed_part(parsed_text(content))
        elif isinstance(content, list) and content:
            return [event for item in content for event in self._feed_part(read_part(item))]
        elif content is not None:
            self._note("content", content)
        return []

    def _feed_part(self, part: Part) -> list[StreamEvent]:
        kept = extra_of(part, NAME)
        if isinstance(part, Text) and not kept:
            return self._add_text(part.text) if part.text else []
        if isinstance(part, Thinking) and not kept.get("thinking"):
            about = {name: kept[name] for name in kept if name not in ("thinking", FIELDS)}
            return self._add_thought(part.text, about)
        self._had.add("content")
        return self._whole(part)

    def _add_text(self, text: str) -> list[StreamEvent]:
        if self.text is not None:
            return [self.text.delta(text)]
        events = self._close()
        self.text = TextSegment(self._place())
        self._had.add("content")
        return [*events, self.text.start(), self.text.delta(text)]

    def _add_split(self, pieces: list[tuple[bool, str]]) -> list[StreamEvent]:
        """Text that was looked through for tags; a thought may be empty."""
        events: list[StreamEvent] = []
        about = {TAGS: self._tags.tags} if self._tags is not None and self._tags.tags else {}
        if about and (self._tagged is None or self._tagged is self._thought):
            events += self._add_thought("", about)
            self._tagged = self._thought
        for is_thought, text in pieces:
            events += self._add_thought(text, about) if is_thought else self._add_text(text)
        return events

    def _feed_thinking(self, delta: dict[str, Any]) -> list[StreamEvent]:
        text, names = find_text(delta)
        self._had.update(names)
        for name in REASONING_FIELDS:
            if name in delta and name not in names:
                self._note(name, delta[name])
        details = ()
        if DETAILS in delta and self._is_said(DETAILS, delta[DETAILS], list):
            details = delta[DETAILS]
        return self._add_thought(text, {FIELDS: names}, details) if names or details else []

    def _add_thought(
        self, text: str, about: dict[str, Any], details: Sequence[Any] = ()
    ) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if self._thought is None:
            events += self._close()
            self._thought = Thought(self._place(), about)
            events.append(self._thought.segment.start())
        text = self._thought.learn(text, about, details)
        if text:
            events.append(self._thought.segment.delta(text))
        return events

    def _feed_calls(self, items: list[Json]) -> list[StreamEvent]:
        events = self._close() if self.has_calls else self._before_calls()
        for i, item in enumerate(items):
            if is_call(item):
                events += self._calls.feed(item, is_first=i == 0)
            else:
                events += self._whole(odd_call(unnumber_call(item)))
        return events


def stream_decoder(
    *, new_id: NewId | None = None, profile: Profile = NEUTRAL_PROFILE
) -> StreamDecoder:
    """For a stream a client receives."""
    return Decoder(new_id or counting_ids(), quirks_of(profile))
