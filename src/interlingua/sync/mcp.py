"""`mcp_tools`, blocking."""

from typing import Final

from interlingua.api.tools.mcp import tools as mcp
from interlingua.sync.blocking import blocking_context

mcp_tools: Final = blocking_context(mcp.mcp_tools, __name__)
