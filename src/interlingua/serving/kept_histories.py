"""
The histories of kept responses: what the model was given before each of them, and its answers.

A response adds one turn to the history before it. Each turn is kept once and names the turns before
it, so that what is kept of a conversation grows as the conversation does. A turn is kept as long as
its response, and as long as a turn after it: who goes on with a response renews the turns before
it, and who deletes one removes the turns that nobody needs any longer.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from interlingua.client.stores.contract import Store
from interlingua.spec.content import Json
from interlingua.spec.errors import DecodeError, StoreError
from interlingua.spec.kept import Items
from interlingua.wire.json_text import dumps, loads

_MOST_NAMED = 32
"""How many turns before it a turn names, all of which are read at once."""
_MARGIN = 1 / 16
"""By how much longer than its response a turn is kept, so that it is not renewed at every turn."""


class Turn(NamedTuple):
    """What one response has added to a history."""

    id: str
    """Of the response."""
    before: tuple[str, ...]
    """The ids of the turns before it, back to one that names those before itself."""
    input: Items
    output: Items
    ends: float = 0.0
    """When the store removes it, in seconds since 1970."""

    @property
    def items(self) -> Items:
        """All of its items."""
        return (*self.input, *self.output)


History: TypeAlias = tuple[Turn, ...]
"""The turns up to a response, the first one first."""


def items_of(history: Iterable[Turn]) -> Items:
    """The items of all turns."""
    return tuple(chain.from_iterable(turn.items for turn in history))


def pack(value: object) -> bytes:
    """The bytes under which a value is kept."""
    return zlib.compress(dumps(value), 1)


def unpack(data: bytes) -> Any:
    """The value of these bytes; `StoreError` if they are damaged."""
    try:
        return loads(zlib.decompress(data))
    except (zlib.error, DecodeError) as error:
        raise StoreError(f"What was kept is damaged: {error}.") from error


class Histories:
    """The bodies of the responses of one caller, and the turns of their histories."""

    def __init__(
        self, store: Store, caller: str, seconds: float, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._caller = quote(caller, safe="")
        self._seconds = seconds
        self._life = seconds * (1 + _MARGIN)
        self._clock = clock

    async def find(self, id: str) -> dict[str, Json] | None:  # noqa: A002 -- the name of the field
        """The body of a response; None if it is not kept, or no longer."""
        data = await self._store.get(self._response_key(id))
        body: dict[str, Json] | None = None if data is None else unpack(data)
        return body

    async def load(self, id: str) -> History:  # noqa: A002 -- the name of the field
        """The history with a response as its last turn; empty if the response is not kept."""
        if await self._store.get(self._response_key(id)) is None:
            return ()
        pieces: list[list[Turn]] = []
        names: tuple[str, ...] = (id,)
        while names:
            found = await asyncio.gather(*(self._get(each) for each in names))
            turns = [turn for turn in found if turn is not None]
            if len(turns) < len(names):  # the store has lost one
                return ()
            pieces.append(turns)
            names = turns[0].before
        return tuple(chain.from_iterable(reversed(pieces)))

    async def keep(
        self,
        id: str,  # noqa: A002 -- the name of the field
        body: dict[str, Json],
        history: History,
        new: Items,
        output: Items,
    ) -> int:
        """Keep a response whose input was a history and then these items; its bytes."""
        least = self._clock() + self._seconds
        for turn in history:
            if turn.ends < least:
                await self._put(turn)
        size = await self._put(Turn(id, _names(history), new, output))
        if history and await self._get(history[-1].id) is None:
            # It was deleted while the model answered, and nobody knew of this response.
            size = await self._put(Turn(id, (), (*items_of(history), *new), output))
        data = pack(body)
        await self._store.put(self._response_key(id), data, ttl=self._seconds)
        return size + len(data)

    async def delete(self, id: str) -> bool:  # noqa: A002 -- the name of the field
        """Delete a response; whether there was one. What later ones need of it stays."""
        if not await self._store.delete(self._response_key(id)):
            return False
        name: str | None = id
        while name is not None:
            turn = await self._get(name)
            if turn is None or await self._is_needed(name):
                break
            await self._store.delete(self._turn_key(name))
            if await self._is_needed(name):  # since a moment ago
                await self._put(turn)
                break
            for key in self._next_keys(name):
                await self._store.delete(key)
            name = turn.before[-1] if turn.before else None
        return True

    async def _is_needed(self, id: str) -> bool:  # noqa: A002 -- the name of the field
        """Whether a response is kept, or a turn after it is."""
        if await self._store.get(self._response_key(id)) is not None:
            return True
        for key in self._next_keys(id):
            for name in dict.fromkeys(await self._store.items(key)):
                if await self._store.get(self._turn_key(name.decode())) is not None:
                    return True
        return False

    async def _get(self, id: str) -> Turn | None:  # noqa: A002 -- the name of the field
        data = await self._store.get(self._turn_key(id))
        if data is None:
            return None
        before, given, output, ends = unpack(data)
        return Turn(id, tuple(before), _to_items(given), _to_items(output), ends)

    async def _put(self, turn: Turn) -> int:
        """Keep a turn from now on; the one before it knows of it first. Returns its bytes."""
        now = self._clock()
        if turn.before:
            key = self._next_key(turn.before[-1], int(now // self._life))
            await self._store.append(key, turn.id.encode(), ttl=2 * self._life)
        data = pack((turn.before, turn.input, turn.output, now + self._life))
        await self._store.put(self._turn_key(turn.id), data, ttl=self._life)
        return len(data)

    # Lists end at a fixed time, so those who need a turn are listed by the period of their life
    # in which they were put: all that still live are in one of the last two.

    def _next_key(self, id: str, period: int) -> str:  # noqa: A002 -- the name of the field
        return f"next/{self._caller}/{id}/{period}"

    def _next_keys(self, id: str) -> list[str]:  # noqa: A002 -- the name of the field
        period = int(self._clock() // self._life)
        # The clock of another process may be ahead.
        return [self._next_key(id, each) for each in (period, period - 1, period + 1)]

    def _turn_key(self, id: str) -> str:  # noqa: A002 -- the name of the field
        return f"turn/{self._caller}/{id}"

    def _response_key(self, id: str) -> str:  # noqa: A002 -- the name of the field
        return f"response/{self._caller}/{id}"


def _names(history: History) -> tuple[str, ...]:
    """What the turn after a history names."""
    if not history:
        return ()
    last = history[-1]
    return (*last.before, last.id) if len(last.before) < _MOST_NAMED else (last.id,)


def _to_items(pairs: Iterable[Iterable[Any]]) -> Items:
    return tuple((id, item) for id, item in pairs)
