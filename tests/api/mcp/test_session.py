"""One MCP session, against real servers."""

import asyncio
import contextlib
import json
import sys
import time

import pytest

from interlingua.api.mcp.servers import HttpServer, StdioServer
from interlingua.api.mcp.session import Session
from interlingua.spec.errors import (
    AuthenticationError,
    ConfigurationError,
    DecodeError,
    NetworkError,
    RequestTimeoutError,
)
from servers import Server, answering, free_port, reply

PATIENCE = 60.0  # seconds a test waits for what must happen; it is no measure of speed
KEY = "key-very-secret"


def run(work):
    return asyncio.run(asyncio.wait_for(work, PATIENCE))


def wait_for(condition):
    while not condition():
        time.sleep(0.01)


@contextlib.asynccontextmanager
async def opened(server, *, timeout=PATIENCE, connect_timeout=PATIENCE):  # noqa: ASYNC109 -- of a call
    session = Session(server, connect_timeout=connect_timeout, timeout=timeout)
    tools = await session.open()
    try:
        yield session, tools
    finally:
        await session.close()


async def fails(server, **settings):
    """The error of a session that does not begin."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 -- looked at by the test
        async with opened(server, **settings):
            pass
    return caught.value


def test_the_older_protocol_over_stdio(plain, process):
    """Tools are listed and called as they are on the wire; the process ends with the session."""

    async def work():
        async with opened(plain()) as (session, tools):
            assert process()
            assert tools[0]["inputSchema"]["properties"] == {"x": {"default": None}}
            return await session.call("echo", {"x": None})

    result = run(work())

    assert result["content"] == [{"type": "text", "text": '{"x": null}'}]
    assert process() is None


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
        StdioServer(command=str(tmp_path / "missing"), env={"API_KEY": KEY}),
        StdioServer(command=str(tmp_path / "file"), env={"API_KEY": KEY}),
        StdioServer(command=sys.executable, cwd=str(tmp_path / "missing"), args=[KEY]),
    ):
        error = run(fails(server))

        assert isinstance(error, ConfigurationError)
        assert KEY not in f"{error!r}"


def test_a_server_that_ends_at_once():
    """A program that speaks no MCP is a typed error."""
    server = StdioServer(command=sys.executable, args=["-c", "print('hello')"])
    error = run(fails(server))

    assert isinstance(error, NetworkError)
    assert "ended before" in str(error)


def test_a_server_that_does_not_answer(plain, process):
    """Connecting has its time; then the server is stopped, even one that does not end itself."""
    error = run(fails(plain("deaf"), connect_timeout=2.0))

    assert isinstance(error, RequestTimeoutError)
    assert error.phase == "connect"
    assert process() is None


def test_cancelling_while_it_connects(plain, process, tmp_path):
    """Giving up on a server that is starting leaves no process behind."""
    pid_file = tmp_path / "pid"

    async def work():
        task = asyncio.create_task(fails(plain("deaf")))
        await asyncio.to_thread(wait_for, lambda: pid_file.exists() and pid_file.read_text())
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert run(work())
    assert process() is None


def test_cancelling_while_it_ends(plain, process):
    """A second cancellation does not leave the process behind either."""

    async def hold(ready):
        async with opened(plain("")):
            ready.set()
            await asyncio.sleep(PATIENCE)

    async def work():
        ready = asyncio.Event()
        task = asyncio.create_task(hold(ready))
        await ready.wait()
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        return task.cancelled()

    assert run(work())
    assert process() is None


def test_an_error_inside_passes(plain, process):
    """What goes wrong while the session is open comes out as it is."""

    async def work():
        async with opened(plain()):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(work())
    assert process() is None


def test_a_server_that_hangs_in_a_call(plain, process):
    """A call has its time, the server is killed when it does not end by itself."""

    async def work():
        async with opened(plain(), timeout=0.2) as (session, _):
            with pytest.raises(RequestTimeoutError, match=r"within 0.2 s") as caught:
                await session.call("hang", {})
            return caught.value

    assert run(work()).phase == "request"
    assert process() is None


def test_a_server_that_dies_in_a_call(plain):
    """All calls under way fail at once, and so do later ones."""

    async def work():
        async with opened(plain(), timeout=None) as (session, _):
            calls = [session.call("die", {}), session.call("echo", {})]
            first = await asyncio.gather(*calls, return_exceptions=True)
            late = await asyncio.gather(session.call("echo", {}), return_exceptions=True)
            return [*first, *late]

    assert [type(error) for error in run(work())] == [NetworkError] * 3


def test_results_that_are_not_what_was_promised(plain):
    """A result against its schema, or none at all, is an error of the call alone."""

    async def work():
        async with opened(plain()) as (session, _):
            for name in ("untrue", "broken"):
                with pytest.raises(DecodeError):
                    await session.call(name, {})
            return await session.call("echo", {})

    assert run(work())["content"]


def test_calls_from_another_event_loop(plain):
    """A tool may be run where its session is not: in the loop of a thread."""

    async def work():
        async with opened(plain()) as (session, _):
            return await asyncio.to_thread(asyncio.run, session.call("echo", {"x": 1}))

    assert run(work())["content"][0]["text"] == '{"x": 1}'


def test_calls_outside_of_the_session(plain):
    """A tool that outlives its session says so; one that never began is left without a word."""

    async def work():
        await Session(plain(), connect_timeout=1, timeout=1).close()
        async with opened(plain()) as (session, _):
            pass
        await session.call("echo", {})

    with pytest.raises(ConfigurationError, match="async with"):
        run(work())


def test_streamable_http(url):
    """Calls go over HTTP, many at a time, with the headers given."""

    async def work():
        server = HttpServer(url=url, headers={"X-Team": KEY})
        async with opened(server) as (session, tools):
            added = await asyncio.gather(
                *(session.call("add", {"a": n, "b": n}) for n in range(20))
            )
            header = await session.call("header", {"name": "x-team"})
            return tools, [r["structuredContent"]["result"] for r in added], header

    tools, added, header = run(work())

    assert "add" in [tool["name"] for tool in tools]
    assert added == [2 * n for n in range(20)]
    assert header["content"][0]["text"] == KEY


def test_a_late_call_over_http(url):
    """A call that takes too long is given up; the session goes on."""

    async def work():
        async with opened(url, timeout=0.3) as (session, _):
            with pytest.raises(RequestTimeoutError):
                await session.call("slow", {"seconds": PATIENCE})
            session._timeout = PATIENCE
            return await session.call("add", {"a": 1, "b": 2})

    assert run(work())["structuredContent"] == {"result": 3}


def older(method):
    """What a server of the older protocol answers over HTTP."""
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "older", "version": "1"},
            }
        case "tools/list":
            return {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": "done"}]}


def test_the_older_protocol_over_http(monkeypatch):
    """A session with an id is ended with DELETE; a server that leaves that open is left."""
    monkeypatch.setattr("interlingua.api.mcp.session._GRACE", 0.3)
    json_headers = ("content-type: application/json", "mcp-session-id: s1")

    async def script(connection):
        while (request := await connection.read_request()) is not None:
            if request.method == "DELETE":
                return
            if request.method == "GET":
                await connection.send(reply(b"", status="405 Method Not Allowed"))
                continue
            asked = json.loads(request.body)
            if "id" not in asked:
                await connection.send(reply(b"", status="202 Accepted"))
                continue
            result = older(asked["method"])
            said = {"result": result} if result else {"error": {"code": -32601, "message": "?"}}
            answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said})
            await connection.send(reply(answer.encode(), headers=json_headers))

    async def work(server):
        async with opened(server.url) as (session, tools):
            return tools, await session.call("t", {})

    with Server(script) as server:
        tools, result = run(work(server))
        asked = server.requests

    assert [tool["name"] for tool in tools] == ["t"]
    assert result["content"][0]["text"] == "done"
    assert asked[-1].method == "DELETE"
    assert asked[-1].headers["mcp-session-id"] == "s1"


def test_an_http_server_that_dies_in_a_call(mortal_url):
    """The call fails at once, and so does a later one."""

    async def work():
        async with opened(mortal_url, timeout=None) as (session, _):
            first = await asyncio.gather(session.call("crash", {}), return_exceptions=True)
            await asyncio.sleep(0.05)
            late = await asyncio.gather(session.call("echo", {}), return_exceptions=True)
            return [*first, *late]

    assert [type(error) for error in run(work())] == [NetworkError] * 2


def test_nobody_listens():
    """An address without a server is a typed error, without its path."""
    error = run(fails(f"http://127.0.0.1:{free_port()}/{KEY}/mcp?k={KEY}"))

    assert isinstance(error, NetworkError)
    assert KEY not in f"{error!r} {error.__cause__!r} {error.__context__!r}"


def test_a_key_that_is_refused():
    """A 401 is an authentication error, which does not show the key."""
    refused = reply(f"bad {KEY}".encode(), status="401 Unauthorized")
    with Server(answering(refused)) as server:
        error = run(fails(HttpServer(url=server.url, headers={"Authorization": f"Bearer {KEY}"})))

    assert isinstance(error, AuthenticationError)
    assert error.status_code == 401
    assert KEY not in f"{error!r} {error.__dict__} {error.__context__!r}"


def test_an_http_server_that_does_not_answer():
    """A server that takes the request and says nothing is given up in time."""

    async def silent(connection):
        await connection.read_request()

    with Server(silent) as server:
        error = run(fails(server.url, connect_timeout=0.5))
        assert server.all_closed()

    assert isinstance(error, RequestTimeoutError)


def test_the_package_is_missing(plain, monkeypatch):
    """Without the extra, the message says what to install."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    error = run(fails(plain()))

    assert isinstance(error, ConfigurationError)
    assert "interlingua[mcp]" in str(error)
