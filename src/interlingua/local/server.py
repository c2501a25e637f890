"""llama.cpp's own server on loopback, started at first use."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
import subprocess
import sys
import weakref
from collections import deque
from pathlib import Path
from threading import Event, Lock, Thread, Timer
from typing import IO, Self

from interlingua.local import host
from interlingua.local.model import SMOLLM2, find_model
from interlingua.spec.errors import ConfigurationError, RequestTimeoutError

_LOG = logging.getLogger(__name__)
_ERROR_LINE = re.compile(r"^[\d.]+ E (.*)$")
_STOP_WITHIN = 5.0


class LocalServer:
    """
    A server that answers Chat Completions, Responses and Anthropic Messages on loopback.

    `start` may be called any number of times, from any thread, and after a fork: each process
    has its own server. What llama.cpp says goes to this module's logger at DEBUG.
    """

    def __init__(
        self,
        gguf: str | Path | None = None,
        *,
        context: int = 8192,
        slots: int = 4,
        threads: int | None = None,
        template: str = "",
        embeddings: bool = False,
        start_timeout: float = 120.0,
    ) -> None:
        self.gguf = gguf
        self.model: str = SMOLLM2.name if gguf is None else Path(gguf).stem
        """The name it gives its model; the name in a request is not looked at."""
        self.context = context
        """Tokens that all conversations in work at one time may have together."""
        self.slots = slots
        """Requests that are answered at one time; more wait."""
        # Its threads spin while they wait for each other: on a busy machine more is slower.
        self.threads: int = threads or max(1, min(4, (os.cpu_count() or 1) // 2))
        self.template = template
        """A chat template (Jinja) in place of the model's own."""
        self.embeddings = embeddings
        """Whether `/v1/embeddings` works; text then comes more slowly."""
        self.start_timeout = start_timeout
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize[..., LocalServer] | None = None
        self._url = ""
        _SERVERS.add(self)

    def start(self) -> str:
        """The base URL of the running server, without `/v1`; blocks while the model loads."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._stop()
                self._begin()
            return self._url

    def stop(self) -> None:
        """End the server, and with it every answer under way."""
        with self._lock:
            self._stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _begin(self) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ConfigurationError(
                "llama.cpp is not installed, which local models need; "
                "run `pip install 'interlingua[local]'`"
            )
        gguf = find_model(self.gguf)
        process = subprocess.Popen(  # noqa: S603 # our own program
            [sys.executable, "-P", host.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # a buffer has a lock, which a fork may copy while it is held
        )
        self._process = process
        # It ends with this object, and at exit, if nobody ends it before.
        self._finalizer = weakref.finalize(self, _end, process)
        try:
            self._url = self._wait_for_address(process, gguf)
        except BaseException:
            process.kill()
            self._stop()
            raise
        _LOG.debug("%s is served at %s", gguf, self._url)

    def _wait_for_address(self, process: subprocess.Popen[bytes], gguf: Path) -> str:
        said: deque[str] = deque(maxlen=50)
        reader = Thread(target=_log_lines, args=(process.stderr, said), daemon=True)
        reader.start()
        late = Event()

        def give_up() -> None:
            late.set()
            process.kill()

        limit = Timer(self.start_timeout, give_up)
        limit.daemon = True
        limit.start()
        try:
            if url := _ask(process, self._settings(gguf)):
                return url
        finally:
            limit.cancel()
        self._stop()
        reader.join()
        if late.is_set():
            raise RequestTimeoutError(
                f"llama.cpp did not load {gguf} within {self.start_timeout:g} s; "
                "give it more time with start_timeout="
            )
        raise ConfigurationError(
            f"llama.cpp could not load {gguf}: {_reason(said)} (exit {process.returncode})"
        )

    def _settings(self, gguf: Path) -> dict[str, object]:
        return {
            "sys_path": [str(entry) for entry in sys.path],
            "gguf": str(gguf),
            "name": self.model,
            "template": self.template,
            "verbosity": 3 if _LOG.isEnabledFor(logging.DEBUG) else 1,
            "context": self.context,
            "slots": self.slots,
            "threads": self.threads,
            "embeddings": self.embeddings,
        }

    def _stop(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._process, self._finalizer, self._url = None, None, ""

    def _forget(self) -> None:
        """In a forked child: the server is the parent's; let go of our copies of its pipes."""
        self._lock = Lock()  # another thread of the parent may have held it
        if self._process is not None and self._finalizer is not None:
            self._finalizer.detach()
            _close(self._process)
            self._process.returncode = 0  # not ours to wait for
        self._process, self._finalizer, self._url = None, None, ""


def local_server(gguf: str | Path | None = None) -> LocalServer:
    """The server of this process for this model, the same for every caller."""
    key = None if gguf is None else str(gguf)
    with _SHARED_LOCK:
        if key not in _SHARED:
            _SHARED[key] = LocalServer(gguf)
        return _SHARED[key]


def _ask(process: subprocess.Popen[bytes], settings: dict[str, object]) -> str:
    """Send the settings; the address that comes back, or nothing if the process ends first."""
    assert process.stdin is not None  # noqa: S101 # both are pipes; for the type checker
    assert process.stdout is not None  # noqa: S101
    line = json.dumps(settings).encode() + b"\n"
    try:
        while line:
            line = line[process.stdin.write(line) :]
    except OSError:  # it died at once; what it said tells why
        return ""
    return process.stdout.readline().decode().strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    _close(process)
    try:
        process.wait(_STOP_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):  # the one who reads stderr closes it
        if pipe is not None:
            pipe.close()


def _log_lines(pipe: IO[bytes], said: deque[str]) -> None:
    rest = b""
    with pipe:
        while chunk := pipe.read(1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            for raw in lines:
                line = raw.decode("utf-8", "replace").rstrip()
                said.append(line)
                _LOG.debug("%s", line)


def _reason(said: deque[str]) -> str:
    """The first error of llama.cpp, which is the cause of those after it, or else the last line."""
    for line in said:
        if found := _ERROR_LINE.match(line):
            return found[1]
    return said[-1] if said else "it said nothing"


_SERVERS: weakref.WeakSet[LocalServer] = weakref.WeakSet()
_SHARED: dict[str | None, LocalServer] = {}
_SHARED_LOCK = Lock()


def _after_fork() -> None:
    global _SHARED_LOCK  # noqa: PLW0603 # the old one may be held by a thread that is not here
    _SHARED_LOCK = Lock()
    for server in list(_SERVERS):
        server._forget()  # noqa: SLF001 # of this module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
