"""Sends the reply to one request through ASGI: whole, or as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from interlingua.serving.application import Framing
from interlingua.serving.asgi import Message, Reply, Send, join_chunks
from interlingua.spec.contracts import Frame

HOLD = 15.0
"""
Seconds that the headers of a stream are held back for its first content.

An error before them has its own status, which clients understand better than one in the stream.
"""

KEEP_ALIVE = 15.0
"""Seconds of silence after which something is sent that clients ignore, so that proxies wait on."""

_HIGH_WATER = 256 * 1024  # bytes that may wait for a slow client


class SentParts:
    """Sends the parts of one reply, and knows whether there were any."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun: bool = False
        """Whether the client has got something."""

    async def send(self, message: Message) -> None:
        """Send one part, as ASGI's `send` does."""
        self.has_begun = True
        await self._send(message)


async def send_whole(reply: Reply, send: Send) -> None:
    """Send a reply that is no stream."""
    body = await join_chunks(reply.chunks)
    headers = {**reply.headers, "content-length": str(len(body))}
    await send({"type": "http.response.start", "status": reply.status, "headers": _raw(headers)})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def send_head(send: Send) -> None:
    """Send a reply to HEAD: something is there, of a length that is not known."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


class StreamDelivery:
    """
    Sends a stream; leaving the block ends it.

    What is put in one turn of the event loop leaves in one `send`. A slow client holds `put` back.
    """

    def __init__(self, send: Send, framing: Framing) -> None:
        self._send = send
        self._framing = framing
        self.headers: dict[str, str] = dict(framing.headers)
        """Sent with the first content."""
        self.has_begun: bool = False
        """Whether the headers are sent, or will be."""
        self._loop = asyncio.get_running_loop()
        self._chunks: list[bytes] = []
        self._size = 0
        self._is_over = False
        self._news: asyncio.Future[None] | None = None  # what the sender waits for
        self._room: asyncio.Future[None] | None = None  # what `put` waits for
        self._last_sent = self._loop.time()

    async def __aenter__(self) -> Self:
        self._sender = self._loop.create_task(self._run())
        self._timer = self._loop.call_later(HOLD, self._begin)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        if kind is not None:
            self._sender.cancel()
        else:
            self._begin()
        self._timer.cancel()
        await asyncio.wait({self._sender})
        if kind is None and not self._sender.cancelled():
            self._sender.result()

    async def put(self, frames: Iterable[Frame], *, begin: bool) -> None:
        """Send the frames; they are held back until one has `begin`, or the hold is over."""
        encode = self._framing.encode
        for frame in frames:
            chunk = encode(frame)
            self._chunks.append(chunk)
            self._size += len(chunk)
        if begin and not self.has_begun:
            self._begin()
        elif self._news is not None:
            self._wake()
        while self._size > _HIGH_WATER and self.has_begun and not self._sender.done():
            self._room = self._loop.create_future()
            await self._room
        if self._sender.done():
            self._sender.result()  # raises what ended it

    def comment(self, text: str) -> None:
        """Send a text that clients ignore before the next frames, if the framing can."""
        self._chunks.append(self._framing.comment(text))

    def abandon(self) -> None:
        """Send nothing; only before the headers."""
        self._sender.cancel()
        self.has_begun = True  # by another reply

    def _begin(self) -> None:
        if self.has_begun:
            self._wake()
            return
        self.has_begun = True
        self._timer.cancel()
        self._timer = self._loop.call_later(KEEP_ALIVE, self._keep_alive)
        self._wake()

    def _keep_alive(self) -> None:
        silent = self._loop.time() - self._last_sent
        if silent >= KEEP_ALIVE:
            self._chunks.append(self._framing.keep_alive)
            self._wake()
            silent = 0.0
        self._timer = self._loop.call_later(KEEP_ALIVE - silent, self._keep_alive)

    def _wake(self) -> None:
        if self._news is not None and not self._news.done() and self.has_begun:
            self._news.set_result(None)

    async def _run(self) -> None:
        while not self.has_begun:
            await self._wait()
        await self._send_head()
        while True:
            if self._chunks:
                await self._flush()
            elif self._is_over:
                break
            else:
                await self._wait()
        last = self._framing.end()
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def _send_head(self) -> None:
        # In a function of its own: a long stream need not hold what was sent.
        headers = _raw(self.headers)
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _flush(self) -> None:
        body = b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        self._last_sent = self._loop.time()
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    async def _wait(self) -> None:
        self._news = self._loop.create_future()
        try:
            await self._news
        finally:
            self._news = None
