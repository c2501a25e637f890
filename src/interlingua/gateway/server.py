"""Runs a gateway on uvicorn, in this process."""

from __future__ import annotations

import logging
import math
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Protocol

from interlingua.gateway.config import Gateway, ServerTimeouts
from interlingua.gateway.cors import Cors
from interlingua.gateway.keys import Keys
from interlingua.gateway.tracing import Traced
from interlingua.serving.asgi import App
from interlingua.serving.client_application import ClientApplication
from interlingua.spec.errors import ConfigurationError

_BACKLOG = 2048
"""Connections that may wait to be accepted, for instance until a worker is replaced."""


def make_application(gateway: Gateway, secret: bytes) -> App:
    """The application of a gateway; requests need one of its keys."""
    app: App = ClientApplication(
        gateway.client,
        gateway.routes,
        secret=secret,
        authorize=Keys(gateway.keys).authorize,
        max_body=gateway.max_body,
        kept=gateway.kept,
        policy=gateway.limits,
        store=gateway.store,
        storage=gateway.storage,
    )
    if gateway.telemetry:
        app = Traced(app)
    return Cors(app, gateway.cors) if gateway.cors else app


def listen(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """
    A socket that listens at this address; `ConfigurationError` if it is taken.

    Several sockets that are shared may have one address: the system spreads connections over them.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind((host, port))
        server.listen(_BACKLOG)
    except OSError as error:
        server.close()
        raise ConfigurationError(
            f"Cannot listen at {host}:{port}: {error.strerror}. Choose another port."
        ) from None
    return server


def url_of(server: socket.socket) -> str:
    """The address of a socket that listens."""
    host, port = server.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Running(Protocol):
    """A server that runs."""

    should_exit: bool
    """Set it to stop the server, as a signal does."""


def run(
    app: App,
    server: socket.socket,
    timeouts: ServerTimeouts,
    *,
    on_ready: Callable[[Running], Awaitable[None]],
    on_end: Callable[[], Awaitable[None]],
) -> None:
    """
    Serve until a signal ends it; requests that are under way then have some time to end.

    `on_ready` is awaited when it listens, `on_end` after the last request.
    """
    uvicorn = _load()
    from interlingua.gateway.protocol import timed_protocol

    class Server(uvicorn.Server):  # type: ignore[misc, name-defined] # the module is loaded on use
        """Says when it is ready, and when it has ended."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            await on_ready(self)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await super().shutdown(sockets)
            await on_end()

    config = uvicorn.Config(
        app,
        http=timed_protocol(timeouts),
        loop="uvloop" if find_spec("uvloop") is not None else "asyncio",
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # no reply depends on the address of the client
        timeout_keep_alive=math.ceil(timeouts.idle),
        timeout_graceful_shutdown=math.ceil(timeouts.grace),
    )
    running = Server(config)
    with_quiet_end(running)
    allow_descriptors()
    running.run(sockets=[server])


def allow_descriptors() -> None:
    """Let this process open as many files as it may: a stream has two, and 1,024 are soon used."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems refuse what they name as the most.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def with_quiet_end(running: Running) -> None:
    """Let uvicorn log errors only, and no traceback for each request that the end has cut off."""
    log = logging.getLogger("uvicorn.error")
    log.setLevel(logging.ERROR)  # a warning for each WebSocket that is refused helps nobody
    log.addFilter(lambda record: not (running.should_exit and record.exc_info))


def say(text: str) -> None:
    """Print a remark for the operator."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _load() -> Any:
    try:
        import uvicorn
    except ImportError:
        raise ConfigurationError(
            "The gateway needs uvicorn. Run `pip install 'interlingua[gateway]'`."
        ) from None
    return uvicorn
