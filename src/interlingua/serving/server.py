"""
A small HTTP/1.1 server for ASGI applications, on loopback.

It can fail on purpose, which a production server cannot: a `ResetConnectionError` from the
application resets the connection, and any other error closes it in the middle of the reply. The
application is notified at once when the client disconnects. In production, run the application
under a server made for it.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import NamedTuple, cast
from urllib.parse import unquote

from interlingua.serving.asgi import (
    App,
    CutConnectionError,
    Message,
    Receive,
    ResetConnectionError,
    Scope,
)
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.integers import read_integer

_MAX_HEAD = 64 * 1024
_MAX_LINE = 4 * 1024  # of a chunk: its size and its extensions
_AHEAD = 64 * 1024  # bytes behind a request that are held while it is answered
_HEAD_TIMEOUT = 30.0  # seconds from the first byte of a head to its end
_IDLE_TIMEOUT = 60.0  # seconds without a byte, between requests and within a body
_TLS_HELLO = b"\x16\x03"  # a client that speaks TLS to this port never sends the end of a head
_MAX_BODY = 512 * 1024 * 1024
_LINGER = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends a reset
_PHRASES = {status.value: status.phrase for status in HTTPStatus}

# The grammar of RFC 9110 and RFC 9112, without the forms that two readers may understand
# differently: https://www.rfc-editor.org/rfc/rfc9112#name-request-smuggling
_is_token = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_is_target = re.compile(rb"[\x21-\x7e]+").fullmatch
_is_value = re.compile(rb"[\t\x20-\x7e\x80-\xff]*").fullmatch
_chunk_size = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[\t ]*;[\t\x20-\x7e\x80-\xff]*)?").fullmatch


class _Head(NamedTuple):
    method: str
    target: str
    version: str
    headers: list[tuple[bytes, bytes]]
    is_chunked: bool = False
    length: int = 0
    """The size of a body that is not chunked."""

    def get(self, name: bytes) -> str:
        """The value of a header in lower case; empty if it is absent."""
        values = [value for key, value in self.headers if key == name]
        return b",".join(values).decode("latin-1").lower()


class _BadRequestError(Exception):
    """The bytes are not an HTTP request, or a request that did not come in time."""

    def __init__(self, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(status)
        self.status = status


class _ClosedError(Exception):
    """The client closed the connection, between requests or during one."""


class Connection(asyncio.Protocol):
    """A connection of one client, which answers its requests one after another."""

    def __init__(self, app: App, others: set[Connection]) -> None:
        self._app = app
        self._others = others
        self._buffer = bytearray()
        self._news = asyncio.Event()  # set when bytes arrive or the client disconnects
        self._closed = asyncio.Event()
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._wanted = 0  # bytes that are being waited for
        self._is_paused = False
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None]

    # Callbacks of asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A transport of uvloop has the methods of `asyncio.Transport` but is not derived from it.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=0)  # `write` waits until its data is sent
        self._others.add(self)
        self._task = asyncio.ensure_future(self._run())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._limit_buffer()
        self._news.set()

    def eof_received(self) -> bool:
        self._note_closed()  # clients that wait for a reply do not close their side
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._others.discard(self)
        self._note_closed()

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    def abandon(self) -> asyncio.Task[None]:
        """Close the connection at once; returns its task, which is being cancelled."""
        self._transport.abort()
        self._task.cancel()
        return self._task

    def _note_closed(self) -> None:
        self._closed.set()
        self._news.set()
        self._can_write.set()

    # Requests.

    async def _run(self) -> None:
        try:
            while await self._serve_one():
                pass
        except _ClosedError:
            pass
        except _BadRequestError as error:
            self._transport.write(_refusal(error.status))
        finally:
            self._transport.close()

    async def _serve_one(self) -> bool:
        """Answer one request; returns whether another may follow."""
        head = _parse_head(await self._read_head())
        body = await self._read_body(head)
        reply = _Reply(self, head)
        try:
            await self._app(
                _scope(head, self._transport), _receiver(body, self._closed), reply.send
            )
        except ResetConnectionError:
            await self._drain()
            self._reset()
            return False
        except CutConnectionError:
            await self._drain()
            return False
        except Exception as error:  # noqa: BLE001 -- an application may raise anything
            loop = asyncio.get_running_loop()
            loop.call_exception_handler({"message": "the application failed", "exception": error})
            if not reply.started:
                self._transport.write(_refusal(HTTPStatus.INTERNAL_SERVER_ERROR))
            return False
        return reply.finished and reply.keeps_alive

    async def _read_head(self) -> bytes:
        if not self._buffer:
            await self._more(on_timeout=_ClosedError())
        try:
            async with asyncio.timeout(_HEAD_TIMEOUT):
                return await self._read_until(b"\r\n\r\n", _MAX_HEAD)
        except TimeoutError:
            raise _BadRequestError(HTTPStatus.REQUEST_TIMEOUT) from None

    async def _read_body(self, head: _Head) -> bytes:
        if head.get(b"expect") == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if head.is_chunked:
            return await self._read_chunks()
        return await self._read_exactly(head.length)

    async def _read_chunks(self) -> bytes:
        body = bytearray()
        while True:
            match = _chunk_size((await self._read_until(b"\r\n", _MAX_LINE))[:-2])
            size = _MAX_BODY + 1 if match is None else int(match[1], 16)
            if len(body) + size > _MAX_BODY:
                raise _BadRequestError
            if size == 0:
                await self._skip_trailers()
                return bytes(body)
            body += await self._read_exactly(size)
            if await self._read_exactly(2) != b"\r\n":
                raise _BadRequestError

    async def _skip_trailers(self) -> None:
        size = 0
        while (line := await self._read_until(b"\r\n", _MAX_HEAD - size)) != b"\r\n":
            _parse_header(line[:-2])
            size += len(line)

    async def _read_until(self, end: bytes, most: int) -> bytes:
        """What comes up to these bytes, and them."""
        searched = 0
        while (place := self._buffer.find(end, max(searched - len(end) + 1, 0), most)) < 0:
            searched = len(self._buffer)
            if searched >= most or self._buffer.startswith(_TLS_HELLO):
                raise _BadRequestError
            await self._more()
        return self._take(place + len(end))

    async def _read_exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            await self._more(size)
        return self._take(size)

    async def _more(self, wanted: int = 0, on_timeout: Exception | None = None) -> None:
        """Wait for the next bytes."""
        if self._closed.is_set():
            raise _ClosedError
        self._wanted = wanted
        self._limit_buffer()
        self._news.clear()
        try:
            async with asyncio.timeout(_IDLE_TIMEOUT):
                await self._news.wait()
        except TimeoutError:
            raise on_timeout or _BadRequestError(HTTPStatus.REQUEST_TIMEOUT) from None

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._wanted = 0
        self._limit_buffer()
        return taken

    def _limit_buffer(self) -> None:
        """Let the client wait while there is more in the buffer than is read soon."""
        is_full = len(self._buffer) > self._wanted + _MAX_HEAD + _AHEAD
        if is_full and not self._is_paused:
            self._transport.pause_reading()
        elif self._is_paused and not is_full and not self._closed.is_set():
            self._transport.resume_reading()
        self._is_paused = is_full

    # Replies.

    async def write(self, data: bytes) -> None:
        """Send the data and wait until it is sent; `ConnectionError` if the client disconnected."""
        if self._closed.is_set():
            raise ConnectionResetError("The client has disconnected.")
        self._transport.write(data)
        await self._drain()

    async def _drain(self) -> None:
        await self._can_write.wait()

    def _reset(self) -> None:
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
        self._transport.abort()


class _Reply:
    """Writes the reply to one request, as HTTP/1.1."""

    def __init__(self, connection: Connection, head: _Head) -> None:
        self._connection = connection
        self._is_old = head.version == "HTTP/1.0"
        self._is_chunked = False
        self.keeps_alive = not self._is_old and "close" not in head.get(b"connection")
        self.started = False
        self.finished = False

    async def send(self, message: Message) -> None:
        """Send an ASGI message."""
        if message["type"] == "http.response.start":
            self.started = True
            await self._connection.write(self._head(message))
            return
        body = bytes(message.get("body", b""))
        if body:
            framed = b"%x\r\n%b\r\n" % (len(body), body) if self._is_chunked else body
            await self._connection.write(framed)
        if not message.get("more_body", False):
            if self._is_chunked:
                await self._connection.write(b"0\r\n\r\n")
            self.finished = True

    def _head(self, message: Message) -> bytes:
        status: int = message["status"]
        phrase = _PHRASES.get(status, "Unknown")
        headers: list[tuple[bytes, bytes]] = list(message.get("headers", ()))
        names = {name.lower() for name, _ in headers}
        if b"date" not in names:
            headers.append((b"date", formatdate(usegmt=True).encode()))
        if b"content-length" not in names:
            self._is_chunked = not self._is_old
            self.keeps_alive = self.keeps_alive and self._is_chunked
            if self._is_chunked:
                headers.append((b"transfer-encoding", b"chunked"))
        if not self.keeps_alive:
            headers.append((b"connection", b"close"))
        lines = [f"HTTP/1.1 {status} {phrase}".encode()]
        lines += [b"%b: %b" % header for header in headers]
        return b"\r\n".join(lines) + b"\r\n\r\n"


def _refusal(status: HTTPStatus) -> bytes:
    """A reply after which the connection is closed."""
    line = f"HTTP/1.1 {status.value} {status.phrase}"
    return f"{line}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()


def _parse_head(data: bytes) -> _Head:
    first, *lines = data[:-4].lstrip(b"\r\n").split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not _is_token(words[0]) or not _is_target(words[1]):
        raise _BadRequestError
    if words[2] not in (b"HTTP/1.0", b"HTTP/1.1"):
        raise _BadRequestError
    method, target, version = (word.decode("latin-1") for word in words)
    headers = [_parse_header(line) for line in lines]
    encodings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
    lengths = [value for name, value in headers if name == b"content-length"]
    if encodings:
        # With a length too, another server before this one may see another end of the body.
        if encodings != [b"chunked"] or lengths or version == "HTTP/1.0":
            raise _BadRequestError
        return _Head(method, target, version, headers, is_chunked=True)
    if not lengths:
        return _Head(method, target, version, headers)
    length = read_integer(lengths[0].decode("latin-1"), most=_MAX_BODY)
    if length is None or len(lengths) > 1:
        raise _BadRequestError
    return _Head(method, target, version, headers, length=length)


def _parse_header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    if b":" not in line or not _is_token(name) or not _is_value(value):
        raise _BadRequestError
    return name.lower(), value.strip()


def _scope(head: _Head, transport: asyncio.Transport) -> Scope:
    path, _, query = head.target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": head.version.removeprefix("HTTP/"),
        "method": head.method.upper(),
        "scheme": "http" if transport.get_extra_info("sslcontext") is None else "https",
        "path": unquote(path),
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "root_path": "",
        "headers": head.headers,
        "client": transport.get_extra_info("peername"),
        "server": transport.get_extra_info("sockname"),
    }


def _receiver(body: bytes, closed: asyncio.Event) -> Receive:
    """The `receive` of ASGI: the body first, then the disconnect."""
    waiting = [body]

    async def receive() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        await closed.wait()
        return {"type": "http.disconnect"}

    return receive


class Server:
    """A running server: its address and its connections."""

    def __init__(self, app: App, *, is_tls: bool) -> None:
        self._app = app
        self._scheme = "https" if is_tls else "http"
        self._connections: set[Connection] = set()
        self.host = ""
        self.port = 0
        self.accepted: int = 0
        """The number of connections since the start."""

    @property
    def url(self) -> str:
        """Its URL, without a trailing slash."""
        return f"{self._scheme}://{self.host}:{self.port}"

    @property
    def open_connections(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    def connect(self) -> Connection:
        """Make the protocol of a new connection."""
        self.accepted += 1
        return Connection(self._app, self._connections)

    async def close(self) -> None:
        """Close every connection and cancel its work."""
        tasks = [connection.abandon() for connection in self._connections]
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def serve(
    app: App,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Server]:
    """Serve while the `async with` block runs; port 0 means any free port."""
    if not 0 <= port <= 65535:
        raise ConfigurationError(f"Invalid port {port}. Use 1 to 65535, or 0 for any free port.")
    server = Server(app, is_tls=tls is not None)
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(server.connect, host, port, ssl=tls, backlog=1024)
    server.host, server.port = listener.sockets[0].getsockname()[:2]
    try:
        yield server
    finally:
        # A socket that was accepted but is not a connection yet would never be closed if the
        # listener closed now. So stop accepting first, and let those become connections.
        with suppress(NotImplementedError):  # some event loops have no readers
            for listening in listener.sockets:
                loop.remove_reader(listening.fileno())
        await _run_pending_callbacks()
        listener.close()
        await server.close()
        await listener.wait_closed()
        await _run_pending_callbacks()  # for the `connection_lost` callbacks


async def _run_pending_callbacks() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@contextmanager
def serve_in_thread(
    app: App, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """Serve as `serve` does, in a thread, for code without an event loop."""
    started: list[Server] = []
    errors: list[BaseException] = []
    ready = threading.Event()
    # Leaving the runner also cancels the tasks that are left, such as a TLS handshake.
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    loop = runner.get_loop()
    stop = asyncio.Event()

    async def run() -> None:
        try:
            async with serve(app, host=host, port=port, tls=tls) as server:
                started.append(server)
                ready.set()
                await stop.wait()
        except Exception as error:  # noqa: BLE001 -- raised in the caller's thread
            errors.append(error)
        finally:
            ready.set()

    def live() -> None:
        with runner:
            runner.run(run())

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    ready.wait()
    try:
        if errors:
            raise errors[0]
        yield started[0]
    finally:
        with suppress(RuntimeError):  # the loop is closed: the server failed to start
            loop.call_soon_threadsafe(stop.set)
        thread.join()
