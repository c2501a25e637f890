"""A session with an MCP server, over one connection after another."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, TextIO

from interlingua.api.tools.mcp.connection import Connection, dump
from interlingua.api.tools.mcp.errors import call_failure, is_closed, is_forgotten, scrub
from interlingua.api.tools.mcp.servers import MCPHttpServer, MCPServer, name_of, secrets_of
from interlingua.api.tools.validator import speakable
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, NetworkError


class Session:
    """
    A session with a server.

        tools = await session.open()
        try:
            result = await session.call("add", {"a": 1})
        finally:
            await session.close()

    Over HTTP a session that the server has forgotten, or whose connection broke, is begun anew by
    the next call. The process of a stdio server is not: what it knew is gone.
    """

    def __init__(
        self,
        server: MCPServer,
        *,
        connect_timeout: float | None,
        timeout: float | None,
        errlog: TextIO | None = None,
    ) -> None:
        self.name = name_of(server)
        self._is_renewable = isinstance(server, (str, MCPHttpServer))
        self._timeout = timeout
        self._secrets = secrets_of(server)
        self._connect = partial(
            Connection, server, self.name, connect_timeout=connect_timeout, errlog=errlog
        )
        self._connection: Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._renewing = asyncio.Lock()

    async def open(self) -> list[Json]:
        """Connect, and list the server's tools as they are on the wire."""
        self._loop = asyncio.get_running_loop()
        self._connection = self._connect()
        return await self._connection.open()

    async def call(self, name: str, arguments: dict[str, Any]) -> Json:
        """The result of a tool as it is on the wire; a typed error if there is none."""
        connection, loop = self._connection, self._loop
        if connection is None or loop is None:
            raise self._over()
        work = self._call(connection, name, speakable(arguments))  # what is no UTF-8 ends all
        if loop is asyncio.get_running_loop():
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    async def close(self) -> None:
        """
        End the session, and the process of a stdio server.

        Waits for that also while it is cancelled, so that nothing is left behind.
        """
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def scrub(self, text: str) -> str:
        """The text without the secrets of this server."""
        return scrub(text, self._secrets)

    async def _call(self, connection: Connection, name: str, arguments: dict[str, Any]) -> Json:
        if connection.is_broken and self._is_renewable:
            connection = await self._renew(connection)
        try:
            return await self._ask(connection, name, arguments)
        except _ForgottenError:  # it was refused, not run: to ask again is safe
            connection = await self._renew(connection)
        try:
            return await self._ask(connection, name, arguments)
        except _ForgottenError:
            raise NetworkError(f"the MCP server {self.name} forgets each session") from None

    async def _ask(self, connection: Connection, name: str, arguments: dict[str, Any]) -> Json:
        if connection.error is not None:
            raise call_failure(connection.error, self.name, secrets=self._secrets)
        refused = len(connection.refusals)
        connection.calls += 1
        try:
            async with asyncio.timeout(self._timeout):
                result = await connection.client.call_tool(name, arguments)
        except Exception as error:  # noqa: BLE001 -- the transports let out what they meet
            if self._is_renewable and is_forgotten(error):
                failure: Exception = _ForgottenError()
            else:
                failure = call_failure(
                    error,
                    self.name,
                    timeout=self._timeout,
                    statuses=connection.refusals[refused:],
                    secrets=self._secrets,
                )
                if is_closed(error):
                    connection.note_closed()
        else:
            return {
                "content": [dump(block) for block in result.content],
                "structuredContent": result.structured_content,
                "isError": result.is_error,
            }
        finally:
            connection.calls -= 1
            await self._drop(connection)
        raise failure  # not from its cause, which may show a URL or a header

    async def _renew(self, broken: Connection) -> Connection:
        """A new connection instead of one that is of no use; many calls may find that at once."""
        async with self._renewing:
            if self._connection is not broken:
                if self._connection is None:
                    raise self._over()
                return self._connection
            connection = self._connect()
            await connection.open()
            if not self._is_open():  # it was closed meanwhile
                await connection.close()
                raise self._over()
            self._connection = connection
        await self._drop(broken)
        return connection

    async def _drop(self, connection: Connection) -> None:
        """Close one that is replaced, when the last call over it has ended."""
        if connection is not self._connection and connection.calls == 0:
            await connection.close()

    def _is_open(self) -> bool:
        return self._connection is not None

    def _over(self) -> ConfigurationError:
        return ConfigurationError(
            f"a tool of the MCP server {self.name} is called outside of its `async with`"
        )


class _ForgottenError(Exception):
    """The server does not know the session any more."""
