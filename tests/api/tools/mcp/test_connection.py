"""One connection to an MCP server, against real servers."""

import asyncio
import sys
import time

import pytest

from interlingua.api.tools.mcp.servers import MCPHttpServer, MCPStdioServer
from interlingua.spec.errors import (
    AuthenticationError,
    ConfigurationError,
    DecodeError,
    NetworkError,
    RequestTimeoutError,
)
from support.mcp_sessions import KEY, opened, run
from support.servers import Server, answering, free_port, reply


async def fails(server, **settings):
    """The error of a session that does not begin."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 -- looked at by the test
        async with opened(server, **settings):
            pass
    return caught.value


def wait_for(condition):
    while not condition():
        time.sleep(0.01)


def test_all_pages_of_the_list(full):
    """A list that comes in pages is read to its end, in order."""

    async def work():
        async with opened(full("pages")) as (session, tools):
            result = await session.call("tool_34", {})
            return [tool["name"] for tool in tools], result["content"][0]["text"]

    assert run(work()) == ([f"tool_{number}" for number in range(35)], "tool_34")


def test_a_list_without_end(plain, process):
    """A server that gives the same page for ever is an error, not a hang."""
    error = run(fails(plain("circle")))

    assert isinstance(error, DecodeError)
    assert process() is None


def test_a_server_without_tools(plain):
    """A server of resources or prompts alone has no tools."""

    async def work():
        async with opened(plain("bare")) as (_, tools):
            return tools

    assert run(work()) == []


def test_a_server_that_is_not_there(tmp_path):
    """A missing program, one that may not run, and a missing folder are told at once."""
    (tmp_path / "file").touch()
    for server in (
        MCPStdioServer(command=str(tmp_path / "missing"), env={"API_KEY": KEY}),
        MCPStdioServer(command=str(tmp_path / "file"), env={"API_KEY": KEY}),
        MCPStdioServer(command=sys.executable, cwd=str(tmp_path / "missing"), args=[KEY]),
    ):
        error = run(fails(server))

        assert isinstance(error, ConfigurationError)
        assert KEY not in f"{error!r}"


def test_a_server_that_ends_at_once():
    """A program that speaks no MCP is a typed error."""
    server = MCPStdioServer(command=sys.executable, args=["-c", "print('hello')"])
    error = run(fails(server))

    assert isinstance(error, NetworkError)
    assert "ended before" in str(error)


@pytest.mark.usefixtures("quick_kill")
def test_a_server_that_does_not_answer(deaf, process):
    """Connecting has its time; then the server is stopped, even one that does not end itself."""
    error = run(fails(deaf, connect_timeout=0.5))

    assert isinstance(error, RequestTimeoutError)
    assert error.phase == "connect"
    assert process() is None


@pytest.mark.usefixtures("quick_kill")
def test_cancelling_while_it_connects(deaf, process, tmp_path):
    """Giving up on a server that is starting leaves no process behind."""
    pid_file = tmp_path / "pid"

    async def work():
        task = asyncio.create_task(fails(deaf))
        await asyncio.to_thread(wait_for, lambda: pid_file.exists() and pid_file.read_text())
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert run(work())
    assert process() is None


def test_nobody_listens():
    """An address without a server is a typed error, without its path."""
    error = run(fails(f"http://127.0.0.1:{free_port()}/{KEY}/mcp?k={KEY}"))

    assert isinstance(error, NetworkError)
    assert KEY not in f"{error!r} {error.__cause__!r} {error.__context__!r}"


def test_a_key_that_is_refused():
    """A 401 is an authentication error, which does not show the key."""
    refused = reply(f"bad {KEY}".encode(), status="401 Unauthorized")
    with Server(answering(refused)) as server:
        error = run(
            fails(MCPHttpServer(url=server.url, headers={"Authorization": f"Bearer {KEY}"}))
        )

    assert isinstance(error, AuthenticationError)
    assert error.status_code == 401
    assert KEY not in f"{error!r} {error.__dict__} {error.__context__!r}"


def test_an_http_server_that_does_not_answer():
    """A server that takes the request and says nothing is given up in time."""

    async def silent(connection):
        await connection.read_request()

    with Server(silent) as server:
        error = run(fails(server.url, connect_timeout=0.1))
        assert server.all_closed()

    assert isinstance(error, RequestTimeoutError)


def test_the_package_is_missing(plain, monkeypatch):
    """Without the extra, the message says what to install."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    error = run(fails(plain()))

    assert isinstance(error, ConfigurationError)
    assert "interlingua[mcp]" in str(error)
