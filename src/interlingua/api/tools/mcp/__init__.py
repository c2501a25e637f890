"""The tools of MCP servers, for any model."""

from interlingua.api.tools.mcp.servers import MCPHttpServer, MCPServer, MCPStdioServer
from interlingua.api.tools.mcp.tools import MCPTools, mcp_tools

__all__ = ["MCPHttpServer", "MCPServer", "MCPStdioServer", "MCPTools", "mcp_tools"]
