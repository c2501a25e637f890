"""A turn in a dialect: the response, and the frames of the stream that says the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from interlingua import dialects
from interlingua.serving.errors import as_error
from interlingua.serving.routes import serve_of
from interlingua.simulator.counting import PrefixCache, count_usage
from interlingua.simulator.dsl import Duplicate, Malformed, Turn
from interlingua.simulator.reply_headers import request_id
from interlingua.spec.content import Part, Refusal, Thinking, ToolCall
from interlingua.spec.contracts import Frame
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.spec.serve import ServerFacts
from interlingua.streams.accumulate import events_from_response
from interlingua.wire.sse import encode_sse

_words = re.compile(r"\S+\s*|\s+").findall


def make_response(
    turn: Turn, request: Request, dialect: str, number: int, cache: PrefixCache
) -> Response:
    """The turn as a response of this vendor to the request of that number."""
    facts = serve_of(dialect).SERVER
    parts = tuple(
        _as_theirs(part, dialect, facts, f"{number:04d}{index:02d}")
        for index, part in enumerate(turn.parts)
    )
    usage = turn.usage
    if usage is None:
        usage = count_usage(request, parts, cache)
    return Response(
        id=f"{facts.response_prefix}simulated{number:06d}",
        model=request.model,
        message=Message(role="assistant", content=parts),
        finish_reason=turn.finish_reason or _finish_reason(parts, facts),
        usage=usage,
    )


def make_frames(
    turn: Turn, response: Response, request: Request, dialect: str, number: int
) -> list[Frame]:
    """The frames of its stream, broken where the turn says so."""
    encoder = dialects.get(dialect).stream_encoder(request)
    failure = turn.late_failure
    groups: list[list[Frame]] = []
    last_end = -1
    for event in _events(response, turn.pieces, serve_of(dialect).SERVER.ping):
        if failure is not None and isinstance(event, Finish):
            break
        if isinstance(event, (TextEnd, ReasoningEnd, ToolCallEnd)):
            last_end = len(groups)
        groups.append(encoder.feed(event))
    if failure is not None:
        if last_end >= 0:
            groups[last_end] = []  # a stream fails in the middle of a part, not after it
        error = as_error(dialect, failure, model=response.model, request_id=request_id(number))
        groups.append(encoder.feed(ErrorEvent(error=error)))
    groups.append(encoder.finish())
    frames = [frame for group in groups for frame in group]
    for fault in turn.faults:
        if isinstance(fault, Malformed):
            frames = _spoil(frames, fault.event)
        elif isinstance(fault, Duplicate):
            frames = _repeat(frames, fault.event)
    return frames


def sse_chunks(frames: list[Frame]) -> Iterator[bytes]:
    """The frames as server-sent events."""
    return (encode_sse(frame) for frame in frames)


def array_chunks(frames: list[Frame]) -> Iterator[bytes]:
    """The frames as the items of one JSON array, for dialects that stream so without SSE."""
    for index, frame in enumerate(frames):
        yield f"{',' if index else '['}{frame.data}\r\n".encode("utf-8", "backslashreplace")
    yield b"]" if frames else b"[]"


def _as_theirs(part: Part, dialect: str, facts: ServerFacts, tail: str) -> Part:
    """The part with the ids and marks this vendor gives it."""
    if isinstance(part, ToolCall) and not part.id:
        return msgspec.structs.replace(part, id=f"{facts.call_prefix}simulated{tail}")
    if isinstance(part, Thinking) and not part.extra:
        if facts.thinking_prefix is None:
            return msgspec.structs.replace(part, extra={dialect: {}})
        mark = {dialect: {"id": f"{facts.thinking_prefix}simulated{tail}"}}
        return msgspec.structs.replace(part, signature=None, data=part.signature, extra=mark)
    return part


def _finish_reason(parts: tuple[Part, ...], facts: ServerFacts) -> FinishReason:
    if any(isinstance(part, ToolCall) for part in parts):
        return FinishReason(reason="tool_calls")
    if any(isinstance(part, Refusal) for part in parts):
        return FinishReason(reason=facts.refusal)
    return FinishReason(reason="stop")


def _events(
    response: Response, size: int | None, ping: StreamEvent | None
) -> Iterator[StreamEvent]:
    for event in events_from_response(response):
        if isinstance(event, StreamStart):
            usage = response.usage
            known = Usage(
                input_tokens=usage.input_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
            )
            yield msgspec.structs.replace(event, usage=known)
        elif isinstance(event, (TextDelta, ReasoningDelta, ToolCallDelta)):
            for piece in _split(event.delta, size):
                yield msgspec.structs.replace(event, delta=piece)
        else:
            yield event
        if ping is not None and isinstance(event, (TextStart, ReasoningStart, ToolCallStart)):
            yield ping
            ping = None


def _split(delta: str, size: int | None) -> list[str]:
    if size is None:
        return _words(delta)
    return [delta[start : start + size] for start in range(0, len(delta), size)]


def _spoil(frames: list[Frame], event: int) -> list[Frame]:
    """One frame's data loses its second half."""
    if not -len(frames) <= event < len(frames):
        return frames
    spoiled = list(frames)
    data = frames[event].data
    spoiled[event] = msgspec.structs.replace(frames[event], data=data[: len(data) // 2])
    return spoiled


def _repeat(frames: list[Frame], event: int) -> list[Frame]:
    if not -len(frames) <= event < len(frames):
        return frames
    event %= len(frames)
    return [*frames[: event + 1], *frames[event:]]
