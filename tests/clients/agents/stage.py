"""What an agent runs against: a scripted upstream, the gateway as a process, and a tap between."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from interlingua.gateway.keys import hash_key, make_key
from interlingua.simulator import Simulator, serve_in_thread

UPSTREAMS = {
    "Chat": ("openrouter", "anthropic/claude-sonnet-4.5", "/v1", {}),
    "Responses": ("openai", "gpt-5.2", "/v1", {}),
    "Messages": ("anthropic", "claude-sonnet-4-5", "", {}),
    "Gemini": ("gemini", "gemini-3-pro-preview", "", {}),
}
"""By name: the provider, the model, the path of its address, and more options of its adapter."""

_asked = re.compile(rb"POST (\S+) HTTP/1\.1\r\n").findall  # the body before it has no line break
_is_for_answer = re.compile(r"/(completions|responses|messages)(\?|$)|enerateContent").search


class Switch:
    """One server for all runs; the application behind it changes."""

    def __init__(self):
        self.app = Simulator()

    async def __call__(self, *asgi):
        await self.app(*asgi)


class Tap:
    """Passes bytes between an agent and the gateway, and keeps what the agent has sent."""

    def __init__(self, port):
        self._port = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self._sent: list[bytearray] = []
        self._received: list[bytearray] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def forget(self):
        """Begin a new run."""
        self._sent, self._received = [], []

    @property
    def traffic(self):
        """The bytes of each connection: what the agent sent, and what it got."""
        return [
            (bytes(sent), bytes(got)) for sent, got in zip(self._sent, self._received, strict=True)
        ]

    @property
    def asked(self):
        """How many answers the agent has asked for."""
        paths = [path.decode() for each in list(self._sent) for path in _asked(bytes(each))]
        return sum(1 for path in paths if _is_for_answer(path))

    def close(self):
        self._server.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                for source, target, log in ((near, far, self._sent), (far, near, self._received)):
                    kept = bytearray()
                    log.append(kept)
                    pump = threading.Thread(target=_pump, args=(source, target, kept), daemon=True)
                    pump.start()


def _pump(source, target, kept):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            kept += data
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


class Gateway:
    """`interlingua serve` before one upstream, as a process of its own."""

    def __init__(self, folder: Path, upstream: str, address: str):
        provider, model, path, more = UPSTREAMS[upstream]
        self.key = make_key()
        adapter = {"api_key": "k", "base_url": f"{address}{path}", **more}
        file = {
            "adapters": {provider: adapter},
            "gateway": {
                "port": 0,
                "keys": {"agent": {"hash": hash_key(self.key)}},
                "routes": {"*": f"{provider}:{model}"},
            },
        }
        folder.mkdir(parents=True)
        (folder / "interlingua.yaml").write_text(json.dumps(file))
        program = [sys.executable, "-m", "interlingua", "serve", "--json", "--config"]
        self._process = subprocess.Popen(
            [*program, str(folder / "interlingua.yaml")],
            stdout=subprocess.PIPE,
            env={**os.environ, "INTERLINGUA_HOME": str(folder / "home")},
            text=True,
        )
        self.tap = Tap(int(self._read_address().rpartition(":")[2]))

    def _read_address(self):
        printed = ""
        for line in self._process.stdout:
            printed += line
            if line.startswith("}"):
                return json.loads(printed)["url"]
        raise RuntimeError(f"The gateway did not start: {printed}")

    def close(self):
        self.tap.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


class Stage:
    """An upstream with a gateway before it for each dialect, made on first use."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._switch = Switch()
        self._stack = contextlib.ExitStack()
        self._upstream = self._stack.enter_context(serve_in_thread(self._switch))
        self._gateways: dict[str, Gateway] = {}
        self._spoiled: set[str] = set()
        self._made = 0

    def show(self, simulator: Simulator) -> None:
        """Let this simulator answer."""
        self._switch.app = simulator

    def renew(self, upstream: str, *, is_fresh: bool) -> None:
        """End the gateway before this upstream, if it has met a fault or is about to."""
        if (is_fresh or upstream in self._spoiled) and upstream in self._gateways:
            self._gateways.pop(upstream).close()
        self._spoiled.discard(upstream)
        if is_fresh:
            self._spoiled.add(upstream)

    def gateway(self, upstream: str) -> Gateway:
        """The gateway before this upstream."""
        if upstream not in self._gateways:
            self._made += 1
            folder = self._folder / f"gateway{self._made}"
            self._gateways[upstream] = Gateway(folder, upstream, self._upstream.url)
        gateway = self._gateways[upstream]
        gateway.tap.forget()
        return gateway

    def close(self):
        for gateway in self._gateways.values():
            gateway.close()
        self._stack.close()


class Ended(NamedTuple):
    """How a program ended."""

    code: int | None
    """None if it had to be killed."""
    output: str


def run_program(arguments, *, folder, environment, is_over) -> Ended:
    """Run a program in a group of its own, which is killed at the end, and when `is_over` says."""
    process = subprocess.Popen(
        arguments,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    code = None
    output = None
    try:
        while output is None and not is_over():
            with contextlib.suppress(subprocess.TimeoutExpired):
                output, _ = process.communicate(timeout=0.5)
                code = process.returncode
    finally:
        _kill_group(process)
    if output is None:
        output, _ = process.communicate()
    return Ended(code, output.decode("utf-8", "replace"))


class Clock:
    """Whether an agent has had its time: so long in all, and so long after its first request."""

    def __init__(self, tap: Tap, seconds: float, whole: float):
        self._tap = tap
        self._seconds = seconds
        self._end = time.monotonic() + whole
        self._begun: float | None = None

    def is_over(self):
        now = time.monotonic()
        if self._begun is None and self._tap.asked:
            self._begun = now
        return now > self._end or (self._begun is not None and now > self._begun + self._seconds)


def _kill_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
