"""The connections of one event loop: an idle one waits for the next request to its host."""

from __future__ import annotations

import asyncio
import ssl
import weakref
from collections.abc import Coroutine
from functools import lru_cache
from time import monotonic
from typing import Protocol

from interlingua.spec.errors import NetworkError
from interlingua.transport.http1 import tls
from interlingua.transport.http1.addresses import (
    Resolve,
    Resolver,
    Target,
    find_target,
    open_connection,
)
from interlingua.transport.http1.connection import Connection
from interlingua.transport.per_loop import collect_unclosed
from interlingua.transport.proxies import Proxies
from interlingua.transport.timeouts import Watch

KEEP_ALIVE = 60.0
"""Seconds an idle connection is kept. Tools may run between two requests of a conversation."""

_MAX_TARGETS = 256  # cached per pool
_MAX_TURNS = 10
"""Iterations of the loop after which a socket that was cut is closed; TLS inside TLS needs most."""


class Abortable(Protocol):
    """An exchange."""

    def abort(self) -> None:
        """Close its connection."""


class Pool:
    """
    The connections of one event loop, and the state that its exchanges share.

    `max_connections` limits the connections to one host; requests above it wait in a queue.
    `resolve` finds the addresses of a host, and may refuse one by raising.
    """

    def __init__(
        self,
        *,
        trust_env: bool = True,
        tls: ssl.SSLContext | None = None,
        max_connections: int | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self.lingering: set[Abortable] = set()
        """Exchanges whose reader has finished, and whose body may end at any moment."""
        self.connections: set[Connection] = set()
        """The open ones, idle or not."""
        self._writers: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self.watch: Watch = Watch(self._loop)
        """The deadlines of the exchanges."""
        self._tls = tls
        self._loading = asyncio.Lock()  # of the certificates
        proxies = Proxies() if trust_env else None
        self.target = lru_cache(_MAX_TARGETS)(lambda url: find_target(url, proxies))
        self._resolver = Resolver()
        self._resolve = resolve or self._resolver.resolve
        self.max_connections: int | None = max_connections
        """The limit of exchanges with one host: an idle connection belongs to none."""
        self._queues: dict[object, asyncio.Semaphore] = {}  # they are fair
        self._idle: dict[object, dict[Connection, None]] = {}  # each in the order of its last use
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def write(self, writing: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Write the body of a request in a task."""
        task = self._loop.create_task(writing)
        self._writers.add(task)
        task.add_done_callback(self._writers.discard)
        return task

    async def get_ready(self, target: Target) -> None:
        """Do what takes time before a connection is opened: load the certificates."""
        if self._tls is None and target.needs_tls and not tls.is_loaded():
            async with self._loading:
                if not tls.is_loaded():
                    await asyncio.to_thread(tls.load)

    async def wait_for_turn(self, target: Target) -> None:
        """Wait until the number of connections to the host is below the limit."""
        queue = self._queues.get(target.key)
        if queue is None:
            queue = self._queues[target.key] = asyncio.Semaphore(self.max_connections or 1)
        await queue.acquire()

    def end_turn(self, key: object) -> None:
        """Let the next in the queue have a connection."""
        if self.max_connections is not None:
            self._queues[key].release()

    async def _wait_for_place(self, key: object, limit: int) -> None:
        """Let idle connections close that were given up; they count until they are closed."""
        for _ in range(_MAX_TURNS):
            if sum(connection.key == key for connection in self.connections) >= limit:
                await asyncio.sleep(0)

    def take(self, target: Target) -> Connection | None:
        """The idle connection that was used last and can be used again, if there is one."""
        idle = self._idle.get(target.key)
        while idle:
            connection, _ = idle.popitem()
            if not idle:
                del self._idle[target.key]
            if monotonic() - connection.idle_since > KEEP_ALIVE:
                connection.close()
            elif connection.can_serve():
                connection.is_reused = connection.has_turn = True
                return connection
            else:
                connection.cut()
        return None

    async def open(self, target: Target) -> Connection:
        """Open a new connection."""
        if self.max_connections is not None:
            await self._wait_for_place(target.key, self.max_connections)
        self._check_open(target)
        try:
            connection = await open_connection(target, self._resolve, self._context)
        except BaseException:  # also if it took too long
            peer = target.proxy or target.url
            self._resolver.forget(peer.host, peer.port)
            raise
        try:
            self._check_open(target)
        except NetworkError:
            connection.cut()
            raise
        connection.owner, connection.key, connection.has_turn = self, target.key, True
        self.connections.add(connection)
        return connection

    def _check_open(self, target: Target) -> None:
        """Raise an error if the pool was closed while a request waited."""
        if self._is_closed:
            raise NetworkError(
                f"The transport was closed before a connection to {target.url.address} was open. "
                "Nothing was sent.",
                phase="connect",
                retryable=False,
            )

    def release(self, connection: Connection) -> None:
        """Keep a connection whose exchange is over, if it can serve another request."""
        if self._is_closed or not connection.is_reusable:
            connection.close()  # its turn ends when it is closed
            return
        connection.has_turn = False
        self.end_turn(connection.key)
        connection.idle_since = monotonic()
        self._idle.setdefault(connection.key, {})[connection] = None
        if self._timer is None:
            self._set_timer()

    def forget(self, connection: Connection) -> None:
        """Note that the connection is closed."""
        self.connections.discard(connection)
        if connection.has_turn:
            self.end_turn(connection.key)
        idle = self._idle.get(connection.key)
        if idle is not None:
            idle.pop(connection, None)
            if not idle:
                del self._idle[connection.key]

    def _context(self) -> ssl.SSLContext:
        return self._tls or tls.load()

    def _set_timer(self) -> None:
        # A weak reference, so that the timer does not keep the pool alive.
        self._timer = self._loop.call_later(KEEP_ALIVE, _close_unused, weakref.ref(self))

    def close_unused(self) -> None:
        """Close the connections that were not used for long."""
        oldest = monotonic() - KEEP_ALIVE
        for idle in tuple(self._idle.values()):
            for connection in tuple(idle):
                if connection.idle_since < oldest:
                    del idle[connection]
                    connection.close()
        self._idle = {key: idle for key, idle in self._idle.items() if idle}
        self._timer = None
        if self._idle:
            self._set_timer()

    async def close(self) -> None:
        """Close every connection."""
        self._is_closed = True
        self.watch.close()
        if self._timer is not None:
            self._timer.cancel()
        for exchange in tuple(self.lingering):
            exchange.abort()
        for connection in tuple(self.connections):
            connection.cut()
        for _ in range(_MAX_TURNS):
            if self.connections:
                await asyncio.sleep(0)
        if self._writers:
            await asyncio.wait(self._writers)

    def discard(self) -> None:
        """Close the connections without the event loop, which is no longer running."""
        self._idle.clear()
        if self.connections:
            while self.connections:
                self.connections.pop().discard()
            if self._loop.is_closed():
                collect_unclosed()


def _close_unused(reference: weakref.ref[Pool]) -> None:
    pool = reference()
    if pool is not None:
        pool.close_unused()
