"""What all ledgers share: being an owner from opening to closing, and writes that go together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from interlingua.bulk.job import HASH_BYTES
from interlingua.bulk.ledger.contract import Account
from interlingua.bulk.ledger.owners import Owner
from interlingua.client.stores.contract import Store
from interlingua.runtime.log import logger
from interlingua.spec.errors import StoreError

_BEATS = 3  # in the length of a lease, so that one that fails does not end it


class OwnedLedger:
    """
    A ledger that is an owner while it is open, and says again and again that it lives.

    Subclasses know how the place of the ledger learns about owners.
    """

    def __init__(self, folder: Path, lease: float) -> None:
        """`folder`: where processes of this machine find the files of one another."""
        self._folder = folder
        self._lease = lease
        self._owner: Owner | None = None
        self._heartbeat: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Become an owner."""
        if self._owner is not None:
            return
        await self._prepare()
        self._owner = Owner(self._folder)
        try:
            await self._live()
        except BaseException:
            self._owner.close()
            self._owner = None
            raise
        self._heartbeat = asyncio.get_running_loop().create_task(self._beat())

    async def close(self) -> None:
        """End all claims of this process, and close connections."""
        task, self._heartbeat = self._heartbeat, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        owner, self._owner = self._owner, None
        try:
            if owner is not None:
                await self._forget(owner.id)
        finally:
            await self._disconnect()
            if owner is not None:
                owner.close()

    async def open_account(self, _: Store) -> Account:
        """Return the only account: a server has the ledger and the store, and keeps both."""
        return Account("bulk", 0.0)

    @property
    def _id(self) -> str:
        return "" if self._owner is None else self._owner.id

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._lease / _BEATS)
            try:
                await self._live()
            except StoreError as error:
                logger.warning("The ledger did not take the sign of life of a worker: %s", error)

    async def _prepare(self) -> None:
        """Make the place ready; raise if it cannot keep what it is given."""
        raise NotImplementedError

    async def _live(self) -> None:
        """Say that this owner lives, for the length of a lease."""
        raise NotImplementedError

    async def _forget(self, owner: str) -> None:
        """End all claims of an owner: nobody waits for one that is not known."""
        raise NotImplementedError

    async def _disconnect(self) -> None:
        """Close connections and files."""
        raise NotImplementedError


class Groups:
    """
    Writes that share transactions: those that come during one are in the next.

    One change of threads, or one exchange with a server, for many writes is what makes them cheap.
    """

    def __init__(self, do: Callable[[list[Any]], Awaitable[Sequence[Any]]]) -> None:
        """`do` does several writes together, and returns their results in their order."""
        self._do = do
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, write: object) -> asyncio.Future[Any]:
        """Do this with others; the future of its result, which comes when it is durable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((write, future))
        if self._task is None:
            self._task = loop.create_task(self._work())
        return future

    async def _work(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(0)  # what ends in the same round of the loop is in it too
                group, self._waiting = self._waiting, []
                await self._finish(group)
        finally:
            self._task = None

    async def _finish(self, group: list[tuple[Any, asyncio.Future[Any]]]) -> None:
        try:
            results = await self._do([write for write, _ in group])
        except Exception as error:  # noqa: BLE001 -- each caller gets it
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(group, results, strict=True):
            if not future.done():
                future.set_result(result)


def split_hashes(joined: bytes) -> list[bytes]:
    """The hashes that were joined to one value."""
    return [joined[i : i + HASH_BYTES] for i in range(0, len(joined), HASH_BYTES)]
