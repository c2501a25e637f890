"""How much a server stores for one caller, and whether there is room for more."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from interlingua.client.stores.contract import Limit, LimitMode, Refused, Reservation, Store
from interlingua.spec.errors import QuotaExceededError

_GIB = 1024**3
_ANY = 1e15
"""The maximum of what is counted after the fact: it was checked before."""
_MESSAGES = {
    "files": "This key may have {most} files here, and has as many. Delete some.",
    "file_bytes": "The files of this key may have {most} bytes together, and this would be more. "
    "Delete some.",
    "jobs": "This key may have {most} batches and videos here, and has as many. Delete some, or "
    "wait until they are forgotten: 30 days after they were made.",
    "responses": "This key may have {most} kept responses here, and has as many. Send `store` as "
    "false, or wait until older ones have ended.",
    "response_bytes": "The kept responses of this key may have {most} bytes together, and have as "
    "many. Send `store` as false, or wait until older ones have ended.",
}


class Storage(NamedTuple):
    """The most that is stored for one caller."""

    files: int = 1_000
    """That were uploaded, and are neither deleted nor over."""
    file_bytes: int = _GIB
    """Of all files together."""
    jobs: int = 1_000
    """Batches and videos, of which only the places are stored."""
    responses: int = 100_000
    """Kept responses and conversations; one that is deleted counts until its time is over."""
    response_bytes: int = _GIB
    """Of these together, compressed."""


class Room:
    """The room of one caller in a store."""

    def __init__(self, store: Store, caller: str, most: Storage) -> None:
        self._store = store
        self._caller = quote(caller, safe="")
        self.most: Storage = most
        """The most that is stored."""

    async def take(self, seconds: float, **amounts: int) -> Reservation:
        """
        Take room for so long, or until it is given back; the amounts are named as in `Storage`.

        `QuotaExceededError` if there is not enough.
        """
        limits = [
            Limit(key=self._key(name), maximum=getattr(self.most, name), amount=amount, mode="hold")
            for name, amount in amounts.items()
        ]
        taken = await self._store.reserve(limits, lease=seconds)
        if isinstance(taken, Refused):
            raise self._full(taken.key.rpartition("/")[2])
        return taken

    async def give_back(self, taken: Reservation) -> None:
        """Give back what was taken."""
        await self._store.settle(taken, {limit.key: 0.0 for limit in taken.limits})

    async def check(self, *names: str, period: float | None = None) -> None:
        """Raise `QuotaExceededError` if as much as allowed is stored of one of these."""
        for name in names:
            if await self._store.used(self._key(name), period) >= getattr(self.most, name):
                raise self._full(name)

    async def count(
        self, seconds: float, *, period: float | None = None, **amounts: int
    ) -> Reservation | None:
        """Count what is stored anyway: for so long, or each amount for one period."""
        mode: LimitMode = "hold" if period is None else "spend"
        limits = [
            Limit(key=self._key(name), maximum=_ANY, amount=amount, period=period, mode=mode)
            for name, amount in amounts.items()
        ]
        taken = await self._store.reserve(limits, lease=seconds)
        return None if isinstance(taken, Refused) else taken

    def _key(self, name: str) -> str:
        return f"room/{self._caller}/{name}"

    def _full(self, name: str) -> QuotaExceededError:
        return QuotaExceededError(_MESSAGES[name].format(most=getattr(self.most, name)))
