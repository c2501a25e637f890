"""Events to a response, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import msgspec
from msgspec.structs import replace

from interlingua.spec.content import (
    Audio,
    Document,
    Extra,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.defaults import MANY_PARTS
from interlingua.spec.errors import StreamError
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
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.grammar import RULES, Action
from interlingua.streams.segments import (
    ReasoningSegment,
    Segment,
    TextSegment,
    ToolCallSegment,
    reopen,
)
from interlingua.wire.fields import merge
from interlingua.wire.json_text import dump_text
from interlingua.wire.tool_calls import mark_cut

_NO_START = StreamStart()
_LONG = 32 * 1024  # characters in open parts, or pieces of them


class StreamAccumulator:
    """
    Fold events into the response that `complete` would have given.

        accumulator = StreamAccumulator()
        for event in events:
            accumulator.feed(event)
        response = accumulator.response()

    `partial()` works at any moment, also after the stream failed. `StepFinish` starts a new
    message.
    """

    __slots__ = ("_finish", "_start", "open", "parts")

    def __init__(self) -> None:
        self._start = _NO_START
        self._finish: Finish | None = None
        self.open: dict[str, Segment] = {}
        """The segments that have begun and not ended, by id."""
        self.parts: dict[int, Part] = {}
        """The parts that have ended, by index."""

    def feed(self, event: StreamEvent) -> None:
        """Add one event; `StreamError` if it belongs to no open segment."""
        rule = RULES.get(type(event))
        if rule is None:
            raise StreamError(f"Not an event: {type(event).__name__}.")
        action = rule.action
        if action is Action.DELTA:
            segment = self.open.get(event.id)  # type: ignore[union-attr]
            if segment is None:
                raise StreamError(f"{event.type} for a segment that is not open.")
            segment.pieces.append(event.delta)  # type: ignore[union-attr]
        elif action is Action.START:
            segment = reopen(event)  # type: ignore[arg-type]
            if segment.id in self.open or segment.index in self.parts:
                raise StreamError(f"Two segments with the id {segment.id!r} or its index.")
            self.open[segment.id] = segment
        else:
            self._feed_rare(event)

    def process(self, event: StreamEvent) -> None:
        """Add one event, as `feed` does: other unified clients have this name for it."""
        self.feed(event)

    @property
    def has_begun(self) -> bool:
        """Whether there was any event."""
        is_started = self._start is not _NO_START or self._finish is not None
        return is_started or bool(self.open) or bool(self.parts)

    @property
    def is_large(self) -> bool:
        """Whether what concerns all parts is too much for one step of an event loop."""
        if len(self.open) + len(self.parts) > MANY_PARTS:
            return True
        pieces = [segment.pieces for segment in self.open.values()]
        if sum(map(len, pieces)) > _LONG:
            return True
        return sum(len(piece) for each in pieces for piece in each) > _LONG

    def content(self, *, parse: bool = True) -> tuple[Part, ...]:
        """
        Return the parts so far; an open part is as long as its text now.

        Without `parse`, open tool calls have their arguments only as text.
        """
        # The open ones first: a stream that was cut ends its segments in another thread.
        parts = {segment.index: _peek(segment, parse) for segment in list(self.open.values())}
        parts.update(self.parts)
        return tuple(parts[index] for index in sorted(parts))

    def response(self) -> Response:
        """Return the whole response; `StreamError` if the stream has not finished."""
        if self._finish is None:
            raise StreamError("The stream has not finished.", partial=self.partial())
        return self._fold(self._finish)

    def partial(self, *, parse: bool = True) -> Response:
        """Return the response so far, with the parts of `content`."""
        finish = self._finish or Finish(
            finish_reason=FinishReason(reason="other"), usage=self._start.usage or Usage()
        )
        return self._fold(finish, parse=parse)

    def end_segments(self) -> list[StreamEvent]:
        """Close all open segments, after a failure or cancellation; returns their end events."""
        events: list[StreamEvent] = [segment.cut() for segment in self.open.values()]
        for event in events:
            self.feed(event)
        return events

    def _feed_rare(self, event: StreamEvent) -> None:
        match event:
            case TextEnd() | ReasoningEnd():
                self._close(event.id, event.index, event.part)
            case ToolCallEnd():
                self._close(event.id, event.index, event.tool_call)
            case ProviderEvent():
                if event.part is not None and event.index is not None:
                    self.parts[event.index] = event.part
            case StreamStart():
                self._start = event
            case StreamRestart():
                self._start = event.start
                self.parts = {}
            case Finish():
                self._end(event)
            case StepFinish():
                self.parts = {}
            case (
                ErrorEvent()
                | ToolResultEvent()
                | StepStart()
                | TextStart()
                | ReasoningStart()
                | ToolCallStart()
                | TextDelta()
                | ReasoningDelta()
                | ToolCallDelta()
            ):
                pass  # `feed` handles starts and deltas
            case _:
                assert_never(event)

    def _close(self, id: str, index: int, part: Part) -> None:  # noqa: A002 -- as in events
        if id not in self.open:
            raise StreamError(f"End of a segment that is not open: {id!r}.")
        if index in self.parts:
            raise StreamError(f"Two parts with the index {index}.")
        self.parts[index] = part
        del self.open[id]

    def _end(self, finish: Finish) -> None:
        self._check_calls()
        self._finish = finish
        for index in (*finish.citations, *finish.logprobs):
            if index in self.parts:
                self.parts[index] = _with_late_fields(self.parts[index], index, finish)

    def _check_calls(self) -> None:
        """Refuse a tool call without its end at the end of the stream: it must not be run."""
        for segment in self.open.values():
            if isinstance(segment, ToolCallSegment):
                raise StreamError(
                    f"The stream finished before the end of the tool call {segment.name!r}. A "
                    "middleware that drops a call must drop all of its events."
                )

    def _fold(self, finish: Finish, *, parse: bool = True) -> Response:
        start = self._start
        if finish.response is not None:
            return _complete(finish, finish.response, start)
        return Response(
            id=start.id,
            model=start.model,
            provider=start.provider,
            message=Message(
                role="assistant",
                content=mark_cut(self.content(parse=parse), finish.finish_reason.reason),
                extra=finish.message_extra,
            ),
            finish_reason=finish.finish_reason,
            usage=finish.usage,
            cost=finish.cost,
            warnings=(*start.warnings, *finish.warnings),
            rate_limit=start.rate_limit,
            request_id=start.request_id,
            provider_request_id=start.provider_request_id,
            created_at=start.created_at,
            latency_ms=finish.latency_ms,
            raw=finish.raw,
            extra=_join(start.extra, finish.extra),
        )


def _peek(segment: Segment, parse: bool) -> Part:
    if isinstance(segment, ToolCallSegment):
        return (segment.peek() if parse else segment.unread()).tool_call
    return segment.peek().part


def with_late_fields(parts: Mapping[int, Part], finish: Finish) -> list[Part]:
    """The parts of a stream in their order, with what came only at its end."""
    return [_with_late_fields(parts[index], index, finish) for index in sorted(parts)]


def _with_late_fields(part: Part, index: int, finish: Finish) -> Part:
    if isinstance(part, Text) and index in finish.citations:
        part = replace(part, citations=finish.citations[index])
    if isinstance(part, (Text, Refusal, Thinking)) and index in finish.logprobs:
        part = replace(part, logprobs=finish.logprobs[index])
    return part


def events_from_response(response: Response) -> list[StreamEvent]:
    """Return the events of a whole response, each part in one delta."""
    events: list[StreamEvent] = [
        StreamStart(
            id=response.id,
            model=response.model,
            provider=response.provider,
            request_id=response.request_id,
            provider_request_id=response.provider_request_id,
            created_at=response.created_at,
            warnings=response.warnings,
            rate_limit=response.rate_limit,
            extra=response.extra,
        )
    ]
    for index, part in enumerate(response.message.content):
        events += _replay_part(index, part)
    events.append(
        Finish(
            finish_reason=response.finish_reason,
            usage=response.usage,
            cost=response.cost,
            latency_ms=response.latency_ms,
            message_extra=response.message.extra,
        )
    )
    return events


def _replay_part(index: int, part: Part) -> list[StreamEvent]:
    segment: Segment
    if isinstance(part, Text):
        segment = TextSegment(index, part.extra)
        end: StreamEvent = TextEnd(id=segment.id, index=index, part=part)
        delta: StreamEvent = TextDelta(id=segment.id, index=index, delta=part.text)
    elif isinstance(part, Thinking) and not part.redacted:
        segment = ReasoningSegment(index, part.extra)
        end = ReasoningEnd(id=segment.id, index=index, part=part)
        delta = ReasoningDelta(id=segment.id, index=index, delta=part.text)
    elif isinstance(part, ToolCall):
        segment = ToolCallSegment(
            index,
            call_id=part.id,
            name=part.name,
            tool_type=part.type,
            namespace=part.namespace,
            extra=part.extra,
        )
        raw = part.raw_arguments
        raw = dump_text(part.arguments) if raw is None else raw
        end = ToolCallEnd(id=segment.id, index=index, tool_call=part)
        delta = ToolCallDelta(id=segment.id, index=index, delta=raw)
    elif isinstance(part, (Image, Audio, Document, ToolResult, Thinking, Refusal, Opaque)):
        return [ProviderEvent(part=part, index=index)]
    else:
        assert_never(part)
    return [segment.start(), delta, end]


def _complete(finish: Finish, response: Response, start: StreamStart) -> Response:
    """The response that `Finish` carries, with what only the stream's start and end know."""
    warnings = (*start.warnings, *response.warnings, *finish.warnings)
    latency = finish.latency_ms
    return msgspec.structs.replace(
        response,
        model=response.model or start.model,
        provider=response.provider or start.provider,
        request_id=response.request_id or start.request_id,
        provider_request_id=response.provider_request_id or start.provider_request_id,
        created_at=response.created_at or start.created_at,
        rate_limit=response.rate_limit or start.rate_limit,
        latency_ms=response.latency_ms if latency is None else latency,
        raw=response.raw if finish.raw is None else finish.raw,
        cost=response.cost if finish.cost is None else finish.cost,
        warnings=tuple(dict.fromkeys(warnings)),  # a replayed response has them in both
    )


def _join(first: Extra, then: Extra) -> Extra:
    if not then:
        return first
    joined: dict[str, Any] = dict(first)
    for dialect, value in then.items():
        earlier = joined.get(dialect)
        both = isinstance(earlier, Mapping) and isinstance(value, Mapping)
        joined[dialect] = merge(earlier, value) if both else value  # type: ignore[arg-type]
    return joined
