"""Reading a streamed reply in short steps, so that a large one does not hold up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import perf_counter

from interlingua.spec.contracts import Frame, HttpReply
from interlingua.spec.errors import RequestTimeoutError
from interlingua.streams.reader import FrameDecoder

LARGE = 1024 * 1024
"""Bytes from which an answer is decoded, or a request encoded, in a thread."""
_PIECE = 64 * 1024
_BATCH = 256


class FrameBatches:
    """
    The frames of a reply, at most 256 at a time; between two batches other tasks run.

    `content_at` is the time of the last content event; its reader sets it. A stream that sends
    only pings for `stream_content` seconds is a `RequestTimeoutError`.
    """

    __slots__ = ("_frames", "_reply", "_stream_content", "content_at")

    def __init__(
        self, reply: HttpReply, frames: FrameDecoder, stream_content: float | None
    ) -> None:
        self._reply = reply
        self._frames = frames
        self._stream_content = stream_content
        self.content_at: float = perf_counter()

    async def __aiter__(self) -> AsyncIterator[list[Frame]]:
        seconds = self._stream_content
        async for chunk in self._reply.chunks():
            if seconds is not None and perf_counter() - self.content_at > seconds:
                raise _no_content(seconds)
            if len(chunk) <= _PIECE:
                pieces = [chunk]
            else:
                pieces = [chunk[at : at + _PIECE] for at in range(0, len(chunk), _PIECE)]
            for piece in pieces:
                frames = self._frames.feed(piece)
                for at in range(0, len(frames), _BATCH):
                    yield frames if len(frames) <= _BATCH else frames[at : at + _BATCH]
                    if len(frames) > _BATCH:
                        await asyncio.sleep(0)


def _no_content(seconds: float) -> RequestTimeoutError:
    return RequestTimeoutError(
        f"timed out: the stream sent no content for {seconds:g} s, only pings "
        "(stream_content timeout)",
        phase="stream_content",
        retryable=False,
    )
