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
"""Seconds an idle connection is kept. Tools may run between two requests of a conversation."""

_MAX_HEADER = 64 * 1024
_LARGE = 1 << 20  # aiohttp warns about bodies of bytes above this size
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends a reset


class Lingering(Protocol):
    """An exchange whose reader has finished, but whose body has not ended."""

    def abort(self) -> None:
        """Close its connection."""


class Response(aiohttp.ClientResponse):
    """A response that resets its connection if the status line and headers do not arrive."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Wait for the status line and the headers."""
        try:
            return await super().start(connection)
        except BaseException:
            # A normal close waits until the server has read the rest of the request, and a server
            # that has stopped reading never does.
            if connection.transport is not None:
                cut(connection.transport)
            raise


class Pool:
    """One aiohttp session, and the state that its exchanges share."""

    def __init__(self, *, trust_env: bool, tls: ssl.SSLContext | None) -> None:
        # aiohttp's own `trust_env` looks up the proxy in a thread and reads netrc for each request,
        # and credentials from netrc would conflict with the API keys.
        proxies = Proxies() if trust_env else None
        self._proxies = proxies or None
        self.lingering: set[Lingering] = set()
        """Exchanges whose reader has finished, and whose body may end at any moment."""
        self._clocks: dict[float | None, aiohttp.ClientTimeout] = {}
        self.session: aiohttp.ClientSession = aiohttp.ClientSession(
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
        # aiohttp may send a request again after a lost connection; only the retry policy may do so.
        self.session._retry_connection = False  # noqa: SLF001

    async def request(self, request: HttpRequest, timeouts: Timeouts) -> aiohttp.ClientResponse:
        """Send the request; returns when the status line and the headers have arrived."""
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
        """Close the connections without the event loop, which is no longer running."""
        connector = self.session.connector
        self.session.detach()
        if connector is None:
            return
        idle: dict[Any, Any] = getattr(connector, "_conns", {})
        busy: set[Any] = getattr(connector, "_acquired", set())
        handlers = [handler for queue in idle.values() for handler, _ in queue]
        for handler in (*handlers, *busy):
            if handler.transport is not None:
                _abort_without_loop(handler.transport)
        idle.clear()
        busy.clear()


def _payload(body: bytes) -> bytes | io.BytesIO | None:
    # aiohttp writes bytes at once, which blocks the event loop if there are many. It reads a file
    # piece by piece in a thread, which makes a request of 256 kB to 1 MB a third more expensive.
    if len(body) > _LARGE:
        return io.BytesIO(body)
    return body or None


def cut(transport: asyncio.BaseTransport) -> None:
    """Close a connection at once; discards data that is not sent yet."""
    if not isinstance(transport, asyncio.WriteTransport):
        return
    peer = transport.get_extra_info("socket")
    if peer is not None:
        with suppress(OSError, AttributeError):
            # Without a reset, a peer that is not reading does not notice the close.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            # Without a shutdown, the connection stays open while a forked child has the socket.
            peer.shutdown(socket.SHUT_RDWR)
    transport.abort()


def drop_response(response: aiohttp.ClientResponse) -> None:
    """Close the connection of a response whose body is incomplete."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        cut(connection.transport)
    response.close()


def _abort_without_loop(transport: Any) -> None:
    # A closed loop does not run the callback that closes the socket, so it is called here.
    with suppress(RuntimeError):
        transport.abort()
        return
    inner = getattr(getattr(transport, "_ssl_protocol", None), "_transport", transport)
    finish = getattr(inner, "_call_connection_lost", None)
    if finish is not None:
        with suppress(Exception):
            finish(None)


# Translation of aiohttp's errors. They are not chained to ours: their texts contain URLs, and a
# URL may contain an API key.


def send_error(error: Exception, request: HttpRequest, timeouts: Timeouts) -> SDKError:
    """The error for a request that failed before the headers of the response arrived."""
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
            return NetworkError(f"{host} closed the connection before it sent a response")
        case aiohttp.ClientResponseError():
            return NetworkError(f"the response from {host} is not valid HTTP")
        case aiohttp.ClientConnectionError() | OSError():
            return NetworkError(f"the connection to {host} was lost before a response came")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return ConfigurationError(
                f"the request URL is invalid (host: {host}); use http:// or https:// and a host"
            )
        case ValueError():
            # Usually an API key with a line break at its end.
            return ConfigurationError(
                f"the request to {host} has an invalid header; "
                "check API keys and header values for line breaks"
            )
    return NetworkError(f"the request to {host} failed: {type(error).__name__}")


def _connect_error(error: aiohttp.ClientConnectorError, host: str) -> NetworkError:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return NetworkError(f"cannot find the address of {host}: {error.os_error.strerror}")
    if isinstance(error, aiohttp.ClientSSLError):
        # a certificate error is in `certificate_error`; other TLS errors are in `os_error`
        cause = getattr(error, "certificate_error", None) or error.os_error
        reason = getattr(cause, "verify_message", None) or getattr(cause, "reason", None)
        why = reason or type(cause).__name__
        return NetworkError(f"the TLS handshake with {host} failed: {why}", retryable=False)
    number = error.os_error.errno
    why = os.strerror(number) if number else type(error.os_error).__name__
    return NetworkError(f"cannot connect to {host}: {why}")


def body_error(error: Exception, request: HttpRequest, *, in_stream: bool) -> SDKError:
    """The error for an incomplete body: `StreamError` for a stream, else `NetworkError`."""
    host = host_of(request)
    if isinstance(error, (aiohttp.ClientPayloadError, EOFError)):
        text = f"the response from {host} is incomplete: it ended too early"
    elif isinstance(error, (aiohttp.ClientError, OSError, RuntimeError)):
        text = f"the connection to {host} was lost during the response"
    else:
        text = f"cannot read the response from {host}: {type(error).__name__}"
    return StreamError(text) if in_stream else NetworkError(text)
