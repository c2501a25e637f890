"""ASGI: its types, reading a request, and sending a reply while the client stays connected."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class ResetConnectionError(ConnectionResetError):
    """An application raises it to have its connection reset; ASGI has no message for that."""


class CutConnectionError(ConnectionAbortedError):
    """An application raises it to have its connection closed in the middle of the reply."""


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """The headers, names in lower case."""
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }


def path_of(scope: Mapping[str, Any]) -> str:
    """The path as it was written: a slash within a model's name stays escaped."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"], safe="/:@").encode()
    return raw.decode("latin-1").partition("?")[0]


def query_of(scope: Mapping[str, Any]) -> str:
    """The query as it was written."""
    text: str = scope.get("query_string", b"").decode("latin-1")
    return text


async def read_body(receive: Receive) -> bytes | None:
    """The whole body; None if the client left before it had sent all of it."""
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


async def answer_lifespan(receive: Receive, send: Send) -> None:
    """Confirm startup and shutdown, for which there is nothing to do."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return


Chunks: TypeAlias = Iterable[bytes] | AsyncIterable[bytes]


class Reply(NamedTuple):
    """A reply that is ready to be sent."""

    status: int
    headers: Mapping[str, str]
    chunks: Chunks
    is_stream: bool = False
    """The chunks are sent as they come; otherwise together, with their length in the head."""


class ClientGoneError(Exception):
    """The client left before its reply was sent."""


class Delivery:
    """
    Sends one reply, and notices when the client leaves.

    `send` waits until the server has taken each chunk, so that a slow client slows down whatever
    makes the chunks.
    """

    def __init__(self, receive: Receive, send: Send) -> None:
        self._asgi_send = send
        self._gone = asyncio.ensure_future(self._watch(receive))
        self.disconnected: float | None = None
        """When the client left, by the monotonic clock; None if it has the whole reply."""

    async def send(self, reply: Reply) -> None:
        """The head, then the body; what makes the body is closed if the client leaves."""
        try:
            await self.before_head(reply)
            chunks = reply.chunks
            headers = dict(reply.headers)
            if not reply.is_stream:
                whole = self.whole_body(await _join(chunks))
                chunks, headers["content-length"] = [whole], str(len(whole))
            await self._put_head(reply.status, headers)
            await self._send_body(chunks)
        except ClientGoneError:
            pass
        finally:
            self._gone.cancel()
            self.ended()
            close = getattr(reply.chunks, "aclose", None)
            if close is not None:
                await close()

    # What a delivery with a pace or faults of its own changes.

    async def before_head(self, reply: Reply) -> None:
        """Called before the head is sent."""

    def whole_body(self, body: bytes) -> bytes:
        """The body of a reply that is no stream, as it is sent."""
        return body

    async def write(self, chunk: bytes) -> None:
        """One chunk of the body."""
        if self._gone.done():
            raise ClientGoneError
        await self.put_body(chunk)

    def ended(self) -> None:
        """Called when nothing more is sent, for whatever reason."""

    async def put_body(self, data: bytes) -> None:
        """Bytes of the body, if there are any; `ClientGoneError` if nobody takes them."""
        if data:
            await self._put({"type": "http.response.body", "body": data, "more_body": True})

    async def sleep(self, seconds: float | None) -> None:
        """Wait that long, for ever if None, but not longer than the client does."""
        if seconds == 0:
            await asyncio.sleep(0)  # others run too, and a client that left is seen
        else:
            await asyncio.wait({self._gone}, timeout=seconds)
        if self._gone.done():
            raise ClientGoneError

    # The steps.

    async def _put_head(self, status: int, headers: Mapping[str, str]) -> None:
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._put({"type": "http.response.start", "status": status, "headers": raw})

    async def _send_body(self, chunks: Chunks) -> None:
        if isinstance(chunks, AsyncIterable):
            async for chunk in chunks:
                await self.write(chunk)
        else:
            for chunk in chunks:
                await self.write(chunk)
        await self._put({"type": "http.response.body", "body": b"", "more_body": False})

    async def _put(self, message: Message) -> None:
        try:
            await self._asgi_send(message)
        except OSError as error:  # what a server raises when the client is gone
            self.disconnected = self.disconnected or time.monotonic()
            raise ClientGoneError from error

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.disconnected = time.monotonic()


async def _join(chunks: Chunks) -> bytes:
    if isinstance(chunks, AsyncIterable):
        return b"".join([chunk async for chunk in chunks])
    return b"".join(chunks)
