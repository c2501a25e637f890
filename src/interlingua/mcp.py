"""
The tools of MCP servers, for any model. Needs the extra `mcp`.

Import from here to connect to a server: `async with mcp_tools(MCPStdioServer(...)) as tools`.
"""

from interlingua.api.tools.mcp import MCPHttpServer, MCPStdioServer, mcp_tools

__all__ = ["MCPHttpServer", "MCPStdioServer", "mcp_tools"]
