"""The stores of a gateway, which outlive its configurations: what they hold is not in the file."""

from __future__ import annotations

from pathlib import Path

from interlingua.client.config import Section
from interlingua.client.stores.contract import SERVER_URLS, Store
from interlingua.client.stores.memory import MemoryStore
from interlingua.client.stores.servers import open_server_store
from interlingua.client.stores.sqlite import SQLiteStore
from interlingua.spec.errors import ConfigurationError

MEMORY = "memory"
"""The place of what ends with the process."""
_TIMEOUT = 2.0  # seconds: a kept response may have megabytes
_PREFIX = "interlingua-gateway"


class Stores:
    """The stores that are open, by their place."""

    def __init__(self, folder: Path, *, is_shared: bool = False) -> None:
        self._folder = folder
        self.is_shared: bool = is_shared
        """Whether other processes use them too."""
        self._stores: dict[str, Store] = {}

    def open(self, place: str) -> Store:
        """The store at a place: `memory`, the URL of Redis or PostgreSQL, or a SQLite file."""
        known = self._stores.get(place)
        if known is None:
            known = self._stores[place] = self._open(place)
        return known

    def open_for(self, section: Section, place: str) -> Store:
        """The store that a section of the file names as `store`; an error has its line."""
        try:
            return self.open(place)
        except ConfigurationError as error:
            raise section.error("store", error.message) from None

    async def close(self) -> None:
        """Close them all."""
        while self._stores:
            await self._stores.popitem()[1].close()

    def _open(self, place: str) -> Store:
        if place == MEMORY:
            if self.is_shared:
                raise ConfigurationError(
                    "Several workers cannot share a store in memory. Name a file as `store`."
                )
            return MemoryStore()
        if place.startswith(SERVER_URLS):
            return open_server_store(place, timeout=_TIMEOUT, prefix=_PREFIX)
        if "://" in place:
            scheme = place.partition("://")[0]
            raise ConfigurationError(
                f"There is no store for {scheme!r}. Use `memory`, the path of a SQLite file, "
                "redis:// or postgresql://."
            )
        return SQLiteStore(self._folder / Path(place).expanduser())
