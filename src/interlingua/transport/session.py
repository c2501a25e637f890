"""The connections of one event loop, over aiohttp."""

from __future__ import annotations

import asyncio
import io
import socket
import ssl
import struct
from contextlib import suppress
from typing import Any, Protocol

import aiohttp

from interlingua.spec.contracts import HttpRequest, Timeouts
from interlingua.transport.inflate import ACCEPTED
from interlingua.transport.proxies import Proxies

KEEP_ALIVE = 60.0
"""Seconds an unused connection is kept: tools run between two calls of a conversation."""

_MAX_HEADER = 64 * 1024
_LARGE = 256 * 1024
_RESET = struct.pack("ii", 1, 0)  # linger, for no time


class Lingering(Protocol):
    """A call that can be cut off."""

    def abort(self) -> None:
        """Close its connection."""


class Response(aiohttp.ClientResponse):
    """A response whose connection is cut, not flushed, if its head does not come."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Wait for the head."""
        try:
            return await super().start(connection)
        except BaseException:
            # closing would wait until a server that does not read has read what is left
            if connection.transport is not None:
                cut(connection.transport)
            raise


class Pool:
    """One aiohttp session, and what its calls share."""

    def __init__(self, *, trust_env: bool, tls: ssl.SSLContext | None) -> None:
        # aiohttp's own `trust_env` asks for the proxy in a thread and for netrc at each call,
        # and what netrc says would collide with our keys.
        proxies = Proxies() if trust_env else None
        self._proxies = proxies or None
        self.lingering: set[Lingering] = set()
        """Calls whose reader has left, and whose body may end at any moment."""
        self._clocks: dict[float | None, aiohttp.ClientTimeout] = {}
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=KEEP_ALIVE,
                ssl=True if tls is None else tls,
                resolver=aiohttp.ThreadedResolver(),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"accept-encoding": ACCEPTED, "user-agent": "interlingua"},
            skip_auto_headers=("content-type",),
            timeout=aiohttp.ClientTimeout(total=None),
            response_class=Response,
            auto_decompress=False,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )
        # a call is one request: whether it is repeated is for the caller's policy to say
        self.session._retry_connection = False  # noqa: SLF001

    async def request(self, request: HttpRequest, timeouts: Timeouts) -> aiohttp.ClientResponse:
        """The response, its head read."""
        clock = self._clocks.get(timeouts.connect)
        if clock is None:
            clock = aiohttp.ClientTimeout(total=None, connect=timeouts.connect)
            self._clocks[timeouts.connect] = clock
        return await self.session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=_payload(request.body),
            allow_redirects=False,
            timeout=clock,
            proxy=None if self._proxies is None else self._proxies.find(request.url),
        )

    async def close(self) -> None:
        """Close every connection."""
        for call in tuple(self.lingering):
            call.abort()
        await self.session.close()

    def discard(self) -> None:
        """Close what can be closed without the loop, which no longer runs."""
        connector = self.session.connector
        self.session.detach()
        if connector is None:
            return
        idle: dict[Any, Any] = getattr(connector, "_conns", {})
        busy: set[Any] = getattr(connector, "_acquired", set())
        handlers = [handler for queue in idle.values() for handler, _ in queue]
        for handler in (*handlers, *busy):
            if handler.transport is not None:
                _bury(handler.transport)
        idle.clear()
        busy.clear()


def _payload(body: bytes) -> bytes | io.BytesIO | None:
    # aiohttp sends bytes in one go, and warns of large ones; of a file it sends piece by piece
    if len(body) > _LARGE:
        return io.BytesIO(body)
    return body or None


def cut(transport: asyncio.BaseTransport) -> None:
    """Close a connection at once, whatever is left to send."""
    if not isinstance(transport, asyncio.WriteTransport):
        return
    peer = transport.get_extra_info("socket")
    if peer is not None:
        with suppress(OSError, AttributeError):
            # a peer that does not read would learn of a plain close only after it has read all
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            # and it would not learn of it while a forked child holds the socket too
            peer.shutdown(socket.SHUT_RDWR)
    transport.abort()


def drop_response(response: aiohttp.ClientResponse) -> None:
    """Close the connection of a response whose body has not ended."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        cut(connection.transport)
    response.close()


def _bury(transport: Any) -> None:
    # The loop cannot call back any more, so what it would have called is called here.
    with suppress(RuntimeError):
        transport.abort()
        return
    inner = getattr(getattr(transport, "_ssl_protocol", None), "_transport", transport)
    finish = getattr(inner, "_call_connection_lost", None)
    if finish is not None:
        with suppress(Exception):
            finish(None)
