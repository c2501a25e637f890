"""The tools of MCP servers, for the blocking functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TextIO

from interlingua.api.tools.mcp import MCPServer, MCPTools
from interlingua.api.tools.mcp import mcp_tools as asynchronous
from interlingua.sync.loop_thread import background


@contextmanager
def mcp_tools(
    server: MCPServer | Mapping[str, MCPServer],
    *,
    prefix: str = "",
    only: Collection[str] | None = None,
    connect_timeout: float | None = 30.0,
    timeout: float | None = 60.0,
    errlog: TextIO | None = None,
) -> Iterator[MCPTools]:
    """
    The tools of a server, or of several by name, for as long as the block is open.

        with mcp_tools(MCPStdioServer(command="uvx", args=["mcp-server-git"])) as tools:
            result = generate(model, prompt, tools=tools)

    As its async twin says in full.
    """
    held = asynchronous(
        server,
        prefix=prefix,
        only=only,
        connect_timeout=connect_timeout,
        timeout=timeout,
        errlog=errlog,
    )
    tools = background.run(_enter(held))
    try:
        yield tools
    finally:
        background.run(_leave(held))


async def _enter(held: AbstractAsyncContextManager[MCPTools]) -> MCPTools:
    return await held.__aenter__()


async def _leave(held: AbstractAsyncContextManager[MCPTools]) -> None:
    await held.__aexit__(None, None, None)
