"""
Sending a reply at its pace and with its faults.

ASGI has no message for a broken connection, so those faults are raised: `SimulatedResetError` and
`SimulatedCutError`. Our own server makes them happen on the socket; any other closes the
connection in the middle of the reply when its application fails, which is nearly the same.
"""

from __future__ import annotations

import time

from interlingua.serving.asgi import CutConnectionError, Receive, ResetConnectionError, Send
from interlingua.serving.delivery import Delivery, Reply
from interlingua.simulator.dsl import Cut, Reset, Stall, Turn
from interlingua.simulator.script import Exchange


class SimulatedResetError(ResetConnectionError):
    """The connection is to be reset now."""


class SimulatedCutError(CutConnectionError):
    """The connection is to be closed now, in the middle of the reply."""


class FaultyDelivery(Delivery):
    """Sends one reply of a turn, and records in the exchange how that went."""

    def __init__(self, exchange: Exchange, turn: Turn, receive: Receive, send: Send) -> None:
        super().__init__(receive, send)
        self._exchange = exchange
        self._pace = turn.pace
        faults = [fault for fault in turn.faults if isinstance(fault, (Cut, Reset, Stall))]
        self._before = [fault for fault in faults if fault.at is None]
        self._within = sorted((each for each in faults if each.at is not None), key=_place)
        self._is_first = True
        self._is_over = False

    async def before_head(self, reply: Reply) -> None:
        """Wait, and break if the turn says so."""
        await self.sleep(self._pace.first)
        for fault in self._before:
            await self._suffer(fault)
        self._exchange.status = reply.status

    def whole_body(self, body: bytes) -> bytes:
        """A whole body that is cut cleanly has the length of what is left."""
        ends = [fault.at for fault in self._within if isinstance(fault, Cut) and fault.clean]
        return body[: ends[0]] if ends else body

    async def write(self, chunk: bytes) -> None:
        """The chunk in pieces, at the turn's pace, as far as its faults let it."""
        size = self._pace.write_bytes or len(chunk) or 1
        for start in range(0, 0 if self._is_over else len(chunk), size):
            await self.sleep(0 if self._is_first else self._pace.between)
            self._is_first = False
            await self._write_piece(chunk[start : start + size])

    def ended(self) -> None:
        """Record the end."""
        exchange = self._exchange
        exchange.ended = time.monotonic()
        exchange.disconnected = self.disconnected
        exchange.over.set()

    async def _write_piece(self, piece: bytes) -> None:
        while self._within and _place(self._within[0]) <= self._exchange.sent_bytes + len(piece):
            fault = self._within.pop(0)
            room = max(_place(fault) - self._exchange.sent_bytes, 0)
            await self._count_and_put(piece[:room])
            piece = piece[room:]
            await self._suffer(fault)
        await self._count_and_put(piece)

    async def _count_and_put(self, piece: bytes) -> None:
        if not self._is_over:
            await self.put_body(piece)
            self._exchange.sent_bytes += len(piece)

    async def _suffer(self, fault: Cut | Reset | Stall) -> None:
        if isinstance(fault, Stall):
            await self.sleep(fault.seconds)
        elif isinstance(fault, Reset):
            raise SimulatedResetError("a simulated reset")
        elif fault.clean and fault.at is not None:
            self._is_over = True  # what is left of the body is not sent
        else:
            raise SimulatedCutError("a simulated cut")


def _place(fault: Cut | Reset | Stall) -> int:
    return fault.at or 0
