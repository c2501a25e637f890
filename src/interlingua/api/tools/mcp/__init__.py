"""The tools of MCP servers, for any model."""

from interlingua.api.tools.mcp.servers import MCPHttpServer, McpServer, MCPStdioServer
from interlingua.api.tools.mcp.tools import McpTools, mcp_tools

__all__ = ["MCPHttpServer", "MCPStdioServer", "McpServer", "McpTools", "mcp_tools"]
