"""Streamed replies, read in short steps, so that a large one does not hold up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import dropwhile
from time import perf_counter
from typing import Self

from interlingua.providers.replies import STEP
from interlingua.spec.content import UncheckedJson
from interlingua.spec.contracts import Frame, HttpReply
from interlingua.spec.errors import RequestTimeoutError, SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.response import Response
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.reader import FrameDecoder
from interlingua.wire.json_text import loads

HELD = 256
"""Parts that a decoder may hold back for its last frame; with more it is read in a thread."""
_BATCH = 256  # frames that are passed on in one step


class WholeBody:
    """The frame decoder for a reply that is not streamed: the whole body is one frame."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[Frame]:
        """No frames before the end of the body."""
        self._pieces.append(data)
        return []

    def finish(self) -> list[Frame]:
        """The whole body as one frame."""
        return [Frame(data=b"".join(self._pieces).decode("utf-8", "replace"))]


class WholeDecoder:
    """Decodes the frame of `WholeBody` into the events of the whole response."""

    __slots__ = ("_decode",)

    def __init__(self, decode: Callable[[UncheckedJson], Response]) -> None:
        self._decode = decode

    def feed(self, frame: Frame) -> list[StreamEvent]:
        """All events of the response."""
        return events_from_response(self._decode(loads(frame.data)))

    def finish(self) -> list[StreamEvent]:
        """No events: `feed` returned all of them."""
        return []


class FrameBatches:
    """
    The frames of a reply, at most 256 at a time; between two batches other tasks run.

    `content_at` is the time of the last content event; its reader sets it. A stream that sends
    only pings for `stream_content` seconds is a `RequestTimeoutError`. `size` is the number of
    bytes so far.
    """

    __slots__ = ("_chunks", "_feed", "_rest", "_stream_content", "content_at", "size")

    def __init__(
        self, reply: HttpReply, frames: FrameDecoder, stream_content: float | None
    ) -> None:
        self._chunks = reply.chunks()
        self._feed = frames.feed
        self._rest: Iterator[list[Frame]] | None = None  # of a large chunk
        self._stream_content = stream_content
        self.content_at: float = perf_counter()
        self.size: int = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Frame]:
        if self._rest is not None:
            await asyncio.sleep(0)
            batch = next(self._rest, None)
            if batch is not None:
                return batch
            self._rest = None
        chunk = await anext(self._chunks)
        seconds = self._stream_content
        if seconds is not None and perf_counter() - self.content_at > seconds:
            raise _no_content(seconds)
        if len(chunk) <= STEP:
            self.size += len(chunk)
            frames = self._feed(chunk)
            if len(frames) <= _BATCH:
                return frames
            self._rest = _split(frames)
        else:
            self._rest = self._feed_slowly(chunk)
        return next(self._rest)

    def _feed_slowly(self, chunk: bytes) -> Iterator[list[Frame]]:
        for at in range(0, len(chunk), STEP):
            self.size += STEP
            yield from _split(self._feed(chunk[at : at + STEP]))


def _split(frames: list[Frame]) -> Iterator[list[Frame]]:
    for at in range(0, len(frames) or 1, _BATCH):
        yield frames[at : at + _BATCH]


def feed_rest(
    feed: Callable[[Frame], list[StreamEvent]], frames: list[Frame], first: Frame
) -> tuple[list[StreamEvent], SDKError | None]:
    """Decode `first` and the frames after it: their events, and the error of a bad frame."""
    rest = dropwhile(lambda frame: frame is not first, frames)
    return collect(event for frame in rest for event in feed(frame))


def collect(source: Iterable[StreamEvent]) -> tuple[list[StreamEvent], SDKError | None]:
    """The events up to `Finish` or to an error, and the error."""
    events: list[StreamEvent] = []
    try:
        for event in source:
            events.append(event)
            if type(event) is Finish:
                break
    except SDKError as error:
        return events, error
    return events, None


def _no_content(seconds: float) -> RequestTimeoutError:
    return RequestTimeoutError(
        f"Timed out: the stream sent no content for {seconds:g} s, only pings. Set a longer "
        "`Timeouts.stream_content` if the model needs it.",
        phase="stream_content",
        retryable=False,
    )
