"""Stores for tests: with a clock that a test moves, and with blocking methods."""

import asyncio
from uuid import uuid4

from interlingua.stores import MemoryStore, PostgresStore, RedisStore, SQLiteStore
from support.patience import PATIENCE
from support.postgres_server import shared_database
from support.redis_server import redis_url


class Clock:
    """Seconds since the epoch, moved by hand; kept as microseconds, so that sums are exact."""

    def __init__(self):
        self._now = 1_800_000_000_000_000

    def __call__(self):
        return self._now / 1e6

    def advance(self, seconds):
        self._now += round(seconds * 1e6)


class Blocking:
    """The methods of a store as plain functions, all in one event loop."""

    def __init__(self, store, clock):
        self.store = store
        self.clock = clock
        self._runner = asyncio.Runner()

    def __getattr__(self, name):
        method = getattr(self.store, name)
        return lambda *values, **options: self._runner.run(method(*values, **options))

    def used_of_all(self, buckets):
        """What counts for each key and period, asked at once."""

        async def ask():
            return await asyncio.gather(*(self.store.used(*bucket) for bucket in buckets))

        return self._runner.run(ask())

    def advance(self, seconds):
        """Let time pass for limits."""
        self.clock.advance(seconds)

    def pass_ttl(self, seconds):
        """Let time pass for values, too; in a server, each is told to end so much earlier."""
        self.clock.advance(seconds)
        if isinstance(self.store, RedisStore):
            from redis import Redis

            with Redis.from_url(redis_url()) as server:
                for key in server.keys(f"{self.store._prefix}*"):
                    left = server.pttl(key)
                    if left >= 0:
                        server.pexpire(key, left - round(seconds * 1000))

    def stop(self):
        self._runner.run(self.store.close())
        self._runner.close()


def _memory(clock, _folder):
    return MemoryStore(clock=clock)


def _sqlite(clock, folder):
    return SQLiteStore(folder / "store.sqlite", clock=clock)


def _redis(clock, _folder):
    return RedisStore(redis_url(), clock=clock, prefix=uuid4().hex, timeout=PATIENCE)


def _postgres(clock, _folder):
    return PostgresStore(shared_database(), clock=clock, prefix=uuid4().hex, timeout=PATIENCE)


KINDS = {"memory": _memory, "sqlite": _sqlite, "redis": _redis, "postgres": _postgres}
"""Makes a store, by its kind."""
