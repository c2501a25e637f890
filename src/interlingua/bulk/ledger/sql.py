"""
The statements of ledgers in SQL, which SQLite and PostgreSQL both understand.

A row of `answers` is an entry: the hash, the number of its state, its owner, the attempts, what
all of them have cost, and the answer as bytes. The states are 0 (claimed), 1 (done), 2 (failed)
and 3 (released).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from interlingua.bulk.answers import Answer, decode_answer, encode_answer
from interlingua.bulk.ledger.base import OwnedLedger
from interlingua.bulk.ledger.contract import Entry, State, Totals

STATES: tuple[State, ...] = ("claimed", "done", "failed", "released")
_CLAIMED, _DONE, _FAILED = range(3)

CLAIM = """
INSERT INTO answers AS a VALUES (?, 0, ?, 0, 0.0, NULL)
ON CONFLICT (hash) DO UPDATE SET state = 0, owner = excluded.owner
WHERE a.state = 3 OR (a.state = 2 AND a.attempts < ?)
    OR (a.state = 0 AND a.owner = excluded.owner)
"""
"""Takes a request that nobody has: the hash, the owner, the attempts at which it has failed."""
TAKE_OVER = "UPDATE answers SET owner = ? WHERE hash = ? AND state = 0 AND owner = ?"
"""Takes the claim of an owner that is gone: the new owner, the hash, the old owner."""
PUT = """
INSERT INTO answers AS a VALUES (?, ?, '', 1, ?, ?) ON CONFLICT (hash) DO UPDATE SET
    body = CASE WHEN a.state = 1 THEN a.body ELSE excluded.body END,
    state = CASE WHEN a.state = 1 THEN a.state ELSE excluded.state END,
    owner = '', attempts = a.attempts + 1, cost = a.cost + excluded.cost
WHERE a.state = 0 OR a.body IS NULL OR a.body <> excluded.body
"""
"""Records an answer; one that is repeated because a connection ended counts once."""
RELEASE = """
UPDATE answers SET state = CASE WHEN body IS NULL THEN 3 ELSE 2 END, owner = ''
WHERE hash = ? AND owner = ?
"""
"""Ends a claim: the hash, the owner. A request with an answer that is claimed had failed."""
TOTALS = "SELECT state, count(*), sum(cost) FROM answers GROUP BY state"
FORGET_OWNER = "DELETE FROM owners WHERE id = ?"
NOTE_BATCH = """
INSERT INTO batches VALUES (?, ?) ON CONFLICT (reference) DO UPDATE SET hashes = excluded.hashes
"""
FORGET_BATCH = "DELETE FROM batches WHERE reference = ?"
BATCHES = "SELECT reference, hashes FROM batches"


class SqlLedger(OwnedLedger):
    """What is the same in ledgers of SQL: statements without a result."""

    async def _execute(self, statement: str, *values: object) -> None:
        """Do a statement of this module, or one of the subclass."""
        raise NotImplementedError

    async def _forget(self, owner: str) -> None:
        await self._execute(FORGET_OWNER, owner)

    async def note_batch(self, reference: str, requests: Sequence[bytes] | None) -> None:
        """Remember a batch with its requests; None: forget it."""
        if requests is None:
            await self._execute(FORGET_BATCH, reference)
        else:
            await self._execute(NOTE_BATCH, reference, b"".join(requests))


def values_of(request: bytes, answer: Answer) -> tuple[bytes, int, float, bytes]:
    """The values of `PUT`."""
    state = _DONE if answer.status == "done" else _FAILED
    return request, state, answer.cost or 0.0, encode_answer(answer)


def read_entry(row: Sequence[Any]) -> Entry:
    """The entry in the columns `state, owner, attempts, body`."""
    state, owner, attempts, body = row
    return Entry(STATES[state], owner, attempts, None if body is None else decode_answer(body))


def read_totals(rows: Iterable[Sequence[Any]]) -> Totals:
    """The sums in the rows of `TOTALS`."""
    counts, cost = [0] * len(STATES), 0.0
    for state, count, sum_of_state in rows:
        counts[state] = count
        cost += sum_of_state
    return Totals(counts[_DONE], counts[_FAILED], counts[_CLAIMED], cost)
