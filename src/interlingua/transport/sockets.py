"""Sockets below an event loop."""

from __future__ import annotations

import asyncio
import select


def has_input(transport: asyncio.BaseTransport) -> bool:
    """Whether bytes, or the end of the connection, wait in the socket."""
    peer = transport.get_extra_info("socket")
    if peer is None:
        return False
    try:
        if not hasattr(select, "poll"):  # on Windows, where `select` takes any socket
            return bool(select.select([peer], [], [], 0)[0])
        poll = select.poll()
        poll.register(peer, select.POLLIN)
        return bool(poll.poll(0))
    except (OSError, ValueError):  # the socket is closed
        return True
