"""HTTP over aiohttp: the connections of one event loop, and one exchange over them."""

from __future__ import annotations

import asyncio
import io
import os
import ssl
import weakref
from collections.abc import AsyncIterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

import aiohttp

from interlingua.spec.contracts import HttpRequest, Limits, Timeouts
from interlingua.spec.errors import (
    ConfigurationError,
    NetworkError,
    SDKError,
    StreamError,
    TimeoutPhase,
)
from interlingua.transport.aiohttp_connector import (
    Connector,
    Response,
    StaleConnectionError,
    cut,
)
from interlingua.transport.bodies import (
    ACCEPTED,
    Inflater,
    OutgoingBody,
    inflate,
    inflater_for,
    sent_headers,
)
from interlingua.transport.per_loop import abort_without_loop
from interlingua.transport.proxies import Proxies
from interlingua.transport.timeouts import (
    Bounded,
    host_of,
    is_one_value,
    next_deadline,
    system_error,
    timeout_error,
    too_large,
)
from interlingua.version import USER_AGENT
from interlingua.wire.multipart import is_repeatable

KEEP_ALIVE = 60.0
"""Seconds an idle connection is kept. Tools may run between two requests of a conversation."""

_MAX_HEADER = 64 * 1024
_LARGE = 1 << 20  # aiohttp warns about bodies of bytes above this size


class Pool:
    """One aiohttp session, and the state that its exchanges share."""

    def __init__(self, *, trust_env: bool, tls: ssl.SSLContext | None) -> None:
        # aiohttp's own `trust_env` looks up the proxy in a thread and reads netrc for each request,
        # and credentials from netrc would conflict with the API keys.
        proxies = Proxies() if trust_env else None
        self._proxies = proxies or None
        self.lingering: set[Exchange] = set()
        """Exchanges whose reader has finished, and whose body may end at any moment."""
        self._clocks: dict[float | None, aiohttp.ClientTimeout] = {}
        self._connector = Connector(
            limit=0,
            keepalive_timeout=KEEP_ALIVE,
            ssl=True if tls is None else tls,
            resolver=aiohttp.ThreadedResolver(),
        )
        self.session: aiohttp.ClientSession = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"accept-encoding": ACCEPTED, "user-agent": USER_AGENT},
            skip_auto_headers=("content-type",),
            timeout=aiohttp.ClientTimeout(total=None),
            response_class=Response,
            auto_decompress=False,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )
        # aiohttp would send a request again after a loss of any connection, also of a new one.
        self.session._retry_connection = False  # noqa: SLF001

    async def send(self, request: HttpRequest, timeouts: Timeouts) -> aiohttp.ClientResponse:
        """
        Send the request; returns when the status line and the headers have arrived.

        It is sent once more if a reused connection ended before one byte of the reply.
        """
        clock = self._clocks.get(timeouts.connect)
        if clock is None:
            clock = aiohttp.ClientTimeout(total=None, connect=timeouts.connect)
            self._clocks[timeouts.connect] = clock
        whole = request.body if isinstance(request.body, bytes) else None
        streamed = OutgoingBody(request) if whole is None else None
        try:
            return await self.session.request(
                request.method,
                request.url,
                headers=sent_headers(request),
                data=streamed or _payload(whole or b""),
                allow_redirects=False,
                timeout=clock,
                proxy=None if self._proxies is None else self._proxies.find(request.url),
            )
        except StaleConnectionError:
            if not (request.may_resend and is_repeatable(request.body)):
                raise
        except aiohttp.ClientError:
            if streamed is None or streamed.error is None:
                raise
        if streamed is not None and streamed.error is not None:
            raise streamed.error
        if request.on_resend is not None:
            request.on_resend()
        return await self.send_alone(request, timeouts)

    async def send_alone(self, request: HttpRequest, timeouts: Timeouts) -> aiohttp.ClientResponse:
        """Send the request on a connection of its own, which is closed after the reply."""
        task, tasks = asyncio.current_task(), self._connector.single_use
        tasks.add(task)
        try:
            return await self.send(request, timeouts)
        finally:
            tasks.discard(task)

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
                abort_without_loop(handler.transport)
        idle.clear()
        busy.clear()


def _payload(body: bytes) -> bytes | io.BytesIO | None:
    # aiohttp writes bytes at once, which blocks the event loop if there are many. It reads a file
    # piece by piece in a thread, which makes a request of 256 kB to 1 MB a third more expensive.
    if len(body) > _LARGE:
        return io.BytesIO(body)
    return body or None


def drop_response(response: aiohttp.ClientResponse) -> None:
    """Close the connection of a response whose body is incomplete."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        cut(connection.transport)
    response.close()


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
        why = error.os_error.strerror
        return NetworkError(f"cannot find the address of {host}: {why}", phase="connect")
    if isinstance(error, aiohttp.ClientSSLError):
        # a certificate error is in `certificate_error`; other TLS errors are in `os_error`
        cause = getattr(error, "certificate_error", None) or error.os_error
        reason = getattr(cause, "verify_message", None) or getattr(cause, "reason", None)
        why = reason or type(cause).__name__
        text = f"the TLS handshake with {host} failed: {why}"
        return NetworkError(text, retryable=False, phase="connect")
    number = error.os_error.errno
    why = os.strerror(number) if number else type(error.os_error).__name__
    return NetworkError(f"cannot connect to {host}: {why}", phase="connect")


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


LINGER = 0.05
"""
Seconds to wait for the end of the body after its reader has finished.

A reader of a stream stops at the last event. The end of the body is then only a few bytes away,
and if it arrives the connection can be reused.
"""


class _SilenceError(Exception):
    """Wakes the task that waits for the body, after a timeout."""


class Exchange:
    """A request and its reply; entering it sends the request."""

    __slots__ = (
        "__weakref__", "_began", "_expired", "_limits", "_loop", "_phase", "_pool", "_request",
        "_response", "_task", "_timeouts", "_timer", "headers", "status", "waiting_since",
    )  # fmt: skip

    def __init__(
        self,
        request: HttpRequest,
        pool: Pool,
        loop: asyncio.AbstractEventLoop,
        timeouts: Timeouts,
        limits: Limits,
    ) -> None:
        self.status: int = 0
        self.headers: Mapping[str, str] = {}
        self._request = request
        self._pool = pool
        self._loop = loop
        self._timeouts = timeouts
        self._limits = limits
        self._response: aiohttp.ClientResponse | None = None
        # One timer per exchange. Chunks do not move it; when it fires, it checks the time of the
        # last chunk and is set again if the timeout has not passed. This is cheaper.
        self._timer: asyncio.TimerHandle | None = None
        self._phase: TimeoutPhase = "first_byte"
        self._expired: TimeoutPhase | None = None
        self._task: asyncio.Task[object] | None = None
        self.waiting_since: float | None = None

    async def __aenter__(self) -> Self:
        task = self._task = asyncio.current_task()
        before = 0 if task is None else task.cancelling()
        self._began = self._loop.time()
        self._set_timer()
        error: SDKError | None = None
        try:
            send = self._pool.send if self._request.keep_alive else self._pool.send_alone
            response = await send(self._request, self._timeouts)
        except asyncio.CancelledError:
            self._stop()
            if self._expired is None or task is None or task.uncancel() > before:
                raise
            error = timeout_error(self._expired, self._request, self._timeouts)
        except Exception as failure:  # noqa: BLE001 -- all are translated
            self._stop()
            error = send_error(failure, self._request, self._timeouts)
            error.add_cause(system_error(failure))
        if error is not None:
            raise error  # outside of `except`, so that aiohttp's error is not its __context__
        self._task = None
        self._phase = "request"
        self._response = response
        self.status = response.status
        self.headers = _lower(response.headers)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        response = self._response
        if response is None or response.connection is None:
            self._response = None  # the body has ended; aiohttp has released the connection
        elif kind is None:
            self._pool.lingering.add(self)
            self._loop.call_later(LINGER, self.abort)
        else:
            self.abort()

    def __del__(self) -> None:
        # Collected before the body ended. The collector may run in any thread.
        if self._response is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(drop_response, self._response)

    def abort(self) -> None:
        """Close the connection, unless it was released; a task that is reading gets an error."""
        self._pool.lingering.discard(self)
        response, self._response = self._response, None
        if response is not None:
            drop_response(response)

    async def read(self) -> bytes:
        """The whole body; `DecodeError` if it is larger than the limit."""
        content = self._content()
        inflater = inflater_for(self.headers, self._limits)
        blocks: list[bytes] = []
        room = self._limits.body
        if inflater is None:
            next_block = content.readany
        else:
            chunks = _Chunks(self, content, self._loop, in_stream=False)
            inflated = self._inflated(chunks, inflater, in_stream=False)
            next_block = partial(anext, inflated, b"")
        try:
            while block := await next_block():
                blocks.append(block)
                room -= len(block)
                if room < 0:
                    break
        except Exception as failure:  # noqa: BLE001 -- all are translated
            error = self._failed(failure, in_stream=False)
        else:
            if room >= 0:
                return blocks[0] if len(blocks) == 1 else b"".join(blocks)
            error = too_large(self._request, self._limits.body)
        raise error

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives; each chunk holds all bytes that have arrived so far."""
        content = self._content()
        inflater = inflater_for(self.headers, self._limits)
        self._phase = "stream_read"
        self._set_timer()
        chunks: AsyncIterator[bytes] = _Chunks(self, content, self._loop, in_stream=True)
        if inflater is not None:
            chunks = self._inflated(chunks, inflater, in_stream=True)
        if is_one_value(self.headers):
            return Bounded(chunks, self._request, self._limits.body)
        return chunks

    async def _inflated(
        self, chunks: AsyncIterator[bytes], inflater: Inflater, *, in_stream: bool
    ) -> AsyncIterator[bytes]:
        try:
            async for piece in inflate(chunks, inflater):
                yield piece
        except EOFError as failure:
            error = body_error(failure, self._request, in_stream=in_stream)
        else:
            return
        raise error

    def _content(self) -> aiohttp.StreamReader:
        if self._response is None:
            raise StreamError("the response was closed before it was read")
        return self._response.content

    def _failed(self, failure: Exception, *, in_stream: bool) -> SDKError:
        if isinstance(failure, SDKError):
            return failure
        if self._expired is not None:
            return timeout_error(self._expired, self._request, self._timeouts)
        return body_error(failure, self._request, in_stream=in_stream)

    def _deadline(self) -> tuple[float | None, TimeoutPhase]:
        since = self.waiting_since
        waiting_since = self._loop.time() if since is None else since
        return next_deadline(self._timeouts, self._phase, self._began, waiting_since)

    def _set_timer(self) -> None:
        deadline, _ = self._deadline()
        timer = self._timer
        if timer is not None:
            if deadline is not None and timer.when() <= deadline:
                return  # the timer fires before the deadline, and is set again then
            timer.cancel()
        # A weak reference, so that the timer does not keep an abandoned exchange alive.
        self._timer = None
        if deadline is not None:
            self._timer = self._loop.call_at(deadline, _on_timer, weakref.ref(self))

    def _on_timer(self) -> None:
        self._timer = None
        deadline, phase = self._deadline()
        if deadline is None or deadline > self._loop.time():
            self._set_timer()
            return
        self._expired = phase
        if self._task is not None:
            self._task.cancel()
        elif self._response is not None:
            self._response.content.set_exception(_SilenceError())

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Chunks:
    """The chunks of a body, as they arrive."""

    __slots__ = ("_exchange", "_in_stream", "_now", "_readany")

    def __init__(
        self,
        exchange: Exchange,
        content: aiohttp.StreamReader,
        loop: asyncio.AbstractEventLoop,
        *,
        in_stream: bool,
    ) -> None:
        self._exchange = exchange
        self._readany = content.readany
        self._now = loop.time
        self._in_stream = in_stream

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        exchange = self._exchange
        exchange.waiting_since = self._now()
        try:
            chunk = await self._readany()
        except Exception as failure:  # noqa: BLE001 -- all are translated
            error = exchange._failed(failure, in_stream=self._in_stream)  # noqa: SLF001
        else:
            if not chunk:
                raise StopAsyncIteration
            return chunk
        finally:
            exchange.waiting_since = None
        raise error


def _on_timer(reference: weakref.ref[Exchange]) -> None:
    exchange = reference()
    if exchange is not None:
        exchange._on_timer()  # noqa: SLF001 -- same module


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with names in lower case; the values of a repeated name are joined by commas."""
    lowered = {name.lower(): value for name, value in headers.items()}
    if len(lowered) != len(headers):
        joined: dict[str, list[str]] = {}
        for name, value in headers.items():
            joined.setdefault(name.lower(), []).append(value)
        return {name: ", ".join(values) for name, values in joined.items()}
    return lowered
