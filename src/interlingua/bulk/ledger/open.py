"""Finds the ledger for a path or a URL."""

from __future__ import annotations

from pathlib import Path

from interlingua.bulk.ledger.contract import LEASE, Ledger
from interlingua.client.stores.contract import POSTGRES_URLS, REDIS_URLS, SERVER_URLS, Store
from interlingua.client.stores.servers import open_server_store
from interlingua.spec.errors import ConfigurationError

_PATIENCE = 5.0  # seconds; workers are busy, and a row that waits is not lost


def open_ledger(place: str, *, lease: float = LEASE, volatile: bool = False) -> Ledger:
    """The ledger at a path (SQLite) or a URL (Redis or PostgreSQL)."""
    if place.startswith(REDIS_URLS):
        from interlingua.bulk.ledger.redis import RedisLedger

        return RedisLedger(place, lease=lease, volatile=volatile)
    if place.startswith(POSTGRES_URLS):
        from interlingua.bulk.ledger.postgres import PostgresLedger

        return PostgresLedger(place, lease=lease, volatile=volatile)
    if "://" in place:
        scheme = place.partition("://")[0]
        raise ConfigurationError(
            f"There is no ledger for {scheme!r}. Use a path, redis:// or postgresql://."
        )
    from interlingua.bulk.ledger.sqlite import SQLiteLedger

    return SQLiteLedger(Path(place), lease=lease)


def is_file(place: str) -> bool:
    """Whether a ledger is a file, which only the processes of one machine share."""
    return not place.startswith(SERVER_URLS)


def limits_store(place: str) -> Store:
    """The store in which all workers of a ledger share their limits."""
    if is_file(place):
        from interlingua.client.stores.sqlite import SQLiteStore

        return SQLiteStore(f"{place}-limits", timeout=_PATIENCE)
    return open_server_store(place, timeout=_PATIENCE, prefix="interlingua-bulk")
