"""How many rows are under way at once: more while all goes well, half as many after a 429."""

from __future__ import annotations

import asyncio

_DECREASE = 0.5


class Pace:
    """
    A number of places between 1 and `most`, which adapts (AIMD).

    It begins with all places. Each answer without a refusal adds a part of a place, so that a
    whole round of answers adds one. Who has a place with a number above that waits.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._places = float(most)
        self._waiting: list[asyncio.Future[None]] = []
        self.active: int = 0
        """How many rows are under way."""
        self.decreases: int = 0
        """How often the number of places was decreased."""

    @property
    def places(self) -> int:
        """How many rows may be under way now."""
        return int(self._places)

    def succeed(self) -> None:
        """An answer came without a refusal."""
        if self._places < self._most:
            self._places = min(float(self._most), self._places + 1 / self._places)

    def slow_down(self, decreases: int) -> None:
        """
        A provider refused a request that began after this number of decreases.

        Those that were under way at the first refusal tell nothing new.
        """
        if decreases == self.decreases:
            self.decreases += 1
            self._places = max(1.0, self._places * _DECREASE)

    async def changed(self) -> None:
        """Wait until a row has ended, or `wake` was called."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def wake(self) -> None:
        """Let those look again who wait for a change."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
