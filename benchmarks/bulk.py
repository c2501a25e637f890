"""
Measures bulk jobs: their CPU above a bare loop, their memory, and what a `kill -9` costs.

    python benchmarks/bulk.py overhead [--rows 10000]
    python benchmarks/bulk.py memory [--rows 1000000]
    python benchmarks/bulk.py kills [--kills 100] [--rows 2000] [--ledger redis://…] [--processes 2]

The provider is the simulator in a process of its own, which counts what it received.
"""

import argparse
import asyncio
import collections
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from hashlib import blake2b
from pathlib import Path

from interlingua import Client, Request, bulk
from interlingua.bulk.answers import Answer
from interlingua.bulk.ledger.sqlite import SQLiteLedger
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.simulator.dsl import latency

MODEL = "openai_compatible:house-model"
PROMPT = "Genre of {title}?"
CONCURRENCY = 32
ROUNDS = 4


def serve(log):
    """Serve a simulator until stdin is closed; each prompt that arrives is a line of `log`."""
    with Path(log).open("a", buffering=1, encoding="utf-8") as file:

        def answer(request):
            file.write(f"{request.messages[-1].text}\n")
            return text("Novel.") + latency(first=0.01)

        with serve_in_thread(Simulator(answer, keep=1)) as server:
            print(server.url, flush=True)
            sys.stdin.read()


class Provider:
    """The simulator in another process."""

    def __init__(self, folder):
        self.log = folder / "received.txt"
        command = [sys.executable, __file__, "serve", str(self.log)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = self._process.stdout.readline().strip()

    def received(self):
        return self.log.read_text(encoding="utf-8").splitlines()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate()


def make_client(url):
    return Client(
        {"openai_compatible": HttpAdapter("openai_compatible", "k", base_url=f"{url}/v1")}
    )


def write_rows(path, count):
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(json.dumps({"id": f"r{number}", "title": f"Book {number}"}) + "\n")


# CPU.


async def bare(client, rows):
    """The shortest loop over a client that has at most so many calls at once."""
    lines = iter(rows)

    async def work():
        for line in lines:
            prompt = f"Genre of {json.loads(line)['title']}?"
            await client.complete(Request(model=MODEL, messages=prompt))

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))


async def ledger_alone(path, count):
    """The CPU of claims and answers, as many at once as a job has."""
    ledger = SQLiteLedger(path)
    await ledger.open()
    hashes = [blake2b(b"%d" % number, digest_size=16).digest() for number in range(count)]
    answer = Answer(status="done", key="r", text="Novel.", finish_reason="stop", cost=0.001)

    async def work():
        for start in range(0, count, CONCURRENCY):
            group = hashes[start : start + CONCURRENCY]
            await ledger.claim(group, 3)
            await asyncio.gather(*(ledger.put(each, answer) for each in group))

    used = await cpu_of(work())
    await ledger.close()
    return used


async def measure_overhead(count):
    """Rounds of the loop and of the job, in turn; the least of each, because others disturb."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = count // ROUNDS
        write_rows(folder / "in.jsonl", size)
        rows = (folder / "in.jsonl").read_text(encoding="utf-8").splitlines()
        plain, whole, alone = [], [], []
        with Provider(folder) as provider:
            async with make_client(provider.url) as client:
                await bare(client, rows[:200])
                await job(folder / "in.jsonl", folder / "warm.jsonl", client, limit=200)
                for number in range(ROUNDS):
                    plain.append(await cpu_of(bare(client, rows)))
                    output = folder / f"out-{number}.jsonl"
                    whole.append(await cpu_of(job(folder / "in.jsonl", output, client)))
                    alone.append(await ledger_alone(folder / f"alone-{number}.sqlite", size))
    least, most, ledger = (1e6 * min(each) / size for each in (plain, whole, alone))
    print(f"bare loop        {least:6.0f} µs of CPU a row")
    print(f"bulk.run         {most:6.0f} µs, {most - least:+.0f}")
    print(f"ledger alone     {ledger:6.0f} µs")


async def cpu_of(work):
    """The CPU that something has used in this process, in seconds."""
    begun = time.process_time()
    await work
    return time.process_time() - begun


def job(rows, output, client=None, **options):
    return bulk.run(
        rows, output, model=MODEL, prompt=PROMPT, client=client, concurrency=CONCURRENCY, **options
    )


# Memory.


class Instant:
    """An adapter that answers at once."""

    name = "instant"

    async def complete(self, request):
        from interlingua import Response

        return Response(model=request.model, provider="instant")

    def stream(self, request):
        raise NotImplementedError


async def measure_memory(count):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pad = "x" * 950
        with (folder / "in.jsonl").open("w", encoding="utf-8") as file:
            for number in range(count):
                file.write(f'{{"id": "r{number}", "title": "{number} {pad}"}}\n')
        client = Client({"instant": Instant()})
        begun = time.monotonic()
        report = await bulk.run(
            folder / "in.jsonl", folder / "out.jsonl", model="instant:m", prompt=PROMPT,
            client=client,
        )  # fmt: skip
        assert report.done == count, report
        seconds = time.monotonic() - begun
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count:,} rows of 1 kB: {most:.0f} MB at most, {seconds:.0f} s")


# Deaths.


def run_job(folder, url, ledger, number):
    """Run the job once, in this process."""

    async def main():
        async with make_client(url) as client:
            return await job(
                folder / "in.jsonl", folder / f"out-{number}.jsonl", client,
                id_column="id", ledger=ledger, volatile=True,
            )  # fmt: skip

    asyncio.run(main())


def start_job(folder, provider, ledger, number):
    command = [
        sys.executable,
        __file__,
        "job",
        str(folder),
        provider.url,
        ledger or "",
        str(number),
    ]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def measure_kills(count, kills, ledger, processes, seed):
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "in.jsonl", count)
        with Provider(folder) as provider:
            for kill in range(kills):
                running = [start_job(folder, provider, ledger, each) for each in range(processes)]
                wanted = len(provider.received()) + chance.randrange(1, 2 * count // kills + 2)
                while len(provider.received()) < wanted and running[0].poll() is None:
                    time.sleep(0.003)
                for each in running:
                    each.send_signal(signal.SIGKILL)
                    each.wait()
                print(f"\rkill {kill + 1}: {len(provider.received())} requests", end="", flush=True)
            running = [start_job(folder, provider, ledger, each) for each in range(processes)]
            codes = [each.wait() for each in running]
            received = collections.Counter(provider.received())
            outputs = [folder / f"out-{each}.jsonl" for each in range(processes)]
            written = [path.read_text(encoding="utf-8").splitlines() for path in outputs]
    assert codes == [0] * processes, codes
    for lines in written:
        rows = [json.loads(line) for line in lines]
        assert [row["id"] for row in rows] == [f"r{number}" for number in range(count)]
        assert {row["status"] for row in rows} == {"done"}
    total, deaths = sum(received.values()), kills * processes
    print(f"\n{deaths} deaths: {total} requests for {count} rows, {total - count} twice; at most "
          f"{count + deaths * CONCURRENCY} are allowed")  # fmt: skip
    assert len(received) == count
    assert total <= count + deaths * CONCURRENCY


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("subject", choices=("overhead", "memory", "kills", "serve", "job"))
    parser.add_argument("values", nargs="*")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--ledger")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.subject == "serve":
        serve(*given.values)
    elif given.subject == "job":
        folder, url, ledger, number = given.values
        run_job(Path(folder), url, ledger or None, number)
    elif given.subject == "overhead":
        asyncio.run(measure_overhead(given.rows or 10_000))
    elif given.subject == "memory":
        asyncio.run(measure_memory(given.rows or 1_000_000))
    else:
        measure_kills(given.rows or 2_000, given.kills, given.ledger, given.processes, given.seed)


if __name__ == "__main__":
    main()
