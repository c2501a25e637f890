"""
One exchange: a request and its reply, with timeouts and limits.

The errors of the connection become ours. None of them has a URL or a header in its text: both may
contain an API key.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Self

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import (
    ConfigurationError,
    NetworkError,
    RequestTimeoutError,
    SDKError,
    StreamError,
    TimeoutPhase,
)
from interlingua.transport.bodies import (
    Inflater,
    OutgoingBody,
    inflate,
    inflater_for,
    sent_headers,
)
from interlingua.transport.http1.addresses import Target, why_tls_failed
from interlingua.transport.http1.connection import (
    ClosedError,
    Connection,
    InvalidReplyError,
    Reply,
)
from interlingua.transport.http1.pool import Pool
from interlingua.transport.timeouts import (
    Bounded,
    connection_error,
    host_of,
    is_one_value,
    next_deadline,
    timeout_error,
    too_large,
)
from interlingua.wire.multipart import is_repeatable

LINGER = 0.05
"""
Seconds to wait for the end of the body after its reader has finished.

A reader of a stream stops at the last event. The end of the body is then only a few bytes away,
and if it arrives the connection can be reused.
"""

_LARGE = 1 << 20  # a body of bytes above this size is written piece by piece
_PIECE = 256 * 1024


class _SilenceError(Exception):
    """Wakes the task that waits for the reply, after a timeout."""


class Exchange:
    """A request and its reply; entering it sends the request."""

    __slots__ = (
        "__weakref__", "_began", "_expired", "_limits", "_loop", "_phase", "_pool", "_reference",
        "_reply", "_request", "_timeouts", "headers", "status", "waiting_since",
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
        self._reply: Reply | None = None
        self._reference = pool.watch.reference(self)
        self._phase: TimeoutPhase = "first_byte"
        self._expired: TimeoutPhase | None = None
        self.waiting_since: float | None = None

    async def __aenter__(self) -> Self:
        request, pool = self._request, self._pool
        target = pool.target(request.url)
        head = _write_head(request, target)
        await pool.get_ready(target)
        self._began = self._loop.time()
        reply = await self._send(head, target)
        self._phase = "request"
        self.status = reply.status
        self.headers = reply.headers
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        reply = self._reply
        if reply is None or reply.connection is None:
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

    # Sending.

    async def _send(self, head: bytes, target: Target) -> Reply:
        """
        Send the request; returns when the status line and the headers have arrived.

        It is sent once more if a reused connection ended before one byte of the reply.
        """
        request = self._request
        keep_alive = request.keep_alive
        while True:
            connection = await self._find_connection(target, keep_alive=keep_alive)
            reply = self._reply = Reply(self._loop, has_body=request.method != "HEAD")
            outgoing = self._write(connection, head, reply, keep_alive=keep_alive)
            self._watch()
            try:
                await reply.wait_for_head()
            except Exception as failure:  # noqa: BLE001 -- all are translated
                error = self._send_error(failure, outgoing)
            except BaseException:
                self._stop()
                self.abort()
                raise
            else:
                return reply
            self._stop()
            self.abort()
            is_stale = isinstance(error, NetworkError) and connection.is_stale(reply)
            if not (is_stale and request.may_resend and is_repeatable(request.body)):
                raise error
            if request.on_resend is not None:
                request.on_resend()
            keep_alive = False  # on a new connection, which is closed after the reply

    async def _find_connection(self, target: Target, *, keep_alive: bool) -> Connection:
        """An idle connection, or a new one."""
        pool = self._pool
        if pool.max_connections is not None:
            await self._wait_for_turn(target)
        try:
            connection = pool.take(target)
            if connection is not None and not keep_alive:
                connection.has_turn = False  # the turn is that of the new one
                connection.close()
                connection = None
            return connection or await self._connect(target)
        except BaseException:
            pool.end_turn(target.key)
            raise

    async def _wait_for_turn(self, target: Target) -> None:
        """Wait until the host has fewer connections than the limit; nothing is sent before."""
        on_connect = self._request.on_connect
        if on_connect is not None:
            on_connect(True)
        deadline, phase = self._deadline(self._loop.time())
        try:
            async with asyncio.timeout_at(deadline):
                await self._pool.wait_for_turn(target)
        except TimeoutError:
            error = RequestTimeoutError(
                f"Timed out while waiting for a free connection to {self._host()}: all "
                "that `max_connections` allows are in use. Nothing was sent.",
                phase=phase,
                retryable=True,
            )
        else:
            if on_connect is not None:
                on_connect(False)
            return
        raise error

    async def _connect(self, target: Target) -> Connection:
        on_connect, timeouts = self._request.on_connect, self._timeouts
        if on_connect is not None:
            on_connect(True)
        deadline, phase = self._deadline(self._loop.time())
        seconds = timeouts.connect
        if seconds is not None:
            end = self._loop.time() + seconds
            if deadline is None or end < deadline:
                deadline, phase = end, "connect"
        try:
            async with asyncio.timeout_at(deadline) as clock:
                connection = await self._pool.open(target)
        except TimeoutError:
            if not clock.expired():
                raise
            error = timeout_error(phase, self._request, timeouts, host=self._host())
        else:
            if on_connect is not None:
                on_connect(False)
            return connection
        raise error

    def _write(
        self, connection: Connection, head: bytes, reply: Reply, *, keep_alive: bool
    ) -> OutgoingBody | None:
        """Write the request; a large or streamed body in a task, as fast as the server reads."""
        body = self._request.body
        if isinstance(body, bytes) and len(body) <= _LARGE:
            connection.send(head + body, reply, keep_alive=keep_alive)
            return None
        outgoing = OutgoingBody(self._request)
        connection.send(head, reply, keep_alive=keep_alive)
        connection.writer = self._pool.write(
            _write_body(connection, reply, self._request, outgoing)
        )
        return outgoing

    def _send_error(self, failure: Exception, outgoing: OutgoingBody | None) -> SDKError:
        """The error for a request that failed before the headers of the response arrived."""
        if outgoing is not None and outgoing.error is not None:
            return outgoing.error
        host = self._host()
        if self._expired is not None:
            return timeout_error(self._expired, self._request, self._timeouts, host=host)
        if isinstance(failure, InvalidReplyError):
            return NetworkError(f"The response from {host} is not valid HTTP.")
        if isinstance(failure, ClosedError):
            return NetworkError(
                f"The transport was closed before a response from {host} came.", retryable=False
            )
        if isinstance(failure, ssl.SSLError):  # such as a certificate that the server wants
            why = why_tls_failed(failure)
            return NetworkError(
                f"The TLS connection to {host} failed: {why}", retryable="ALERT" not in why
            )
        text = f"The connection to {host} was lost before a response came."
        if isinstance(failure, EOFError):
            text = f"{host} closed the connection before it sent a response."
        return NetworkError(text, cause=connection_error(failure))

    def _host(self) -> str:
        """The host for messages, with its proxy, which may be what failed."""
        proxy, host = self._pool.target(self._request.url).proxy, host_of(self._request)
        return host if proxy is None else f"{host} (through the proxy {proxy.address})"

    # Reading.

    async def read(self) -> bytes:
        """The whole body; `DecodeError` if it is larger than the limit."""
        chunks = self._chunks(in_stream=False)
        blocks: list[bytes] = []
        room = self._limits.body
        async for block in chunks:
            blocks.append(block)
            room -= len(block)
            if room < 0:
                raise too_large(self._request, self._limits.body)
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives; each chunk holds all bytes that have arrived so far."""
        self._phase = "stream_read"
        chunks = self._chunks(in_stream=True)
        self._watch()
        if is_one_value(self.headers):
            return Bounded(chunks, self._request, self._limits.body)
        return chunks

    def _chunks(self, *, in_stream: bool) -> AsyncIterator[bytes]:
        if self._reply is None:
            raise StreamError("The response was closed before it was read.")
        inflater = inflater_for(self.headers, self._limits)
        chunks = _Chunks(self, self._reply, self._loop, in_stream=in_stream)
        return chunks if inflater is None else self._inflated(chunks, inflater, in_stream=in_stream)

    async def _inflated(
        self, chunks: AsyncIterator[bytes], inflater: Inflater, *, in_stream: bool
    ) -> AsyncIterator[bytes]:
        try:
            async for piece in inflate(chunks, inflater):
                yield piece
        except EOFError as failure:
            error = self.read_error(failure, in_stream=in_stream)
        else:
            return
        raise error

    def read_error(self, failure: Exception, *, in_stream: bool) -> SDKError:
        """The error for an incomplete body: `StreamError` for a stream, else `NetworkError`."""
        if isinstance(failure, SDKError):  # of the body of the request, which is still being sent
            return failure
        host = self._host()
        if self._expired is not None:
            return timeout_error(self._expired, self._request, self._timeouts, host=host)
        kind = StreamError if in_stream else NetworkError
        if isinstance(failure, ClosedError):
            text = f"The response from {host} was closed before it was complete."
            return kind(text, retryable=False)
        if isinstance(failure, InvalidReplyError):
            text = f"The response from {host} is incomplete: what followed is not valid HTTP."
        elif isinstance(failure, EOFError):
            text = f"The response from {host} is incomplete: it ended too early."
        elif isinstance(failure, OSError):
            text = f"The connection to {host} was lost during the response."
        else:
            text = f"Cannot read the response from {host}: {type(failure).__name__}."
        return kind(text, cause=connection_error(failure))

    # Timeouts.

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
        if self._reply is not None:
            self._reply.fail(_SilenceError())
        return None

    def _stop(self) -> None:
        self._pool.watch.remove(self._reference)


class _Chunks:
    """The chunks of a body, as they arrive."""

    __slots__ = ("_exchange", "_in_stream", "_now", "_reply")

    def __init__(
        self,
        exchange: Exchange,
        reply: Reply,
        loop: asyncio.AbstractEventLoop,
        *,
        in_stream: bool,
    ) -> None:
        self._exchange = exchange
        self._reply = reply
        self._now = loop.time
        self._in_stream = in_stream

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        reply, exchange = self._reply, self._exchange
        try:
            if not reply.has_news:
                exchange.waiting_since = self._now()
                try:
                    while not reply.has_news:
                        await reply.wait()
                finally:
                    exchange.waiting_since = None
            chunk = reply.take()
        except Exception as failure:  # noqa: BLE001 -- all are translated
            error = exchange.read_error(failure, in_stream=self._in_stream)
        else:
            if not chunk:
                raise StopAsyncIteration
            return chunk
        raise error


def _write_head(request: HttpRequest, target: Target) -> bytes:
    """The request line and the headers."""
    headers = {**target.headers, **sent_headers(request)}
    lines = "\r\n".join(map(": ".join, headers.items()))
    head = f"{request.method} {target.path} HTTP/1.1\r\n{lines}\r\n\r\n"
    breaks = len(headers) + 2
    if head.count("\n") == breaks and head.count("\r") == breaks and "\0" not in head:
        with suppress(UnicodeEncodeError):  # half a character
            return head.encode()
    # Usually an API key with a line break at its end.
    raise ConfigurationError(
        f"The request to {host_of(request)} has an invalid header. "
        "Check API keys and header values for line breaks."
    )


async def _write_body(
    connection: Connection, reply: Reply, request: HttpRequest, outgoing: OutgoingBody
) -> None:
    """Write a large or streamed body, as fast as the server reads it."""
    is_chunked = request.body_size is None
    pieces = _pieces(request.body) if isinstance(request.body, bytes) else aiter(outgoing)
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                await connection.drain()
                connection.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
        if is_chunked:
            connection.write(b"0\r\n\r\n")
    except Exception as error:  # noqa: BLE001 -- the reader of the reply raises it
        reply.fail(error)


async def _pieces(body: bytes) -> AsyncGenerator[bytes, None]:
    for at in range(0, len(body), _PIECE):
        yield body[at : at + _PIECE]
