"""Addresses of MCP servers, and the transports to them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, Union
from urllib.parse import urlsplit

import msgspec

from interlingua.api.tools.mcp.noise import limited_stderr
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from mcp import StdioServerParameters
    from mcp.client import Transport

_COPY_SECONDS = 0.5  # to wait for the rest of stderr; another process may hold it open
_MIN_SECRET = 6  # shorter values ("1", "true") are not secrets, and occur in many messages


class MCPStdioServer(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server that is started as a process and speaks over stdin and stdout."""

    command: str
    """The program to start."""
    args: Sequence[str] = ()
    """Its arguments."""
    env: Mapping[str, str] = {}
    """Environment variables, in addition to the few (`PATH`, `HOME`, …) that servers inherit."""
    cwd: str | None = None
    """The folder that it is started in."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "args", tuple(self.args))
        msgspec.structs.force_setattr(self, "env", dict(self.env))

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The fields without `args` and the values of `env`, which may contain keys."""
        return [("command", self.command), ("env", tuple(self.env))]

    def __repr__(self) -> str:
        return _represent(self)


class MCPHttpServer(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server that is reached by streamable HTTP."""

    url: str
    """The address of the server."""
    headers: Mapping[str, str] = {}
    """Headers for each request, such as a key."""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            is_web = parts.scheme in {"http", "https"} and bool(parts.hostname)
        except ValueError:
            is_web = False
        if not is_web:
            raise ConfigurationError(
                "The URL of an MCP server must begin with http:// or https://."
            )
        msgspec.structs.force_setattr(self, "headers", dict(self.headers))

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The host and the header names; the path and query of the URL may contain keys."""
        return [("host", name_of(self)), ("headers", tuple(self.headers))]

    def __repr__(self) -> str:
        return _represent(self)


MCPServer: TypeAlias = Union[
    MCPStdioServer, MCPHttpServer, str, "StdioServerParameters", "Transport"
]
"""
An MCP server; a string is its URL.

`StdioServerParameters` and transports of the `mcp` package (for example an HTTP client with OAuth)
are accepted too.
"""


def check_server(server: object) -> None:
    """Raise `ConfigurationError` if this is not an MCP server."""
    is_known = isinstance(server, (MCPStdioServer, MCPHttpServer, str)) or (
        hasattr(server, "command") or hasattr(server, "__aenter__")
    )
    if not is_known:
        raise ConfigurationError(
            f"A {type(server).__name__} is not an MCP server. Pass an MCPStdioServer, an "
            "MCPHttpServer or a URL; for several, a mapping such as {'git': server, 'web': url}."
        )


def name_of(server: MCPServer) -> str:
    """The name of the server in messages: its host, or its command without the path."""
    if isinstance(server, MCPHttpServer):
        return urlsplit(server.url).hostname or ""
    if isinstance(server, str):
        return name_of(MCPHttpServer(url=server))
    command = getattr(server, "command", None)
    return PurePath(command).name if isinstance(command, str) else type(server).__name__


def secrets_of(server: MCPServer) -> frozenset[str]:
    """The configured values that may be keys, and must not appear in any message."""
    values: set[str] = set()
    for field in ("env", "headers"):
        for value in (getattr(server, field, None) or {}).values():
            values.update((value, *value.split()))  # "Bearer …" and the key alone
    url = server if isinstance(server, str) else getattr(server, "url", None)
    if isinstance(url, str):
        parts = urlsplit(url)
        values.update((url, parts.path, parts.query, parts.password or ""))
    return frozenset(value for value in values if len(value) >= _MIN_SECRET)


def open_transport(
    server: MCPServer,
    *,
    name: str = "",
    connect_timeout: float | None,
    errlog: TextIO | None,
    on_status: Callable[[int], object],
    on_stderr: Callable[[bytes], object] = lambda _: None,
) -> AbstractAsyncContextManager[Any]:
    """
    The `mcp` transport to a server.

    `on_status` is called with each HTTP status, `on_stderr` with what a stdio server writes there.
    """
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
            # With "strict", one invalid byte would end the reader without an error.
            encoding_error_handler="replace",
        )
    if isinstance(server, StdioServerParameters):
        return _open_stdio(server, name, errlog, on_stderr)
    return server


@asynccontextmanager
async def _open_stdio(
    server: StdioServerParameters,
    name: str,
    errlog: TextIO | None,
    on_stderr: Callable[[bytes], object],
) -> AsyncIterator[Any]:
    from mcp import stdio_client

    with _stderr(errlog) as file:
        write = partial(_write, file)
        uses = (on_stderr, write if errlog is not None else limited_stderr(name, write))
        with _copied(*uses) as copy:
            async with stdio_client(server, errlog=copy) as streams:
                yield streams


def _write(file: TextIO, chunk: bytes) -> None:
    with suppress(OSError, ValueError):  # `file` may be closed
        os.write(file.fileno(), chunk)


@contextmanager
def _copied(*uses: Callable[[bytes], object]) -> Iterator[TextIO]:
    """A file to write to; each of the functions gets what is written."""
    source, target = os.pipe()

    def copy() -> None:
        with os.fdopen(source, "rb", 0) as pipe:
            while chunk := pipe.read(4096):
                for use in uses:
                    use(chunk)

    thread = threading.Thread(target=copy, name="mcp-stderr", daemon=True)
    thread.start()
    try:
        with os.fdopen(target, "w", encoding="utf-8") as writer:
            yield writer
    finally:
        thread.join(_COPY_SECONDS)


@asynccontextmanager
async def _open_http(
    server: MCPHttpServer, connect_timeout: float | None, on_status: Callable[[int], object]
) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def report_status(response: httpx2.Response) -> None:
        on_status(response.status_code)

    client = httpx2.AsyncClient(
        headers=dict(server.headers),
        timeout=httpx2.Timeout(None, connect=connect_timeout),  # `Session` limits each call
        event_hooks={"response": [report_status]},
    )
    async with client, streamable_http_client(server.url, http_client=client) as streams:
        yield streams


@contextmanager
def _stderr(errlog: TextIO | None) -> Iterator[TextIO]:
    """`errlog`, or else our stderr; the null device if that has no descriptor, as in notebooks."""
    file = sys.stderr if errlog is None else errlog
    try:
        file.fileno()
    except (AttributeError, OSError) as error:
        if errlog is not None:
            raise ConfigurationError("`errlog` must be a real file with a descriptor.") from error
        with open(os.devnull, "w", encoding="utf-8") as null:  # noqa: PTH123 -- a device
            yield null
    else:
        yield file


def _represent(server: MCPStdioServer | MCPHttpServer) -> str:
    fields = ", ".join(f"{name}={value!r}" for name, value in server.__rich_repr__())
    return f"{type(server).__name__}({fields})"
