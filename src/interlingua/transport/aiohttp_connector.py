"""
The connections of aiohttp: opened by aiohttp, kept and checked here before they are used again.

aiohttp has no public hook for such a check. `tests/hostile/test_connections.py` checks that the
names used here exist in the installed version.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import weakref
from collections.abc import Hashable
from contextlib import suppress
from functools import lru_cache, partial
from time import monotonic
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from interlingua.transport.per_loop import SocketProbe, abort_without_loop

KEEP_ALIVE = 60.0
"""Seconds an idle connection is kept. Tools may run between two requests of a conversation."""

_MAX_HEADER = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends a reset


class StaleConnectionError(aiohttp.ClientConnectionError):
    """A reused connection ended before one byte of the reply: the server had closed it before."""


class Handler(ResponseHandler):
    """One connection."""

    connection: Any = None
    """The same connection as aiohttp's connector knows it."""
    idle_since: float = 0.0
    is_reused: bool = False
    has_reply: bool = False
    """Whether a byte of the current reply has arrived."""
    _probe: SocketProbe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the first exchange."""
        super().connection_made(transport)
        self._probe = SocketProbe(transport)

    def data_received(self, data: bytes) -> None:
        """Pass the bytes to the parser."""
        self.has_reply = True
        super().data_received(data)

    def resume_reading(self, *args: Any, **settings: Any) -> None:
        """Read on after a pause. aiohttp calls this for every chunk, though few cause a pause."""
        if self._reading_paused:
            super().resume_reading(*args, **settings)

    def begin(self, *, keep_alive: bool, has_body: bool) -> None:
        """Expect a reply; afterwards the connection is closed unless `keep_alive`."""
        if not keep_alive:
            self.force_close()
        self.set_response_params(
            read_until_eof=True,
            auto_decompress=False,
            skip_payload=not has_body,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )

    def write(self, data: bytes) -> None:
        """Send bytes; if the connection is lost, only `read` raises an error."""
        if self.transport is not None:
            self.transport.write(data)

    async def drain(self) -> None:
        """Wait until the peer has read most of what was sent; `OSError` if it is lost."""
        await self._drain_helper()

    def reuse(self) -> bool:
        """Begin another exchange; False if anything arrived after the last reply, or an end."""
        parser, transport = self._parser, self.transport
        try:
            # A parser that holds the beginning of another response returns it here, or raises.
            if self.should_close or (parser is not None and parser.feed_eof() is not None):
                return False
        except Exception:  # noqa: BLE001 -- the beginning of a response that is not valid
            return False
        if transport is None or transport.is_closing():
            return False
        # A server that answered before it read the whole request would take the rest for the next.
        if transport.get_write_buffer_size() or self._probe.has_input():
            return False
        self.is_reused = True
        self.has_reply = False
        return True

    def is_stale(self, error: BaseException) -> bool:
        """Whether the server had closed the connection before the request that failed."""
        is_lost = isinstance(error, (aiohttp.ClientConnectionError, OSError))
        return is_lost and self.is_reused and not self.has_reply

    def drop(self) -> None:
        """Close the connection, also in the middle of an exchange."""
        # A normal close waits until the server has read the rest of the request, and a server that
        # has stopped reading never does.
        if self.transport is not None:
            cut(self.transport)
        self.connection.close()


class Opener(aiohttp.TCPConnector):
    """Resolves, connects and encrypts; it never gets a connection back, so it keeps none."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(limit=0, **settings)
        self._factory: Any = partial(Handler, loop=self._loop)


class Connector:
    """The connections of one event loop; an idle one waits for the next request to its host."""

    def __init__(self, **settings: Any) -> None:
        self._opener = Opener(**settings)
        self._idle: dict[Hashable, list[Handler]] = {}  # each list in the order of its last use
        self._timer: asyncio.TimerHandle | None = None

    @property
    def handlers(self) -> tuple[Handler, ...]:
        """The open connections, idle or not."""
        handlers: set[Any] = getattr(self._opener, "_acquired", set())
        return tuple(handler for handler in handlers if isinstance(handler, Handler))

    async def open(self, address: aiohttp.ClientRequest, seconds: float | None) -> Handler:
        """A new connection; `TimeoutError` if that takes longer."""
        connection = await self._opener.connect(address, [], _clock(seconds))
        handler: Any = connection.protocol  # made by the `_factory`
        found: Handler = handler
        found.connection = connection
        return found

    def take(self, key: Hashable) -> Handler | None:
        """The idle connection that was used last and can be used again, if there is one."""
        idle = self._idle.get(key)
        while idle:
            handler = idle.pop()
            if not idle:
                del self._idle[key]
            if monotonic() - handler.idle_since > KEEP_ALIVE:
                handler.connection.close()
            elif handler.reuse():
                return handler
            else:
                handler.drop()
        return None

    def give(self, key: Hashable, handler: Handler) -> None:
        """Keep a connection whose reply has ended, if it can serve another request."""
        if handler.should_close or self._opener.closed:
            handler.connection.close()
            return
        handler.idle_since = monotonic()
        self._idle.setdefault(key, []).append(handler)
        if self._timer is None:
            self._set_timer()

    def _set_timer(self) -> None:
        # A weak reference, so that the timer does not keep the connector alive.
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(KEEP_ALIVE, _close_unused, weakref.ref(self))

    def close_unused(self) -> None:
        """Close the connections that were not used for long."""
        oldest, idle, self._idle = monotonic() - KEEP_ALIVE, self._idle, {}
        for key, handlers in idle.items():
            for handler in handlers:
                if handler.idle_since < oldest:
                    handler.connection.close()
                else:
                    self._idle.setdefault(key, []).append(handler)
        self._timer = None
        if self._idle:
            self._set_timer()

    async def close(self) -> None:
        """Close every connection."""
        if self._timer is not None:
            self._timer.cancel()
        closing = self._opener.close()
        self._forget_idle()
        await closing

    def discard(self) -> None:
        """Close the connections without the event loop, which is no longer running."""
        for handler in self.handlers:
            if handler.transport is not None:
                abort_without_loop(handler.transport)
                handler.transport = None
        self._forget_idle()
        getattr(self._opener, "_acquired", set()).clear()

    def _forget_idle(self) -> None:
        idle, self._idle = self._idle, {}
        for handlers in idle.values():
            for handler in handlers:
                handler.connection.close()


def _close_unused(reference: weakref.ref[Connector]) -> None:
    connector = reference()
    if connector is not None:
        connector.close_unused()


@lru_cache
def _clock(seconds: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=seconds)


def cut(transport: asyncio.BaseTransport) -> None:
    """Close a connection at once; discards data that is not sent yet."""
    abort = getattr(transport, "abort", None)  # uvloop's transports have no base class of asyncio
    if abort is None:
        return
    peer = transport.get_extra_info("socket")
    if peer is not None:
        with suppress(OSError, AttributeError, TypeError):  # the last: uvloop has no shutdown
            # Without a reset, a peer that is not reading does not notice the close.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            # Without a shutdown, the connection stays open while a forked child has the socket.
            peer.shutdown(socket.SHUT_RDWR)
    abort()
