"""Finds the store for the URL of a server."""

from __future__ import annotations

from interlingua.client.stores.contract import REDIS_URLS, Store


def open_server_store(url: str, *, timeout: float, prefix: str) -> Store:
    """The store at a URL that begins as one of `SERVER_URLS`: Redis or PostgreSQL."""
    if url.startswith(REDIS_URLS):
        from interlingua.client.stores.redis import RedisStore

        return RedisStore(url, timeout=timeout, prefix=prefix)
    from interlingua.client.stores.postgres import PostgresStore

    return PostgresStore(url, timeout=timeout, prefix=prefix)
