"""
Stores: state that several calls, and with some stores several processes, share.

Import from here to give a middleware such as a budget its store, or to write a store of your own.
"""

from typing import TYPE_CHECKING

from interlingua.lazy import names_of

if TYPE_CHECKING:
    from interlingua.api.session.store import SessionInfo
    from interlingua.client.stores.contract import Limit, Refused, Reservation, Store
    from interlingua.client.stores.memory import MemoryStore
    from interlingua.client.stores.postgres import PostgresStore
    from interlingua.client.stores.redis import RedisStore
    from interlingua.client.stores.sqlite import SQLiteStore

__all__ = [
    "Limit",
    "MemoryStore",
    "PostgresStore",
    "RedisStore",
    "Refused",
    "Reservation",
    "SQLiteStore",
    "SessionInfo",
    "Store",
]

if not TYPE_CHECKING:  # a type checker would accept any name if it saw `__getattr__`
    __getattr__ = names_of(
        __name__,
        {
            "interlingua.api.session.store": ("SessionInfo",),
            "interlingua.client.stores.contract": ("Limit", "Refused", "Reservation", "Store"),
            "interlingua.client.stores.memory": ("MemoryStore",),
            "interlingua.client.stores.postgres": ("PostgresStore",),
            "interlingua.client.stores.redis": ("RedisStore",),
            "interlingua.client.stores.sqlite": ("SQLiteStore",),
        },
    )
