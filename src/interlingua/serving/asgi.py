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
"""The type of ASGI's `receive`."""
Send: TypeAlias = Callable[[Message], Awaitable[None]]
"""The type of ASGI's `send`."""
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class ResetConnectionError(ConnectionResetError):
    """Raised by an application to reset its connection; ASGI has no message for that."""


class CutConnectionError(ConnectionAbortedError):
    """Raised by an application to close its connection in the middle of the reply."""


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """The headers, names in lower case."""
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }


def path_of(scope: Mapping[str, Any]) -> str:
    """The path without unquoting: a slash in the name of a model stays escaped."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"], safe="/:@").encode()
    return raw.decode("latin-1").partition("?")[0]


def query_of(scope: Mapping[str, Any]) -> str:
    """The query string."""
    text: str = scope.get("query_string", b"").decode("latin-1")
    return text


def without_body(send: Send) -> Send:
    """Sends the head of a reply only, as a reply to HEAD must be."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head


async def refuse_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a WebSocket with 426, or close it if the server cannot send a status."""
    await receive()  # the request to connect
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close"})
        return
    kind = "websocket.http.response"
    await send({"type": f"{kind}.start", "status": 426, "headers": [(b"content-length", b"0")]})
    await send({"type": f"{kind}.body", "body": b""})


class TooLargeError(Exception):
    """The body of a request is larger than the limit."""


async def read_body(receive: Receive, limit: int | None = None) -> bytes | None:
    """The whole body; None if the client disconnected before its end; `TooLargeError`."""
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if limit is not None and size > limit:
            raise TooLargeError
        if not message.get("more_body", False):
            return b"".join(chunks)


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client disconnects; only after its whole request was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def answer_lifespan(receive: Receive, send: Send) -> None:
    """Confirm startup and shutdown; nothing else is needed."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return


Chunks: TypeAlias = Iterable[bytes] | AsyncIterable[bytes]


class Reply(NamedTuple):
    """A reply that is ready to send."""

    status: int
    """The HTTP status."""
    headers: Mapping[str, str]
    """The headers."""
    chunks: Chunks
    """The body."""
    is_stream: bool = False
    """Send each chunk at once; otherwise all together, with a content-length."""


class ClientGoneError(Exception):
    """The client disconnected before the whole reply was sent."""


class Delivery:
    """
    Sends one reply, and watches for a disconnect of the client.

    `send` waits until the server has accepted each chunk: a slow client slows down the source of
    the chunks.
    """

    def __init__(self, receive: Receive, send: Send) -> None:
        self._asgi_send = send
        self._gone = asyncio.ensure_future(self._watch(receive))
        self.disconnected: float | None = None
        """When the client disconnected, by the monotonic clock; None if it got the whole reply."""

    async def send(self, reply: Reply) -> None:
        """Send the headers, then the body; the source of the body is closed at the end."""
        try:
            await self.before_head(reply)
            chunks = reply.chunks
            headers = dict(reply.headers)
            if not reply.is_stream:
                whole = self.whole_body(await join_chunks(chunks))
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

    # Derived classes override these four.

    async def before_head(self, reply: Reply) -> None:
        """Do something before the headers are sent."""

    def whole_body(self, body: bytes) -> bytes:
        """Return the bytes to send for the body of a reply that is not a stream."""
        return body

    async def write(self, chunk: bytes) -> None:
        """Send one chunk of the body."""
        if self._gone.done():
            raise ClientGoneError
        await self.put_body(chunk)

    def ended(self) -> None:
        """Do something at the end, also after a failure."""

    async def put_body(self, data: bytes) -> None:
        """Send bytes of the body; `ClientGoneError` if the client has disconnected."""
        if data:
            await self._put({"type": "http.response.body", "body": data, "more_body": True})

    async def sleep(self, seconds: float | None) -> None:
        """Wait (without a limit if None); `ClientGoneError` if the client disconnects meanwhile."""
        if seconds == 0:
            await asyncio.sleep(0)  # lets other tasks run, and notices a disconnect
        else:
            await asyncio.wait({self._gone}, timeout=seconds)
        if self._gone.done():
            raise ClientGoneError

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
        except OSError as error:  # ASGI servers raise it after a disconnect
            self.disconnected = self.disconnected or time.monotonic()
            raise ClientGoneError from error

    async def _watch(self, receive: Receive) -> None:
        await wait_for_disconnect(receive)
        self.disconnected = time.monotonic()


async def join_chunks(chunks: Chunks) -> bytes:
    """The whole body."""
    if isinstance(chunks, AsyncIterable):
        return b"".join([chunk async for chunk in chunks])
    return b"".join(chunks)
