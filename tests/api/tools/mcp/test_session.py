"""A session with an MCP server, against real servers."""

import asyncio
import json
import sys

import pytest

from interlingua.api.tools.mcp.servers import MCPHttpServer, MCPStdioServer
from interlingua.api.tools.mcp.session import Session
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    DecodeError,
    NetworkError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
    ServerError,
)
from support.mcp_sessions import KEY, opened, run
from support.patience import PATIENCE
from support.servers import Server, reply


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


@pytest.mark.usefixtures("quick_kill")
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
        server = MCPHttpServer(url=url, headers={"X-Team": KEY})
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
    monkeypatch.setattr("interlingua.api.tools.mcp.session._CLOSE_TIMEOUT", 0.3)
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


class Forgetful:
    """An HTTP server of the older protocol whose calls go as the script says, one after another."""

    def __init__(self, *calls):
        self.calls = list(calls)
        self.sessions = 0
        self.asked = []

    async def __call__(self, connection):
        while (request := await connection.read_request()) is not None:
            asked = json.loads(request.body or b"{}")
            method = asked.get("method")
            if request.method != "POST":
                await connection.send(reply(b"", status="405 Method Not Allowed"))
            elif "id" not in asked:
                await connection.send(reply(b"", status="202 Accepted"))
            elif method == "tools/call" and self.calls and (how := self.calls.pop(0)) is not None:
                self.asked.append(request.headers["mcp-session-id"])
                if how == "drop":
                    connection.reset()
                    return
                await connection.send(reply(f"no {KEY}".encode(), status=how))
            else:
                if method == "tools/call":
                    self.asked.append(request.headers["mcp-session-id"])
                self.sessions += method == "initialize"
                await connection.send(self.answer(asked))

    def answer(self, asked):
        result = older(asked["method"])
        said = {"result": result} if result else {"error": {"code": -32601, "message": "?"}}
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}).encode()
        names = ("content-type: application/json", f"mcp-session-id: s{self.sessions}")
        return reply(body, headers=names)


def outcomes(*calls, times=2):
    """What calls over HTTP give, and the sessions they were made in."""
    script = Forgetful(*calls)

    async def work(server):
        given = MCPHttpServer(url=server.url, headers={"Authorization": f"Bearer {KEY}"})
        found = []
        async with opened(given) as (session, _):
            for _ in range(times):
                try:
                    found.append((await session.call("t", {}))["content"][0]["text"])
                except SDKError as error:
                    assert KEY not in f"{error!r} {error.__dict__} {error.__context__!r}"
                    found.append(type(error))
        return found

    with Server(script) as server:
        return run(work(server)), script.asked


def test_a_session_that_the_server_forgets():
    """A new one is begun, and the call, which was not run, is made once more."""
    assert outcomes("404 Not Found") == (["done", "done"], ["s1", "s2", "s2"])
    forgetting = ["404 Not Found"] * 2
    assert outcomes(*forgetting) == ([NetworkError, "done"], ["s1", "s2", "s2"])


def test_a_connection_that_breaks():
    """The call fails, since it may have been run; the next one connects again."""
    assert outcomes("drop") == ([NetworkError, "done"], ["s1", "s2"])


def test_many_calls_find_a_broken_connection():
    """One new session is enough for all of them."""
    script = Forgetful("drop")

    async def work(server):
        async with opened(server.url) as (session, _):
            with pytest.raises(NetworkError):
                await session.call("t", {})
            await asyncio.gather(*(session.call("t", {}) for _ in range(5)))

    with Server(script) as server:
        run(work(server))

    assert script.asked == ["s1"] + ["s2"] * 5


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("401 Unauthorized", AuthenticationError),
        ("403 Forbidden", AccessDeniedError),
        ("429 Too Many Requests", RateLimitError),
        ("503 Unavailable", ServerError),
    ],
)
def test_calls_that_are_refused(status, kind):
    """The error is that of its status; the session goes on."""
    assert outcomes(status) == ([kind, "done"], ["s1", "s1"])


def test_a_server_that_does_not_start_shows_its_stderr(capfd):
    """The error has the last lines that the process wrote, without keys."""
    code = f"import sys; sys.stderr.write('No module named git; key {KEY}'); sys.exit(3)"
    server = MCPStdioServer(command=sys.executable, args=["-c", code], env={"TOKEN": KEY})

    async def work():
        async with opened(server):
            pass

    with pytest.raises(NetworkError, match="No module named git") as caught:
        run(work())

    assert KEY not in str(caught.value)
    assert "No module named git" in capfd.readouterr().err  # as before
