"""Jobs whose process is killed, at any moment, lose and repeat no more than what was under way."""

import collections
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from interlingua.simulator import Simulator, latency, serve_in_thread, text
from support.bulk_jobs import books
from support.ledgers import LEDGERS, new_ledger

ROWS, CONCURRENCY = 150, 8
JOB = """
import asyncio, sys
from interlingua import Client, bulk
from interlingua.providers.adapter import HttpAdapter

url, rows, output, ledger = sys.argv[1:]

async def main():
    adapter = HttpAdapter("openai_compatible", "k", base_url=url + "/v1")
    async with Client({"openai_compatible": adapter}) as client:
        await bulk.run(
            rows, output, model="openai_compatible:m", prompt="Genre of {title}?", client=client,
            id_column="id", concurrency=8, ledger=ledger or None, volatile=True,
        )

asyncio.run(main())
"""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs signals")


class Jobs:
    """Processes that run one job, each with an output of its own, before one provider."""

    def __init__(self, folder, ledger=""):
        self._folder = folder
        self._ledger = ledger
        self.received = []
        (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in books(ROWS)))

    def __enter__(self):
        def reply(request):
            self.received.append(request.messages[-1].text)
            return text("Novel.") + latency(first=0.02)

        self._serving = serve_in_thread(Simulator(reply))
        self._url = self._serving.__enter__().url
        return self

    def __exit__(self, *error):
        self._serving.__exit__(*error)

    def output(self, number):
        return self._folder / f"out-{number}.jsonl"

    def start(self, number=0):
        places = [self._url, self._folder / "in.jsonl", self.output(number), self._ledger]
        return subprocess.Popen([sys.executable, "-c", JOB, *map(str, places)])

    def kill_after(self, process, count):
        """Kill a process when so many more requests have come, at the latest at its end."""
        wanted = len(self.received) + count
        while len(self.received) < wanted and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def check(self, deaths, outputs=1):
        """Every row is there once, and not more was sent than what was under way at the deaths."""
        for number in range(outputs):
            lines = self.output(number).read_text(encoding="utf-8").splitlines()
            rows = [json.loads(line) for line in lines]
            assert [row["id"] for row in rows] == [row["id"] for row in books(ROWS)]
            assert {row["status"] for row in rows} == {"done"}
        counts = collections.Counter(self.received)
        assert len(counts) == ROWS
        assert sum(counts.values()) <= ROWS + deaths * CONCURRENCY


def test_a_killed_job_goes_on(tmp_path):
    """After each `kill -9` the same command goes on with what is left."""
    chance = random.Random(7)
    with Jobs(tmp_path) as jobs:
        for _ in range(4):
            jobs.kill_after(jobs.start(), chance.randrange(ROWS // 4))
        assert jobs.start().wait() == 0
        jobs.check(deaths=4)


@pytest.mark.parametrize("kind", LEDGERS)
def test_processes_of_one_ledger_are_killed(tmp_path, kind):
    """The others take the rows of a dead one at once, and all outputs are whole in the end."""
    chance = random.Random(kind)
    with new_ledger(kind, tmp_path) as ledger, Jobs(tmp_path, ledger) as jobs:
        for each in [jobs.start(0), jobs.start(1)]:
            jobs.kill_after(each, chance.randrange(1, ROWS // 4))
        first, second = jobs.start(0), jobs.start(1)
        jobs.kill_after(first, ROWS // 4)
        assert second.wait() == 0
        assert jobs.start(0).wait() == 0
        jobs.check(deaths=3, outputs=2)
