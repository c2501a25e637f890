"""
A pytest plugin for programs that use this library: scripted models, and recorded HTTP.

In `conftest.py`:

    pytest_plugins = ["interlingua.testing"]

The fixture `scripted_client` makes clients whose models answer by a script, in memory. The fixture
`simulator` serves such a script on loopback, for programs that read keys and addresses from the
environment, in this process or another.

The fixture `cassette` is a transport. It replays `cassettes/<module>/<test>.json` next to the test
file; `<test>` starts with the name of the test's class, if it has one. With `--cassettes=record`
(or `INTERLINGUA_CASSETTES=record`) it sends real requests and writes that file. With `auto` it
records only if the file does not exist.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

try:
    import pytest
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "`interlingua.testing` needs pytest. Install it with `pip install pytest`.", name=error.name
    ) from error

from interlingua.api.run import clients
from interlingua.spec.contracts import Transport
from interlingua.spec.errors import ConfigurationError
from interlingua.transport.cassette import RecordingTransport, ReplayTransport
from interlingua.transport.http1.transport import default_transport

if TYPE_CHECKING:  # imported by the fixtures that need it
    from interlingua.simulator import Answer, Script, ScriptedClient, Server

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
    "scripted_client",
    "simulator",
]

Mode: TypeAlias = Literal["replay", "record", "auto"]
"""What a cassette does: replay a file, record it, or record it only if it does not exist."""
MODES: tuple[str, ...] = get_args(Mode)
"""The modes."""
_MAX_NAME = 120  # characters of the test's name in the file name
VARIABLE = "INTERLINGUA_CASSETTES"
"""The variable that sets the mode if the option `--cassettes` does not."""


def open_cassette(
    path: str | os.PathLike[str], mode: str = "replay", inner: Transport | None = None
) -> Transport:
    """Return a transport that replays the file, or records it through `inner`, as `mode` says."""
    if mode not in MODES:
        raise ConfigurationError(f"Unknown cassette mode {mode!r}. Use one of {', '.join(MODES)}.")
    if mode == "replay" or (mode == "auto" and Path(path).exists()):
        return ReplayTransport(path)
    return RecordingTransport(inner or default_transport(), path)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--cassettes`."""
    parser.addoption(
        "--cassettes",
        choices=MODES,
        default=None,
        help="replay recorded requests (default), record them, or record only missing files (auto)",
    )


@pytest.fixture
def cassette_mode(request: pytest.FixtureRequest) -> str:
    """Return the mode for cassettes; override this fixture to choose another for some tests."""
    chosen = request.config.getoption("--cassettes", default=None)
    return str(chosen or os.environ.get(VARIABLE) or "replay")


@pytest.fixture
def cassette_path(request: pytest.FixtureRequest) -> Path:
    """Return the file of this test; override this fixture to share or move the file."""
    module = Path(request.path)
    nodes = [
        node for node in request.node.listchain() if isinstance(node, (pytest.Class, pytest.Item))
    ]
    return module.parent / "cassettes" / module.stem / file_name(".".join(n.name for n in nodes))


def file_name(test: str) -> str:
    """
    Return a unique file name for a test.

    Characters that file systems may refuse are replaced, and long names are cut; such a name
    ends with a digest of the original name.
    """
    name = re.sub(r"[^a-zA-Z0-9_.\[\]-]+", "_", test)[:_MAX_NAME]
    if name != test:
        name += f"-{hashlib.sha256(test.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return f"{name}.json"


@pytest.fixture
def cassette(cassette_path: Path, cassette_mode: str) -> Transport:
    """Return the transport for this test; pass it to a client or an adapter."""
    return open_cassette(cassette_path, cassette_mode)


@pytest.fixture
def scripted_client(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedClient]:
    """
    Return `interlingua.simulator.scripted`, whose client becomes the default of the test.

    So the program under test need not take a client.
    """
    from interlingua.simulator.scripted import NAME, scripted

    def make(
        *turns: Answer, dialect: str | None = None, default_provider: str = NAME
    ) -> ScriptedClient:
        client = scripted(*turns, dialect=dialect, default_provider=default_provider)
        monkeypatch.setattr(clients, "_default_client", client)
        return client

    return make


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    """
    Return a function that serves a script on loopback until the test ends.

    The function returns the server. It sets the keys and addresses of OpenAI, Anthropic and Gemini
    in the environment, and resets the default client. Pass a `Script` to look at what it received.
    """
    from interlingua.simulator import Simulator, serve_in_thread
    from interlingua.simulator.__main__ import BASES

    def start(*answers: Answer | Script) -> Server:
        server = servers.enter_context(serve_in_thread(Simulator(*answers)))
        for name, variable, path in BASES:
            monkeypatch.setenv(f"{name.upper()}_API_KEY", "simulated-key")
            monkeypatch.setenv(variable, f"{server.url}{path}")
        monkeypatch.setattr(clients, "_default_client", None)
        return server

    with ExitStack() as servers:
        yield start
