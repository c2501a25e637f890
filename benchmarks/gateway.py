"""
What `interlingua serve` adds to the upstream behind it, on one core.

    .venv/bin/python benchmarks/gateway.py [--quick] [--litellm PYTHON] [--portkey FOLDER]

The upstream is a process that sends ready-made replies (`canned.py`), the gateway another one with
one core to itself, and the client this one. CPU time is what the kernel says the gateway's
processes have used, the best of several rounds. What is added to the time of a request is the
median of one client's requests through the gateway less the median of those that go to the
upstream directly, in turns; of all rounds the median. Linux only.

`--litellm` names the Python of an environment with `litellm[proxy]`, `--portkey` a folder in which
`npm install @portkey-ai/gateway` was run; they are measured in the same run, with Chat Completions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import aiohttp
from canned import Reply, serving
from codec import text_events, to_bytes
from contenders import PROMPT
from report import judge, verdict

from client import packets_of, whole_reply

AT_ONCE = 50
EVENTS = 200
HELD = 300
PACE = 0.005
PATIENCE = 120.0  # seconds until a gateway that does not start is given up; no measure of speed
ADAPTERS = {
    "openai_chat": ("openai_compatible", "/v1"),
    "openai_responses": ("openai", "/v1"),
    "anthropic_messages": ("anthropic", ""),
    "gemini_generate": ("gemini", ""),
}
"""The provider that speaks each dialect, and the end of its address."""
WAYS = {
    "chat to chat": ("openai_chat", "openai_chat"),
    "messages to chat": ("anthropic_messages", "openai_chat"),
    "responses to messages": ("openai_responses", "anthropic_messages"),
    "gemini to responses": ("gemini_generate", "openai_responses"),
}
"""The dialects of the client and of the upstream."""
CPU_LIMIT = 0.5  # ms of a request
STREAM_LIMIT = 3.0  # ms of a stream
ADDED_LIMIT = 1.0  # ms
WORKER_LIMIT = 70.0  # MB
HELD_LIMIT = 40.0  # kB of a stream


class Front(NamedTuple):
    """A gateway that runs, or the upstream itself."""

    url: str
    pid: int = 0
    key: str = "none"
    headers: Mapping[str, str] = {}


def replies() -> dict[str, Reply]:
    found: dict[str, Reply] = {}
    for name in ADAPTERS:
        text = packets_of(to_bytes(name, text_events(EVENTS)))
        found[f"{name}.whole"] = whole_reply(name)
        found[f"{name}.burst"] = Reply(text, is_stream=True)
        found[f"{name}.paced"] = Reply(text, is_stream=True, pace=PACE)
        found[f"{name}.held"] = Reply(text[:2], is_stream=True, is_held=True)
    return found


def question(dialect: str, model: str, *, stream: bool) -> tuple[str, dict[str, Any]]:
    """The path and the body of a request."""
    message = {"role": "user", "content": PROMPT}
    if dialect == "gemini_generate":
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        body: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]}
        return f"/v1beta/models/{model}:{verb}", body
    body = {"model": model, "stream": stream}
    if dialect == "openai_responses":
        return "/v1/responses", {**body, "input": [message]}
    if dialect == "anthropic_messages":
        return "/v1/messages", {**body, "max_tokens": 100, "messages": [message]}
    return "/v1/chat/completions", {**body, "messages": [message]}


# The gateways, each with one core.


def settle(pid: int) -> None:
    """Leave one core to a process and its children, and the others to the rest."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        for each in family(pid):
            os.sched_setaffinity(each, {cores[0]})


def family(pid: int) -> list[int]:
    """The threads of a process and of all that it has started."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found.append(int(thread.name))
            for child in (thread / "children").read_text().split():
                found += family(int(child))
    return found


def spent(pid: int) -> float:
    """Seconds of CPU of a process and of all that it has started."""
    total = 0
    for each in family(pid):
        with suppress(OSError):
            total += int(Path(f"/proc/{each}/schedstat").read_text().split()[0])
    return total / 1e9


def resident(pid: int) -> int:
    """Bytes of the largest process: a gateway with one worker has one that serves."""
    sizes = [0]
    for each in family(pid):
        with suppress(OSError):
            sizes.append(int(Path(f"/proc/{each}/statm").read_text().split()[1]))
    return max(sizes) * os.sysconf("SC_PAGESIZE")


@contextmanager
def started(*command: str, cwd: Path | None = None, **variables: str) -> Iterator[Any]:
    """A process, until the end of the block."""
    environment = {**os.environ, **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with subprocess.Popen(  # noqa: S603 -- commands of this file
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=cwd
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()


@contextmanager
def ours(server: str, folder: Path) -> Iterator[Front]:
    """`interlingua serve`, with a route for each upstream and each reply."""
    adapters, routes = {}, {}
    for dialect, (provider, end) in ADAPTERS.items():
        for reply in ("whole", "burst", "paced", "held"):
            name = f"{dialect}-{reply}"
            base = f"{server}/{dialect}.{reply}{end}"
            adapters[name] = {"type": provider, "api_key": "none", "base_url": base}
            routes[name] = f"{name}:model-1"
    file = folder / "interlingua.yaml"
    document = {"adapters": adapters, "gateway": {"port": 0, "routes": routes}}
    file.write_text(json.dumps(document))
    command = (sys.executable, "-m", "interlingua", "serve", "--config", str(file), "--json")
    with started(*command, XDG_DATA_HOME=str(folder), INTERLINGUA_HOME=str(folder)) as process:
        told = read_json(process.stdout)
        settle(process.pid)
        yield Front(told["url"], process.pid, told["key"])


@contextmanager
def litellm(python: str, server: str, folder: Path) -> Iterator[Front]:
    """LiteLLM's proxy, with one worker."""
    models = [
        {
            "model_name": f"openai_chat-{reply}",
            "litellm_params": {
                "model": "openai/model-1",
                "api_base": f"{server}/openai_chat.{reply}/v1",
                "api_key": "none",
            },
        }
        for reply in ("whole", "burst", "paced", "held")
    ]
    file, port = folder / "litellm.yaml", free_port()
    file.write_text(json.dumps({"model_list": models}))
    program = str(Path(python).with_name("litellm"))
    command = (program, "--config", str(file), "--port", str(port), "--num_workers", "1")
    # It refuses to start without a key of its own, and is asked here without one.
    weak = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true", "PYTHONPATH": ""}
    with started(*command, **weak) as process:
        yield ready(Front(f"http://127.0.0.1:{port}", process.pid))


@contextmanager
def portkey(folder: str, server: str) -> Iterator[Front]:
    """Portkey's gateway; the model names the upstream, so its headers name the reply."""
    port = free_port()
    script = "node_modules/@portkey-ai/gateway/build/start-server.js"
    command = ("node", script, f"--port={port}", "--headless")
    with started(*command, cwd=Path(folder)) as process:
        headers = {"x-portkey-provider": "openai", "x-portkey-custom-host": f"{server}/{{}}/v1"}
        yield ready(Front(f"http://127.0.0.1:{port}", process.pid, headers=headers))


def read_json(lines: Iterable[bytes]) -> dict[str, Any]:
    """The first object that a program prints, on one line or on several."""
    text = b""
    for line in lines:
        text += line
        with suppress(ValueError):
            found: dict[str, Any] = json.loads(text)
            return found
    raise SystemExit(f"the gateway did not start: {text!r}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def ready(front: Front) -> Front:
    """The gateway, once it accepts connections."""
    host, port = front.url.removeprefix("http://").split(":")
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise SystemExit(f"{front.url} did not start") from None
            time.sleep(0.2)
        else:
            settle(front.pid)
            return front


# The client.


class Asker:
    """Sends one kind of request to one server, as often as it is asked."""

    def __init__(
        self, session: aiohttp.ClientSession, front: Front, dialect: str, upstream: str, reply: str
    ) -> None:
        is_stream = reply != "whole"
        path, body = question(dialect, f"{upstream}-{reply}", stream=is_stream)
        bare = "" if front.pid else f"/{upstream}.{reply}"
        self._url = f"{front.url}{bare}{path}"
        self._body = json.dumps(body).encode()
        self._session = session
        self._headers = {
            "content-type": "application/json",
            "authorization": f"Bearer {front.key}",
            "x-goog-api-key": front.key,
            "anthropic-version": "2023-06-01",
            **{name: text.format(f"{upstream}.{reply}") for name, text in front.headers.items()},
        }
        if dialect != "gemini_generate":  # it is recognised by its header
            del self._headers["x-goog-api-key"]
        self._least = EVENTS * 20 if is_stream and reply != "held" else 100

    async def ask(self) -> None:
        async with self._post() as reply:
            data = await reply.read()
            if reply.status != 200 or len(data) < self._least:
                raise SystemExit(f"{self._url}: {reply.status} {data[:300]!r}")

    async def hold(self) -> object:
        """A stream whose first bytes have come."""
        reply = await self._post()
        return reply, await reply.content.readany()

    def _post(self) -> Any:
        return self._session.post(self._url, data=self._body, headers=self._headers)


async def at_once(asker: Asker, count: int) -> None:
    """Ask so often, with as many requests under way at any time as are asked for at once."""

    async def work() -> None:
        for _ in range(count // AT_ONCE):
            await asker.ask()

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def cost(front: Front, asker: Asker, rounds: int, count: int) -> float:
    """Milliseconds of CPU of the gateway for one request."""
    await at_once(asker, AT_ONCE)
    costs: list[float] = []
    for _ in range(rounds):
        before = spent(front.pid)
        await at_once(asker, count)
        costs.append((spent(front.pid) - before) / count)
    return min(costs) * 1e3


async def added(asker: Asker, bare: Asker, rounds: int) -> tuple[float, float]:
    """Milliseconds that the gateway adds to one request after another, and those without it."""
    differences: list[float] = []
    direct: list[float] = []
    for _ in range(rounds):
        times: dict[Asker, list[float]] = {asker: [], bare: []}
        for _ in range(100):
            for each, found in times.items():
                start = time.perf_counter()
                await each.ask()
                found.append(time.perf_counter() - start)
        direct.append(median(times[bare]))
        differences.append(median(times[asker]) - direct[-1])
    return median(differences) * 1e3, median(direct) * 1e3


async def held(front: Front, asker: Asker) -> float:
    """Kilobytes of an open stream that says nothing."""
    streams = [await asker.hold() for _ in range(20)]  # what is paid once
    before = resident(front.pid)
    streams += [await asker.hold() for _ in range(HELD)]
    grown = resident(front.pid) - before
    for reply, _ in streams:  # type: ignore[misc] # pairs of `hold`
        reply.close()
    return grown / HELD / 1e3


# The tables.


async def measure(
    name: str, front: Front, server: str, ways: Mapping[str, tuple[str, str]], *, is_quick: bool
) -> None:
    rounds, count = (3, 500) if is_quick else (10, 1_000)
    limited = judge if name == "interlingua" else lambda _what, _amount, _limit: ""
    print(f"\n{name}")
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        def make(place: Front, way: tuple[str, str], reply: str) -> Asker:
            return Asker(session, place, *way, reply)

        def show(what: str, amount: float, unit: str, limit: float | None, more: str = "") -> None:
            print(f"  {what:72}{amount:8.2f} {unit:3} {limited(what, amount, limit)}{more}")

        # First, while the process has no freed memory to use again.
        amount = await held(front, make(front, next(iter(ways.values())), "held"))
        show(f"memory of an idle stream, one of {HELD}", amount, "kB", HELD_LIMIT)
        for way, pair in ways.items():
            asker = make(front, pair, "whole")
            amount = await cost(front, asker, rounds, count)
            show(f"{way}: CPU of a request, {AT_ONCE} at once", amount, "ms", CPU_LIMIT)
            for reply, how in (("burst", "as fast as can be"), ("paced", f"{PACE:g} s apart")):
                asker = make(front, pair, reply)
                amount = await cost(front, asker, rounds, 100 if is_quick else 200)
                limit = STREAM_LIMIT if reply == "burst" else None
                show(f"{way}: CPU of {EVENTS} events, 4 in a packet, {how}", amount, "ms", limit)
        show("memory of a worker", resident(front.pid) / 1e6, "MB", WORKER_LIMIT)
        for way, pair in ways.items():
            # A bare request has the body of the client's dialect; the upstream reads none.
            more, direct = await added(
                make(front, pair, "whole"), make(Front(server), pair, "whole"), rounds
            )
            what = f"{way}: added to the median, one at a time"
            show(what, more, "ms", ADDED_LIMIT, f"   without the gateway {direct:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--litellm", help="the Python of an environment with litellm[proxy]")
    parser.add_argument("--portkey", help="a folder with @portkey-ai/gateway in node_modules")
    options = parser.parse_args()
    with serving(replies()) as server, tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        fronts: dict[str, Callable[[], Any]] = {"interlingua": lambda: ours(server, folder)}
        if options.litellm:
            fronts["LiteLLM"] = lambda: litellm(options.litellm, server, folder)
        if options.portkey:
            fronts["Portkey"] = lambda: portkey(options.portkey, server)
        for name, make in fronts.items():
            ways = WAYS if name == "interlingua" else {"chat to chat": WAYS["chat to chat"]}
            with make() as front:
                asyncio.run(measure(name, front, server, ways, is_quick=options.quick))
    print(verdict())


if __name__ == "__main__":
    main()
