"""
A session in a store: a header, and a record for each change of its turns.

A record `{"turn": n, "messages": […]}` is turn n, and ends what was known of later ones. A record
without messages only ends them: the turns from n on were undone. So records are only appended, and
what a crash leaves is a state that the session had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from interlingua.api.session.document import header_document, session_from_document, turn_document
from interlingua.api.session.saved import SavedSession
from interlingua.api.session.store import SessionStore
from interlingua.api.session.turns import Turn
from interlingua.spec.errors import ConfigurationError, DecodeError, StoreError


class StoredSession:
    """What the store has of a session, to append what is new."""

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self.store = store
        self._session_id = session_id
        self._header: Mapping[str, Any] | None = None  # None: not created yet
        self._turns: tuple[Turn, ...] = ()
        self._count = 0  # of records
        self._attempted: tuple[Turn, ...] | None = None  # by a write that may have happened
        self._lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @classmethod
    async def load(cls, store: SessionStore, session_id: str) -> tuple[StoredSession, SavedSession]:
        """A session of the store, and what it holds."""
        stored = cls(store, session_id)
        return stored, await stored._read()

    async def write(self, saved: SavedSession) -> None:
        """Append what has changed; it is durable when this returns, even if it is cancelled."""
        await asyncio.shield(asyncio.ensure_future(self._write(saved, self._find_lock())))

    async def _write(self, saved: SavedSession, lock: asyncio.Lock) -> None:
        header = header_document(saved)
        async with lock:
            if self._attempted is not None:
                await self._find_out(self._attempted)
            records = _changes(self._turns, saved.turns)
            if records or header != self._header:
                await self._add(header, saved, records)

    async def _find_out(self, attempted: tuple[Turn, ...]) -> None:
        """Read whether the last write happened. What another program wrote is never replaced."""
        known = (self._header, self._turns, self._count)
        try:
            await self._read()
        except ConfigurationError:  # it was not even created
            return
        if self._turns not in (known[1], attempted):
            self._header, self._turns, self._count = known
            self._attempted = attempted
            raise StoreError(
                f"Another program has changed the session {self._session_id!r}, so this turn was "
                "not stored. Load the session again."
            )

    async def _add(
        self, header: Mapping[str, Any], saved: SavedSession, records: list[dict[str, Any]]
    ) -> None:
        self._attempted = saved.turns
        if self._header is None:
            try:
                await self.store.create(self._session_id, header, records)
            except ConfigurationError:  # the id is taken
                self._attempted = None
                raise
            self._count = len(records)
        else:
            self._count = await self.store.append(
                self._session_id, records, header=header, expected=self._count
            )
        self._header, self._turns, self._attempted = header, saved.turns, None

    async def _read(self) -> SavedSession:
        header, records = await self.store.load(self._session_id)
        if not header:  # it was lost with a page of the file, and the records were not
            header = header_document(SavedSession(session_id=self._session_id))
        try:
            saved = session_from_document({**header, "turns": _replayed(records)})
        except DecodeError as error:
            name = repr(self._session_id)
            raise DecodeError(f"Cannot load the session {name}: {error.message}") from error
        self._header, self._turns, self._count = header, saved.turns, len(records)
        self._attempted = None
        return saved

    def _find_lock(self) -> asyncio.Lock:
        """The lock of the running loop: a session may outlive one loop."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:
            self._lock = (loop, asyncio.Lock())
        return self._lock[1]


def _changes(before: tuple[Turn, ...], after: tuple[Turn, ...]) -> list[dict[str, Any]]:
    """The records that make the turns what they are now."""
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    if same == len(after):
        return [{"turn": same}] if len(before) > same else []
    return [{"turn": at, "messages": turn_document(after[at])} for at in range(same, len(after))]


def _replayed(records: list[dict[str, Any]]) -> list[Any]:
    """The documents of the turns that the records add up to."""
    turns: list[Any] = []
    for record in records:
        del turns[record["turn"] :]
        if "messages" in record:
            turns.append(record["messages"])
    return turns
