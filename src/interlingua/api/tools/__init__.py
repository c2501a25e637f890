"""Tools: definitions, argument checks, execution, MCP."""
