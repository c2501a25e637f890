"""Two processes on one store, a process that is killed, and a store that goes away."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interlingua.stores import RedisStore, SQLiteStore
from support.llama import eventually
from support.patience import PATIENCE
from support.redis_server import new_server

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "limits.py"
STORES = ("sqlite", "redis")

each_store = pytest.mark.parametrize("store", STORES)


def measure(*arguments):
    """
    Run the benchmark for a short time; it fails if a limit was passed.

    What it says about time is for a machine that has nothing else to do: here `--timeout` and
    `--patience` only tell an end from none.
    """
    if "redis" in arguments:
        new_server()  # skips the test if there is none
    command = [sys.executable, str(SCRIPT), "--windows", "2.2", "--period", "0.3", *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "PASS" in outcome.stdout


@each_store
def test_two_processes_admit_no_more_than_the_limit(store):
    """
    Two processes with 50 workers each never pass the limit of a window, for requests and tokens.

    They spend at most the budget and one reservation (field bugs 80 and 81).
    """
    measure("--store", store, "--timeout", "5", "requests", "tokens", "budget")


@pytest.fixture
def address(request, tmp_path):
    if request.param == "sqlite":
        yield str(tmp_path / "limits.db")
    else:
        server = new_server().start()
        yield server.url
        server.stop()


@pytest.mark.parametrize("address", STORES, indirect=True)
def test_a_killed_process_gives_its_leases_back(address):
    """After `kill -9` the places are free when the leases have ended, and not before."""
    workers, lease, later = 20, 60.0, 0.0
    options = {"clock": lambda: time.time() + later, "timeout": PATIENCE}
    kind = RedisStore if address.startswith("redis:") else SQLiteStore
    settings = (address, "crash", 600.0, 60.0, workers, "closed", PATIENCE, lease)

    async def used():
        store = kind(address, **options)
        try:
            return await store.used("rate:concurrency:model=openai:m")
        finally:
            await store.close()

    command = [sys.executable, str(SCRIPT), "--worker", json.dumps(settings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as victim:
        victim.stdout.readline()
        eventually(lambda: asyncio.run(used()) == workers)
        victim.kill()

    assert asyncio.run(used()) == workers
    later = lease
    assert asyncio.run(used()) == 0


def test_calls_are_sent_or_refused_as_declared_when_redis_goes_away():
    """Calls are sent or refused as declared, and none hangs (field bug 81)."""
    measure("--store", "redis", "--patience", "20", "outage")
