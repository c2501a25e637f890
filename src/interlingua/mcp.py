"""
The tools of MCP servers, for any model. Needs the extra `mcp`.

Import from here to connect to a server: `async with mcp_tools(MCPStdioServer(...)) as tools`.
"""

from interlingua.api.tools.mcp.servers import MCPHttpServer, MCPStdioServer
from interlingua.api.tools.mcp.tools import mcp_tools

__all__ = ["MCPHttpServer", "MCPStdioServer", "mcp_tools"]
