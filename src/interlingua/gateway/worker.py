"""A worker of a gateway: `python -m interlingua.gateway.worker CHANNEL SOCKET`, two descriptors."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Sequence

from interlingua.gateway.channel import Report, encode, receive, receive_first
from interlingua.gateway.editions import Editions
from interlingua.gateway.server import Running, run
from interlingua.gateway.source import Source
from interlingua.spec.errors import ConfigurationError


def main(arguments: Sequence[str]) -> None:
    """Serve what the parent sends, until it sends a signal or ends."""
    channel, server = (socket.socket(fileno=int(each)) for each in arguments)
    for each in (channel, server):
        each.set_inheritable(False)
    for sign in (signal.SIGHUP, signal.SIGINT):  # the parent tells when to reload and to end
        signal.signal(sign, signal.SIG_IGN)
    source = receive_first(channel, Source)
    if source is None:
        return
    worker = _Worker(source, channel)
    timeouts = worker.editions.gateway.timeouts
    run(worker.editions, server, timeouts, on_ready=worker.begin, on_end=worker.end)


class _Worker:
    """The side of the worker in the talk with its parent."""

    def __init__(self, source: Source, channel: socket.socket) -> None:
        self.editions = Editions(source)
        self._channel = channel

    async def begin(self, running: Running) -> None:
        """Tell that requests are accepted, and listen to the parent."""
        reader, self._writer = await asyncio.open_connection(sock=self._channel)
        self._writer.write(encode(Report()))
        self._listening = asyncio.ensure_future(self._listen(reader, running))

    async def end(self) -> None:
        """Close everything."""
        self._listening.cancel()
        self._writer.close()
        await self.editions.close()

    async def _listen(self, reader: asyncio.StreamReader, running: Running) -> None:
        while (source := await receive(reader, Source)) is not None:
            report = Report()
            try:
                self.editions.replace(source)
            except ConfigurationError as error:
                report = Report(error=error.message)
            self._writer.write(encode(report))
        running.should_exit = True  # the parent has ended without a word


if __name__ == "__main__":
    main(sys.argv[1:])
