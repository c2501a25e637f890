"""Where an MCP server is, and how to reach it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, Union
from urllib.parse import urlsplit

import msgspec

from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from mcp import StdioServerParameters
    from mcp.client import Transport

_SHORTEST_SECRET = 6  # a shorter value ("1", "true") is no secret, but a word of many messages


class MCPStdioServer(msgspec.Struct, frozen=True, kw_only=True):
    """A program that speaks MCP over its standard input and output."""

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    """Beside the few variables (`PATH`, `HOME`, …) that every server inherits."""
    cwd: str | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "args", tuple(self.args))
        msgspec.structs.force_setattr(self, "env", dict(self.env))

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What may be shown: arguments and values may be keys."""
        return [("command", self.command), ("env", tuple(self.env))]

    def __repr__(self) -> str:
        return _represent(self)


class MCPHttpServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server that speaks MCP over streamable HTTP."""

    url: str
    headers: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            is_web = parts.scheme in {"http", "https"} and bool(parts.hostname)
        except ValueError:
            is_web = False
        if not is_web:
            raise ConfigurationError("the URL of an MCP server begins with http:// or https://")
        msgspec.structs.force_setattr(self, "headers", dict(self.headers))

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What may be shown: the path and the query of a URL may be keys too."""
        return [("host", name_of(self)), ("headers", tuple(self.headers))]

    def __repr__(self) -> str:
        return _represent(self)


MCPServer: TypeAlias = Union[
    MCPStdioServer, MCPHttpServer, str, "StdioServerParameters", "Transport"
]
"""
A server; text is the URL of one.

The `mcp` package's own `StdioServerParameters` and transports (an HTTP client that logs in with
OAuth, say) are taken as well.
"""


def name_of(server: MCPServer) -> str:
    """What messages call it; nothing secret."""
    if isinstance(server, MCPHttpServer):
        return urlsplit(server.url).hostname or ""
    if isinstance(server, str):
        return name_of(MCPHttpServer(url=server))
    command = getattr(server, "command", None)
    return PurePath(command).name if isinstance(command, str) else type(server).__name__


def secrets_of(server: MCPServer) -> tuple[str, ...]:
    """What must appear in no message, the longest first."""
    values: set[str] = set()
    for field in ("env", "headers"):
        for value in (getattr(server, field, None) or {}).values():
            values.update((value, *value.split()))  # "Bearer …" and the bare key
    url = server if isinstance(server, str) else getattr(server, "url", None)
    if isinstance(url, str):
        parts = urlsplit(url)
        values.update((url, parts.path, parts.query, parts.password or ""))
    return tuple(
        sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)
    )


def open_transport(
    server: MCPServer,
    *,
    connect_timeout: float | None,
    errlog: TextIO | None,
    on_status: Callable[[int], object],
) -> AbstractAsyncContextManager[Any]:
    """The transport of the `mcp` package for a server; `on_status` sees each HTTP status."""
    from mcp import StdioServerParameters

    if isinstance(server, str):
        server = MCPHttpServer(url=server)
    if isinstance(server, MCPHttpServer):
        return _open_http(server, connect_timeout, on_status)
    if isinstance(server, MCPStdioServer):
        server = StdioServerParameters(
            command=server.command,
            args=list(server.args),
            env=dict(server.env),
            cwd=server.cwd,
            encoding_error_handler="replace",  # else one bad byte would end the reading in silence
        )
    if isinstance(server, StdioServerParameters):
        return _open_stdio(server, errlog)
    return server


@asynccontextmanager
async def _open_stdio(server: StdioServerParameters, errlog: TextIO | None) -> AsyncIterator[Any]:
    from mcp import stdio_client

    with _stderr(errlog) as file:
        async with stdio_client(server, errlog=file) as streams:
            yield streams


@asynccontextmanager
async def _open_http(
    server: MCPHttpServer, connect_timeout: float | None, on_status: Callable[[int], object]
) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def note(response: httpx2.Response) -> None:
        on_status(response.status_code)

    client = httpx2.AsyncClient(
        headers=dict(server.headers),
        timeout=httpx2.Timeout(None, connect=connect_timeout),  # each call has a clock of its own
        event_hooks={"response": [note]},
    )
    async with client, streamable_http_client(server.url, http_client=client) as streams:
        yield streams


@contextmanager
def _stderr(errlog: TextIO | None) -> Iterator[TextIO]:
    """The file a server's messages go to: ours, unless we have none, as in some notebooks."""
    file = sys.stderr if errlog is None else errlog
    try:
        file.fileno()
    except (AttributeError, OSError) as error:
        if errlog is not None:
            raise ConfigurationError("errlog must be a real file, with a descriptor") from error
        with open(os.devnull, "w", encoding="utf-8") as nothing:  # noqa: PTH123 -- no path of ours
            yield nothing
    else:
        yield file


def _represent(server: MCPStdioServer | MCPHttpServer) -> str:
    fields = ", ".join(f"{name}={value!r}" for name, value in server.__rich_repr__())
    return f"{type(server).__name__}({fields})"
