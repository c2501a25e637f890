"""
The parent of the workers: it holds the address, and starts, replaces, reloads and ends them.

The sockets stay open while a worker is replaced, so that connections wait for its successor. Each
worker has a socket of its own where the system spreads connections over the sockets of one address.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from interlingua.gateway.channel import Report, encode, receive
from interlingua.gateway.reload import Renew, refusal, success
from interlingua.gateway.server import listen, say
from interlingua.gateway.source import Source
from interlingua.spec.errors import ConfigurationError

COMMAND = (sys.executable, "-P", "-m", "interlingua.gateway.worker")
"""How a worker is started: with `-P`, not with modules of the folder that it is started in."""

QUICK = 5.0
"""Seconds: a worker that ends earlier has failed at once."""
MOST_FAILURES = 8
"""How often in a row a worker may fail at once."""
_FIRST_PAUSE = 0.1
"""Seconds before the third start in a row; each further pause is twice as long."""
_MARGIN = 5.0
"""Seconds that a worker may need beside the grace of its requests, until it is killed."""
_STOPPING = (signal.SIGTERM, signal.SIGINT)


def can_spread() -> bool:
    """Whether this system spreads connections over several sockets of one address."""
    return sys.platform == "linux" and hasattr(socket, "SO_REUSEPORT")


class Address:
    """The place where a gateway listens, with a socket for each worker."""

    def __init__(self, host: str, port: int, workers: int) -> None:
        self._host = host
        self._is_shared = can_spread()
        self.first: socket.socket = listen(host, port, is_shared=self._is_shared)
        """The socket of the first worker."""
        self._sockets: list[socket.socket | None] = [self.first] + [None] * (workers - 1)
        self._port: int = self.first.getsockname()[1]
        for number in range(workers):
            self.open(number)

    def open(self, number: int) -> socket.socket:
        """The socket of a worker, which is opened if it is not open."""
        known = self._sockets[number]
        if known is None:
            is_shared = self._is_shared
            known = listen(self._host, self._port, is_shared=True) if is_shared else self.first
            self._sockets[number] = known
        return known

    def leave_to_others(self, number: int) -> None:
        """Close the socket of a worker that is out for a while, if others have one."""
        known = self._sockets[number]
        others = [each for each in self._sockets if each is not None and each is not known]
        if known is not None and others:
            self._sockets[number] = None
            known.close()

    def close(self) -> None:
        """Stop to listen; workers may still do."""
        for each in self._sockets:
            if each is not None:
                each.close()


class Workers:
    """Several processes that serve one address."""

    def __init__(
        self, source: Source, address: Address, renew: Renew, *, command: Sequence[str] = COMMAND
    ) -> None:
        if not hasattr(signal, "SIGHUP"):
            raise ConfigurationError("Several workers need Linux or macOS. Use --workers 1.")
        self.source: Source = source
        """What every worker is sent."""
        self.address: Address = address
        self.command: tuple[str, ...] = tuple(command)
        self.stopping: asyncio.Event = asyncio.Event()
        """Set when workers that end are no longer replaced."""
        self._gateway = source.read()
        self._renew = renew
        self._signal: signal.Signals | None = None
        self._failure: ConfigurationError | None = None
        self._reloading: asyncio.Task[None] | None = None
        self._slots: list[_Slot] = []

    def run(self, count: int, on_ready: Callable[[], object]) -> None:
        """Serve until a signal ends it; `on_ready` is called when all workers are ready."""
        try:
            asyncio.run(self._run(count, on_ready))
        finally:
            self.address.close()
        if self._failure is not None:
            raise self._failure
        if self._signal is not None:
            signal.raise_signal(self._signal)  # whoever started this sees what has ended it

    async def _run(self, count: int, on_ready: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        for each in _STOPPING:
            loop.add_signal_handler(each, self._end, each)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        self._slots = [_Slot(self, number) for number in range(count)]
        ready = asyncio.ensure_future(self._wait_until_ready(on_ready))
        try:
            await asyncio.gather(*(slot.run() for slot in self._slots))
        finally:
            ready.cancel()
            for each in (*_STOPPING, signal.SIGHUP):
                loop.remove_signal_handler(each)

    async def _wait_until_ready(self, on_ready: Callable[[], object]) -> None:
        for slot in self._slots:
            await slot.is_ready.wait()
        on_ready()

    def give_up(self, failure: ConfigurationError) -> None:
        """End the other workers because one of them cannot be kept running."""
        self._failure = failure
        self._stop(signal.SIGTERM)

    def _end(self, sign: signal.Signals) -> None:
        is_second = self._signal is not None
        self._signal = self._signal or sign
        # To uvicorn the first signal means to let requests end, and a later SIGINT not to.
        self._stop(signal.SIGINT if is_second and sign == signal.SIGINT else signal.SIGTERM)

    def _stop(self, sign: signal.Signals) -> None:
        is_first = not self.stopping.is_set()
        self.stopping.set()
        self.address.close()
        for slot in self._slots:
            slot.stop(sign)
            if is_first:
                grace = self._gateway.timeouts.grace + _MARGIN
                asyncio.get_running_loop().call_later(grace, slot.kill)

    def _reload(self) -> None:
        if self.source.path is None:
            say("There is no file to reload. Start the gateway with --config.")
        elif self._reloading is None or self._reloading.done():
            self._reloading = asyncio.ensure_future(self._reload_all())
        else:
            self._reloading.add_done_callback(lambda _: self._reload())

    async def _reload_all(self) -> None:
        """Check the file; if it can be used, send it to all workers."""
        try:
            source = self._renew()
            gateway = source.read()
        except ConfigurationError as error:
            say(refusal(error))
            return
        before, self._gateway, self.source = self._gateway, gateway, source
        reports = await asyncio.gather(*(slot.reload() for slot in self._slots))
        for text in dict.fromkeys(report.error for report in reports if report is not None):
            if text:
                say(f"error: a worker cannot use the file: {text}")
        say(success(before, gateway))


class _Slot:
    """The place of one worker, which may have had several already."""

    def __init__(self, parent: Workers, number: int) -> None:
        self._parent = parent
        self._number = number
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._sent: Source | None = None
        self._answer: asyncio.Future[Report | None] | None = None
        self.is_ready: asyncio.Event = asyncio.Event()
        """Whether the worker accepts connections."""

    async def run(self) -> None:
        """Run one worker after another, until the parent stops."""
        failures = 0
        while not self._parent.stopping.is_set():
            began = time.monotonic()
            status = _describe(await self._run_once())
            if self._parent.stopping.is_set():
                return
            failures = failures + 1 if time.monotonic() - began < QUICK else 1
            name = f"Worker {self._number + 1}"
            if failures == MOST_FAILURES:
                text = f"{name} has ended at once {failures} times, the last time with {status}."
                self._parent.give_up(ConfigurationError(f"{text} See the errors above."))
                return
            say(f"{name} has ended with {status}. It is replaced.")
            await self._pause(failures)

    def stop(self, sign: signal.Signals) -> None:
        """Tell the worker to end."""
        if self._process is not None:
            self._process.send_signal(sign)  # does nothing if it has ended

    def kill(self) -> None:
        """End the worker, whatever it does."""
        self.stop(signal.SIGKILL)

    async def reload(self) -> Report | None:
        """Send the configuration of the parent; what the worker says, None if it has ended."""
        if not self.is_ready.is_set():
            return None  # it is sent when the worker is ready
        self._send()
        self._answer = asyncio.get_running_loop().create_future()
        return await self._answer

    def _send(self) -> None:
        self._sent = self._parent.source
        if self._writer is not None:
            self._writer.write(encode(self._sent))

    async def _pause(self, failures: int) -> None:
        """Wait longer after each failure; connections go to the other workers meanwhile."""
        if failures == 1:
            return
        self._parent.address.leave_to_others(self._number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_PAUSE * 2 ** (failures - 2)):
                await self._parent.stopping.wait()

    async def _run_once(self) -> int:
        """Run one worker to its end; returns its exit status."""
        process = self._process = self._start(own_and_theirs := socket.socketpair())
        reader, self._writer = await asyncio.open_connection(sock=own_and_theirs[0])
        self._send()
        while (report := await receive(reader, Report)) is not None:
            if self._sent is not self._parent.source:  # the file was reloaded meanwhile
                self._send()
            elif self._answer is not None:
                self._answer.set_result(report)
                self._answer = None
            self.is_ready.set()
        self.is_ready.clear()
        if self._answer is not None:
            self._answer.set_result(None)
            self._answer = None
        self._writer.close()
        return await asyncio.to_thread(_wait_or_kill, process)

    def _start(self, pair: tuple[socket.socket, socket.socket]) -> subprocess.Popen[bytes]:
        with pair[1] as channel:
            server = self._parent.address.open(self._number)
            descriptors = (channel.fileno(), server.fileno())
            # A session of its own: the Ctrl-C of a terminal reaches only the parent.
            return subprocess.Popen(  # noqa: S603 -- our own program
                [*self._parent.command, *map(str, descriptors)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=descriptors,
                start_new_session=True,
            )


def _wait_or_kill(process: subprocess.Popen[bytes]) -> int:
    """The exit status of a worker that has closed its channel."""
    try:
        return process.wait(_MARGIN)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _describe(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-status).name
    return f"status {status}"
