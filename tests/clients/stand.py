"""
Gateways as real processes, one before each upstream, and the strict simulator behind them.

    with Stand() as stand:
        stand.gateways  # {"Chat": "http://127.0.0.1:…", …}

Every gateway answers the names `gpt-*`, `claude-*` and `gemini-*` with the one model behind it, and
needs `KEY`. It keeps responses. `environment` says all of it to a program in another environment or
language.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

from model import answer

from interlingua.gateway.keys import hash_key
from interlingua.simulator import Simulator, serve_in_thread

ROOT = Path(__file__).resolve().parents[2]
KEY = "il_a-key-of-the-client-tests"
UPSTREAM_KEY = "a-key-of-the-upstream"
MODELS = {
    "Chat": ("openrouter", "anthropic/claude-haiku-4.5", "/v1"),
    "Responses": ("openai", "gpt-5.2", "/v1"),
    "Messages": ("anthropic", "claude-haiku-4-5", ""),
    "Gemini": ("gemini", "gemini-2.5-pro", ""),
}
"""Each upstream by its API: the provider, its model, and the path of its base URL."""

PATIENCE = 60
"""Seconds that a gateway has to start, on a busy machine."""


class Stand:
    """The simulator and the gateways, until the end of the `with` block."""

    def __init__(self) -> None:
        self._exits = ExitStack()
        self.gateways: dict[str, str] = {}

    def __enter__(self) -> Self:
        with self._exits:
            folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory()))
            started = {}
            for name in MODELS:
                simulator = Simulator(partial(answer, name), key=UPSTREAM_KEY, strict=True)
                upstream = self._exits.enter_context(serve_in_thread(simulator))
                started[name] = _start(folder, name, upstream.url)
                self._exits.callback(_end, started[name])
            self.gateways = {name: _url_of(name, each) for name, each in started.items()}
            self._exits = self._exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    @property
    def environment(self) -> dict[str, str]:
        """The variables for a program that uses the gateways."""
        described = {"key": KEY, "gateways": self.gateways}
        return {"INTERLINGUA_STAND": json.dumps(described)}


def _start(folder: Path, name: str, upstream: str) -> subprocess.Popen[str]:
    """A gateway before this upstream."""
    provider, model, path = MODELS[name]
    target = f"{provider}:{model}"
    config = folder / f"{name}.json"  # JSON is YAML too
    settings = {
        "adapters": {provider: {"base_url": f"{upstream}{path}", "api_key": UPSTREAM_KEY}},
        "gateway": {
            "port": 0,
            "keys": {"tests": {"hash": hash_key(KEY)}},
            "responses": {"keep": "1h"},
            "routes": {"gpt-*": target, "claude-*": target, "gemini-*": target},
        },
    }
    config.write_text(json.dumps(settings), "utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "INTERLINGUA_HOME": str(folder / name),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "interlingua", "serve", "--json", "--config", str(config)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def _url_of(name: str, process: subprocess.Popen[str]) -> str:
    """The address that a gateway prints when it is ready."""
    assert process.stdout is not None
    too_late = threading.Timer(PATIENCE, process.kill)
    too_late.start()
    printed = ""
    for line in process.stdout:  # JSON on several lines
        printed += line
        if match := re.search(r'"url": "([^"]+)"', printed):
            too_late.cancel()
            return match[1]
    too_late.cancel()
    raise RuntimeError(f"The gateway before {name} did not start: exit code {process.wait()}.")


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
