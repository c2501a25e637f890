"""
The connections of an aiohttp session: a pooled one is checked before it is used again.

aiohttp has no public hook for this. `tests/hostile/test_connections.py` checks that the names used
here exist in the installed version.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from interlingua.transport.sockets import SocketProbe

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends a reset


class StaleConnectionError(aiohttp.ClientConnectionError):
    """A reused connection ended before one byte of the reply: the server had closed it before."""


class Handler(ResponseHandler):
    """One connection."""

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

    def reuse(self) -> bool:
        """Begin another exchange; False if anything arrived after the last reply, or an end."""
        parser = self._parser
        try:
            # A parser that holds the beginning of another response returns it here, or raises.
            if self.should_close or (parser is not None and parser.feed_eof() is not None):
                return False
        except Exception:  # noqa: BLE001 -- the beginning of a response that is not valid
            return False
        if self.transport is None or self._probe.has_input():
            return False
        self.is_reused = True
        self.has_reply = False
        return True


class Connector(aiohttp.TCPConnector):
    """Opens connections, and keeps them for the next request to the same host."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.single_use: set[asyncio.Task[Any] | None] = set()
        """Tasks whose request gets a new connection, which is closed after the reply."""
        self._factory: Any = partial(Handler, loop=self._loop)

    async def _get(self, key: Any, traces: Any) -> Any:
        if self.single_use and asyncio.current_task() in self.single_use:
            return None
        while (connection := await super()._get(key, traces)) is not None:
            handler = connection.protocol
            if isinstance(handler, Handler) and handler.reuse():
                return connection
            connection.close()
        return None


class Response(aiohttp.ClientResponse):
    """A response that resets its connection if the status line and headers do not arrive."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Wait for the status line and the headers."""
        handler = connection.protocol
        tasks = connection._connector.single_use  # noqa: SLF001
        if tasks and asyncio.current_task() in tasks:
            handler.force_close()
        try:
            return await super().start(connection)
        except BaseException as error:
            # A normal close waits until the server has read the rest of the request, and a server
            # that has stopped reading never does.
            if connection.transport is not None:
                cut(connection.transport)
            is_lost = isinstance(error, (aiohttp.ClientConnectionError, OSError))
            if is_lost and handler.is_reused and not handler.has_reply:
                raise StaleConnectionError from None
            raise


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
