"""
A network backend for httpcore2 that reads while it writes, and checks idle connections.

A server may refuse a large request before it has read all of it, and close the connection. Its
response arrives while the client is still writing, and is lost unless the client also reads.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import httpcore2
import httptools

from interlingua.transport.http1.addresses import connect, resolve
from interlingua.transport.http1.connection import cut
from interlingua.transport.per_loop import SocketProbe

_HIGH_WATER = 256 * 1024  # pause reading above this many buffered bytes


class StaleConnectionError(httpcore2.ReadError):
    """A reused connection ended before one byte of the reply: the server had closed it before."""


class Backend(httpcore2.AsyncNetworkBackend):
    """Opens connections in the running event loop."""

    def __init__(self) -> None:
        self.generation: int = 0
        """Grows with each stale connection. Idle connections of earlier ones are not reused."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- httpcore2's signature
        local_address: str | None = None,  # noqa: ARG002 -- our pools have none
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Open a TCP connection."""
        loop = asyncio.get_running_loop()
        with _translate_errors(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            async with asyncio.timeout(timeout):
                peer = await connect(await resolve(host, port))
                _, connection = await loop.create_connection(_Connection, sock=peer)
        for option in socket_options or ():
            connection.transport.get_extra_info("socket").setsockopt(*option)
        return _Http11Stream(connection, self)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class _Stream(httpcore2.AsyncNetworkStream):
    """A connection with httpcore2's interface. HTTP/2 writes and reads at the same time."""

    _stops_at_reply = False

    def __init__(self, connection: _Connection, backend: Backend) -> None:
        self._connection = connection
        self._backend = backend

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        with _translate_errors(httpcore2.ReadTimeout, httpcore2.ReadError):
            async with asyncio.timeout(timeout):
                return await self._connection.receive(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if buffer:
            with _translate_errors(httpcore2.WriteTimeout, httpcore2.WriteError):
                async with asyncio.timeout(timeout):
                    await self._connection.send(buffer, stops_at_reply=self._stops_at_reply)

    async def aclose(self) -> None:
        transport = self._connection.transport
        if transport.get_write_buffer_size():  # a peer that is not reading notices only a reset
            cut(transport)
        else:
            transport.abort()
        await asyncio.sleep(0)  # the loop closes the socket in its next iteration

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- httpcore2's signature
    ) -> httpcore2.AsyncNetworkStream:
        connection = self._connection
        try:
            with _translate_errors(httpcore2.ConnectTimeout, httpcore2.ConnectError):
                async with asyncio.timeout(timeout):
                    await connection.encrypt(ssl_context, server_hostname)
        except BaseException:
            connection.transport.abort()
            raise
        # A new stream: what was read before came from a proxy.
        chosen = connection.transport.get_extra_info("ssl_object").selected_alpn_protocol()
        return (_Stream if chosen == "h2" else _Http11Stream)(connection, self._backend)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # httpcore2 asks before it reuses a connection
            return self._must_not_be_reused()
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._connection.transport.get_extra_info(names.get(info, info))

    def _must_not_be_reused(self) -> bool:
        connection = self._connection
        return connection.is_readable or SocketProbe(connection.transport).has_input()


class _Http11Stream(_Stream):
    """A connection on which one request is written, then its reply is read, then the next one."""

    _stops_at_reply = True

    def __init__(self, connection: _Connection, backend: Backend) -> None:
        super().__init__(connection, backend)
        self._generation = backend.generation
        self._is_reused = False
        self._reply: ReplyEnd | None = None  # to the current request

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        data = b""
        try:
            data = await super().read(max_bytes, timeout)
        except httpcore2.ReadError:
            if not self._is_stale:
                raise
        if not data and self._is_stale:
            self._backend.generation += 1
            raise StaleConnectionError
        if self._reply is not None:
            self._reply.feed(data)
        return data

    @property
    def _is_stale(self) -> bool:
        return self._is_reused and self._reply is not None and not self._reply.has_begun

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        last = self._reply
        if last is None or last.has_begun:  # a request begins
            self._reply = ReplyEnd(buffer)
            # What a SOCKS proxy says is not a reply: the connection is still new after it.
            self._is_reused = last is not None and last.is_whole
            if self._is_reused and self._connection.is_readable:  # since httpcore2 asked
                raise httpcore2.ConnectionNotAvailable
        await super().write(buffer, timeout)

    def _must_not_be_reused(self) -> bool:
        reply = self._reply
        return (
            (reply is not None and reply.has_begun and not reply.is_whole)
            or self._generation != self._backend.generation
            or super()._must_not_be_reused()
        )


class ReplyEnd:
    """
    Finds out whether the bytes that were read are one whole reply of HTTP/1.1, and no byte more.

    A byte more is the beginning of a reply that nobody has asked for. `request` is the beginning
    of the request that is answered.
    """

    __slots__ = ("_end", "_is_to_head", "_parser", "_size")

    def __init__(self, request: bytes) -> None:
        self._is_to_head = request.startswith(b"HEAD ")  # its reply has no body
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._size = 0
        self._end: int | None = None

    @property
    def has_begun(self) -> bool:
        """Whether a byte has been read."""
        return self._size > 0

    @property
    def is_whole(self) -> bool:
        """Whether the reply has ended with the last byte that was read."""
        return self._size == self._end

    def feed(self, data: bytes) -> None:
        """Follow the next bytes; what is not HTTP never becomes whole."""
        # The parser does not say where in the data a reply ended. So the last byte is fed alone: if
        # the reply ends with it, nothing follows.
        for part in (data[:-1], data[-1:]):
            self._size += len(part)
            if self._parser is None:
                continue
            try:
                self._parser.feed_data(part)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade):
                self._parser = None
        if self._end is not None:
            self._parser = None  # it refers to this object, so both would wait for the collector

    # Callbacks of the parser.

    def on_headers_complete(self) -> None:
        if self._is_to_head:
            self.on_message_complete()

    def on_message_complete(self) -> None:
        is_final = self._parser is not None and self._parser.get_status_code() >= 200
        if is_final and self._end is None:
            self._end = self._size


class _Connection(asyncio.Protocol):
    """The received bytes that are not read yet, and whether more can be sent."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._buffer = bytearray()
        self._event = asyncio.Event()  # set when data comes, writing resumes or the connection ends
        self._is_closed = False  # by the peer, or lost
        self._is_full = False
        self._error: Exception | None = None

    @property
    def is_readable(self) -> bool:
        """Whether bytes have arrived, or the connection is closed."""
        return bool(self._buffer) or self._is_closed

    async def receive(self, max_bytes: int) -> bytes:
        """The next bytes; empty at the end."""
        while not self.is_readable:
            self._event.clear()
            await self._event.wait()
        if not self._buffer and self._error is not None:
            raise self._error
        data = bytes(self._buffer[:max_bytes])
        del self._buffer[:max_bytes]
        if len(self._buffer) <= _HIGH_WATER and not self._is_closed:
            self.transport.resume_reading()
        return data

    async def send(self, data: bytes, *, stops_at_reply: bool) -> None:
        """
        Write the data and wait until more can be written.

        With `stops_at_reply`, raises `ConnectionError` if the connection is closed, or if the peer
        responds before it has read the whole request. Without it, what the peer said before it
        closed is left to the reader.
        """
        if not self._is_closed:
            self.transport.write(data)
        while self._is_full and not self._is_closed:
            if stops_at_reply and self._buffer:
                raise ConnectionAbortedError
            self._event.clear()
            await self._event.wait()
        if stops_at_reply and self._is_closed:
            raise self._error or ConnectionResetError()

    async def encrypt(self, context: ssl.SSLContext, host: str | None) -> None:
        """Start TLS on this connection."""
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(self.transport, self, context, server_hostname=host)
        if transport is None:
            raise ConnectionResetError
        self.transport = transport

    # Callbacks of asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > _HIGH_WATER:
            self.transport.pause_reading()
        self._event.set()

    def eof_received(self) -> bool:
        self._end(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._event.set()

    def _end(self, error: Exception | None) -> None:
        self._is_closed = True
        self._error = self._error or error
        self._event.set()


@contextmanager
def _translate_errors(
    timeout_type: type[httpcore2.TimeoutException], error_type: type[httpcore2.NetworkError]
) -> Iterator[None]:
    """Raises the errors of the system as httpcore2's types."""
    try:
        yield
    except TimeoutError as error:
        raise timeout_type from error
    except ssl.SSLError as error:
        raise error_type(str(error)) from error
    except OSError as error:
        number = error.errno
        # A failed name lookup (gaierror) has a negative number, which `os.strerror` does not know.
        why = os.strerror(number) if number and number > 0 else error.strerror
        raise error_type(why or type(error).__name__) from error
