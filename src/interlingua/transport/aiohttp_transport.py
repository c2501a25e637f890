"""The default transport: HTTP/1.1 over aiohttp, which is imported by the first request."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING

from interlingua.spec.contracts import HttpReply, HttpRequest, Transport
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.transport.per_loop import PerLoop

if TYPE_CHECKING:
    from interlingua.transport.aiohttp_pool import Pool


class AiohttpTransport:
    """
    Sends requests over HTTP/1.1, with one connection pool per event loop.

    One transport may be used from any number of event loops, threads and forked processes, also
    at the same time. Proxies are read from the environment unless `trust_env` is false.
    Certificates are verified against the system's store, or with the SSL context `tls`. Cookies
    are not stored.
    """

    def __init__(
        self,
        *,
        timeouts: Timeouts | None = None,
        limits: Limits | None = None,
        trust_env: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.timeouts: Timeouts = timeouts or Timeouts()
        self.limits: Limits = limits or Limits()
        self._trust_env = trust_env
        self._tls = tls
        self._is_loaded = False
        self._pools: PerLoop[Pool] = PerLoop(
            self._open, lambda pool: pool.close(), lambda pool: pool.discard()
        )

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Send the request; the connection stays open while the `async with` block runs."""
        from interlingua.transport.aiohttp_exchange import Exchange

        loop = asyncio.get_running_loop()
        return Exchange(
            request,
            self._pools.get(loop),
            loop,
            request.timeouts or self.timeouts,
            request.limits or self.limits,
        )

    async def get_ready(self, _: str) -> None:
        """Import aiohttp, which loads the certificates, in a thread; later calls do nothing."""
        if not self._is_loaded:
            await asyncio.to_thread(import_module, "interlingua.transport.aiohttp_exchange")
            self._is_loaded = True
        self._pools.get(asyncio.get_running_loop())

    async def close(self) -> None:
        """Close every connection; a later request opens new ones."""
        await self._pools.close()

    def _open(self) -> Pool:
        from interlingua.transport.aiohttp_pool import Pool

        return Pool(trust_env=self._trust_env, tls=self._tls)


def default_transport() -> Transport:
    """Make a new transport with the default settings."""
    return AiohttpTransport()
