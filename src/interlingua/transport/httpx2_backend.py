"""
Connections for HTTP/1.1 over httpx2 that read while they write.

A server may refuse a large request before it has read all of it, and close. Its answer is then
on its way while we still write, and would be lost with the connection if nobody read it.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2

_HIGH = 256 * 1024  # bytes that may wait for their reader
_STAGGER = 0.25  # seconds until the next address of a host is tried beside the first


class Backend(httpcore2.AsyncNetworkBackend):
    """Opens connections in the running loop."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- as httpcore2 has it
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to a host."""
        loop = asyncio.get_running_loop()
        local = None if local_address is None else (local_address, 0)
        with _told(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            async with asyncio.timeout(timeout):
                _, wire = await loop.create_connection(
                    _Wire, host, port, local_addr=local, happy_eyeballs_delay=_STAGGER
                )
        for option in socket_options or ():
            wire.transport.get_extra_info("socket").setsockopt(*option)
        return _Stream(wire)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class _Stream(httpcore2.AsyncNetworkStream):
    """A connection as httpcore2 uses it."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        with _told(httpcore2.ReadTimeout, httpcore2.ReadError):
            async with asyncio.timeout(timeout):
                return await self._wire.receive(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if buffer:
            with _told(httpcore2.WriteTimeout, httpcore2.WriteError):
                async with asyncio.timeout(timeout):
                    await self._wire.send(buffer)

    async def aclose(self) -> None:
        self._wire.transport.abort()
        await asyncio.sleep(0)  # so that the socket is closed when this returns

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- as above
    ) -> httpcore2.AsyncNetworkStream:
        try:
            with _told(httpcore2.ConnectTimeout, httpcore2.ConnectError):
                async with asyncio.timeout(timeout):
                    await self._wire.encrypt(ssl_context, server_hostname)
        except BaseException:
            self._wire.transport.abort()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            return self._wire.has_news
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._wire.transport.get_extra_info(names.get(info, info))


class _Wire(asyncio.Protocol):
    """What has come and not been read, and whether more can be sent."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._buffer = bytearray()
        self._event = asyncio.Event()  # something has changed
        self._is_over = False
        self._is_full = False
        self._error: Exception | None = None

    @property
    def has_news(self) -> bool:
        """Whether the peer has said something, or has closed."""
        return bool(self._buffer) or self._is_over

    async def receive(self, most: int) -> bytes:
        """What has come; nothing at the end."""
        while not self.has_news:
            self._event.clear()
            await self._event.wait()
        if not self._buffer and self._error is not None:
            raise self._error
        taken = bytes(self._buffer[:most])
        del self._buffer[:most]
        if len(self._buffer) <= _HIGH and not self._is_over:
            self.transport.resume_reading()
        return taken

    async def send(self, data: bytes) -> None:
        """
        Hand over the data and wait until there is room for more.

        `ConnectionError` if there will be none: the peer is gone, or answers before it has read
        what was asked.
        """
        if not self._is_over:
            self.transport.write(data)
        while self._is_full and not self._is_over:
            if self._buffer:
                raise ConnectionAbortedError
            self._event.clear()
            await self._event.wait()
        if self._is_over:
            raise self._error or ConnectionResetError()

    async def encrypt(self, context: ssl.SSLContext, host: str | None) -> None:
        """Speak TLS from here on."""
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(self.transport, self, context, server_hostname=host)
        if transport is None:
            raise ConnectionResetError
        self.transport = transport

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 -- TCP has no other
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > _HIGH:
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
        self._is_over = True
        self._error = self._error or error
        self._event.set()


@contextmanager
def _told(
    late: type[httpcore2.TimeoutException], failed: type[httpcore2.NetworkError]
) -> Iterator[None]:
    """What the system raises, as httpcore2 says it."""
    try:
        yield
    except TimeoutError as error:
        raise late from error
    except ssl.SSLError as error:
        raise failed(str(error)) from error
    except OSError as error:
        number = error.errno
        why = os.strerror(number) if number and number > 0 else error.strerror
        raise failed(why or type(error).__name__) from error
