"""
The contract of ledgers.

A ledger has one entry for each request, by its hash: claimed by a process that sends it, done, or
failed. Rows with the same request share an entry. A claim belongs to an owner, which is a process;
it counts as long as its owner lives: the owner says so again and again, and the ledger forgets an
owner that has not done so for the length of a lease. An owner of this machine that has died is
found at once, because it no longer holds the lock of its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from interlingua.bulk.answers import Answer
from interlingua.client.stores.contract import Store

State: TypeAlias = Literal["claimed", "done", "failed", "released"]
LEASE = 60.0
"""Seconds after which an owner that says nothing counts as dead."""


class Entry(NamedTuple):
    """What a ledger has for a request."""

    state: State
    owner: str
    attempts: int
    """How often it failed, or was answered."""
    answer: Answer | None

    def is_settled(self, attempts: int) -> bool:
        """Whether it is done, or has failed so often."""
        return self.state == "done" or (self.state == "failed" and self.attempts >= attempts)


class Totals(NamedTuple):
    """Sums over a ledger, which may serve several jobs."""

    done: int
    failed: int
    claimed: int
    cost: float
    """Dollars, of all attempts whose price is known."""


class Account(NamedTuple):
    """Where those who share a ledger count what they spend, while one of them lives."""

    name: str
    """The name of the budget in the store."""
    spent: float
    """Dollars that the ledger had recorded before; they are not counted in the account."""


class Ledger(Protocol):
    """Who pays for which request. Every method may raise `StoreError`."""

    async def open(self) -> None:
        """Become an owner; the other methods need that. Idempotent."""

    async def look(self, hashes: Sequence[bytes]) -> list[Entry | None]:
        """Return the entries of requests, in their order."""

    async def claim(self, requests: Sequence[bytes], attempts: int) -> list[Entry | None]:
        """
        Take requests for this process, and return None for each; else what stands in its way.

        That is an entry which is settled (done, or failed `attempts` times), or claimed by an
        owner that lives. What this process has claimed before, it gets again.
        """

    async def put(self, request: bytes, answer: Answer) -> None:
        """
        Record what became of a request, and end the claim. It is durable when this returns.

        An answer that was recorded is never replaced by a failure.
        """

    async def release(self, requests: Sequence[bytes]) -> None:
        """End the claims of requests that were not sent; one that had failed is failed again."""

    async def totals(self) -> Totals:
        """Return the sums over all entries."""

    async def open_account(self, store: Store) -> Account:
        """Return the account of those who share this ledger now; a new one if there are none."""

    async def note_batch(self, reference: str, requests: Sequence[bytes] | None) -> None:
        """
        Remember a batch with its requests, durably; None: forget it.

        `reference` is any text: that of a batch at a provider, or the name of one that is about to
        be submitted.
        """

    async def batches(self) -> dict[str, list[bytes]]:
        """Return the batches that were not read yet."""

    async def close(self) -> None:
        """End all claims of this process, and close connections. Idempotent."""
