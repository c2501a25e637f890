"""
Stores: state that several calls, and with some stores several processes, share.

Import from here to give a middleware such as a budget its store, or to write a store of your own.
"""

from interlingua.api.session.store import SessionInfo
from interlingua.client.stores.contract import Limit, Refused, Reservation, Store
from interlingua.client.stores.memory import MemoryStore
from interlingua.client.stores.redis import RedisStore
from interlingua.client.stores.sqlite import SQLiteStore

__all__ = [
    "Limit",
    "MemoryStore",
    "RedisStore",
    "Refused",
    "Reservation",
    "SQLiteStore",
    "SessionInfo",
    "Store",
]
