"""The connections of one event loop, over aiohttp."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import ssl
import struct
from contextlib import suppress
from typing import Any, Protocol

import aiohttp

from interlingua.spec.contracts import HttpRequest, Timeouts
from interlingua.spec.errors import (
    ConfigurationError,
    NetworkError,
    SDKError,
    StreamError,
)
from interlingua.transport.bodies import OutgoingBody, length_headers
from interlingua.transport.inflate import ACCEPTED
from interlingua.transport.proxies import Proxies
from interlingua.transport.timeouts import host_of, timeout_error
from interlingua.version import USER_AGENT

KEEP_ALIVE = 60.0
"""Seconds an unused connection is kept: tools run between two calls of a conversation."""

_MAX_HEADER = 64 * 1024
_LARGE = 1 << 20  # the size above which aiohttp warns of a body of bytes
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
            headers={"accept-encoding": ACCEPTED, "user-agent": USER_AGENT},
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
        if not isinstance(request.body, bytes):
            return await self._request_streamed(request, clock)
        return await self.session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=_payload(request.body),
            allow_redirects=False,
            timeout=clock,
            proxy=None if self._proxies is None else self._proxies.find(request.url),
        )

    async def _request_streamed(
        self, request: HttpRequest, clock: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """The same with a body that is read as it is sent."""
        body = OutgoingBody(request)
        try:
            return await self.session.request(
                request.method,
                request.url,
                headers=length_headers(request),
                data=body,
                allow_redirects=False,
                timeout=clock,
                proxy=None if self._proxies is None else self._proxies.find(request.url),
            )
        except aiohttp.ClientError:
            if body.error is None:
                raise
        raise body.error

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
    # aiohttp writes bytes in one go, which holds up the event loop if they are many. It reads a
    # file piece by piece in a thread, which makes a call of 256 kB to 1 MB a third dearer.
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


# What can go wrong in aiohttp -> our errors.


# The errors of aiohttp are not chained: their texts hold URLs, and so perhaps keys.


def send_error(error: Exception, request: HttpRequest, timeouts: Timeouts) -> SDKError:
    """The error for a call that failed before the head of a reply came."""
    host = host_of(request)
    match error:
        case SDKError():
            return error
        case aiohttp.ConnectionTimeoutError():
            return timeout_error("connect", request, timeouts)
        case aiohttp.ClientConnectorError():
            return _connect_error(error, host)
        case aiohttp.ClientHttpProxyError():
            retryable = error.status >= 500
            return NetworkError(f"the proxy refused {host}: {error.status}", retryable=retryable)
        case aiohttp.ServerDisconnectedError():
            return NetworkError(f"{host} closed the connection before it replied")
        case aiohttp.ClientResponseError():
            return NetworkError(f"{host} answered with something that is not HTTP")
        case aiohttp.ClientConnectionError() | OSError():
            return NetworkError(f"the connection to {host} was lost before it replied")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return ConfigurationError(f"not a URL that a request can go to (host: {host})")
        case ValueError():
            # of a key with a line break at its end, mostly
            return ConfigurationError(
                f"the request to {host} has a header that cannot be sent; "
                "look for line breaks in keys and header values"
            )
    return NetworkError(f"the call to {host} failed: {type(error).__name__}")


def _connect_error(error: aiohttp.ClientConnectorError, host: str) -> NetworkError:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return NetworkError(f"cannot find the address of {host}: {error.os_error.strerror}")
    if isinstance(error, aiohttp.ClientSSLError):
        # the one for certificates has no other cause than this
        cause = getattr(error, "certificate_error", None) or error.os_error
        reason = getattr(cause, "verify_message", None) or getattr(cause, "reason", None)
        why = reason or type(cause).__name__
        return NetworkError(f"no TLS with {host}: {why}", retryable=False)
    number = error.os_error.errno
    why = os.strerror(number) if number else type(error.os_error).__name__
    return NetworkError(f"cannot connect to {host}: {why}")


def body_error(error: Exception, request: HttpRequest, *, in_stream: bool) -> SDKError:
    """The error for a body that stopped; of a stream that is a `StreamError`."""
    host = host_of(request)
    if isinstance(error, (aiohttp.ClientPayloadError, EOFError)):
        text = f"the reply of {host} ended in the middle"
    elif isinstance(error, (aiohttp.ClientError, OSError, RuntimeError)):
        text = f"the connection to {host} was lost in the middle of the reply"
    else:
        text = f"the reply of {host} cannot be read: {type(error).__name__}"
    return StreamError(text) if in_stream else NetworkError(text)
