"""A session with an MCP server, which reconnects when needed."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, TextIO

from interlingua.api.tools.mcp.connection import Connection, dump
from interlingua.api.tools.mcp.errors import call_failure, is_closed, is_session_expired
from interlingua.api.tools.mcp.servers import MCPHttpServer, MCPServer, name_of, secrets_of
from interlingua.api.types.schema import replace_surrogates
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, NetworkError
from interlingua.wire.secrets import Redactor


class Session:
    """
    A session with a server.

        tools = await session.open()
        try:
            result = await session.call("add", {"a": 1})
        finally:
            await session.close()

    Over HTTP, the next call opens a new session if the server no longer knows this one or the
    connection was lost. The process of a stdio server is not restarted, because its state is lost.
    """

    def __init__(
        self,
        server: MCPServer,
        *,
        connect_timeout: float | None,
        timeout: float | None,
        errlog: TextIO | None = None,
    ) -> None:
        self.name: str = name_of(server)
        self.redactor: Redactor = Redactor(secrets_of(server))
        self._can_reconnect = isinstance(server, (str, MCPHttpServer))
        self._timeout = timeout
        self._connect = partial(
            Connection,
            server,
            self.name,
            connect_timeout=connect_timeout,
            redactor=self.redactor,
            errlog=errlog,
        )
        self._connection: Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reconnecting = asyncio.Lock()

    async def open(self) -> list[Json]:
        """Connect and list the server's tools in their wire form."""
        self._loop = asyncio.get_running_loop()
        self._connection = self._connect()
        return await self._connection.open()

    async def call(self, name: str, arguments: dict[str, Any]) -> Json:
        """The result of a tool in its wire form; a typed error if there is none."""
        connection, loop = self._connection, self._loop
        if connection is None or loop is None:
            raise self._not_open()
        # A lone surrogate cannot be sent as UTF-8; it would end the whole connection.
        work = self._call(connection, name, replace_surrogates(arguments))
        if loop is asyncio.get_running_loop():
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    async def close(self) -> None:
        """
        End the session, and the process of a stdio server.

        A cancellation is raised only after the process has ended, so that none is left running.
        """
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _call(self, connection: Connection, name: str, arguments: dict[str, Any]) -> Json:
        if connection.is_broken and self._can_reconnect:
            connection = await self._reconnect(connection)
        try:
            return await self._call_once(connection, name, arguments)
        except _SessionExpiredError:  # the server rejected the call without running the tool
            connection = await self._reconnect(connection)
        try:
            return await self._call_once(connection, name, arguments)
        except _SessionExpiredError:
            raise NetworkError(
                f"the MCP server {self.name} rejected a new session as expired"
            ) from None

    async def _call_once(
        self, connection: Connection, name: str, arguments: dict[str, Any]
    ) -> Json:
        if connection.error is not None:
            raise call_failure(connection.error, self.name, redactor=self.redactor)
        statuses_before = len(connection.error_statuses)
        connection.calls += 1
        try:
            async with asyncio.timeout(self._timeout):
                result = await connection.client.call_tool(name, arguments)
        except Exception as error:  # noqa: BLE001 -- transports raise exceptions of any type
            if self._can_reconnect and is_session_expired(error):
                failure: Exception = _SessionExpiredError()
            else:
                failure = call_failure(
                    error,
                    self.name,
                    timeout=self._timeout,
                    statuses=connection.error_statuses[statuses_before:],
                    redactor=self.redactor,
                )
                if is_closed(error):
                    connection.mark_closed()
        else:
            return {
                "content": [dump(block) for block in result.content],
                "structuredContent": result.structured_content,
                "isError": result.is_error,
            }
        finally:
            connection.calls -= 1
            await self._close_if_replaced(connection)
        # Without `from`: the original exception may contain a URL or a header with a key.
        raise failure

    async def _reconnect(self, broken: Connection) -> Connection:
        """Replace a broken connection once, even if several calls find it broken."""
        async with self._reconnecting:
            if self._connection is not broken:
                if self._connection is None:
                    raise self._not_open()
                return self._connection
            connection = self._connect()
            await connection.open()
            if not self._is_open():  # `close` was called while connecting
                await connection.close()
                raise self._not_open()
            self._connection = connection
        await self._close_if_replaced(broken)
        return connection

    async def _close_if_replaced(self, connection: Connection) -> None:
        """Close a replaced connection after its last call has ended."""
        if connection is not self._connection and connection.calls == 0:
            await connection.close()

    def _is_open(self) -> bool:
        return self._connection is not None

    def _not_open(self) -> ConfigurationError:
        return ConfigurationError(
            f"the session with the MCP server {self.name} is not open; call its tools inside "
            "`async with mcp_tools(...)`"
        )


class _SessionExpiredError(Exception):
    """The server no longer knows the session."""
