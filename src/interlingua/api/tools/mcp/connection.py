"""One connection to an MCP server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TextIO

from interlingua.api.tools.mcp.errors import METHOD_NOT_FOUND, code_of, connect_failure
from interlingua.api.tools.mcp.servers import MCPServer, open_transport
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, DecodeError, RequestTimeoutError
from interlingua.wire.secrets import Redactor

if TYPE_CHECKING:
    from mcp import Client
    from pydantic import BaseModel

_CLOSE_TIMEOUT = 10.0
"""Seconds until closing is cancelled; the `mcp` package kills a stdio server well before that."""


class Connection:
    """
    A connection, held open by a task of its own.

    The contexts of the `mcp` package must be exited by the task that entered them, but callers may
    open, use and close a connection in different tasks and event loops.
    """

    def __init__(
        self,
        server: MCPServer,
        name: str,
        *,
        connect_timeout: float | None,
        redactor: Redactor,
        errlog: TextIO | None = None,
    ) -> None:
        self._server = server
        self._name = name
        self._connect_timeout = connect_timeout
        self._redactor = redactor
        self._errlog = errlog
        self._status: int | None = None
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._is_closed = False
        self.error_statuses: list[int] = []
        """Every HTTP status of 400 and above, in order of arrival."""
        self.calls = 0
        """The number of calls in progress."""

    @property
    def client(self) -> Client:
        """The `mcp` client, once the connection is open."""
        if self._client is None:
            raise ConfigurationError(f"the connection to the MCP server {self._name} is not open")
        return self._client

    @property
    def is_broken(self) -> bool:
        """Whether the connection is lost, so that every further call will fail."""
        return self._is_closed or self.error is not None

    def mark_closed(self) -> None:
        """Record that a call found the connection closed."""
        self._is_closed = True

    @property
    def error(self) -> BaseException | None:
        """The reason the connection has ended, if it has."""
        return _error_of(self._task) if self._task is not None and self._task.done() else None

    async def open(self) -> list[Json]:
        """Connect and list the server's tools in their wire form."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[list[Json]] = loop.create_future()
        self._task = loop.create_task(self._hold(ready), name=f"mcp {self._name}")
        futures: set[asyncio.Future[Any]] = {self._task, ready}
        try:
            await asyncio.wait(
                futures, timeout=self._connect_timeout, return_when=asyncio.FIRST_COMPLETED
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
                f"no session with the MCP server {self._name} within {self._connect_timeout:g} s",
                phase="connect",
            )
        # Without `from`: the original exception may contain a URL or a header with a key.
        raise connect_failure(
            _error_of(self._task), self._name, status=self._status, redactor=self._redactor
        )

    async def close(self) -> None:
        """Close the connection. A cancellation is raised only after it is closed."""
        self._closing.set()
        if self._task is None:
            return
        if self._client is None:
            self._task.cancel()  # the task waits for `_closing` only after it has connected
        await _wait_closed(self._task)

    async def _hold(self, ready: asyncio.Future[list[Json]]) -> None:
        client_class = await asyncio.to_thread(_import_client)  # takes about a second
        transport = open_transport(
            self._server,
            connect_timeout=self._connect_timeout,
            errlog=self._errlog,
            on_status=self._on_status,
        )
        async with client_class(transport, cache=None) as client:
            tools = await _list_tools(client)
            self._client = client
            ready.set_result(tools)
            await self._closing.wait()

    def _on_status(self, status: int) -> None:
        self._status = status
        if status >= 400:
            self.error_statuses.append(status)


def _import_client() -> type[Client]:
    try:
        from mcp import Client
    except ImportError as error:
        raise ConfigurationError(
            "MCP support is not installed; run: pip install 'interlingua[mcp]'"
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
            if code_of(error) == METHOD_NOT_FOUND:
                return tools  # the server has only resources or prompts
            raise
        tools += map(dump, page.tools)
        cursor = page.next_cursor
        if not cursor:
            return tools
        if cursor in seen:
            raise DecodeError("the MCP server repeats a page in its list of tools")
        seen.add(cursor)


def dump(model: BaseModel) -> Json:
    """The wire form of a value of the `mcp` package."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _error_of(task: asyncio.Task[None]) -> BaseException:
    error = None if task.cancelled() else task.exception()
    return error or ConnectionError("the session has ended")


async def _wait_closed(task: asyncio.Task[None]) -> None:
    """Wait until the task has ended; a cancellation is raised only afterwards."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 2 * _CLOSE_TIMEOUT
    timer = loop.call_later(_CLOSE_TIMEOUT, task.cancel)
    is_cancelled = False
    while not task.done() and loop.time() < deadline:
        try:
            await asyncio.wait({task}, timeout=deadline - loop.time())
        except asyncio.CancelledError:
            is_cancelled = True
    timer.cancel()
    if task.done():
        _error_of(task)  # marks the exception as retrieved, so that asyncio does not log it
    if is_cancelled:
        raise asyncio.CancelledError
