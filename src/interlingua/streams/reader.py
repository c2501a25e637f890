"""
From the bytes of a streamed reply to events.

    reader = StreamReader(decoder, known, elapsed)
    for chunk in chunks:
        for frame in reader.frames.feed(chunk):
            for event in reader.decoder.feed(frame):
                yield reader.label(event)
            if reader.is_finished: return
    yield from reader.finish()

The caller runs the loop, so that it gets each event before the next frame is decoded: a bad frame
does not lose the events before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec.structs import replace

from interlingua.spec.content import Part, UncheckedJson
from interlingua.spec.contracts import Frame, StreamDecoder
from interlingua.spec.errors import DecodeError
from interlingua.spec.events import (
    Finish,
    ReasoningEnd,
    StreamEvent,
    StreamStart,
    TextEnd,
    ToolCallEnd,
)
from interlingua.spec.response import Response
from interlingua.wire.json_text import loads
from interlingua.wire.sse import SSEDecoder


class FrameDecoder(Protocol):
    """Bytes in, frames out: `SSEDecoder`, `JSONArrayDecoder`."""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete."""

    def finish(self) -> list[Frame]:
        """The frame that the end of the body completes, if any."""


class FrameRecorder:
    """A frame decoder that also keeps the data of each frame."""

    def __init__(self, frames: FrameDecoder) -> None:
        self._frames = frames
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete."""
        return self._keep(self._frames.feed(data))

    def finish(self) -> list[Frame]:
        """The frame that the end of the body completes, if any."""
        return self._keep(self._frames.finish())

    def raw(self) -> list[UncheckedJson]:
        """The data so far as JSON; what is not JSON (`[DONE]`) as text."""
        return [_read_json(data) for data in self._data]

    def _keep(self, frames: list[Frame]) -> list[Frame]:
        self._data += [frame.data for frame in frames]
        return frames


def _read_json(text: str) -> UncheckedJson:
    try:
        return loads(text)
    except DecodeError:
        return text


class StreamReader:
    """
    Decodes one streamed reply.

    `known` has what the caller knows about the answer: provider, request id, model, warnings and
    rate limit. `elapsed` returns the milliseconds since the request was sent. `edit` may change
    events that are not deltas. `check` may reject a whole response at the end of the body.
    `estimate` returns the `Finish` for an answer of these parts whose usage was not reported;
    `price` returns the one with its cost, from it and the name of the model. With `keep_raw`,
    `Finish` gets the data of all frames.
    """

    __slots__ = (
        "_check",
        "_edit",
        "_elapsed",
        "_estimate",
        "_known",
        "_parts",
        "_price",
        "_recorder",
        "decoder",
        "frames",
        "is_finished",
        "is_started",
    )

    def __init__(
        self,
        decoder: StreamDecoder,
        known: Response,
        elapsed: Callable[[], int],
        *,
        frames: FrameDecoder | None = None,
        edit: Callable[[StreamEvent], StreamEvent] | None = None,
        check: Callable[[Response], None] | None = None,
        estimate: Callable[[Finish, tuple[Part, ...]], Finish] | None = None,
        price: Callable[[Finish, str], Finish] | None = None,
        keep_raw: bool = False,
    ) -> None:
        self.frames: FrameDecoder = frames or SSEDecoder()
        self._recorder = FrameRecorder(self.frames) if keep_raw else None
        self.frames = self._recorder or self.frames
        self.decoder: StreamDecoder = decoder
        self._known = known
        self._elapsed = elapsed
        self._edit = edit
        self._check = check
        self._estimate = estimate
        self._price = price
        self._parts: list[Part] = []
        self.is_finished: bool = False
        """Whether `Finish` was read; what follows is ignored."""
        self.is_started: bool = False
        """Whether `StreamStart` was read."""

    def finish(self) -> Iterator[StreamEvent]:
        """The events that the end of the body completes; `StreamError` if it is too early."""
        for frame in self.frames.finish():
            for event in self.decoder.feed(frame):
                yield self.label(event)
        if self.is_finished:
            return
        events = self.decoder.finish()
        last = events[-1] if events else None
        if self._check is not None and type(last) is Finish and last.response is not None:
            self._check(last.response)
        for event in events:
            yield self.label(event)

    def label(self, event: StreamEvent) -> StreamEvent:
        """The event with what only the caller knows, such as the provider and the latency."""
        known = self._known
        if type(event) is StreamStart:
            self.is_started = True
            event = replace(
                event,
                model=event.model or known.model,
                provider=known.provider,
                request_id=known.request_id,
                provider_request_id=known.provider_request_id,
                warnings=(*known.warnings, *event.warnings),
                rate_limit=known.rate_limit,
            )
            self._known = replace(known, model=event.model)
        elif type(event) is Finish:
            self.is_finished = True
            raw = None if self._recorder is None else self._recorder.raw()
            event = replace(event, latency_ms=self._elapsed(), raw=raw)
            usage = event.usage
            if self._estimate is not None and not usage.is_known:
                event = self._estimate(event, tuple(self._parts))
            if self._price is not None:
                answer = event.response
                event = self._price(event, known.model if answer is None else answer.model)
        elif type(event) is TextEnd or type(event) is ReasoningEnd:
            self._parts.append(event.part)
        elif type(event) is ToolCallEnd:
            self._parts.append(event.tool_call)
        return event if self._edit is None else self._edit(event)
