"""A gateway on uvicorn, in a thread or as a program, and the vendors' clients before it."""

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import anthropic
import openai
import uvicorn
from google import genai

from interlingua.client.client import Client
from interlingua.gateway.config import Gateway, guarded
from interlingua.gateway.editions import Editions
from interlingua.gateway.keys import Key, hash_key, make_key
from interlingua.gateway.server import listen, make_application, url_of
from interlingua.gateway.source import Source
from interlingua.serving.client_application import Caller, Routes
from support.patience import PATIENCE

SECRET = b"a secret of the tests only"
_MAIN = (sys.executable, "-c", "from interlingua.cli import main; raise SystemExit(main())")


class Front(NamedTuple):
    """A gateway that runs."""

    url: str
    key: str
    keys: Mapping[str, str] = MappingProxyType({})
    """Of the callers, by name."""

    def openai(self, **settings):
        settings = {"api_key": self.key, "max_retries": 0, **settings}
        return openai.OpenAI(base_url=f"{self.url}/v1", **settings)

    def anthropic(self, **settings):
        settings = {"api_key": self.key, "max_retries": 0, **settings}
        return anthropic.Anthropic(base_url=self.url, **settings)

    def gemini(self, key=None):
        return genai.Client(api_key=key or self.key, http_options={"base_url": self.url})


class FileFront(NamedTuple):
    """A gateway that runs, and its application."""

    url: str
    key: str
    app: Editions


@contextlib.contextmanager
def gateway(
    adapters, routes=None, *, models=None, direct=True, others=(), callers=None, **settings
):
    """
    A gateway before these adapters; its key may use `models`.

    `others` are more keys; `callers` are names with what they may use, in place of one caller.
    """
    callers = callers or {"tests": models}
    keys = {name: make_key() for name in callers}
    client = guarded(Client(adapters))
    known = [Key(hash_key(keys[name]), Caller(name, allowed)) for name, allowed in callers.items()]
    given = Gateway(client, Routes(routes, direct=direct), (*known, *others), **settings)
    with listen("127.0.0.1", 0) as bound, served(make_application(given, SECRET), bound):
        key = next(iter(keys.values()))
        yield Front(f"http://127.0.0.1:{bound.getsockname()[1]}", key, keys)


@contextlib.contextmanager
def gateway_of_file(folder, text):
    """A gateway with this file, and the key of `Program`; `replace` reads another text."""
    path = Path(folder) / "interlingua.yaml"
    path.write_text(text, encoding="utf-8")
    source = Source(secret=SECRET, environ={}, path=str(path)).renew({})
    app = Editions(source)
    with listen("127.0.0.1", 0) as bound, served(app, bound):
        yield FileFront(url_of(bound), Program.key, app)


@contextlib.contextmanager
def served(app, bound):
    """The application on uvicorn, in a thread."""
    config = uvicorn.Config(app, http="httptools", loop="asyncio", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


def open_socket(url):
    """A plain connection to a server."""
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def wait_until(condition):
    """Wait until it holds."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return value


class Program:
    """`interlingua serve --config` with a file, as a process of its own."""

    key = make_key()
    """A key of every file that `text` makes."""

    def __init__(self, folder, text, *options):
        self.path = Path(folder) / "interlingua.yaml"
        self.write(text)
        self.process = subprocess.Popen(
            [*_MAIN, "serve", "--port", "0", "--config", str(self.path), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "INTERLINGUA_HOME": str(folder)},
        )
        self.errors = []
        self._lines = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self._lines.put)),
            threading.Thread(target=self._read, args=(self.process.stderr, self.errors.append)),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self):
        line = self._lines.get(timeout=PATIENCE)
        if not line:
            self.__exit__()
            raise AssertionError(self.errors)
        self.url = line.split()[2].rstrip(".")
        return self

    def __exit__(self, *_):
        for pid in [self.process.pid, *self.workers()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()

    def _read(self, stream, put):
        for line in stream:
            put(line)
        put("")

    def write(self, text):
        """Write the file."""
        self.path.write_text(text, encoding="utf-8")

    def workers(self):
        """The ids of the workers."""
        pid = self.process.pid
        with contextlib.suppress(FileNotFoundError):
            return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
        return []

    def send(self, sign):
        """Send a signal to the program."""
        self.process.send_signal(sign)

    def said(self, text):
        """Wait until this was written to stderr."""
        wait_until(lambda: any(text in line for line in self.errors) or self._is_over())
        assert any(text in line for line in self.errors), self.errors

    def _is_over(self):
        return self.process.poll() is not None and self.errors[-1:] == [""]

    def wait(self):
        """Wait for its end; returns the exit status."""
        return self.process.wait(PATIENCE)


def file_text(upstream, more="", routes="default: openai:gpt-5.2"):
    """A registry file for a simulator, with the key of the tests."""
    return f"""
adapters:
  openai: {{api_key: k, base_url: "{upstream}/v1"}}
gateway:
  keys: {{tests: {{hash: "{hash_key(Program.key)}"}}}}
  routes: {{{routes}}}
{more}"""


def open_stream(front, model="any", **fields):
    """Ask for a stream of Chat Completions on a connection of its own."""
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    data = json.dumps({**body, **fields}).encode()
    connection = open_socket(front.url)
    connection.sendall(
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        f"authorization: Bearer {front.key}\r\ncontent-length: {len(data)}\r\n\r\n".encode()
        + data
    )
    return connection


def read_rest(connection):
    """Everything that still comes; what came before a reset, if there is one."""
    parts = []
    with connection, contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)
