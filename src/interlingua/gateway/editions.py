"""The application of a gateway whose configuration can be replaced while it serves."""

from __future__ import annotations

import asyncio

from interlingua.gateway.config import Gateway
from interlingua.gateway.server import make_application
from interlingua.gateway.source import Source
from interlingua.gateway.stores import Stores
from interlingua.runtime.log import logger
from interlingua.serving.asgi import App, Receive, Scope, Send


class _Edition:
    """A configuration, and how many of its requests are under way."""

    def __init__(self, gateway: Gateway, app: App) -> None:
        self.gateway = gateway
        self.app = app
        self.requests = 0


class Editions:
    """
    An ASGI application that answers with the newest configuration.

    A request ends with the configuration with which it began. The client of an older one is closed
    after its last request.
    """

    def __init__(self, source: Source) -> None:
        self.stores: Stores = source.stores()
        """Where limits and responses are kept."""
        self._current = self._open(source)
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def gateway(self) -> Gateway:
        """What is served now."""
        return self._current.gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: the entry point of ASGI."""
        edition = self._current
        edition.requests += 1
        try:
            await edition.app(scope, receive, send)
        finally:
            edition.requests -= 1
            if edition is not self._current:
                self._close_if_unused(edition)

    def replace(self, source: Source) -> None:
        """Serve another configuration; if something is wrong with it, nothing changes."""
        before, self._current = self._current, self._open(source)
        self._close_if_unused(before)

    async def close(self) -> None:
        """Close the clients; after the last request."""
        self._close(self._current)
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self.stores.close()

    def _open(self, source: Source) -> _Edition:
        gateway = source.read(self.stores)
        return _Edition(gateway, make_application(gateway, source.secret))

    def _close_if_unused(self, edition: _Edition) -> None:
        if not edition.requests:
            self._close(edition)

    def _close(self, edition: _Edition) -> None:
        task = asyncio.ensure_future(_close_client(edition.gateway))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _close_client(gateway: Gateway) -> None:
    try:
        await gateway.client.close()
    except Exception:  # noqa: BLE001 -- nobody waits for it
        logger.exception("Closing the client of an older configuration failed.")
