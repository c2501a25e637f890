"""Pace and limits: fewer rows at once after a 429, a clean stop, and no cold start in a limit."""

import subprocess
import sys
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from interlingua.bulk.pace import Pace
from interlingua.middleware import CircuitBreaker
from interlingua.simulator import Simulator, error, serve_in_thread, text
from support.bulk_jobs import answer, books


@given(st.integers(1, 64), st.lists(st.booleans(), max_size=300))
def test_places_stay_between_one_and_the_most(most, refusals):
    """A refusal halves the places, an answer adds a part of one; there is always one."""
    pace = Pace(most)
    for is_refused in refusals:
        before = pace.places
        if is_refused:
            pace.slow_down(pace.decreases)
            assert pace.places == max(1, before // 2) or pace.places == max(1, (before + 1) // 2)
        else:
            pace.succeed()
            assert before <= pace.places <= before + 1
        assert 1 <= pace.places <= most
    for _ in range(most * most + 1):
        pace.succeed()
    assert pace.places == most


def test_refusals_of_one_round_count_once():
    """Requests that were under way at the first refusal tell nothing new."""
    pace = Pace(32)
    for _ in range(20):
        pace.slow_down(0)
    assert pace.places == 16


def test_fewer_rows_are_under_way_after_a_refusal(make_bench):
    """Places are halved at a 429 and grow again; the row is answered at last."""
    turns = iter([error(429, "slow down")])
    bench = make_bench(lambda request: next(turns, None) or answer(request))
    places = []
    report = bench.run(
        books(60),
        concurrency=8,
        max_retries=0,
        on_progress=lambda progress: places.append(progress.places),
    )

    assert report.done == 60
    assert min(places) == 4
    assert places[-1] > 4
    assert all(after - before in (-4, 0, 1) for before, after in pairwise([8, *places]))


def test_an_open_circuit_stops_the_job(make_bench):
    """Rows that were not sent stay pending, and a later run sends them."""
    turns = iter([error(500, "broken")] * 3)
    bench = make_bench(lambda request: next(turns, None) or answer(request))
    guarded = bench.client.with_middleware(CircuitBreaker(failures=3, cooldown=600))
    report = bench.run(books(30), concurrency=1, max_retries=0, attempts=1, client=guarded)

    assert "failed too often" in report.stopped
    assert (report.done, report.failed, report.pending) == (0, 3, 27)
    final = bench.run(books(30), attempts=1)
    assert (final.done, final.failed, final.pending) == (27, 3, 0)


COLD = """
import asyncio, sys
from interlingua import Client
from interlingua.bulk import Job, Worker, WorkerConfig
from interlingua.middleware import RateLimit
from interlingua.providers.adapter import HttpAdapter
from interlingua.stores import MemoryStore

url, ledger = sys.argv[1:]
loaded = []

class Watched:  # not a MemoryStore, of which limits take without asking
    def __init__(self):
        self._store = MemoryStore()

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def reserve(self, limits, **options):
        loaded.append(set(sys.modules))
        return await self._store.reserve(limits, **options)

async def main():
    limit = RateLimit(requests_per_minute=100, store=Watched())
    adapter = HttpAdapter("openai_compatible", "k", base_url=url + "/v1")
    client = Client({"openai_compatible": adapter}, middleware=[limit])
    job = Job(model="openai_compatible:m", prompt="{title}")
    worker = Worker(WorkerConfig(job=job, ledger=ledger), client=client)
    row = await worker.one({"row_key": "1", "title": "Emma"})
    assert row["status"] == "done", row
    for name in sorted(set(sys.modules) - loaded[0]):
        print(name)
    await worker.close()
    await client.close()

asyncio.run(main())
"""
OUTWARD = ("interlingua.transport", "interlingua.prepare", "interlingua.client", "httptools")


def test_a_worker_is_ready_before_it_takes_a_place(tmp_path):
    """When the first place in a limit is taken, all that sends a request is loaded."""
    with serve_in_thread(Simulator(text("Novel."))) as server:
        command = [sys.executable, "-c", COLD, server.url, str(tmp_path / "ledger.sqlite")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    late = done.stdout.split()
    outward = [name for name in late if name.startswith(OUTWARD) or name.endswith(".request")]
    assert outward == []
