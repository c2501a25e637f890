"""Reading a streamed reply in short steps, so that a large one does not hold up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import perf_counter
from typing import Self

from interlingua.spec.contracts import Frame, HttpReply
from interlingua.spec.errors import RequestTimeoutError
from interlingua.streams.reader import FrameDecoder

LARGE = 1024 * 1024
"""Bytes from which an answer is decoded, or a request encoded, in a thread."""
_PIECE = 32 * 1024
_BATCH = 256


class FrameBatches:
    """
    The frames of a reply, at most 256 at a time; between two batches other tasks run.

    `content_at` is the time of the last content event; its reader sets it. A stream that sends
    only pings for `stream_content` seconds is a `RequestTimeoutError`.
    """

    __slots__ = ("_chunks", "_feed", "_rest", "_stream_content", "content_at")

    def __init__(
        self, reply: HttpReply, frames: FrameDecoder, stream_content: float | None
    ) -> None:
        self._chunks = reply.chunks()
        self._feed = frames.feed
        self._rest: Iterator[list[Frame]] | None = None  # of a large chunk
        self._stream_content = stream_content
        self.content_at: float = perf_counter()

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
        if len(chunk) <= _PIECE:
            frames = self._feed(chunk)
            if len(frames) <= _BATCH:
                return frames
            self._rest = _split(frames)
        else:
            self._rest = self._feed_slowly(chunk)
        return next(self._rest)

    def _feed_slowly(self, chunk: bytes) -> Iterator[list[Frame]]:
        for at in range(0, len(chunk), _PIECE):
            yield from _split(self._feed(chunk[at : at + _PIECE]))


def _split(frames: list[Frame]) -> Iterator[list[Frame]]:
    for at in range(0, len(frames) or 1, _BATCH):
        yield frames[at : at + _BATCH]


def _no_content(seconds: float) -> RequestTimeoutError:
    return RequestTimeoutError(
        f"timed out: the stream sent no content for {seconds:g} s, only pings "
        "(stream_content timeout)",
        phase="stream_content",
        retryable=False,
    )
