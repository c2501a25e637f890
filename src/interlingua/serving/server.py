"""
A small HTTP/1.1 server for ASGI applications, on loopback.

It is here because it can fail on purpose where a good server would not (see `connection.py`). In
production, run the application under a server made for it.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from interlingua.serving.asgi import App
from interlingua.serving.connection import Connection
from interlingua.spec.errors import ConfigurationError


class Server:
    """A server that runs: its address, and how many connections it has."""

    def __init__(self, app: App, *, is_tls: bool) -> None:
        self._app = app
        self._scheme = "https" if is_tls else "http"
        self._connections: set[Connection] = set()
        self.host = ""
        self.port = 0
        self.accepted: int = 0
        """Connections since the start."""

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"{self._scheme}://{self.host}:{self.port}"

    @property
    def open_connections(self) -> int:
        """Connections that are open now."""
        return len(self._connections)

    def connect(self) -> Connection:
        """A protocol for a connection that comes in."""
        self.accepted += 1
        return Connection(self._app, self._connections)

    async def close(self) -> None:
        """End every connection and what it was doing."""
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
    """Serve while the block runs; port 0 takes a free one."""
    if not 0 <= port <= 65535:
        raise ConfigurationError(f"there is no port {port}; use one up to 65535, or 0 for any")
    server = Server(app, is_tls=tls is not None)
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(server.connect, host, port, ssl=tls, backlog=1024)
    server.host, server.port = listener.sockets[0].getsockname()[:2]
    try:
        yield server
    finally:
        # A socket accepted just now is lost, and never closed, if its listener closes before
        # it has become a connection: no more are accepted, and those may.
        with suppress(NotImplementedError):  # some loops have no readers
            for listening in listener.sockets:
                loop.remove_reader(listening.fileno())
        await _turns()
        listener.close()
        await server.close()
        await listener.wait_closed()
        await _turns()  # and each connection is told that it is lost


async def _turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@contextmanager
def serve_in_thread(
    app: App, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """The same for code without an event loop: the server has one in a thread of its own."""
    started: list[Server] = []
    failed: list[BaseException] = []
    ready = threading.Event()
    # its loop is not this thread's; leaving it ends what is left, such as a TLS handshake
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    loop = runner.get_loop()
    stop = asyncio.Event()

    async def run() -> None:
        try:
            async with serve(app, host=host, port=port, tls=tls) as server:
                started.append(server)
                ready.set()
                await stop.wait()
        except Exception as error:  # noqa: BLE001 -- raised where the block would have begun
            failed.append(error)
        finally:
            ready.set()

    def live() -> None:
        with runner:
            runner.run(run())

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    ready.wait()
    try:
        if failed:
            raise failed[0]
        yield started[0]
    finally:
        with suppress(RuntimeError):  # it has failed, and is closed
            loop.call_soon_threadsafe(stop.set)
        thread.join()
