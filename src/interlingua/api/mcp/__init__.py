"""MCP: the tools of servers, for any model."""

from interlingua.api.mcp.servers import HttpServer, McpServer, StdioServer
from interlingua.api.mcp.tools import McpTools, mcp_tools

__all__ = ["HttpServer", "McpServer", "McpTools", "StdioServer", "mcp_tools"]
