"""Events -> stream frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.dialects.gemini_generate.calls import encode_call
from interlingua.dialects.gemini_generate.content import encode_answer_part, is_signed
from interlingua.dialects.gemini_generate.errors import error_body
from interlingua.dialects.gemini_generate.facts import ABSENT, NAME, NO_REASON, SIGNATURE
from interlingua.dialects.gemini_generate.response import (
    encode_finish,
    write_content,
    write_envelope,
)
from interlingua.spec.contracts import (
    Frame,
    StreamEncoder,
)
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallEnd,
)
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.frames import json_frame
from interlingua.streams.grammar import Grammar, Sequencer
from interlingua.wire.fields import extra_of, merge


class _Text:
    """A text or thought that is being sent: what each of its pieces carries."""

    __slots__ = ("follows_alike", "is_held", "is_sent", "kept")

    def __init__(self, kept: dict[str, Any], *, is_held: bool, follows_alike: bool) -> None:
        self.kept = kept
        self.is_held = is_held
        self.is_sent = False
        self.follows_alike = follows_alike


class Encoder:
    """Each delta is a frame; what is only known at the end is in the last one."""

    def __init__(self) -> None:
        self._grammar = Grammar()
        self._sequencer = Sequencer()  # parts have no numbers here, only an order
        self._start = StreamStart()
        self._candidate: dict[str, Any] = {}  # what is said in each frame
        self._content: dict[str, Any] = {}
        self._texts: dict[str, _Text] = {}
        self._last: dict[str, Any] | None = None  # what the text just sent carried
        self._sent = False
        self._failed = False

    def feed(self, event: StreamEvent) -> list[Frame]:
        self._grammar.feed(event)
        return [frame for due in self._sequencer.feed(event) for frame in self._say(due)]

    def finish(self) -> list[Frame]:
        if not self._failed:
            self._grammar.finish()
        return []

    def _say(self, event: StreamEvent) -> list[Frame]:
        match event:
            case TextDelta() | ReasoningDelta():
                return self._delta(event.id, event.delta)
            case TextStart() | ReasoningStart():
                self._open(event)
            case TextEnd() | ReasoningEnd():
                return self._end(event)
            case ToolCallEnd():
                return self._whole([encode_call(event.tool_call)])
            case ProviderEvent():
                return self._provider_event(event)
            case StreamStart():
                self._begin(event)
            case ErrorEvent():
                self._failed = True
                return [json_frame(error_body(event.error))]
            case Finish():
                return [] if self._failed else self._finish(event)
        return []

    def _begin(self, event: StreamStart) -> None:
        self._start = event
        candidate = extra_of(event, NAME).get("candidate")
        if NAME not in event.extra:
            self._candidate = {"index": 0}
        elif isinstance(candidate, Mapping):
            if candidate.get("index", 0) != 0:
                self._candidate = {"index": candidate["index"]}
            content = candidate.get("content")
            if isinstance(content, Mapping) and "role" in content.get(ABSENT, ()):
                self._content = {ABSENT: ["role"]}

    def _frame(self, parts: list[Any]) -> list[Frame]:
        self._sent = True
        candidate = {"content": write_content(self._content, parts), **self._candidate}
        body: dict[str, Any] = {"candidates": [candidate]}
        if self._start.model:
            body["modelVersion"] = self._start.model
        if self._start.id:
            body["responseId"] = self._start.id
        return [json_frame(body)]

    # Text. A signed text is sent whole, with its signature; the signature of a thought follows
    # it. Text that follows its like would be read as more of it: an empty piece in the same
    # frame keeps them apart.

    def _open(self, event: TextStart | ReasoningStart) -> None:
        kept = dict(extra_of(event, NAME))
        if isinstance(event, ReasoningStart):
            kept["thought"] = True
        held = isinstance(event, TextStart) and kept.get(SIGNATURE) is not None
        alike = not held and self._last == kept
        self._texts[event.id] = _Text(kept, is_held=held, follows_alike=alike)
        self._last = None

    def _delta(self, id: str, delta: str) -> list[Frame]:  # noqa: A002 -- the event's word
        text = self._texts[id]
        if text.is_held:
            return []
        text.is_sent = True
        parts = [{"text": delta, **text.kept}]
        if text.follows_alike:
            parts.insert(0, {"text": "", **text.kept})
            text.follows_alike = False
        return self._frame(parts)

    def _end(self, event: TextEnd | ReasoningEnd) -> list[Frame]:
        text = self._texts[event.id]
        if text.is_held and isinstance(event, TextEnd):
            return self._whole(encode_answer_part(event.part))
        if not text.is_sent and not encode_answer_part(event.part):
            return []  # another model's thought, without words
        frames = [] if text.is_sent else self._delta(event.id, "")
        self._last = text.kept
        if is_signed(event.part):  # a text's is late; only a part of its own can say it
            for signed in encode_answer_part(event.part):
                if SIGNATURE in signed:
                    frames += self._whole([{**signed, "text": ""}])
        return frames

    def _whole(self, parts: list[Any]) -> list[Frame]:
        self._last = None
        return self._frame(parts) if parts else []

    def _provider_event(self, event: ProviderEvent) -> list[Frame]:
        if event.part is not None:
            return self._whole(encode_answer_part(event.part))
        return [json_frame(event.data)] if event.dialect == NAME else []

    def _finish(self, event: Finish) -> list[Frame]:
        start = self._start
        kept = merge(extra_of(start, NAME), extra_of(event, NAME))
        if "body" in kept:  # it was no answer
            return [json_frame(kept["body"])]
        native = NAME in start.extra or NAME in event.extra
        envelope = Response(
            id=start.id,
            model=start.model,
            finish_reason=event.finish_reason,
            usage=event.usage,
            extra={NAME: {}} if native else {},
        )
        has_reason = encode_finish(event.finish_reason, native=native) is not None
        parts: list[Any] | None = None if self._sent else []
        if self._sent and has_reason:
            parts = [{"text": ""}]  # as the API itself ends; clients look for parts
        frames = [json_frame(write_envelope(envelope, kept, parts))]
        return frames if has_reason else [*frames, json_frame(NO_REASON)]


def stream_encoder(request: Request | None = None) -> StreamEncoder:  # noqa: ARG001
    """For a stream a server sends."""
    return Encoder()
