"""Stream frames -> events."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_chat.calls import unnumber_calls
from interlingua.dialects.openai_chat.errors import read_error
from interlingua.dialects.openai_chat.quirks import ChatQuirks
from interlingua.dialects.openai_chat.response import (
    CHOICE,
    CHOICES,
    call_id,
    decode_finish,
    decode_usage,
    find_usage,
)
from interlingua.dialects.openai_chat.stream_parts import PartAssembler
from interlingua.dialects.openai_chat.wire import NAME
from interlingua.spec.content import Json
from interlingua.spec.contracts import Frame, NewId
from interlingua.spec.errors import StreamError
from interlingua.spec.events import Finish, ProviderEvent, StreamEvent, StreamStart
from interlingua.wire.frames import DONE, read_frame
from interlingua.wire.options import merge

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
        self._parts = PartAssembler(lambda: call_id(new_id), think_tags=quirks.think_tags)
        self._quirks = quirks
        # The last chunk without its choices, and its choice without its delta: a chunk that
        # is equal in both, as nearly all are, has nothing to say but its delta.
        self._last_envelope: dict[str, Any] | None = None
        self._last_choice: dict[str, Any] | None = None
        self._start: dict[str, Any] = {}
        self._late: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._others: list[Json] = []
        self._other_indexes: set[int] = set()
        self._open_indexes: set[int] = set()
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
                    return self._parts.feed(delta)
                choice["delta"] = delta
        return self._feed_chunk(frame, data, choices)

    def finish(self) -> list[StreamEvent]:
        if self._ended:
            return []
        is_told = self._has_last_usage or not self._quirks.done_sentinel
        if self._has_finish and is_told and not self._open_indexes:
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
        usage = find_usage(data if choices is None else {**data, "choices": choices})
        if usage is not None:
            self._usage = usage
        self._learn(data)
        if not isinstance(choices, list) or not choices:
            self._has_last_usage = self._has_last_usage or (self._has_finish and bool(usage))
            return []
        events = self._begin()
        others: list[Json] = []
        for choice in choices:
            if isinstance(choice, dict) and choice.get("index") in (None, 0):
                events += self._feed_choice(choice)
            elif not self._is_whole(choice):
                others.append(choice)
        if others:
            chunk = {**data, "choices": others}
            events.append(ProviderEvent(dialect=NAME, name="choice", data=chunk))
        self._has_last_usage = self._has_last_usage or (self._has_finish and bool(usage))
        return events

    def _learn(self, envelope: dict[str, Any]) -> None:
        """Fields of the envelope: the first word goes to the start, later ones to the end."""
        if not self._started:
            told = {name: value for name, value in envelope.items() if name not in _PADDING}
            told.pop("usage", None)
            self._start = {**self._start, **told}
            return
        for name, value in envelope.items():
            if name not in _FIXED and self._is_news(name, value):
                self._late[name] = value

    def _is_news(self, name: str, value: Json) -> bool:
        """Whether a field says something it has not said: null says nothing."""
        known = self._late if name in self._late else self._start
        return name not in known or (value is not None and known[name] != value)

    def _begin(self) -> list[StreamEvent]:
        """Say the start once: with the first choice, as what comes before is not all of it."""
        held, self._held = self._held, []
        if self._started:
            return held
        self._started = True
        left = dict(self._start)
        left.pop("object", None)
        response_id, model = left.pop("id", None), left.pop("model", None)
        return [
            StreamStart(
                id=response_id if isinstance(response_id, str) else "",
                model=model if isinstance(model, str) else "",
                extra={NAME: left},
            ),
            *held,
        ]

    def _feed_choice(self, choice: dict[str, Any]) -> list[StreamEvent]:
        delta = choice.pop("delta", None)
        message = choice.pop("message", None)  # all so far, at some servers
        if not isinstance(delta, dict):
            delta = message if isinstance(message, dict) and not self._parts.has_content else {}
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and (finish or self._finish is None):
            self._finish = finish
        if finish:
            self._has_finish = True
        else:
            self._last_choice = choice
        for name, value in choice.items():
            if name not in ("index", "finish_reason", "usage"):
                self._learn_choice(name, value)
        if isinstance(choice.get("usage"), dict):
            self._choice["usage"] = choice["usage"]
        return self._parts.feed(delta)

    def _learn_choice(self, name: str, value: Json) -> None:
        before = self._choice.get(name)
        if name == "logprobs" and isinstance(value, dict):
            _add_logprobs(self._choice, value)
            return
        if isinstance(before, dict) and isinstance(value, dict):
            value = merge(before, value)
        elif value is None and name in self._choice:
            return
        self._choice[name] = value

    def _is_whole(self, choice: Json) -> bool:
        """Whether another choice is all in this chunk; if so it is kept as it is."""
        match choice:
            case {"index": int(index), "delta": {"role": str()} as message, "finish_reason": str()}:
                self._open_indexes.discard(index)
                if index not in self._other_indexes:
                    rest = {name: value for name, value in choice.items() if name != "delta"}
                    self._others.append({**rest, "message": unnumber_calls(message)})
                    return True
            case {"index": int(index), "finish_reason": str()}:
                self._open_indexes.discard(index)
            case {"index": int(index)}:
                self._other_indexes.add(index)
                self._open_indexes.add(index)
        return False

    def _end(self) -> list[StreamEvent]:
        self._ended = True
        events = self._begin()
        events += self._parts.finish()
        body = self._start.get("body")  # of an answer that was none
        failed = isinstance(body, dict) and bool(body.get("error"))
        extra = dict(self._late)
        if self._choice:
            extra[CHOICE] = self._choice
        if self._others:
            extra[CHOICES] = self._others
        events.append(
            Finish(
                finish_reason=decode_finish(
                    self._finish, has_calls=self._parts.has_calls, failed=failed
                ),
                usage=decode_usage(self._usage),
                extra={NAME: extra},
                message_extra={NAME: self._parts.extra} if self._parts.extra else {},
            )
        )
        return events


def _add_logprobs(choice: dict[str, Any], more: dict[str, Any]) -> None:
    """Each chunk has those of its own tokens."""
    joined = choice.get("logprobs")
    if not isinstance(joined, dict):
        joined = choice["logprobs"] = {}
    for name, value in more.items():
        present = joined.get(name)
        if isinstance(present, list) and isinstance(value, list):
            present.extend(value)
        elif value is not None or name not in joined:
            joined[name] = list(value) if isinstance(value, list) else value
