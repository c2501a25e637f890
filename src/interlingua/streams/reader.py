"""The bytes of a streamed reply -> events, to its end, its failure or its cancellation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace

from interlingua.spec.contracts import Frame, StreamDecoder
from interlingua.spec.errors import SDKError
from interlingua.spec.events import ErrorEvent, Finish, StreamEvent, StreamStart
from interlingua.spec.response import FinishReason, RateLimit, Response
from interlingua.streams.accumulate import StreamAccumulator, events_from_response
from interlingua.streams.grammar import RULES, Action
from interlingua.wire.sse import SSEDecoder

_DELTAS = frozenset(kind for kind, rule in RULES.items() if rule.action is Action.DELTA)


class FrameDecoder(Protocol):
    """Bytes in, frames out: `SSEDecoder`, `JSONArrayDecoder`."""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames these bytes complete."""

    def finish(self) -> list[Frame]:
        """The frame that the end of the body completes, if any."""


class StreamReader:
    """
    One streamed reply, from its first byte to its last event.

        for chunk in chunks:
            yield from reader.feed(chunk)
            if reader.is_done: break
        yield from reader.finish()
        if reader.error: raise reader.error

    What goes wrong is kept in `error`, so that the events before it are not lost. The last
    event carries the whole response, with what `about` knows of it; `elapsed` tells how many
    milliseconds it took. `edit` may change what is not a delta on its way out.
    """

    __slots__ = (
        "_about",
        "_accumulator",
        "_decoder",
        "_edit",
        "_elapsed",
        "_frames",
        "error",
        "is_finished",
        "started",
    )

    def __init__(
        self,
        decoder: StreamDecoder,
        about: Response,
        elapsed: Callable[[], int],
        edit: Callable[[StreamEvent], StreamEvent] | None = None,
    ) -> None:
        self._frames: FrameDecoder = SSEDecoder()
        self._decoder = decoder
        self._about = about
        self._elapsed = elapsed
        self._edit = edit
        self._accumulator = StreamAccumulator()
        self.error: SDKError | None = None
        self.started: bool = False
        """Whether an event has been handed out."""
        self.is_finished: bool = False
        """Whether the terminal event has come: nothing that follows matters."""

    def begin(
        self,
        rate_limit: RateLimit | None,
        frames: FrameDecoder | None = None,
        decoder: StreamDecoder | None = None,
    ) -> None:
        """The head of the reply has come, which may say that it is framed another way."""
        self._about = replace(self._about, rate_limit=rate_limit)
        self._frames = frames or self._frames
        self._decoder = decoder or self._decoder

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to read."""
        return self.is_finished or self.error is not None

    def feed(self, data: bytes) -> list[StreamEvent]:
        """The events these bytes complete."""
        try:
            return self._decode(self._frames.feed(data))
        except SDKError as error:  # the framing itself broke: there are no more frames
            self.error = error
            return []

    def finish(self) -> list[StreamEvent]:
        """End of body: sets `error` if the stream was not at its end."""
        events: list[StreamEvent] = []
        try:
            if not self.is_done:
                events += self._decode(self._frames.finish())
            if not self.is_done:
                for event in self._decoder.finish():
                    self._take(event, events)
        except SDKError as error:
            self.error = error
        return events

    def fail(self, error: SDKError) -> list[StreamEvent]:
        """The last events of a stream that broke, none if it had not begun; the error keeps it."""
        if not self.started:
            return []
        events = self._accumulator.end_segments()
        partial = self._partial("error")
        error.add_facts(partial=partial)
        events.append(ErrorEvent(error=error, response=partial))
        events.append(_last(partial))
        self.is_finished = True
        return events

    def cancel(self) -> list[StreamEvent]:
        """The last events of a stream that the caller stopped."""
        events: list[StreamEvent] = []
        if not self.started:  # the grammar wants a start before the end
            self._take(StreamStart(), events)
        events += self._accumulator.end_segments()
        events.append(_last(self._partial("cancelled")))
        self.is_finished = True
        return events

    def _decode(self, frames: list[Frame]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        decode = self._decoder.feed
        accumulate = self._accumulator.feed
        try:
            for frame in frames:
                for event in decode(frame):
                    if type(event) in _DELTAS:
                        accumulate(event)
                        events.append(event)
                    else:
                        self._take(event, events)
        except SDKError as error:
            if not self.is_finished:
                self.error = error
        return events

    def _take(self, event: StreamEvent, events: list[StreamEvent]) -> None:
        if isinstance(event, StreamStart):
            about = self._about
            event = replace(
                event,
                provider=about.provider,
                request_id=about.request_id,
                warnings=(*about.warnings, *event.warnings),
            )
        self._accumulator.feed(event)
        self.started = True
        if isinstance(event, Finish):
            self.is_finished = True
            event = replace(event, response=self._whole(self._accumulator.response()))
        events.append(event if self._edit is None else self._edit(event))

    def _whole(self, response: Response) -> Response:
        about = self._about
        return replace(
            response,
            model=response.model or about.model,
            rate_limit=about.rate_limit,
            latency_ms=self._elapsed(),
        )

    def _partial(self, reason: str) -> Response:
        partial = self._whole(self._accumulator.partial())
        about = self._about
        return replace(
            partial,
            provider=about.provider,
            request_id=about.request_id,
            finish_reason=FinishReason(reason=reason),  # type: ignore[arg-type]
        )


class WholeBody:
    """Frames a reply that came whole though a stream was asked for: all of it is one frame."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[Frame]:
        """Nothing: more may follow."""
        self._pieces.append(data)
        return []

    def finish(self) -> list[Frame]:
        """The body."""
        return [Frame(data=b"".join(self._pieces).decode("utf-8", "replace"))]


class WholeDecoder:
    """Decodes it: the events that the response would have had."""

    def __init__(self, decode: Callable[[str], Response]) -> None:
        self._decode = decode

    def feed(self, frame: Frame) -> list[StreamEvent]:
        """All events."""
        return events_from_response(self._decode(frame.data))

    def finish(self) -> list[StreamEvent]:
        """None are owed."""
        return []


def _last(partial: Response) -> Finish:
    return Finish(finish_reason=partial.finish_reason, usage=partial.usage, response=partial)
