"""Sockets below an event loop."""

from __future__ import annotations

import asyncio
import select


class SocketProbe:
    """Looks at the socket of a connection."""

    __slots__ = ("_peer", "_poll")

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        self._peer = transport.get_extra_info("socket")
        self._poll = None
        if self._peer is not None and hasattr(select, "poll"):  # Windows has only `select`
            self._poll = select.poll()
            self._poll.register(self._peer, select.POLLIN)

    def has_input(self) -> bool:
        """Whether bytes, or the end of the connection, wait in the socket."""
        if self._peer is None:
            return False
        try:
            if self._poll is None:
                return bool(select.select([self._peer], [], [], 0)[0])
            return bool(self._poll.poll(0))
        except (OSError, ValueError):  # the socket is closed
            return True
