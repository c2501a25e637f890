"""
One exchange over aiohttp: a request and its reply, with timeouts and limits.

The errors of aiohttp are not chained to ours: their texts contain URLs, and a URL may contain an
API key.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from functools import partial
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import (
    ConfigurationError,
    NetworkError,
    SDKError,
    StreamError,
    TimeoutPhase,
)
from interlingua.transport.aiohttp_pool import OpenReply, Pool
from interlingua.transport.bodies import Inflater, inflate, inflater_for
from interlingua.transport.timeouts import (
    Bounded,
    connection_error,
    host_of,
    is_one_value,
    next_deadline,
    system_error,
    timeout_error,
    too_large,
)

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
        "__weakref__", "_began", "_expired", "_limits", "_loop", "_phase", "_pool", "_reference",
        "_reply", "_request", "_task", "_timeouts", "headers", "status", "waiting_since",
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
        self._reply: OpenReply | None = None
        self._reference = pool.watch.reference(self)
        self._phase: TimeoutPhase = "first_byte"
        self._expired: TimeoutPhase | None = None
        self._task: asyncio.Task[object] | None = None
        self.waiting_since: float | None = None

    async def __aenter__(self) -> Self:
        task = self._task = asyncio.current_task(self._loop)
        before = 0 if task is None else task.cancelling()
        self._began = self._loop.time()
        self._watch()
        error: SDKError | None = None
        try:
            reply = await self._pool.send(self._request, self._timeouts)
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
        self._reply = reply
        self.status = reply.status
        self.headers = _lower(reply.headers)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        reply = self._reply
        if reply is None or reply.handler is None:
            self._reply = None  # the body has ended
        elif kind is None:
            self._pool.lingering.add(self)
            self._loop.call_later(LINGER, self.abort)
        else:
            self.abort()

    def __del__(self) -> None:
        # Collected before the body ended. The collector may run in any thread.
        if self._reply is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._reply.drop)

    def abort(self) -> None:
        """Close the connection, unless it was released; a task that is reading gets an error."""
        self._pool.lingering.discard(self)
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.drop()

    async def read(self) -> bytes:
        """The whole body; `DecodeError` if it is larger than the limit."""
        content = self._content()
        inflater = inflater_for(self.headers, self._limits)
        blocks: list[bytes] = []
        room = self._limits.body
        is_over = content.at_eof  # without one more read to see that
        next_block = content.readany
        if inflater is not None:
            chunks = _Chunks(self, content, self._loop, in_stream=False)
            inflated = self._inflated(chunks, inflater, in_stream=False)
            next_block, is_over = partial(anext, inflated, b""), bool
        try:
            while room >= 0 and not is_over() and (block := await next_block()):
                blocks.append(block)
                room -= len(block)
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
        self._watch()
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
        if self._reply is None:
            raise StreamError("The response was closed before it was read.")
        return self._reply.content

    def _failed(self, failure: Exception, *, in_stream: bool) -> SDKError:
        if isinstance(failure, SDKError):
            return failure
        if self._expired is not None:
            return timeout_error(self._expired, self._request, self._timeouts)
        return body_error(failure, self._request, in_stream=in_stream)

    def _deadline(self, now: float) -> tuple[float | None, TimeoutPhase]:
        since = self.waiting_since
        waiting_since = now if since is None else since
        return next_deadline(self._timeouts, self._phase, self._began, waiting_since)

    def _watch(self) -> None:
        """A timeout of this phase ends the exchange; chunks move it without being noted here."""
        deadline, _ = self._deadline(self._loop.time())
        if deadline is not None:
            self._pool.watch.add(self._reference, deadline)

    def check(self, now: float) -> float | None:
        """As `Watched` says; ends the exchange after a timeout."""
        deadline, phase = self._deadline(now)
        if deadline is None or deadline > now:
            return deadline
        self._expired = phase
        if self._task is not None:
            self._task.cancel()
        elif self._reply is not None:
            self._reply.content.set_exception(_SilenceError())
        return None

    def _stop(self) -> None:
        self._pool.watch.remove(self._reference)


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


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with names in lower case; the values of a repeated name are joined by commas."""
    lowered = {name.lower(): value for name, value in headers.items()}
    if len(lowered) != len(headers):
        joined: dict[str, list[str]] = {}
        for name, value in headers.items():
            joined.setdefault(name.lower(), []).append(value)
        return {name: ", ".join(values) for name, values in joined.items()}
    return lowered


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
            return NetworkError(f"The proxy refused {host}: {error.status}", retryable=retryable)
        case aiohttp.ServerDisconnectedError():
            text = f"{host} closed the connection before it sent a response."
            return NetworkError(text, cause=connection_error(error))
        case HttpProcessingError():
            return NetworkError(f"The response from {host} is not valid HTTP.")
        case aiohttp.ClientConnectionError() | OSError():
            return NetworkError(f"The connection to {host} was lost before a response came.")
        case aiohttp.InvalidURL():
            return ConfigurationError(
                f"The request URL is invalid (host: {host}). Use http:// or https:// and a host."
            )
        case ValueError():
            # Usually an API key with a line break at its end.
            return ConfigurationError(
                f"The request to {host} has an invalid header. "
                "Check API keys and header values for line breaks."
            )
    return NetworkError(f"The request to {host} failed: {type(error).__name__}")


def _connect_error(error: aiohttp.ClientConnectorError, host: str) -> NetworkError:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        why = error.os_error.strerror
        return NetworkError(f"Cannot find the address of {host}: {why}", phase="connect")
    if isinstance(error, aiohttp.ClientSSLError):
        # a certificate error is in `certificate_error`; other TLS errors are in `os_error`
        cause = getattr(error, "certificate_error", None) or error.os_error
        reason = getattr(cause, "verify_message", None) or getattr(cause, "reason", None)
        why = reason or type(cause).__name__
        text = f"the TLS handshake with {host} failed: {why}"
        return NetworkError(text, retryable=False, phase="connect")
    number = error.os_error.errno
    why = os.strerror(number) if number else type(error.os_error).__name__
    return NetworkError(f"Cannot connect to {host}: {why}", phase="connect")


def body_error(error: Exception, request: HttpRequest, *, in_stream: bool) -> SDKError:
    """The error for an incomplete body: `StreamError` for a stream, else `NetworkError`."""
    host = host_of(request)
    if isinstance(error, (aiohttp.ClientPayloadError, EOFError)):
        text = f"the response from {host} is incomplete: it ended too early"
    elif isinstance(error, (aiohttp.ClientError, OSError, RuntimeError)):
        text = f"the connection to {host} was lost during the response"
    else:
        text = f"cannot read the response from {host}: {type(error).__name__}"
    cause = connection_error(error)
    return StreamError(text, cause=cause) if in_stream else NetworkError(text, cause=cause)
