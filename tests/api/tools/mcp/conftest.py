"""Real MCP servers."""

import pathlib
import subprocess
import sys

import pytest

from interlingua.api.tools.mcp.servers import MCPStdioServer

TESTS = pathlib.Path(__file__).resolve().parents[3] / "support"


@pytest.fixture
def plain(tmp_path):
    """Makes a small server of the older protocol, which starts at once."""

    def make(*args, **env):
        variables = {"PID_FILE": str(tmp_path / "pid"), **env}
        return MCPStdioServer(
            command=sys.executable, args=[str(TESTS / "mcp_plain.py"), *args], env=variables
        )

    return make


@pytest.fixture
def deaf(tmp_path):
    """A server that answers nothing and does not end by itself."""
    return MCPStdioServer(
        command="sh", args=["-c", "echo $$ > pid; exec sleep 600"], cwd=str(tmp_path)
    )


@pytest.fixture
def quick_kill(monkeypatch):
    """A server that does not end by itself is killed soon, and not after two seconds."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)


@pytest.fixture
def process(tmp_path):
    """The id of that server's process: None if it has ended."""

    def find():
        file = tmp_path / "pid"
        pid = file.read_text(encoding="utf-8").strip() if file.exists() else ""
        # On a slow machine it may have been killed before it wrote its id.
        return int(pid) if pid and pathlib.Path(f"/proc/{pid}").exists() else None

    return find


@pytest.fixture(scope="session")
def full():
    """A server made with the `mcp` package, over stdio."""

    def make(kind="stdio", **env):
        return MCPStdioServer(
            command=sys.executable, args=[str(TESTS / "mcp_server.py"), kind], env=env
        )

    return make


def start_http():
    return subprocess.Popen(
        [sys.executable, str(TESTS / "mcp_server.py"), "http"], stdout=subprocess.PIPE, text=True
    )


@pytest.fixture(scope="session")
def url():
    """The same over streamable HTTP, running."""
    with start_http() as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"
        finally:
            server.terminate()


@pytest.fixture
def mortal_url():
    """The same once more, for a test that ends it."""
    with start_http() as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"
        finally:
            server.terminate()
