"""One connection to an MCP server, from connecting to leaving."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TextIO

from interlingua.api.tools.mcp.errors import METHOD_UNKNOWN, code_of, connect_failure
from interlingua.api.tools.mcp.servers import MCPServer, open_transport, secrets_of
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


class Connection:
    """
    Held by one task of its own.

    The scopes of the `mcp` package must be left by the task that entered them, and callers may
    come and go in any task, or in other event loops.
    """

    def __init__(
        self,
        server: MCPServer,
        name: str,
        *,
        connect_timeout: float | None,
        errlog: TextIO | None = None,
    ) -> None:
        self._server = server
        self._name = name
        self._connect_timeout = connect_timeout
        self._errlog = errlog
        self._status: int | None = None
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self.refusals: list[int] = []
        """Each HTTP status from 400 up, as it came."""
        self._is_closed = False
        self.calls = 0
        """How many are under way."""

    @property
    def client(self) -> Client:
        """To call by, once it is open."""
        if self._client is None:
            raise ConfigurationError(f"there is no connection to the MCP server {self._name}")
        return self._client

    @property
    def is_broken(self) -> bool:
        """Whether calls over it have failed, and will."""
        return self._is_closed or self.error is not None

    def note_closed(self) -> None:
        """A call has found that it is."""
        self._is_closed = True

    @property
    def error(self) -> BaseException | None:
        """Why it has ended by itself, if it has."""
        return _error_of(self._task) if self._task is not None and self._task.done() else None

    async def open(self) -> list[Json]:
        """Connect, and list the server's tools as they are on the wire."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[list[Json]] = loop.create_future()
        self._task = loop.create_task(self._hold(ready), name=f"mcp {self._name}")
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
                f"no session with the MCP server {self._name} within {self._connect_timeout:g} s",
                phase="connect",
            )
        # not raised from its cause, which may show a URL or a header
        raise connect_failure(
            _error_of(self._task),
            self._name,
            status=self._status,
            secrets=secrets_of(self._server),
        )

    async def close(self) -> None:
        """Leave, and wait for that also while it is cancelled."""
        self._leave.set()
        if self._task is None:
            return
        if self._client is None:
            self._task.cancel()  # before it is connected it does not look at `_leave`
        await _end(self._task)

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

    def _note_status(self, status: int) -> None:
        self._status = status
        if status >= 400:
            self.refusals.append(status)


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
        tools += map(dump, page.tools)
        cursor = page.next_cursor
        if not cursor:
            return tools
        if cursor in seen:
            raise DecodeError("the MCP server lists its tools in a circle")
        seen.add(cursor)


def dump(model: BaseModel) -> Json:
    """A value of the `mcp` package as it is on the wire."""
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
