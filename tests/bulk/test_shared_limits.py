"""Limits of two processes that share a ledger: they hold for both together."""

import collections
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from interlingua.simulator import Simulator, latency, serve_in_thread, text
from support.bulk_jobs import books
from support.ledgers import new_ledger

JOB = """
import asyncio, json, sys
from interlingua import Client, OpenAIAdapter
from interlingua.bulk.loop import BulkRun

url, rows, output, ledger, options = sys.argv[1:]

def confirm(plan):
    print("ready", flush=True)
    return bool(sys.stdin.readline())

async def main():
    async with Client({"openai": OpenAIAdapter("k", base_url=url)}) as client:
        job = BulkRun(
            rows, output, model="openai:gpt-5.2", prompt="Genre of {title}?", client=client,
            ledger=ledger, volatile=True, concurrency=4, max_tokens=20, **json.loads(options),
        )
        report = await job.run(confirm)
    print(json.dumps([report.done, report.cost, report.stopped]))

asyncio.run(main())
"""


class Provider:
    """A simulator that notes when each request came, and runs jobs before it."""

    def __init__(self, folder, server, received):
        self._folder = folder
        self._url = server.url
        self.received = received

    def start(self, number, rows, ledger, **options):
        """Start a job in a process of its own, with rows and an output of its own."""
        path = self._folder / f"in-{number}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        output = self._folder / f"out-{number}.jsonl"
        places = [self._url, path, output, ledger, json.dumps(options)]
        command = [sys.executable, "-c", JOB, *map(str, places)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def let_go(jobs):
    """Let jobs send when all of them are about to."""
    for job in jobs:
        assert job.stdout.readline() == "ready\n"
    for job in jobs:
        job.stdin.write("\n")
        job.stdin.flush()


@contextmanager
def provider(folder):
    """A provider whose answers take a moment, so that two jobs are under way together."""
    received = []

    def reply(request):
        received.append((time.monotonic(), request.messages[-1].text))
        return text("Novel.") + latency(first=0.01)

    with serve_in_thread(Simulator(reply)) as server:
        yield Provider(folder, server, received)


def test_two_processes_share_a_budget(tmp_path):
    """On one SQLite ledger both together spend what the budget allows; a third run adds nothing."""
    ledger = tmp_path / "ledger.sqlite"
    rows = books(400)
    with provider(tmp_path) as model:
        jobs = [
            model.start(number, half, ledger, max_usd=0.004)
            for number, half in enumerate((rows[:200], rows[200:]))
        ]
        let_go(jobs)
        ends = [json.loads(job.communicate()[0]) for job in jobs]
        last = model.start(2, rows[:200], ledger, max_usd=0.004)
        let_go([last])
        done, cost, stopped = json.loads(last.communicate()[0])
    assert 0.003 < max(end[1] for end in ends) <= 0.004  # of the ledger that both share
    assert cost <= 0.004
    assert "budget" in stopped.lower()
    assert done < 200
    assert max(collections.Counter(prompt for _, prompt in model.received).values()) == 1


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_two_processes_share_a_window(tmp_path, kind):
    """No minute has more requests than the limit, counted where they arrive."""
    limit = 20
    rows = books(120)
    with new_ledger(kind, tmp_path) as ledger, provider(tmp_path) as model:
        halves = (rows[:60], rows[60:])
        jobs = [
            model.start(number, half, ledger, requests_per_minute=limit)
            for number, half in enumerate(halves)
        ]
        try:
            let_go(jobs)
            while len(model.received) < limit:
                assert [job.poll() for job in jobs] == [None, None]
                time.sleep(0.01)
            time.sleep(1.0)  # more would come now if they could
        finally:
            for job in jobs:
                job.kill()
                job.communicate()
    times = [moment for moment, _ in model.received]
    assert max(sum(start <= each < start + 60 for each in times) for start in times) == limit
