"""Runs a gateway on uvicorn."""

from __future__ import annotations

import socket
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from interlingua.gateway.config import Gateway
from interlingua.gateway.keys import Keys
from interlingua.serving.client_application import ClientApplication
from interlingua.spec.errors import ConfigurationError

GRACE = 30
"""Seconds that streams have to end after a signal to stop."""

IDLE = 75
"""Seconds that a connection without a request is kept; longer than the clients keep theirs."""


def make_application(gateway: Gateway, secret: bytes) -> ClientApplication:
    """The application of a gateway; requests need one of its keys."""
    authorize = Keys(gateway.keys).authorize
    return ClientApplication(
        gateway.client,
        gateway.routes,
        secret=secret,
        authorize=authorize,
        kept=gateway.kept,
        store=gateway.store,
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at this address; `ConfigurationError` if it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, port))
        server.listen(2048)
    except OSError as error:
        server.close()
        raise ConfigurationError(
            f"Cannot listen at {host}:{port}: {error.strerror}. Choose another port."
        ) from None
    return server


def run(app: ClientApplication, server: socket.socket, on_ready: Callable[[], object]) -> None:
    """Serve until a signal ends it; streams that are under way then have some time to end."""
    uvicorn = _load()

    class Server(uvicorn.Server):  # type: ignore[misc, name-defined] # the module is loaded on use
        """Says when it is ready."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            on_ready()

    loop = "uvloop" if find_spec("uvloop") is not None else "asyncio"
    config = uvicorn.Config(
        app,
        http="httptools",
        loop=loop,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=GRACE,
    )
    Server(config).run(sockets=[server])


def _load() -> Any:
    try:
        import uvicorn
    except ImportError:
        raise ConfigurationError(
            "The gateway needs uvicorn. Run `pip install 'interlingua[gateway]'`."
        ) from None
    return uvicorn
