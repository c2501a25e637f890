"""A scripted server on a real socket, for faults that no HTTP library would commit."""

import asyncio
import contextlib
import random
import socket
import ssl
import struct
import threading

from support.patience import PATIENCE


class Connection:
    """One connection as the server sees it."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.closed = threading.Event()
        self.requests = []
        self.replies = 0
        """How many replies were sent whole, by scripts that count them."""

    async def read_request(self):
        """The next request: head and body; None at the end of the connection."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        request = Received(lines[0], headers, body)
        self.requests.append(request)
        return request

    async def send(self, *pieces):
        """Send each piece as a packet of its own."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0.001)

    async def gone(self):
        """Wait until the client closes."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass
        self.closed.set()

    def reset(self):
        """Close with RST instead of FIN."""
        peer = self.writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Received:
    """What a client sent."""

    def __init__(self, line, headers, body):
        self.method, self.target, _ = line.split(" ", 2)
        self.headers = headers
        self.body = body


class Server:
    """
    Runs `script(connection)` for each connection, in a thread and loop of its own.

        with Server(script) as server:
            ... server.url ...
    """

    def __init__(self, script, *, tls=None):
        self.script = script
        self.tls = tls
        self.connections = []
        self.failures = []
        self._ready = threading.Event()

    def __enter__(self):
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self.failures, self.failures

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/v1/x"

    @property
    def requests(self):
        return [request for connection in self.connections for request in connection.requests]

    def all_closed(self):
        """Whether every client closed its connection, at most a patience later."""
        return all(connection.closed.wait(PATIENCE) for connection in self.connections)

    async def _serve(self):
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._run, "127.0.0.1", 0, ssl=self.tls, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        await asyncio.sleep(0.01)  # asyncio leaks who is being accepted while it closes
        server.close()
        while len(asyncio.all_tasks()) > 1:
            for connection in self.connections:
                connection.writer.transport.abort()
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)

    async def _run(self, reader, writer):
        connection = Connection(reader, writer)
        self.connections.append(connection)
        try:
            await self.script(connection)
            await connection.gone()
        except (ConnectionError, ssl.SSLError):
            connection.closed.set()
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 -- shown by the test
            self.failures.append(error)
        finally:
            connection.closed.set()
            writer.close()


def reply(body=b"{}", *, status="200 OK", headers=()):
    """A whole reply."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
LAST = b"0\r\n\r\n"


def piece(data):
    """One piece of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def answering(*replies):
    """A script that answers each request with the next reply, the last one for ever."""

    async def script(connection):
        left = list(replies)
        while await connection.read_request() is not None:
            await connection.send(left.pop(0) if len(left) > 1 else left[0])

    return script


def streaming(*pieces, end=b""):
    """A script that answers with a stream of these pieces, then waits for the client to leave."""

    async def script(connection):
        await connection.read_request()
        await connection.send(CHUNKED, *map(piece, pieces))
        if end:
            await connection.send(end)

    return script


def free_port():
    """
    A port on which nobody listens.

    It is not one of those that the system gives to whoever asks for any port: another program
    could get it before it is used.
    """
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
