"""
For tests of programs that use this library: a pytest fixture that records and replays.

In `conftest.py`:

    pytest_plugins = ["interlingua.testing"]

A test that takes `cassette` gets a transport. It replays `cassettes/<module>/<test>.json` beside
the test file; with `--cassettes=record` (or `INTERLINGUA_CASSETTES=record`) it makes real calls
and writes that file, with `auto` it does so for files that are not there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import pytest

from interlingua.spec.contracts import Transport
from interlingua.spec.errors import ConfigurationError
from interlingua.transport.cassette import RecordingTransport, ReplayTransport
from interlingua.transport.http import default_transport

Mode: TypeAlias = Literal["replay", "record", "auto"]
MODES: tuple[str, ...] = get_args(Mode)
VARIABLE = "INTERLINGUA_CASSETTES"


def open_cassette(
    path: str | os.PathLike[str], mode: str = "replay", inner: Transport | None = None
) -> Transport:
    """A transport that replays the file or records it through `inner`."""
    if mode not in MODES:
        raise ConfigurationError(f"no cassette mode {mode!r}; use one of {', '.join(MODES)}")
    if mode == "replay" or (mode == "auto" and Path(path).exists()):
        return ReplayTransport(path)
    return RecordingTransport(inner or default_transport(), path)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--cassettes`."""
    parser.addoption(
        "--cassettes",
        choices=MODES,
        default=None,
        help="replay recorded model calls (default), record them, or record what is missing",
    )


@pytest.fixture
def cassette_mode(request: pytest.FixtureRequest) -> str:
    """How cassettes are used in this run; override it to choose for some tests."""
    chosen = request.config.getoption("--cassettes", default=None)
    return str(chosen or os.environ.get(VARIABLE) or "replay")


@pytest.fixture
def cassette_path(request: pytest.FixtureRequest) -> Path:
    """The file of this test; override it to share one or to keep it elsewhere."""
    module = Path(request.path)
    name = re.sub(r"[^\w.-]+", "_", request.node.name).strip("_")
    return module.parent / "cassettes" / module.stem / f"{name}.json"


@pytest.fixture
def cassette(cassette_path: Path, cassette_mode: str) -> Transport:
    """A transport for this test: pass it to a client or an adapter."""
    return open_cassette(cassette_path, cassette_mode)
