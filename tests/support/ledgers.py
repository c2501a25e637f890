"""Ledgers of every kind, each on a server of this machine."""

from contextlib import contextmanager

from support import postgres_server, redis_server

LEDGERS = ("sqlite", "redis", "postgres")


@contextmanager
def new_ledger(kind, folder):
    """Where a new ledger is, which is empty."""
    if kind == "sqlite":
        yield str(folder / "ledger.sqlite")
    elif kind == "postgres":
        yield postgres_server.new_database()
    else:
        server = redis_server.new_server().start()  # of its own: one server is one ledger
        try:
            yield server.url
        finally:
            server.stop()
