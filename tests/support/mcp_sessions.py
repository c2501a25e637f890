"""Sessions with MCP servers, opened and closed."""

import asyncio
import contextlib

from interlingua.api.tools.mcp.session import Session
from support.patience import PATIENCE

KEY = "key-very-secret"


def run(work):
    return asyncio.run(asyncio.wait_for(work, PATIENCE))


@contextlib.asynccontextmanager
async def opened(server, *, timeout=PATIENCE, connect_timeout=PATIENCE):  # noqa: ASYNC109 -- of a call
    session = Session(server, connect_timeout=connect_timeout, timeout=timeout)
    tools = await session.open()
    try:
        yield session, tools
    finally:
        await session.close()
