"""The default transport: HTTP/1.1, loaded by the first request."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING

from interlingua.spec.check import refuse
from interlingua.spec.contracts import HttpReply, HttpRequest, Transport
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.transport.per_loop import PerLoop

if TYPE_CHECKING:
    from interlingua.transport.http1.pool import Pool


class HttpTransport:
    """
    Sends requests over HTTP/1.1, with one connection pool per event loop.

    One transport may be used from any number of event loops, threads and forked processes, also
    at the same time. Proxies are read from the environment unless `trust_env` is false.
    Certificates are verified against the system's store (or the file in `SSL_CERT_FILE`), or with
    the SSL context `tls`. `max_connections` limits the connections to one host in one event loop;
    requests above it wait in a queue. Cookies are not stored.
    """

    def __init__(
        self,
        *,
        timeouts: Timeouts | None = None,
        limits: Limits | None = None,
        trust_env: bool = True,
        tls: ssl.SSLContext | None = None,
        max_connections: int | None = None,
    ) -> None:
        self.timeouts: Timeouts = timeouts or Timeouts()
        self.limits: Limits = limits or Limits()
        self._trust_env = trust_env
        self._tls = tls
        given: object = max_connections
        if given is not None and (type(given) is not int or given < 1):
            refuse("max_connections", "a whole number from 1 on", given)
        self._max_connections = max_connections
        self._is_loaded = False
        self._loading: dict[asyncio.AbstractEventLoop, asyncio.Event] = {}  # set when it ends
        self._pools: PerLoop[Pool] = PerLoop(
            self._open, lambda pool: pool.close(), lambda pool: pool.discard()
        )

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Send the request; the connection stays open while the `async with` block runs."""
        loop = asyncio.get_running_loop()
        if not self._is_loaded:
            return _FirstExchange(self, request)
        from interlingua.transport.http1.exchange import Exchange

        return Exchange(
            request,
            self._pools.get(loop),
            loop,
            request.timeouts or self.timeouts,
            request.limits or self.limits,
        )

    async def get_ready(self, url: str) -> None:
        """Import the parser and load the certificates, in a thread; later calls do nothing."""
        if not self._is_loaded:
            await self._load()
        pool = self._pools.get(asyncio.get_running_loop())
        await pool.get_ready(pool.target(url))

    async def close(self) -> None:
        """Close every connection; a later request opens new ones."""
        await self._pools.close()

    async def _load(self) -> None:
        """Import the parser; the calls that wait for it go on in the order in which they came."""
        loop = asyncio.get_running_loop()
        while not self._is_loaded:
            loading = self._loading.get(loop)
            if loading is not None:
                await loading.wait()
                continue
            loading = self._loading[loop] = asyncio.Event()
            try:
                await asyncio.to_thread(import_module, "interlingua.transport.http1.exchange")
                self._is_loaded = True
            finally:  # if it was cancelled, the next one that waits imports it
                del self._loading[loop]
                loading.set()

    def _open(self) -> Pool:
        from interlingua.transport.http1.pool import Pool

        return Pool(trust_env=self._trust_env, tls=self._tls, max_connections=self._max_connections)


class _FirstExchange:
    """An exchange that loads what it needs before it begins."""

    def __init__(self, transport: HttpTransport, request: HttpRequest) -> None:
        self._transport = transport
        self._request = request
        self._exchange: AbstractAsyncContextManager[HttpReply]

    async def __aenter__(self) -> HttpReply:
        await self._transport.get_ready(self._request.url)
        self._exchange = self._transport.send(self._request)
        return await self._exchange.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._exchange.__aexit__(kind, error, trace)


def default_transport() -> Transport:
    """Make a new transport with the default settings."""
    return HttpTransport()
