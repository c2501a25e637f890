"""A llama.cpp server on loopback, started on first use."""

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

from interlingua.local.model import SMOLLM2, find_model
from interlingua.spec.errors import ConfigurationError, RequestTimeoutError

_LOG = logging.getLogger(__name__)
_ERROR_LINE = re.compile(r"^[\d.]+ E (.*)$")
_STOP_TIMEOUT = 5.0
_HOST = Path(__file__).with_name("host.py")  # the program of the child process


class LocalServer:
    """
    A server for Chat Completions, Responses and Anthropic Messages on loopback.

    `start` may be called repeatedly, from any thread, and after a fork: each process has its own
    server. The log of llama.cpp goes to this module's logger at level DEBUG.
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
        """The model name in responses; the server ignores the model name in a request."""
        self.context = context
        """The context size in tokens, shared by all concurrent requests."""
        self.slots = slots
        """The number of concurrent requests; further requests wait."""
        # llama.cpp's threads wait for each other in busy loops: on a busy machine, more threads
        # are slower.
        self.threads: int = threads or max(1, min(4, (os.cpu_count() or 1) // 2))
        self.template = template
        """A chat template (Jinja) that replaces the model's own."""
        self.embeddings = embeddings
        """Whether to serve `/v1/embeddings`; this makes text generation slower."""
        self.start_timeout = start_timeout
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize[..., LocalServer] | None = None
        self._url = ""
        _SERVERS.add(self)

    def start(self) -> str:
        """Start the server if needed; returns its base URL without `/v1`. Blocks during loading."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._stop()
                self._launch()
            return self._url

    def stop(self) -> None:
        """Stop the server; requests in progress fail."""
        with self._lock:
            self._stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _launch(self) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ConfigurationError(
                "Local models need llama.cpp, which is not installed. "
                "Run `pip install 'interlingua[local]'`."
            )
        gguf = find_model(self.gguf)
        process = subprocess.Popen(  # noqa: S603 # our own program
            [sys.executable, "-P", str(_HOST)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # a buffer has a lock, and a fork could copy it while it is locked
        )
        self._process = process
        # Stops the server when this object is garbage collected, or at exit.
        self._finalizer = weakref.finalize(self, _stop_process, process)
        try:
            self._url = self._wait_for_address(process, gguf)
        except BaseException:
            process.kill()
            self._stop()
            raise
        _LOG.debug("serving %s at %s", gguf, self._url)

    def _wait_for_address(self, process: subprocess.Popen[bytes], gguf: Path) -> str:
        lines: deque[str] = deque(maxlen=50)
        reader = Thread(target=_log_lines, args=(process.stderr, lines), daemon=True)
        reader.start()
        timed_out = Event()

        def kill() -> None:
            timed_out.set()
            process.kill()

        timer = Timer(self.start_timeout, kill)
        timer.daemon = True
        timer.start()
        try:
            if url := _configure(process, self._settings(gguf)):
                return url
        finally:
            timer.cancel()
        self._stop()
        reader.join()
        if timed_out.is_set():
            raise RequestTimeoutError(
                f"Timed out: llama.cpp did not load {gguf} within {self.start_timeout:g} s. "
                "Pass a larger start_timeout=."
            )
        raise ConfigurationError(
            f"The model {gguf} cannot be loaded by llama.cpp: {_reason(lines)} "
            f"(exit code {process.returncode})."
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
        """In a forked child: close our copies of the pipes; the server belongs to the parent."""
        self._lock = Lock()  # another thread of the parent may have held the old one
        if self._process is not None and self._finalizer is not None:
            self._finalizer.detach()
            _close(self._process)
            self._process.returncode = 0  # so that Popen does not wait for it
        self._process, self._finalizer, self._url = None, None, ""


def local_server(gguf: str | Path | None = None, *, embeddings: bool = False) -> LocalServer:
    """
    Return the shared server of this process for this model.

    Embeddings have a server of their own, because they make text generation slower.
    """
    key = (None if gguf is None else str(gguf), embeddings)
    with _SHARED_LOCK:
        if key not in _SHARED:
            _SHARED[key] = LocalServer(gguf, embeddings=embeddings)
        return _SHARED[key]


def server_for(model: str, server: LocalServer, *, embeddings: bool = False) -> LocalServer:
    """
    The server of the model with this name: `server`; the path of a GGUF file has its own.

    With `embeddings`, it is the server that has them.

    The beginning of a name is enough (`smollm2`), and an empty name means the model of `server`.
    `ConfigurationError` for any other name: the answer would come from a model that was not named.
    """
    if model.lower().endswith(".gguf") and model != str(server.gguf):
        return local_server(find_model(model), embeddings=embeddings)
    loaded, name = server.model.lower(), model.lower().removesuffix(".gguf")
    if not name or f"{loaded}-".startswith(f"{Path(name).name}-"):
        if embeddings and not server.embeddings:
            return local_server(server.gguf, embeddings=True)
        return server
    raise ConfigurationError(
        f"The local model is {server.model!r}, not {model!r}. Use local:{server.model}, or "
        "local:path/to/model.gguf for another model."
    )


def _configure(process: subprocess.Popen[bytes], settings: dict[str, object]) -> str:
    """Send the settings, and return the server's address; empty if the process ends first."""
    assert process.stdin is not None  # noqa: S101 # for the type checker: both are pipes
    assert process.stdout is not None  # noqa: S101
    line = json.dumps(settings).encode() + b"\n"
    try:
        while line:
            line = line[process.stdin.write(line) :]
    except OSError:  # the process has already ended; its log has the reason
        return ""
    return process.stdout.readline().decode().strip()


def _stop_process(process: subprocess.Popen[bytes]) -> None:
    _close(process)
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):  # the thread that reads stderr closes that one
        if pipe is not None:
            pipe.close()


def _log_lines(pipe: IO[bytes], lines: deque[str]) -> None:
    rest = b""
    with pipe:
        while chunk := pipe.read(1 << 16):
            *complete, rest = (rest + chunk).split(b"\n")
            for raw in complete:
                line = raw.decode("utf-8", "replace").rstrip()
                lines.append(line)
                _LOG.debug("%s", line)


def _reason(lines: deque[str]) -> str:
    """The first error in the log, which usually causes the others; else the last line."""
    for line in lines:
        if error := _ERROR_LINE.match(line):
            return error[1]
    return lines[-1] if lines else "no error message"


_SERVERS: weakref.WeakSet[LocalServer] = weakref.WeakSet()
_SHARED: dict[tuple[str | None, bool], LocalServer] = {}
_SHARED_LOCK = Lock()


def _after_fork() -> None:
    global _SHARED_LOCK  # noqa: PLW0603 # a thread of the parent may have held the old one
    _SHARED_LOCK = Lock()
    for server in list(_SERVERS):
        server._forget()  # noqa: SLF001 # same module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
