"""One MCP session, from connecting to leaving."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TextIO

from interlingua.api.mcp.failures import (
    METHOD_UNKNOWN,
    call_failure,
    code_of,
    connect_failure,
    scrub,
)
from interlingua.api.mcp.servers import McpServer, name_of, open_transport, secrets_of
from interlingua.spec.content import Json
from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    RequestTimeoutError,
)

if TYPE_CHECKING:
    from mcp import Client
    from pydantic import BaseModel

_GRACE = 10.0
"""Seconds to leave in; a stdio server is killed well before that."""


class Session:
    """
    A connection to a server, held by one task of its own.

    The scopes of the `mcp` package must be left by the task that entered them, and callers may
    come and go in any task, or in other event loops.

        tools = await session.open()
        try:
            result = await session.call("add", {"a": 1})
        finally:
            await session.close()
    """

    def __init__(
        self,
        server: McpServer,
        *,
        connect_timeout: float | None,
        timeout: float | None,
        errlog: TextIO | None = None,
    ) -> None:
        self.name = name_of(server)
        self._server = server
        self._connect_timeout = connect_timeout
        self._timeout = timeout
        self._errlog = errlog
        self._secrets = secrets_of(server)
        self._status: int | None = None
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave = asyncio.Event()

    async def open(self) -> list[Json]:
        """Connect, and list the server's tools as they are on the wire."""
        self._loop = asyncio.get_running_loop()
        ready: asyncio.Future[list[Json]] = self._loop.create_future()
        self._task = self._loop.create_task(self._hold(ready), name=f"mcp {self.name}")
        waited: set[asyncio.Future[Any]] = {self._task, ready}
        try:
            await asyncio.wait(
                waited, timeout=self._connect_timeout, return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError:
            await self.close()
            raise
        if ready.done():
            return ready.result()
        is_late = not self._task.done()
        await self.close()
        if is_late:
            raise RequestTimeoutError(
                f"no session with the MCP server {self.name} within {self._connect_timeout:g} s",
                phase="connect",
            )
        # not raised from its cause, which may show a URL or a header
        raise connect_failure(
            _error_of(self._task), self.name, status=self._status, secrets=self._secrets
        )

    async def call(self, name: str, arguments: dict[str, Any]) -> Json:
        """The result of a tool as it is on the wire; a typed error if there is none."""
        client, task, loop = self._client, self._task, self._loop
        if client is None or task is None or loop is None or self._leave.is_set():
            raise ConfigurationError(
                f"a tool of the MCP server {self.name} is called outside of its `async with`"
            )
        if task.done():
            raise call_failure(_error_of(task), self.name, secrets=self._secrets)
        work = self._call(client, name, arguments)
        if loop is asyncio.get_running_loop():
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    async def close(self) -> None:
        """
        End the session, and the process of a stdio server.

        Waits for that also while it is cancelled, so that nothing is left behind.
        """
        self._leave.set()
        if self._task is None:
            return
        if self._client is None:
            self._task.cancel()  # before it is connected it does not look at `_leave`
        await _end(self._task)

    def scrub(self, text: str) -> str:
        """The text without the secrets of this server."""
        return scrub(text, self._secrets)

    async def _hold(self, ready: asyncio.Future[list[Json]]) -> None:
        client_of = await asyncio.to_thread(_load)  # it takes a second; others are not held up
        transport = open_transport(
            self._server,
            connect_timeout=self._connect_timeout,
            errlog=self._errlog,
            on_status=self._note_status,
        )
        async with client_of(transport, cache=None) as client:
            tools = await _list_tools(client)
            self._client = client
            ready.set_result(tools)
            await self._leave.wait()

    async def _call(self, client: Client, name: str, arguments: dict[str, Any]) -> Json:
        try:
            async with asyncio.timeout(self._timeout):
                result = await client.call_tool(name, arguments)
        except Exception as error:  # noqa: BLE001 -- the transports let out what they meet
            failure = call_failure(error, self.name, timeout=self._timeout, secrets=self._secrets)
        else:
            return {
                "content": [_dump(block) for block in result.content],
                "structuredContent": result.structured_content,
                "isError": result.is_error,
            }
        raise failure  # not from its cause, which may show a URL or a header

    def _note_status(self, status: int) -> None:
        self._status = status


def _load() -> type[Client]:
    try:
        from mcp import Client
    except ImportError as error:
        raise ConfigurationError(
            "MCP needs a package that is not installed; pip install 'interlingua[mcp]'"
        ) from error
    return Client


async def _list_tools(client: Client) -> list[Json]:
    tools: list[Json] = []
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        try:
            page = await client.list_tools(cursor=cursor)
        except Exception as error:
            if code_of(error) == METHOD_UNKNOWN:
                return tools  # a server of resources or prompts alone
            raise
        tools += map(_dump, page.tools)
        cursor = page.next_cursor
        if not cursor:
            return tools
        if cursor in seen:
            raise DecodeError("the MCP server lists its tools in a circle")
        seen.add(cursor)


def _dump(model: BaseModel) -> Json:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _error_of(task: asyncio.Task[None]) -> BaseException:
    error = None if task.cancelled() else task.exception()
    return error or ConnectionError("its session was ended")


async def _end(task: asyncio.Task[None]) -> None:
    """Wait until it has ended; a cancellation meanwhile is raised when it has."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 2 * _GRACE
    hurry = loop.call_later(_GRACE, task.cancel)
    is_cancelled = False
    while not task.done() and loop.time() < deadline:
        try:
            await asyncio.wait({task}, timeout=deadline - loop.time())
        except asyncio.CancelledError:
            is_cancelled = True
    hurry.cancel()
    if task.done():
        _error_of(task)  # callers were told of it; here it is only marked as seen
    if is_cancelled:
        raise asyncio.CancelledError
