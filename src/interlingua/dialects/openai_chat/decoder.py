"""Stream frames -> events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlingua.dialects.openai_chat.annotations import (
    LOGPROBS,
    read_citations,
    read_logprobs,
    with_citations,
    with_logprobs,
)
from interlingua.dialects.openai_chat.content import (
    TagSplitter,
    decode_parsed,
    details_text,
    read_images,
    read_part,
    split_tags,
    thinking_text,
)
from interlingua.dialects.openai_chat.facts import (
    CHOICE,
    DETAILS,
    FIELDS,
    IMAGES,
    LEGACY,
    NAME,
    REASONING_FIELDS,
    TAGS,
    THINKING_FIELDS,
    ChatQuirks,
    extra_for,
    quirks_of,
)
from interlingua.dialects.openai_chat.response import decode_finish, decode_usage, find_usage
from interlingua.dialects.openai_chat.tool_call_stream import ToolCallAssembler, is_tool_call
from interlingua.dialects.openai_chat.tool_calls import MakeId, opaque_tool_call, unnumber_tool_call
from interlingua.spec.content import (
    Citation,
    Json,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    UncheckedJson,
)
from interlingua.spec.contracts import NEUTRAL_PROFILE, Frame, NewId, Profile, StreamDecoder
from interlingua.spec.errors import StreamError
from interlingua.spec.events import (
    Finish,
    ProviderEvent,
    ReasoningEnd,
    StreamEvent,
    StreamStart,
    TextEnd,
    ToolCallEnd,
)
from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.frames import is_done, read_frame
from interlingua.streams.segments import ReasoningSegment, TextSegment
from interlingua.wire.fields import Merged, extra_of, text_of
from interlingua.wire.tool_calls import call_ids, counting_ids, mark_cut

_KNOWN = frozenset(("role", "content", "refusal", "tool_calls", LEGACY, *THINKING_FIELDS))
# Random text that hides the length of a chunk: OpenAI's (the SDK's `include_obfuscation`) and
# Mistral's (recorded).
_PADDING = ("obfuscation", "p")
_FIXED = ("id", "model", "object", "usage", *_PADDING)


class Decoder:
    """
    The stream ends with `[DONE]`.

    Servers that never send it end with the usage: a finish reason with usage in the same or a
    later chunk is an end too. A finish reason alone is not, as the usage may have been cut off.
    """

    def __init__(self, new_id: NewId, quirks: ChatQuirks) -> None:
        self._parts = PartAssembler(call_ids(new_id), think_tags=quirks.think_tags)
        self._done_sentinel = quirks.done_sentinel
        self._end_optional = quirks.end_optional
        self._has_end = True
        self._reasoning_inside = quirks.reasoning_in_output
        # The last chunk without its choices, and its choice without its delta. Nearly every
        # chunk is equal in both, so that only its delta must be read.
        self._last_envelope: dict[str, Json] = {}
        self._last_choice: dict[str, Json] | None = None
        self._start: dict[str, Json] = {}
        self._late: dict[str, Json] = {}
        self._choice = Merged()
        self._logprobs = _GrowingFields()
        self._others: list[Json] = []
        self._others_open: dict[int, bool] = {}  # whether each that is sent in fragments is open
        self._early: list[StreamEvent] = []  # events before the start
        self._first = StreamStart()
        self._started = False
        self._ended = False
        self._finish: str | None = None
        self._has_finish = False
        self._has_last_usage = False
        self._usage: dict[str, Json] | None = None

    @property
    def held(self) -> int:
        """The number of parts that the end of the stream ends."""
        return self._parts.held

    def feed(self, frame: Frame) -> list[StreamEvent]:
        data = None if self._ended else read_frame(frame)
        if data is None:
            return self._end() if is_done(frame) and not self._ended else []
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
        # Recorded streams of Perplexity and of Hugging Face's router end so, after their usage.
        is_whole = self._has_finish and (self._has_last_usage or not self._done_sentinel)
        self._has_end = is_whole
        may_end = is_whole or (self._has_finish and self._end_optional)
        if may_end and not any(self._others_open.values()):
            return self._end()
        raise StreamError("The stream ended before [DONE]: the answer may be cut off.")

    def _feed_chunk(
        self, frame: Frame, data: dict[str, Json], choices: UncheckedJson
    ) -> list[StreamEvent]:
        """A chunk whose envelope or choice is not equal to the last one."""
        # OpenAI's SDK raises for `error`; the errors of Mistral and vLLM are objects «error».
        if data.get("error") or frame.event == "error" or data.get("object") == "error":
            from interlingua.dialects.openai_chat.errors import read_error

            raise read_error(None, {}, data)
        if frame.event and choices is None and frame.event != "message":
            self._early.append(ProviderEvent(dialect=NAME, name=frame.event, data=data))
            return self._begin() if self._started else []
        self._last_envelope = data
        self._last_choice = None
        # The last usage counts: Databricks, Perplexity and Nvidia repeat it, grown, in chunks.
        usage = find_usage({**data, "choices": choices})
        self._usage = self._usage if usage is None else usage
        self._feed_envelope(data)
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

    def _feed_envelope(self, envelope: dict[str, Json]) -> None:
        """Fields before the start go to the start event; later new values to the end."""
        if not self._started:
            unread = ("usage", *_PADDING)
            self._start |= {name: envelope[name] for name in envelope if name not in unread}
            return
        for name, value in envelope.items():
            known = self._late if name in self._late else self._start
            # null does not replace a value
            is_new = name not in known or (value is not None and known[name] != value)
            if is_new and name not in _FIXED:
                self._late[name] = value

    def _begin(self) -> list[StreamEvent]:
        """The start event, with the first choice: chunks before it may lack fields."""
        # Azure and GitHub Copilot send the results of their filter first, with an empty id.
        early, self._early = self._early, []
        if self._started:
            return early
        self._started = True
        unread = {name: self._start[name] for name in self._start if name not in _FIXED}
        response_id, model = text_of(self._start.get("id")), text_of(self._start.get("model"))
        self._first = StreamStart(id=response_id, model=model, extra={NAME: unread})
        return [self._first, *early]

    def _feed_choice(self, choice: dict[str, UncheckedJson]) -> list[StreamEvent]:
        delta = choice.pop("delta", None)
        message = choice.pop("message", None)  # Perplexity sends the whole message beside the delta
        if not isinstance(delta, dict):
            delta = message if isinstance(message, dict) and not self._parts.count else {}
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and (finish or self._finish is None):
            self._finish = finish
        if finish:
            self._has_finish = True
        elif not choice.get(LOGPROBS):  # two equal tokens are two tokens
            self._last_choice = choice
        unread = {name: choice[name] for name in choice if name not in ("index", "finish_reason")}
        if not isinstance(unread.get("usage"), dict):
            unread.pop("usage", None)
        if isinstance(unread.get(LOGPROBS), dict):  # each chunk has those of its own tokens
            for name, value in unread.pop(LOGPROBS).items():
                self._logprobs.add(name, value)
            self._choice.value[LOGPROBS] = self._logprobs.value
        self._choice.add(unread)
        return self._parts.feed(delta)

    def _is_whole(self, choice: UncheckedJson) -> bool:
        """Whether another choice is whole in this chunk; if so, it is kept in `extra`."""
        match choice:
            case {
                "index": int(index),
                "delta": {"role": str()} as message,
                "finish_reason": str(),
            } if index not in self._others_open:
                rest = {name: value for name, value in choice.items() if name != "delta"}
                tool_calls = message.get("tool_calls")
                if isinstance(tool_calls, list):
                    message = {
                        **message,
                        "tool_calls": [unnumber_tool_call(tool_call) for tool_call in tool_calls],
                    }
                self._others.append({**rest, "message": message})
                return True
            case {"index": int(index)}:
                self._others_open[index] = not isinstance(choice.get("finish_reason"), str)
        return False

    def _end(self) -> list[StreamEvent]:
        self._ended = True
        parts = self._parts
        events = [*self._begin(), *parts.finish()]
        body = self._start.get("body")  # a body without a choice, see `carry_body`
        failed = isinstance(body, dict) and bool(body.get("error"))
        citations = read_citations(parts.extra, self._start | self._late)
        choice = self._choice.value
        place = parts.last.get(Text)
        notes: list[Warning] = []
        if not self._has_end:
            notes.append(make_warning("stream_end_missing"))
        tier = self._late.get("service_tier") or self._start.get("service_tier")
        finish = Finish(
            finish_reason=decode_finish(
                self._finish,
                has_tool_calls=parts.has_tool_calls,
                has_refusal=parts.has_refusal,
                failed=failed,
            ),
            usage=decode_usage(self._usage, notes, tier, reasoning_inside=self._reasoning_inside),
            warnings=tuple(notes),
            extra=extra_for(self._late, choice=choice, choices=self._others) or {NAME: {}},
            citations={} if place is None or not citations else {place: citations},
            logprobs=read_logprobs(choice, parts.last),
            message_extra=extra_for(parts.extra),
        )
        content = parts.rearranged()
        if content is not None:
            finish = self._with_content(finish, content, citations)
        return [*events, finish]

    def _with_content(
        self, finish: Finish, content: tuple[Part, ...], citations: tuple[Citation, ...]
    ) -> Finish:
        """The end of a stream whose message has other parts than its events."""
        accumulator = StreamAccumulator()
        accumulator.feed(self._first)
        accumulator.feed(finish)
        whole = accumulator.response()
        if citations:
            content = with_citations(content, citations)
        if self._choice.value.get(LOGPROBS):
            content = with_logprobs(content, self._choice.value)
        content = mark_cut(content, finish.finish_reason.reason)
        message = replace(whole.message, content=content)
        return replace(finish, response=replace(whole, message=message))


class _GrowingFields:
    """Fields that grow with each delta: lists and objects get longer; of others the last counts."""

    # The audio of a message, https://developers.openai.com/api/docs/guides/audio
    _TEXTS = ("data", "transcript")  # sent in fragments

    def __init__(self) -> None:
        self.value: dict[str, Json] = {}
        """The fields so far; the texts of an audio are whole after `finish`."""
        self._objects: dict[str, Merged] = {}
        self._fragments: dict[str, list[str]] = {name: [] for name in self._TEXTS}

    def add(self, name: str, value: Json) -> None:
        before = self.value.get(name)
        if isinstance(value, dict) and (isinstance(before, dict) or name == "audio"):
            if name not in self._objects:
                self._objects[name] = Merged()
                self._objects[name].add(before if isinstance(before, dict) else {})
            self._objects[name].add(value)
            self.value[name] = self._objects[name].value
            for field in self._TEXTS if name == "audio" else ():
                if isinstance(value.get(field), str):
                    self._fragments[field].append(value[field])
        elif isinstance(before, list) and isinstance(value, list):
            before.extend(value)
        elif value is not None or name not in self.value:
            self._objects.pop(name, None)
            self.value[name] = list(value) if isinstance(value, list) else value

    def finish(self) -> None:
        """Join the texts of an audio."""
        audio = self.value.get("audio")
        if isinstance(audio, dict):
            audio.update({name: "".join(texts) for name, texts in self._fragments.items() if texts})


class PartAssembler:
    """
    Assembles parts from the deltas of one choice; the wire does not mark where a part ends.

    Text ends where thinking or a tool call begins, thinking where text or a tool call begins.
    Tool calls stay open to the end, since their fragments may interleave.
    """

    def __init__(self, make_id: MakeId, *, think_tags: bool) -> None:
        self.text: TextSegment | None = None
        """The open text, to which a plain delta can be added directly."""
        self._extra = _GrowingFields()
        self.extra: dict[str, Json] = self._extra.value
        """Unread fields of the message."""
        self.count: int = 0
        """The number of parts so far."""
        self.has_refusal: bool = False
        self.last: dict[type[Part], int] = {}
        """The index of the last text, thinking and refusal."""
        self._thinking: _Thinking | None = None
        self._tool_calls = ToolCallAssembler(make_id, self._next_index)
        self._tags = TagSplitter() if think_tags else None
        self._tagged: _Thinking | None = None  # the thinking that came in tags
        self._refusal: list[str] = []
        self._images: list[Part] = []
        self._is_empty_text = False  # there was content, but so far only empty text
        self._filled: set[str] = set()  # fields that had a value
        self._ended: dict[int, Part] = {}

    @property
    def held(self) -> int:
        """The number of tool calls, images and details of thinking that are not ended yet."""
        details = 0 if self._thinking is None else self._thinking.held
        return len(self._tool_calls.tool_calls) + len(self._images) + details

    @property
    def has_tool_calls(self) -> bool:
        """Whether a tool call has begun."""
        return bool(self._tool_calls.tool_calls)

    def feed_plain(self, delta: dict[str, UncheckedJson]) -> list[StreamEvent]:
        """Fast path: a fragment of a tool call that has started; empty if it is anything else."""
        items = delta.get("tool_calls") if len(delta) == 1 else None
        if type(items) is not list or self.text is not None or self._thinking is not None:
            return []
        event = self._tool_calls.feed_plain(items)
        return [] if event is None else [event]

    def feed(self, delta: dict[str, UncheckedJson]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if not THINKING_FIELDS.isdisjoint(delta):
            events += self._feed_thinking(delta)
        if "content" in delta:
            events += self._feed_content(delta["content"])
        if "refusal" in delta and self._is_filled("refusal", delta["refusal"], str):
            self._refusal.append(delta["refusal"])
        if "tool_calls" in delta and self._is_filled("tool_calls", delta["tool_calls"], list):
            events += self._feed_tool_calls(delta["tool_calls"])
        if LEGACY in delta and self._is_filled(LEGACY, delta[LEGACY], dict):
            events += [] if self.has_tool_calls else self._end_content()
            events += self._tool_calls.feed_legacy(delta[LEGACY])
        self._feed_others(delta)
        if delta.get("role") not in (None, "", "assistant"):
            self.extra["role"] = delta["role"]
        return events

    def _feed_others(self, delta: dict[str, UncheckedJson]) -> None:
        """The images, which wait for the end of the text, and the unread fields."""
        for name, value in delta.items():
            images = read_images(value) if name == IMAGES else []
            self._images += images
            if name not in _KNOWN and not images:
                self._extra.add(name, value)

    def finish(self) -> list[StreamEvent]:
        """End every part."""
        events = [*self._end_content(), *self._tool_calls.finish()]
        for event in events:
            if isinstance(event, ToolCallEnd):
                self._ended[event.index] = event.tool_call
        self._extra.finish()
        for name in self._filled:
            self.extra.pop(name, None)
        return events

    def rearranged(self) -> tuple[Part, ...] | None:
        """
        The parts as a whole answer has them; None if they are those of the events.

        Text that turns out to be thinking has been passed on as text, and text may follow a tool
        call; in a message, `tool_calls` is a field beside the content.
        """
        parts = [self._ended[index] for index in sorted(self._ended)]
        first = parts[0] if parts and self._tags is not None else None
        texts = split_tags(first.text) if isinstance(first, Text) and not first.extra else parts[:1]
        content = (*texts, *parts[1:])
        ordered = (
            *(part for part in content if not isinstance(part, ToolCall)),
            *(part for part in content if isinstance(part, ToolCall)),
        )
        return None if ordered == tuple(parts) else ordered

    def _next_index(self) -> int:
        self.count += 1
        return self.count - 1

    def _is_filled(self, name: str, value: Json, wanted: type) -> bool:
        """Whether a field has a value of the wanted type; if not, it is kept as unread."""
        is_empty = isinstance(value, dict) and not any(value.values())
        if isinstance(value, wanted) and value and not is_empty:
            self._filled.add(name)
            return True
        self._keep_empty(name, value)
        return False

    def _keep_empty(self, name: str, value: Json) -> None:
        """Keep an empty field; `finish` drops it if a later delta filled it."""
        if self.extra.get(name) is None:
            self.extra[name] = value

    def _add_whole(self, part: Part) -> list[StreamEvent]:
        self.has_refusal = self.has_refusal or type(part) is Refusal
        closed, index = self._close(), self._next_index()
        self.last[type(part)], self._ended[index] = index, part
        return [*closed, ProviderEvent(dialect=NAME, part=part, index=index)]

    def _close(self) -> list[StreamEvent]:
        """End the open text or thinking."""
        ends: list[TextEnd | ReasoningEnd] = []
        if self.text is not None:
            ends.append(self.text.end())
        if self._thinking is not None:
            ends.append(self._thinking.end())
        self.text = self._thinking = None
        self._ended |= {end.index: end.part for end in ends}
        return [*ends]

    def _end_content(self) -> list[StreamEvent]:
        """End all that precedes tool calls in a whole message."""
        events = [] if self._tags is None else self._add_split(self._tags.finish(), self._tags)
        events += self._close()
        if self._is_empty_text and "content" not in self._filled:
            self.text = TextSegment(self._next_index())
            self.last[Text] = self.text.index
            events += [self.text.start(), *self._close()]
            self._filled.add("content")
        self._is_empty_text = False
        if self._refusal:
            events += self._add_whole(Refusal(text="".join(self._refusal)))
            self._refusal = []
        for image in self._images:
            events += self._add_whole(image)
        self._images = []
        return events

    def _feed_content(self, content: Json) -> list[StreamEvent]:
        if content == "":
            self._is_empty_text = self._is_empty_text or not self.has_tool_calls
        elif isinstance(content, str):
            tags = self._tags
            if tags is not None and self.count and not tags.has_begun:
                tags = self._tags = None  # as in a whole response, only the first part is searched
            if tags is None or tags.is_past:
                return self._add_text(content)
            return self._add_split(tags.feed(content), tags)
        elif isinstance(content, dict):  # as in whole responses, see `decode_parsed`
            return self._feed_part(decode_parsed(content))
        elif isinstance(content, list) and content:  # Mistral's models that think
            return [event for item in content for event in self._feed_part(read_part(item))]
        elif content is not None:
            self._keep_empty("content", content)
        return []

    def _feed_part(self, part: Part) -> list[StreamEvent]:
        extra = extra_of(part, NAME)
        if isinstance(part, Text) and not extra:
            return self._add_text(part.text) if part.text else []
        if isinstance(part, Thinking) and not extra.get("thinking"):
            marks = {name: extra[name] for name in extra if name not in ("thinking", FIELDS)}
            return self._add_thinking(part.text, marks)
        self._filled.add("content")
        return self._add_whole(part)

    def _add_text(self, text: str) -> list[StreamEvent]:
        if self.text is not None:
            return [self.text.delta(text)]
        events = self._close()
        self.text = TextSegment(self._next_index())
        self.last[Text] = self.text.index
        self._filled.add("content")
        return [*events, self.text.start(), self.text.delta(text)]

    def _add_split(self, pieces: list[tuple[bool, str]], tags: TagSplitter) -> list[StreamEvent]:
        """Add text that was searched for tags; thinking in tags may be empty."""
        events: list[StreamEvent] = []
        marks: dict[str, Json] = {TAGS: tags.tags} if tags.tags else {}
        if marks and (self._tagged is None or self._tagged is self._thinking):
            events += self._add_thinking("", marks)
            self._tagged = self._thinking
        for is_thinking, text in pieces:
            events += self._add_thinking(text, marks) if is_thinking else self._add_text(text)
        return events

    def _feed_thinking(self, delta: dict[str, UncheckedJson]) -> list[StreamEvent]:
        text, names = thinking_text(delta)
        self._filled.update(names)
        for name in REASONING_FIELDS:
            if name in delta and name not in names:
                self._keep_empty(name, delta[name])
        details = ()
        if DETAILS in delta and self._is_filled(DETAILS, delta[DETAILS], list):
            details = delta[DETAILS]
        return self._add_thinking(text, {FIELDS: names}, details) if names or details else []

    def _add_thinking(
        self, text: str, marks: dict[str, Json], details: Sequence[Json] = ()
    ) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if self._thinking is None:
            events += self._close()
            self._thinking = _Thinking(self._next_index(), marks)
            self.last[Thinking] = self._thinking.segment.index
            events.append(self._thinking.segment.start())
        text = self._thinking.feed(text, marks, details)
        if text:
            events.append(self._thinking.segment.delta(text))
        return events

    def _feed_tool_calls(self, items: list[Json]) -> list[StreamEvent]:
        events = self._close() if self.has_tool_calls else self._end_content()
        for i, item in enumerate(items):
            if is_tool_call(item):
                events += self._tool_calls.feed(item, is_first=i == 0)
            else:
                events += self._add_whole(opaque_tool_call(unnumber_tool_call(item)))
        return events


class _Thinking:
    """A thinking part in a stream, and the marks for the fields, part or tags it came from."""

    def __init__(self, index: int, marks: Mapping[str, Json]) -> None:
        self._marks = dict(marks)
        self._details: list[list[Json]] = []  # the fragments of each
        self._in_fragments: dict[tuple[str, int] | None, list[Json]] = {}  # by their key
        self.segment: ReasoningSegment = ReasoningSegment(index, {NAME: marks})

    @property
    def held(self) -> int:
        """The number of details."""
        return len(self._details)

    def feed(self, text: str, marks: Mapping[str, Json], details: Sequence[Json]) -> str:
        """Add a fragment; returns the text that it adds."""
        if marks != self._marks:
            names = dict.fromkeys((*_field_names(self._marks), *_field_names(marks)))
            self._marks.update(marks)
            if FIELDS in self._marks:
                self._marks[FIELDS] = list(names)
        if not details:
            return text
        first = len(self._details)
        for detail in details:
            fragments = self._in_fragments.get(_detail_key(detail))
            if fragments is None:
                self._details.append([detail])
            else:
                fragments.append(detail)
        # Only now: details of one chunk stay apart.
        for fragments in self._details[first:]:
            key = _detail_key(fragments[0])
            if key is not None:
                self._in_fragments[key] = fragments
        return text if self._marks.get(FIELDS) else details_text(details)

    def end(self) -> ReasoningEnd:
        extra = dict(self._marks)
        if self._details:
            extra[DETAILS] = [_join_detail(fragments) for fragments in self._details]
        self.segment.extra = {NAME: extra}
        return self.segment.end()


def _field_names(marks: Mapping[str, Json]) -> list[str]:
    """The fields that the mark `FIELDS` lists."""
    names = marks.get(FIELDS)
    return [str(name) for name in names] if isinstance(names, list) else []


def _detail_key(detail: Json) -> tuple[str, int] | None:
    """The key of a detail that is sent in fragments."""
    # Encrypted ones are sent whole, and several of them may have the same index.
    match detail:
        case {"type": "reasoning.text" | "reasoning.summary" as kind, "index": int(index)}:
            return kind, index
    return None


def _join_detail(fragments: list[UncheckedJson]) -> Json:
    """A whole detail: the fragments of its text are joined, of other fields the last one wins."""
    first: Json = fragments[0]
    if len(fragments) == 1:
        return first
    field = fragments[0]["type"].rpartition(".")[2]
    texts = [text_of(fragment.get(field)) for fragment in fragments]
    whole = Merged()
    for fragment in fragments:
        whole.add(fragment)
    return {**whole.value, field: "".join(texts)} if any(texts) else whole.value


def stream_decoder(
    *,
    new_id: NewId | None = None,
    profile: Profile = NEUTRAL_PROFILE,
    request: Request | None = None,  # noqa: ARG001
) -> StreamDecoder:
    """A decoder for a stream that a client receives."""
    return Decoder(new_id or counting_ids(), quirks_of(profile))
