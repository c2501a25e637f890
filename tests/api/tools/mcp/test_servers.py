"""Where MCP servers are, and what of it may be shown."""

import io
import sys

import pytest
from mcp import StdioServerParameters

from interlingua.api.tools.mcp.servers import (
    MCPHttpServer,
    MCPStdioServer,
    _stderr,
    name_of,
    open_transport,
    secrets_of,
)
from interlingua.spec.errors import ConfigurationError

KEY = "key-very-secret"
STDIO = MCPStdioServer(
    command="/usr/bin/server", args=["--token", KEY], env={"API_KEY": KEY, "DEBUG": "1"}
)
HTTP = MCPHttpServer(
    url=f"https://user:{KEY}@mcp.example.com/s/{KEY}/mcp?k={KEY}",
    headers={"Authorization": f"Bearer {KEY}"},
)


@pytest.mark.parametrize("server", [STDIO, HTTP], ids=["stdio", "http"])
def test_nothing_secret_is_shown(server):
    """Neither repr nor name has what may be a key: arguments, values, path and query."""
    shown = f"{server} {server!r} {name_of(server)} {server.__rich_repr__()}"

    assert KEY not in shown


def test_what_is_shown():
    """The program or the host, and the names of variables and headers."""
    assert repr(STDIO) == "MCPStdioServer(command='/usr/bin/server', env=('API_KEY', 'DEBUG'))"
    assert repr(HTTP) == "MCPHttpServer(host='mcp.example.com', headers=('Authorization',))"


@pytest.mark.parametrize(
    ("server", "name"),
    [
        (STDIO, "server"),
        (HTTP, "mcp.example.com"),
        ("http://127.0.0.1:8000/mcp", "127.0.0.1"),
        (StdioServerParameters(command="npx"), "npx"),
        (io.StringIO(), "StringIO"),
    ],
)
def test_names(server, name):
    """Messages call a server by its program or host."""
    assert name_of(server) == name


def test_secrets():
    """Values and their words are secrets, except short ones."""
    assert secrets_of(STDIO) == {KEY}
    assert {HTTP.url, KEY, f"Bearer {KEY}", f"/s/{KEY}/mcp", f"k={KEY}"} <= secrets_of(HTTP)
    assert secrets_of("https://x/mcp?key=abcdef") == {"https://x/mcp?key=abcdef", "key=abcdef"}


@pytest.mark.parametrize("url", ["npx server", "", "ftp://x/y", "https://", "http://["])
def test_a_url_is_one(url):
    """A command given as text is refused, with a word on what text means."""
    with pytest.raises(ConfigurationError, match="http:// or https://"):
        MCPHttpServer(url=url)
    with pytest.raises(ConfigurationError, match="http:// or https://"):
        open_transport(url, connect_timeout=1, errlog=None, on_status=print)


def test_a_transport_is_taken_as_it_is():
    """A transport that the caller made is used."""
    transport = object()

    assert open_transport(transport, connect_timeout=1, errlog=None, on_status=print) is transport


def test_what_is_given_is_not_changed():
    """The caller's list and mapping are copied."""
    args, env = ["a"], {"A": "b"}
    server = MCPStdioServer(command="x", args=args, env=env)
    args.append("b")
    env.clear()

    assert server.args == ("a",)
    assert server.env == {"A": "b"}


def test_messages_of_a_server_go_to_stderr(monkeypatch, tmp_path):
    """To the file that was given, to ours, or, where ours is none, nowhere."""
    with (tmp_path / "log").open("w") as log, _stderr(log) as file:
        assert file is log
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(sys, "stderr", log)
        with _stderr(None) as file:
            assert file is log
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with _stderr(None) as file:
        assert file.fileno() > 2
    with pytest.raises(ConfigurationError, match="real file"), _stderr(io.StringIO()):
        pass
