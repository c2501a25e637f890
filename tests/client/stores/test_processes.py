"""Stores that several processes share: what each one takes counts for all."""

import asyncio
import subprocess
import sys
import textwrap
import time
from uuid import uuid4

import pytest

from interlingua.stores import (
    Limit,
    PostgresStore,
    RedisStore,
    Refused,
    Reservation,
    SQLiteStore,
)
from support.patience import PATIENCE
from support.postgres_server import shared_database
from support.redis_server import redis_url


class Shared:
    """A place that stores of several processes use."""

    def __init__(self, kind, folder):
        self._class, self._place, self._options = SQLiteStore, str(folder / "s"), {}
        if kind == "redis":
            self._class, self._place = RedisStore, redis_url()
        if kind == "postgres":
            self._class, self._place = PostgresStore, shared_database()
        if kind != "sqlite":
            self._options = {"prefix": uuid4().hex, "timeout": PATIENCE}

    def open(self, **options):
        return self._class(self._place, **self._options, **options)

    def program(self, code):
        """A process with a store as `store`; `code` is the body of a coroutine."""
        head = (
            "import asyncio\nfrom interlingua.stores import *\n"
            f"store = {self._class.__name__}({self._place!r}, **{self._options!r})\n"
        )
        body = textwrap.indent(textwrap.dedent(code), "    ")
        return subprocess.Popen(
            [sys.executable, "-c", f"{head}async def work():\n{body}\nasyncio.run(work())"],
            stdout=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def shared(request, tmp_path):
    return Shared(request.param, tmp_path)


def test_processes_share_limits(shared):
    """Two processes with 20 tasks each never take more than the maximum together."""
    code = """
        wanted = [Limit(key="k", maximum=150, period=3600), Limit(key="t", maximum=1e9, amount=5)]
        admitted = 0
        async def one():
            nonlocal admitted
            for _ in range(10):
                taken = await store.reserve(wanted)
                admitted += isinstance(taken, Reservation)
        await asyncio.gather(*(one() for _ in range(20)))
        print(admitted)
    """
    with shared.program(code) as one, shared.program(code) as other:
        admitted = [int(process.communicate()[0]) for process in (one, other)]

    assert sum(admitted) == 150
    assert asyncio.run(shared.open().used("t")) == 750


def test_a_killed_process_gives_back_its_leases(shared):
    """What it had taken counts until its lease ends."""
    code = """
        await store.reserve([Limit(key="k", maximum=1, mode="hold")], lease=60)
        print("taken", flush=True)
        await asyncio.sleep(600)
    """
    with shared.program(code) as process:
        process.stdout.readline()
        process.kill()
    wanted = [Limit(key="k", maximum=1, mode="hold")]

    async def work():
        later = 0.0
        store = shared.open(clock=lambda: time.time() + later)
        refused = await store.reserve(wanted)
        later = refused.retry_after
        return refused, await store.reserve(wanted)

    refused, taken = asyncio.run(work())

    assert isinstance(refused, Refused)
    assert refused.retry_after <= 60
    assert isinstance(taken, Reservation)
