"""
The connections of aiohttp: a pooled one is checked before it is used again.

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

_MAX_HEADER = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends a reset

# The connector passes its list of traces, which is always empty here, to the method that looks for
# an idle connection.
ANY: list[Any] = []
NEW: list[Any] = []
"""In place of `ANY`, for `Connector.connect`: do not use an idle connection."""


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
        # A server that answered before it read the whole request would take the rest for the next.
        if transport is None or transport.get_write_buffer_size() or self._probe.has_input():
            return False
        self.is_reused = True
        self.has_reply = False
        return True

    def is_stale(self, error: BaseException) -> bool:
        """Whether the server had closed the connection before the request that failed."""
        is_lost = isinstance(error, (aiohttp.ClientConnectionError, OSError))
        return is_lost and self.is_reused and not self.has_reply


class Connector(aiohttp.TCPConnector):
    """Opens connections, and keeps them for the next request to the same host."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._factory: Any = partial(Handler, loop=self._loop)

    async def _get(self, key: Any, traces: Any) -> Any:
        if traces is NEW:
            return None
        while (connection := await super()._get(key, traces)) is not None:
            handler = connection.protocol
            if isinstance(handler, Handler) and handler.reuse():
                return connection
            drop_connection(connection)
        return None


def drop_connection(connection: Any) -> None:
    """Close a connection in the middle of an exchange."""
    # A normal close waits until the server has read the rest of the request, and a server that has
    # stopped reading never does.
    if connection.transport is not None:
        cut(connection.transport)
    connection.close()


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
