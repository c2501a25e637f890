"""A session with an MCP server: the connection, reconnecting, and typed errors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from interlingua.api.tools.mcp.noise import limit_records
from interlingua.api.tools.mcp.servers import (
    MCPHttpServer,
    MCPServer,
    name_of,
    open_transport,
    secrets_of,
)
from interlingua.api.types.schema import replace_surrogates
from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    InvalidToolCallError,
    NetworkError,
    RequestTimeoutError,
    SDKError,
)
from interlingua.wire.classify import Fault, make_error
from interlingua.wire.secrets import Redactor

if TYPE_CHECKING:
    from mcp import Client
    from pydantic import BaseModel

MOST_LISTED = 10_000
"""Tools of one server that are listed at most."""


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
        max_tools: int = MOST_LISTED,
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
            max_tools=max_tools,
            errlog=errlog,
        )
        self._connection: Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reconnecting = asyncio.Lock()

    async def open(self) -> list[UncheckedJson]:
        """Connect and list the server's tools in their wire form: at most one more than allowed."""
        self._loop = asyncio.get_running_loop()
        self._connection = self._connect()
        return await self._connection.open()

    async def call(self, name: str, arguments: dict[str, Any]) -> UncheckedJson:
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

    async def _call(
        self, connection: Connection, name: str, arguments: dict[str, Any]
    ) -> UncheckedJson:
        if connection.is_broken and self._can_reconnect:
            connection = await self._reconnect(connection)
        result = await self._call_once(connection, name, arguments)
        if result is None:  # the server rejected the call without running the tool
            connection = await self._reconnect(connection)
            result = await self._call_once(connection, name, arguments)
        if result is None:
            raise NetworkError(f"The MCP server {self.name} rejected a new session as expired.")
        return result

    async def _call_once(
        self, connection: Connection, name: str, arguments: dict[str, Any]
    ) -> dict[str, UncheckedJson] | None:
        """The result of a tool; None if the server no longer knows the session."""
        if connection.error is not None:
            raise call_failure(connection.error, self.name, redactor=self.redactor)
        if connection.client is None:
            raise self._not_open()
        statuses_before = len(connection.error_statuses)
        connection.calls += 1
        try:
            async with asyncio.timeout(self._timeout):
                result = await connection.client.call_tool(name, arguments)
        except Exception as error:  # noqa: BLE001 -- transports raise exceptions of any type
            code, message = _code_of(error), str(_first(error))
            if (code, message) == _SESSION_EXPIRED and self._can_reconnect:
                return None  # MCP requires a new session
            connection.is_closed = connection.is_closed or code == _CONNECTION_CLOSED
            failure = call_failure(
                error,
                self.name,
                timeout=self._timeout,
                statuses=connection.error_statuses[statuses_before:],
                redactor=self.redactor,
            )
        else:
            return {
                "content": [_dump(block) for block in result.content],
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
            if self._connection is None:
                raise self._not_open()
            if self._connection is not broken:
                return self._connection
            connection = self._connect()
            await connection.open()
            if self._connection is not broken:  # `close` was called while connecting
                await connection.close()
                raise self._not_open()
            self._connection = connection
        await self._close_if_replaced(broken)
        return connection

    async def _close_if_replaced(self, connection: Connection) -> None:
        """Close a replaced connection after its last call has ended."""
        if connection is not self._connection and connection.calls == 0:
            await connection.close()

    def _not_open(self) -> ConfigurationError:
        return ConfigurationError(
            f"The session with the MCP server {self.name} is not open. Call its tools inside "
            "`async with mcp_tools(...)`."
        )


# One connection.

_MAX_STDERR = 2_000  # bytes, in the message about a server that does not start
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
        max_tools: int,
        errlog: TextIO | None = None,
    ) -> None:
        self._server = server
        self._name = name
        self._connect_timeout = connect_timeout
        self._redactor = redactor
        self._max_tools = max_tools
        self._errlog = errlog
        self._status: int | None = None
        self._stderr = b""
        self.client: Client | None = None
        """Set once the connection is open."""
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.is_closed = False
        """Set when a call finds the connection closed."""
        self.error_statuses: list[int] = []
        """Every HTTP status of 400 and above, in order of arrival."""
        self.calls = 0
        """The number of calls in progress."""

    @property
    def is_broken(self) -> bool:
        """Whether the connection is lost, so that every further call will fail."""
        return self.is_closed or self.error is not None

    @property
    def error(self) -> BaseException | None:
        """The reason the connection has ended, if it has."""
        return _error_of(self._task) if self._task is not None and self._task.done() else None

    async def open(self) -> list[UncheckedJson]:
        """Connect and list the server's tools in their wire form."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[list[UncheckedJson]] = loop.create_future()
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
            late = (
                f"No session with the MCP server {self._name} within {self._connect_timeout:g} s."
            )
            raise self._with_stderr(RequestTimeoutError(late, phase="connect"))
        # Without `from`: the original exception may contain a URL or a header with a key.
        failure = connect_failure(
            _error_of(self._task), self._name, status=self._status, redactor=self._redactor
        )
        raise self._with_stderr(failure)

    async def close(self) -> None:
        """Close the connection. A cancellation is raised only after it is closed."""
        self._closing.set()
        if self._task is None:
            return
        if self.client is None:
            self._task.cancel()  # the task waits for `_closing` only after it has connected
        await _wait_closed(self._task)

    async def _hold(self, ready: asyncio.Future[list[UncheckedJson]]) -> None:
        client_class = await asyncio.to_thread(_import_client)  # takes about a second
        limit_records()
        transport = open_transport(
            self._server,
            name=self._name,
            connect_timeout=self._connect_timeout,
            errlog=self._errlog,
            on_status=self._on_status,
            on_stderr=self._on_stderr,
        )
        async with client_class(transport, cache=None) as client:
            tools = await _list_tools(client, self._max_tools)
            self.client = client
            ready.set_result(tools)
            await self._closing.wait()

    def _on_stderr(self, chunk: bytes) -> None:
        self._stderr = (self._stderr + chunk)[-_MAX_STDERR:]

    def _with_stderr(self, error: SDKError) -> SDKError:
        """The error, with the last lines that the server wrote to stderr."""
        text = self._redactor.redact_text(self._stderr.decode(errors="replace")).strip()
        return error.add_facts(advice=f"the server wrote to stderr: {text}" if text else None)

    def _on_status(self, status: int) -> None:
        self._status = status
        if status >= 400:
            self.error_statuses.append(status)


def _import_client() -> type[Client]:
    try:
        from mcp import Client
    except ImportError as error:
        raise ConfigurationError(
            "MCP support is not installed. Run: pip install 'interlingua[mcp]'."
        ) from error
    return Client


async def _list_tools(client: Client, most: int) -> list[UncheckedJson]:
    """The tools of a server, each name once; one more than `most` if there are more."""
    tools: dict[str, UncheckedJson] = {}
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        try:
            page = await client.list_tools(cursor=cursor)
        except Exception as error:
            if _code_of(error) == _METHOD_NOT_FOUND:
                return [*tools.values()]  # the server has only resources or prompts
            raise
        for tool in page.tools:
            if len(tools) <= most:
                tools.setdefault(tool.name, _dump(tool))
        cursor = page.next_cursor
        if not cursor or len(tools) > most:
            return [*tools.values()]
        if cursor in seen:
            raise DecodeError("The MCP server repeats a page in its list of tools.")
        seen.add(cursor)


def _dump(model: BaseModel) -> UncheckedJson:
    """The wire form of a value of the `mcp` package."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _error_of(task: asyncio.Task[None]) -> BaseException:
    error = None if task.cancelled() else task.exception()
    return error or ConnectionError("The session has ended.")


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


# Exceptions of the `mcp` package as our errors, with secrets redacted.

# JSON-RPC error codes; the last two are those of the `mcp` package.
_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602
_CONNECTION_CLOSED = -32000
_TIMED_OUT = -32001
# Code and message of the `mcp` package for an HTTP 404 and for any other status from 400.
_SESSION_EXPIRED = (-32600, "Session terminated")
_HTTP_ERROR = (-32603, "Server returned an error response")
_START_FAILURES = (FileNotFoundError, PermissionError, NotADirectoryError, OSError, ValueError)
_MAX_MESSAGE = 2_000
_NO_SECRETS = Redactor()


def _code_of(error: BaseException) -> int | None:
    """The JSON-RPC code of an error from the server or the protocol."""
    code = getattr(_first(error), "code", None)
    return code if isinstance(code, int) else None


def connect_failure(
    error: BaseException, name: str, *, status: int | None = None, redactor: Redactor = _NO_SECRETS
) -> SDKError:
    """
    The error for a session that could not be opened.

    `status` is the status of the last HTTP response, if there was one.
    """
    cause = _first(error)
    if isinstance(cause, SDKError):
        return cause
    reason = _reason(cause, redactor)
    if status is not None and status >= 400:
        message = f"The MCP server {name} rejected the session (HTTP {status}): {reason}"
        return make_error(status, {}, Fault(message))
    # By exact type: subclasses such as ConnectionError and UnicodeDecodeError have other causes.
    if type(cause) in _START_FAILURES:
        reason = redactor.redact_message(getattr(cause, "strerror", None) or str(cause))
        return ConfigurationError(f"The MCP server {name} could not be started: {reason}")
    if isinstance(cause, ValueError):
        return DecodeError(f"The MCP server {name} sent an invalid message: {reason}")
    if _code_of(cause) == _CONNECTION_CLOSED:
        return NetworkError(f"The MCP server {name} ended before the session was open.")
    return NetworkError(f"No session with the MCP server {name}: {reason}")


def call_failure(
    error: BaseException,
    name: str,
    *,
    timeout: float | None = None,
    statuses: Sequence[int] = (),
    redactor: Redactor = _NO_SECRETS,
) -> SDKError:
    """
    The error for a call without a result. The model may see its message.

    `statuses` are the HTTP error statuses that any call received during this one.
    """
    cause = _first(error)
    if isinstance(cause, SDKError):
        return cause
    code = _code_of(cause)
    # The `mcp` package does not say which call a status belongs to.
    if (code, str(cause)) == _HTTP_ERROR and len(set(statuses)) == 1:
        message = f"The MCP server {name} rejected the tool call (HTTP {statuses[0]})."
        return make_error(statuses[0], {}, Fault(message))
    if isinstance(cause, TimeoutError) or code == _TIMED_OUT:
        limit = "" if timeout is None else f" within {timeout:g} s"
        # Not retryable: the tool may have run.
        return RequestTimeoutError(
            f"The MCP server {name} did not answer{limit}.", phase="request", retryable=False
        )
    reason = _reason(cause, redactor)
    if code in (_METHOD_NOT_FOUND, _INVALID_PARAMS):
        return InvalidToolCallError(f"The MCP server {name} rejected the tool call: {reason}")
    if code is not None and code != _CONNECTION_CLOSED:
        return SDKError(f"The MCP server {name} failed: {reason}")
    # The `mcp` package raises these for a result that does not match the tool's output schema.
    if isinstance(cause, (RuntimeError, ValueError)):
        return DecodeError(f"The MCP server {name} returned an invalid result: {reason}")
    return NetworkError(f"The connection to the MCP server {name} is closed: {reason}")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason(error: BaseException, redactor: Redactor) -> str:
    return redactor.redact_message(str(error) or type(error).__name__)[:_MAX_MESSAGE]
