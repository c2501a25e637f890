"""
For tests of programs that use this library: a pytest fixture that records and replays calls.

In `conftest.py`:

    pytest_plugins = ["interlingua.testing"]

A test that takes `cassette` gets a transport. It replays `cassettes/<module>/<test>.json` beside
the test file (the test's class before its name, if it has one); with `--cassettes=record` (or
`INTERLINGUA_CASSETTES=record`) it makes real calls and writes that file, with `auto` it does so
for files that are not there.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import pytest

from interlingua.spec.contracts import Transport
from interlingua.spec.errors import ConfigurationError
from interlingua.transport.aiohttp_transport import default_transport
from interlingua.transport.cassette import RecordingTransport, ReplayTransport

__all__ = [
    "MODES",
    "VARIABLE",
    "Mode",
    "cassette",
    "cassette_mode",
    "cassette_path",
    "file_name",
    "open_cassette",
    "pytest_addoption",
]

Mode: TypeAlias = Literal["replay", "record", "auto"]
MODES: tuple[str, ...] = get_args(Mode)
_LONGEST = 120  # characters of a test's name in a file's
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
    inside = [
        node for node in request.node.listchain() if isinstance(node, (pytest.Class, pytest.Item))
    ]
    return module.parent / "cassettes" / module.stem / file_name(".".join(n.name for n in inside))


def file_name(test: str) -> str:
    """
    A file's name for a test, of no other test.

    What file systems may refuse is replaced; the name then ends in a digest of the true one.
    """
    name = re.sub(r"[^a-zA-Z0-9_.\[\]-]+", "_", test)[:_LONGEST]
    if name != test:
        name += f"-{hashlib.sha256(test.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return f"{name}.json"


@pytest.fixture
def cassette(cassette_path: Path, cassette_mode: str) -> Transport:
    """A transport for this test: pass it to a client or an adapter."""
    return open_cassette(cassette_path, cassette_mode)
