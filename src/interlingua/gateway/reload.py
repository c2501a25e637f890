"""A gateway in one process, which reads its file again when it gets SIGHUP."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable

from interlingua.gateway.config import Gateway
from interlingua.gateway.editions import Editions
from interlingua.gateway.server import Running, run, say
from interlingua.gateway.source import Source
from interlingua.spec.errors import ConfigurationError

Renew = Callable[[], Source]
"""Reads the file and the environment as they are now."""

_FIXED = ("host", "port", "workers", "timeouts")
"""What is read only at the start."""


def run_alone(
    source: Source, server: socket.socket, renew: Renew, on_ready: Callable[[], object]
) -> None:
    """Serve in this process until a signal ends it."""
    editions = Editions(source)

    async def ready(_: Running) -> None:
        if source.path is not None and hasattr(signal, "SIGHUP"):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, _reload, editions, renew)
        on_ready()

    run(editions, server, editions.gateway.timeouts, on_ready=ready, on_end=editions.close)


def _reload(editions: Editions, renew: Renew) -> None:
    before = editions.gateway
    try:
        editions.replace(renew())
    except ConfigurationError as error:
        say(refusal(error))
    else:
        say(success(before, editions.gateway))


def refusal(error: ConfigurationError) -> str:
    """What is told about a file that cannot be used."""
    return f"error: {error.message} The gateway goes on with the configuration before."


def success(before: Gateway, after: Gateway) -> str:
    """What is told about a file that is used from now on."""
    routes = sum(1 for _ in after.routes.items())
    text = f"Reloaded: {routes} routes, {len(after.keys)} keys."
    changed = [name for name in _FIXED if getattr(before, name) != getattr(after, name)]
    if changed:
        text += f" Restart the gateway to change {', '.join(changed)}."
    return text
