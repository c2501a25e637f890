"""
One connection, and the reply that arrives on it.

httptools parses; what it does not know is decided here: where a body without a length ends, that a
reply to HEAD has no body, and what a byte means that nobody asked for. A connection serves one
exchange at a time. The parser is strict, except for two habits of old servers that cannot change
where a reply ends: lines that end in LF alone, and blanks after the size of a chunk.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol, cast

from httptools import HttpParserError, HttpResponseParser

from interlingua.transport.per_loop import SocketProbe

MAX_HEAD = 64 * 1024
"""Bytes that may arrive without a byte of a body: headers, trailers, extensions of chunks."""

HIGH_WATER = 256 * 1024
"""Bytes of a body that may wait for their reader; then the server is held back."""

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends a reset

_BODILESS = frozenset({100, 102, 103})  # of the statuses before the reply, those the parser knows


class InvalidReplyError(Exception):
    """What arrived is no HTTP response that we can read, or its head is too large."""


class ClosedError(Exception):
    """The connection was closed on this side before the reply was complete."""


class Owner(Protocol):
    """The pool of a connection."""

    def release(self, connection: Connection) -> None:
        """The exchange is over: another one may use the connection, if it can serve it."""

    def forget(self, connection: Connection) -> None:
        """The connection is closed."""


class Reply:
    """A reply as it arrives. Its bytes wait here for their reader, also after its connection."""

    __slots__ = (
        "_has_body", "_loop", "_pieces", "_waiter", "connection", "error", "headers",
        "is_complete", "size", "status",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, *, has_body: bool = True) -> None:
        self.status: int = 0
        """0 until the headers have arrived."""
        self.headers: Mapping[str, str] = {}
        """Names in lower case; the values of a repeated name are joined by commas."""
        self.is_complete: bool = False
        self.error: Exception | None = None
        """Why it will never be complete. The bytes that came before are read first."""
        self.connection: Connection | None = None
        """None before the request is sent, and when the body has ended or failed."""
        self.size: int = 0
        """The bytes that wait for their reader."""
        self._has_body = has_body
        self._loop = loop
        self._pieces: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None

    @property
    def has_body(self) -> bool:
        """False for the reply to a HEAD or CONNECT request."""
        return self._has_body

    async def wait_for_head(self) -> None:
        """Return when the headers have arrived; raises the error of the connection."""
        while not self.status:
            if self.error is not None:
                raise self.error
            await self.wait()

    async def wait(self) -> None:
        """Return when something has happened."""
        if self._waiter is not None:
            raise RuntimeError("Another task is reading this reply.")
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def take(self) -> bytes:
        """The bytes that have arrived; empty at the end, else only if nothing has arrived."""
        pieces = self._pieces
        if not pieces:
            if self.error is not None:
                raise self.error
            return b""
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        is_full, self.size = self.size > HIGH_WATER, 0
        if is_full and self.connection is not None:
            self.connection.resume_reading()
        return data

    @property
    def has_news(self) -> bool:
        """Whether there is something to read: bytes, the end, or an error."""
        return bool(self._pieces) or self.is_complete or self.error is not None

    def add(self, piece: bytes) -> None:
        """Keep a piece of the body for the reader."""
        self._pieces.append(piece)
        self.size += len(piece)

    def fail(self, error: Exception) -> None:
        """End the reply with an error, unless it has ended."""
        if self.error is None and not self.is_complete:
            self.error = error
        self.wake()

    def wake(self) -> None:
        """Let the reader look at what has arrived."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def drop(self) -> None:
        """Close the connection if the body is incomplete; a task that is reading gets an error."""
        if self.connection is not None:
            self.connection.cut()


class Connection(asyncio.Protocol):
    """One connection; `send` begins an exchange."""

    __slots__ = (
        "_drained", "_headers", "_is_cut", "_is_lost", "_is_until_close", "_loop", "_parser",
        "_probe", "_reply", "_without_body", "has_reply", "has_turn", "idle_since", "is_reusable",
        "is_reused", "key", "owner", "transport", "writer",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.transport: asyncio.Transport
        self.owner: Owner | None = None
        """None while the connection is being opened."""
        self.key: object = None
        """Where it goes to; connections with equal keys serve the same requests."""
        self.writer: asyncio.Task[None] | None = None
        """The task that writes a large or streamed body."""
        self.has_turn: bool = False
        """Whether it counts among those in use; from its exchange on until it is idle or closed."""
        self.idle_since: float = 0.0
        self.is_reused: bool = False
        self.is_reusable: bool = True
        self.has_reply: bool = False
        """Whether a byte of the current reply has arrived."""
        self._reply: Reply | None = None
        self._is_lost = self._is_cut = False
        self._drained: asyncio.Future[None] | None = None  # while the peer does not read
        self._restart()

    def _restart(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._is_until_close = False  # whether the body ends with the connection
        self._without_body = 0
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    # An exchange.

    def send(self, data: bytes, reply: Reply, *, keep_alive: bool = True) -> None:
        """Write the request, or its beginning, and let the reply arrive in `reply`."""
        self._reply, reply.connection = reply, self
        self.is_reusable = keep_alive
        self.has_reply = False
        self._without_body = 0
        self.write(data)

    def write(self, data: bytes) -> None:
        """Send bytes; if the connection is lost, only the reader of the reply gets an error."""
        if not self._is_lost:
            self.transport.write(data)

    async def drain(self) -> None:
        """
        Wait until the peer has read most of what was sent, and what it has sent is being read.

        A server may answer before it has read the request, and close. If the next write then fails,
        asyncio closes the connection without reading the answer.
        """
        if self._drained is not None:
            await self._drained
        if not self._is_lost and self._probe.has_input():
            for _ in range(2):  # the event loop looks at its sockets after the first
                await asyncio.sleep(0)

    def is_open(self) -> bool:
        """Whether neither side has closed it."""
        return not (self._is_lost or self.transport.is_closing())

    def can_serve(self) -> bool:
        """Whether another request may be sent: nothing has arrived since the last reply."""
        return self.is_open() and not (
            # A server that answered before it read the whole request would take the rest for the
            # next one.
            self.transport.get_write_buffer_size() or self._probe.has_input()
        )

    def is_stale(self, reply: Reply) -> bool:
        """Whether the server had closed the connection before it read the request."""
        is_lost = isinstance(reply.error, (OSError, EOFError))
        return is_lost and self.is_reused and not self.has_reply

    def close(self) -> None:
        """Close a connection that is not in use."""
        if not self.is_open():  # asyncio allows only one close of a TLS connection
            return
        if self.transport.get_write_buffer_size():
            self.cut()  # a server that answered early and reads no more would keep it open
        else:
            self.transport.close()

    def cut(self) -> None:
        """Close the connection at once; an exchange in the middle of its reply gets an error."""
        if not (self._is_lost or self._is_cut):
            self._is_cut = True
            self.is_reusable = False
            if self._reply is not None:
                self._reply.fail(ClosedError())
            cut(self.transport)
            self._end()

    def discard(self) -> None:
        """Cut the connection without the event loop, which is no longer running."""
        self.owner = None
        with suppress(RuntimeError):  # if the loop is closed
            cut(self.transport)

    def start_tls(self, transport: asyncio.Transport) -> None:
        """Begin anew on the encrypted transport through a proxy, after the proxy's reply."""
        self._restart()
        self.connection_made(transport)

    def resume_reading(self) -> None:
        """Read on, after the reader has taken what had arrived."""
        if not self._is_lost:
            self.transport.resume_reading()

    def _end(self) -> None:
        """End the exchange, if there is one: its reply is complete, or has failed."""
        reply, self._reply = self._reply, None
        if reply is None:
            return
        reply.connection = None
        if reply.size > HIGH_WATER:
            self.resume_reading()
        if self.writer is not None:
            if not self.writer.done():  # the server has answered before it read the whole request
                self.writer.cancel()
                self.is_reusable = False
            self.writer = None
        reply.wake()
        if self.owner is not None:
            self.owner.release(self)

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own
        self._probe = SocketProbe(transport)

    def data_received(self, data: bytes) -> None:
        """Parse the bytes; whatever comes without a request is a reason to close."""
        reply = self._reply
        if reply is None:
            self.cut()
            return
        self.has_reply = True
        try:
            if not reply.status and self._without_body + len(data) > MAX_HEAD:
                data = self._parse_head(reply, data)
            self._without_body += len(data)
            self._parser.feed_data(data)
        except HttpParserError:  # also for what a callback raises
            if not reply.is_complete:
                reply.fail(InvalidReplyError())
            self.is_reusable = False
        if self._without_body > MAX_HEAD and not reply.is_complete:
            reply.fail(InvalidReplyError())
        if reply.error is not None:
            self.cut()
        elif reply.is_complete:
            self._end()
        else:
            if reply.size > HIGH_WATER:
                self.transport.pause_reading()
            reply.wake()

    def _parse_head(self, reply: Reply, data: bytes) -> bytes:
        """Parse as many bytes as a head may have, so that it matters not how they are cut."""
        room = MAX_HEAD - self._without_body
        self._parser.feed_data(data[:room])
        if not reply.status:
            raise HttpParserError("The head is too large.")
        return data[room:]

    def eof_received(self) -> None:
        """End a body that ends with its connection; asyncio closes the connection."""
        reply = self._reply
        if reply is None:
            return
        if self._is_until_close and reply.error is None:
            reply.is_complete = True
            self.is_reusable = False
            self._end()
        else:  # now: asyncio first sends the rest of the request, which nobody may be reading
            reply.fail(EOFError("The server closed the connection."))
            self.cut()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what is waiting."""
        self._is_lost = True
        self.is_reusable = False
        if self._reply is not None:
            self._reply.fail(exc or EOFError("The server closed the connection."))
        self.resume_writing()
        self._end()
        del self._parser  # it refers to this object
        if self.owner is not None:
            self.owner.forget(self)

    def pause_writing(self) -> None:
        """Let `drain` wait."""
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let `drain` return."""
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        """Note a second response, which nobody asked for."""
        if self._reply is not None and self._reply.is_complete:
            self.is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, or a trailer, which nobody reads."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Tell the reader the status and the headers."""
        reply, status, lines = self._reply, self._parser.get_status_code(), self._headers
        self._headers = []
        if reply is None or reply.status or status in _BODILESS:
            return
        headers = _read_headers(lines)
        coding = headers.get("transfer-encoding")
        is_unframed = coding is None and "content-length" not in headers
        if status < 200:
            # The reply itself follows, unless it is a change of protocol, which nobody asked for.
            if status < 100 or status == 101 or not is_unframed:
                raise InvalidReplyError
            return
        # No other coding was accepted, and the parser would decode none.
        if coding is not None and coding.lower() != "chunked":
            raise InvalidReplyError
        reply.status, reply.headers = status, headers
        self._without_body = 0
        self._is_until_close = is_unframed
        if not self._parser.should_keep_alive():
            self.is_reusable = False
        if not reply.has_body:
            # The parser expects a body of this length all the same, so it can read no other reply.
            reply.is_complete, self.is_reusable = True, False

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body."""
        reply = self._reply
        if reply is not None and not reply.is_complete:
            self._without_body = 0
            reply.add(body)

    def on_message_complete(self) -> None:
        """End the body, unless the response was one of those before the reply."""
        self._headers.clear()
        if self._reply is not None and self._reply.status:
            self._reply.is_complete = True


def _read_headers(lines: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by their names in lower case; the values of a repeated one in a list."""
    headers: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    for name, value in lines:
        key, raw = name.decode("latin-1").lower(), value.rstrip(b" \t")
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode("latin-1")
        if key in headers:
            repeated.setdefault(key, [headers[key]]).append(text)
        else:
            headers[key] = text
    for key, texts in repeated.items():
        headers[key] = ", ".join(texts)
    return headers


def cut(transport: asyncio.Transport) -> None:
    """Close a connection at once; discards data that is not sent yet."""
    # One that is being closed may have no socket any more; asking for it may even be an error.
    peer = None if transport.is_closing() else transport.get_extra_info("socket")
    if peer is not None:
        with suppress(OSError, AttributeError, TypeError):  # the last two: uvloop has no shutdown
            # Without a reset, a peer that is not reading does not notice the close.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            # Without a shutdown, the connection stays open while a forked child has the socket.
            peer.shutdown(socket.SHUT_RDWR)
    with suppress(AttributeError):  # of TLS whose connection is lost, in Python 3.11.2
        transport.abort()
