"""
Sending a reply through ASGI, at its pace and with its faults.

ASGI has no message for a broken connection, so those faults are raised: `SimulatedResetError` and
`SimulatedCutError`. `server.py` makes them happen on the socket; any other server closes the
connection in the middle of the reply when its application fails, which is nearly the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, TypeAlias

from interlingua.simulator.dsl import Cut, Reset, Stall, Turn
from interlingua.simulator.script import Exchange

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class SimulatedResetError(ConnectionResetError):
    """The connection is to be reset now."""


class SimulatedCutError(ConnectionAbortedError):
    """The connection is to be closed now, in the middle of the reply."""


class _GoneError(Exception):
    """The client went away."""


class _CleanEndError(Exception):
    """The body is over before it was all said."""


class Delivery:
    """Sends one reply, and notices when the client leaves."""

    def __init__(self, exchange: Exchange, turn: Turn, receive: Receive, send: Send) -> None:
        self._exchange = exchange
        self._pace = turn.pace
        self._asgi_send = send
        faults = [fault for fault in turn.faults if isinstance(fault, (Cut, Reset, Stall))]
        self._before = [fault for fault in faults if fault.at is None]
        self._within = sorted((each for each in faults if each.at is not None), key=_place)
        self._gone = asyncio.ensure_future(self._watch(receive))

    async def send(
        self, status: int, headers: Mapping[str, str], chunks: Iterable[bytes], *, whole: bool
    ) -> None:
        """The head, then the body; the head tells the length of a body that is whole."""
        try:
            await self._sleep(self._pace.first)
            for fault in self._before:
                await self._suffer(fault)
            if whole:
                chunks = [self._shorten(b"".join(chunks))]
                headers = {**headers, "content-length": str(len(chunks[0]))}
            await self._send_head(status, headers)
            await self._send_body(chunks)
        except _GoneError:
            pass
        finally:
            self._exchange.ended = time.monotonic()
            self._gone.cancel()
            self._exchange.over.set()

    async def _send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self._exchange.status = status
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._put({"type": "http.response.start", "status": status, "headers": raw})

    async def _send_body(self, chunks: Iterable[bytes]) -> None:
        is_first = True
        try:
            for chunk in chunks:
                size = self._pace.write_bytes or len(chunk) or 1
                for start in range(0, len(chunk), size):
                    await self._sleep(0 if is_first else self._pace.between)
                    is_first = False
                    await self._write(chunk[start : start + size])
        except _CleanEndError:
            pass
        await self._put({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, piece: bytes) -> None:
        exchange = self._exchange
        while self._within and _place(self._within[0]) <= exchange.sent_bytes + len(piece):
            fault = self._within.pop(0)
            room = max(_place(fault) - exchange.sent_bytes, 0)
            await self._put_body(piece[:room])
            piece = piece[room:]
            await self._suffer(fault)
        await self._put_body(piece)

    async def _put_body(self, piece: bytes) -> None:
        if piece:
            await self._put({"type": "http.response.body", "body": piece, "more_body": True})
            self._exchange.sent_bytes += len(piece)

    async def _put(self, message: Message) -> None:
        try:
            await self._asgi_send(message)
        except OSError as error:  # what a server raises when the client is gone
            self._exchange.disconnected = self._exchange.disconnected or time.monotonic()
            raise _GoneError from error

    async def _suffer(self, fault: Cut | Reset | Stall) -> None:
        if isinstance(fault, Stall):
            await self._sleep(fault.seconds)
        elif isinstance(fault, Reset):
            raise SimulatedResetError("a simulated reset")
        elif fault.clean and fault.at is not None:
            raise _CleanEndError
        else:
            raise SimulatedCutError("a simulated cut")

    async def _sleep(self, seconds: float | None) -> None:
        """Wait that long, for ever if None, but not longer than the client does."""
        if seconds == 0:
            await asyncio.sleep(0)  # others run too, and a client that left is seen
        else:
            await asyncio.wait({self._gone}, timeout=seconds)
        if self._gone.done():
            raise _GoneError

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._exchange.disconnected = time.monotonic()

    def _shorten(self, body: bytes) -> bytes:
        """A whole body that is cut cleanly has the length of what is left."""
        ends = [fault.at for fault in self._within if isinstance(fault, Cut) and fault.clean]
        return body[: ends[0]] if ends else body


def _place(fault: Cut | Reset | Stall) -> int:
    return fault.at or 0
