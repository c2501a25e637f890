"""
The connections of the server, with timeouts for slow clients.

uvicorn limits only the time between two requests. A client that sends its headers one by one, that
stops in the middle of a body, or that does not take its reply, would keep its connection for ever.
It also writes the headers of a reply before its body; here both leave in one write, which costs
less, and wakes the client once.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from interlingua.gateway.config import ServerTimeouts


def timed_protocol(timeouts: ServerTimeouts) -> type[asyncio.Protocol]:
    """The class of connections with these timeouts."""

    class Timed(TimedProtocol):
        limits = timeouts

    return Timed


class JoinedWrites:
    """A transport that writes the headers of a reply together with what follows them at once."""

    __slots__ = ("_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write some bytes; headers wait for the next ones, at most for one turn of the loop."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.writelines((head, data))
        elif data.startswith(b"HTTP/1.1 "):
            self._head = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection after all that was written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)


class TimedProtocol(HttpToolsProtocol):
    """
    A connection that is closed when its client takes too long.

    A request that arrives in one piece needs no timer. Only public methods of the base class, which
    the event loop and the parser call, are extended.
    """

    limits = ServerTimeouts()
    __timer: asyncio.TimerHandle | None = None
    __stall: asyncio.TimerHandle | None = None
    __until = 0.0
    """When the headers must be complete; 0 if no request is being read."""
    __has_headers = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        self.__start(self.limits.idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self.__stop()
        if self.__stall is not None:
            self.__stall.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request have arrived; it may not be complete."""
        super().data_received(data)
        self.__stop()
        if self.__until:
            left = self.__until - self.loop.time()
            self.__start(self.limits.stalled if self.__has_headers else max(0.0, left))

    def on_message_begin(self) -> None:
        """A request begins."""
        self.__until = self.loop.time() + self.limits.headers
        self.__has_headers = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The headers have arrived, and perhaps no body yet."""
        self.__has_headers = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is complete."""
        self.__until = 0.0
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client takes less than is sent."""
        super().pause_writing()
        self.__stall = self.loop.call_later(self.limits.stalled, self.__abort)

    def resume_writing(self) -> None:
        """The client has taken what was sent."""
        if self.__stall is not None:
            self.__stall.cancel()
        super().resume_writing()

    def __start(self, seconds: float) -> None:
        self.__timer = self.loop.call_later(seconds, self.__close)

    def __stop(self) -> None:
        if self.__timer is not None:
            self.__timer.cancel()
            self.__timer = None

    def __close(self) -> None:
        self.__timer = None
        transport: Any = self.transport
        if transport is not None and not transport.is_closing():
            transport.close()

    def __abort(self) -> None:
        transport: Any = self.transport
        if transport is not None:
            transport.abort()
