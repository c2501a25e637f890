"""The default transport: HTTP/1.1 over aiohttp, which is loaded by the first call."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from interlingua.spec.contracts import HttpReply, HttpRequest, Timeouts, Transport
from interlingua.transport.per_loop import PerLoop
from interlingua.transport.timeouts import MAX_BODY

if TYPE_CHECKING:
    from interlingua.transport.aiohttp_pool import Pool


class AiohttpTransport:
    """
    Sends over HTTP/1.1, each event loop with its own pool of connections.

    One transport serves any number of loops, threads and forked processes, one after another or
    at once. Proxies come from the environment unless `trust_env` is false; certificates are
    checked against the system's store, or as `tls` says. Cookies are not kept.
    """

    def __init__(
        self,
        *,
        timeouts: Timeouts | None = None,
        max_body: int = MAX_BODY,
        trust_env: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._timeouts = timeouts or Timeouts()
        self._max_body = max_body
        self._trust_env = trust_env
        self._tls = tls
        self._pools: PerLoop[Pool] = PerLoop(self._open, _close, _discard)

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Send, and hold the connection while the block runs."""
        from interlingua.transport.exchange import Exchange

        loop = asyncio.get_running_loop()
        return Exchange(
            request,
            self._pools.get(loop),
            loop,
            request.timeouts or self._timeouts,
            self._max_body,
        )

    async def close(self) -> None:
        """Release every connection; a later call opens new ones."""
        await self._pools.close()

    def _open(self) -> Pool:
        from interlingua.transport.aiohttp_pool import Pool

        return Pool(trust_env=self._trust_env, tls=self._tls)


def default_transport() -> Transport:
    """A transport of its own for whoever asks."""
    return AiohttpTransport()


async def _close(pool: Pool) -> None:
    await pool.close()


def _discard(pool: Pool) -> None:
    pool.discard()
