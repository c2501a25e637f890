"""Events -> stream frames."""

from __future__ import annotations

from typing import Any, assert_never

from interlingua.dialects.bedrock_converse.content import (
    encode_citations,
    is_native,
    show_part,
)
from interlingua.dialects.bedrock_converse.errors import exception_of
from interlingua.dialects.bedrock_converse.facts import NAME
from interlingua.dialects.bedrock_converse.response import (
    OWN,
    encode_stop_reason,
    encode_usage,
)
from interlingua.spec.content import Json
from interlingua.spec.contracts import Frame, StreamEncoder
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepStart,
    StreamEvent,
    StreamRestart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResultEvent,
)
from interlingua.spec.request import Request
from interlingua.streams.declared_calls import declared_encoder
from interlingua.streams.frames import json_frame
from interlingua.streams.grammar import SequentialEncoder
from interlingua.wire.fields import extra_of
from interlingua.wire.json_text import dump_text
from interlingua.wire.tool_calls import ArgumentText

_REASONING = ("text", "signature")
_STOP_FIELDS = ("additionalModelResponseFields",)
"""The field of `MessageStopEvent` beside the reason; the others are of the metadata."""


class Encoder(SequentialEncoder):
    """One block is open at a time; blocks are numbered as they open, not by the events' indexes."""

    def __init__(self) -> None:
        super().__init__()
        self._index = -1
        self._is_open = False  # a block has begun: only tool calls have a start of their own
        self._arguments = ArgumentText()
        self._native = False
        self._extra: dict[str, Json] = {}

    def _encode(self, event: StreamEvent) -> list[Frame]:
        match event:
            case TextDelta():
                return [self._delta(text=event.delta)]
            case ToolCallDelta() | ReasoningDelta():
                return self._other_delta(event)
            case TextStart() | ReasoningStart():
                self._index += 1
                self._is_open = False
                return []
            case ToolCallStart():
                return [self._tool_start(event)]
            case TextEnd() | ReasoningEnd() | ToolCallEnd():
                return self._end(event)
            case ProviderEvent():
                return self._provider_event(event)
            case StreamStart():
                self._native = NAME in event.extra
                self._extra = dict(extra_of(event, NAME))
                return [json_frame({"role": "assistant"}, "messageStart")]
            case Finish() | ErrorEvent():
                return self._finish(event)
            case ToolResultEvent() | StepStart() | StepFinish() | StreamRestart():
                return []  # events of runs and retries, which the API does not have
        assert_never(event)

    def _other_delta(self, event: ToolCallDelta | ReasoningDelta) -> list[Frame]:
        if isinstance(event, ReasoningDelta):
            return [self._delta(reasoningContent={"text": event.delta})] if event.delta else []
        text = self._arguments.feed(event.delta)
        return [self._delta(toolUse={"input": text})] if text else []

    def _tool_start(self, event: ToolCallStart) -> Frame:
        self._index += 1
        self._is_open = True
        is_free = self._native or event.tool_type == "custom"  # native text stays unchanged
        self._arguments = ArgumentText(wrap=not self._native, is_free=is_free)
        start = {"toolUseId": event.tool_call_id, "name": event.name, **extra_of(event, NAME)}
        return self._start({"toolUse": start})

    def _start(self, start: dict[str, Json]) -> Frame:
        data = {"start": start, "contentBlockIndex": self._index}
        return json_frame(data, "contentBlockStart")

    def _delta(self, **delta: Json) -> Frame:
        self._is_open = True
        data = {"delta": delta, "contentBlockIndex": self._index}
        return json_frame(data, "contentBlockDelta")

    def _stop(self) -> Frame:
        return json_frame({"contentBlockIndex": self._index}, "contentBlockStop")

    def _end(self, event: TextEnd | ReasoningEnd | ToolCallEnd) -> list[Frame]:
        frames: list[Frame] = []
        if isinstance(event, ToolCallEnd):
            text = self._arguments.end(event.tool_call)
            frames += [self._delta(toolUse={"input": text})] if text else []
        elif isinstance(event, TextEnd):
            if not self._is_open:
                frames.append(self._delta(text=""))
            frames += [self._delta(citation=each) for each in encode_citations(event.part)]
        elif is_native(event.part):
            if event.part.signature is not None:  # the last delta of a block of reasoning
                frames.append(self._delta(reasoningContent={"signature": event.part.signature}))
            elif not self._is_open:
                frames.append(self._delta(reasoningContent={"text": ""}))
        elif not self._is_open:  # another model's thinking may have no visible text
            self._index -= 1
            return []
        return [*frames, self._stop()]

    def _provider_event(self, event: ProviderEvent) -> list[Frame]:
        if event.part is None:
            is_own = event.dialect == NAME and event.name is not None
            return [json_frame(event.data, event.name)] if is_own else []
        block: Any = show_part(event.part, native=self._native)
        if block is None:
            return []
        self._index += 1
        return [*self._whole(block), self._stop()]

    def _whole(self, block: dict[str, Any]) -> list[Frame]:
        """A block at once: redacted reasoning, text, or what a start and its deltas hold."""
        match block:
            case {"reasoningContent": {"reasoningText": dict(reasoning)}}:
                # `ReasoningContentBlockDelta` has one of the two.
                pairs = [(name, reasoning[name]) for name in _REASONING if name in reasoning]
                return [self._delta(reasoningContent={name: value}) for name, value in pairs]
            case {"reasoningContent": {"redactedContent": str(data)}}:
                return [self._delta(reasoningContent={"redactedContent": data})]
            case {"text": str(text)}:
                return [self._delta(text=text)]
            case {"toolResult": {"content": list(content), **start}}:
                opening: dict[str, Any] = {"toolResult": start}
                return [self._start(opening), self._delta(toolResult=content)]
            case {"toolUse": {"input": given, **start}}:
                opening = {"toolUse": start}
                return [self._start(opening), self._delta(toolUse={"input": dump_text(given)})]
            case {"image": {"source": source, **start}}:  # `ImageBlockStart` has only the format
                opening = {"image": start}
                return [self._start(opening), self._delta(image={"source": source})]
        return [self._start(block)]

    def _finish(self, event: Finish | ErrorEvent) -> list[Frame]:
        if isinstance(event, ErrorEvent):
            name, body = exception_of(event.error)
            return [json_frame(body, name)]
        native = self._native or NAME in event.extra
        extra = {**self._extra, **extra_of(event, NAME)}
        for name in OWN:
            extra.pop(name, None)
        stop: dict[str, Json] = {
            "stopReason": encode_stop_reason(event.finish_reason, native=native)
        }
        stop |= {name: extra.pop(name) for name in _STOP_FIELDS if name in extra}
        metadata = {
            "usage": encode_usage(event.usage, extra, native=native),
            "metrics": {"latencyMs": event.latency_ms or 0},
            **extra,
        }
        if native and "metrics" not in extra:
            del metadata["metrics"]
        return [json_frame(stop, "messageStop"), json_frame(metadata, "metadata")]


def stream_encoder(request: Request | None = None) -> StreamEncoder:
    """Return an encoder for the stream that a server sends."""
    return declared_encoder(Encoder(), request)
