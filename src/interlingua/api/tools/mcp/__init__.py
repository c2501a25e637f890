"""The tools of MCP servers, for any model."""
