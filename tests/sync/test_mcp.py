"""MCP tools for the blocking functions."""

import sys
from pathlib import Path

import pytest
from mcp import StdioServerParameters

from interlingua import sync
from interlingua.simulator import text, tool_call, tool_loop
from interlingua.spec.errors import ConfigurationError
from support.blocking import blocking, named

SERVER = StdioServerParameters(
    command=sys.executable, args=[str(Path(__file__).parents[1] / "support" / "mcp_plain.py")]
)


def test_tools_of_a_server():
    """They are there while the block is open, whoever calls; then their server is gone."""
    with blocking(tool_loop(tool_call("echo", x="1"), text("done"))) as (_, client):
        with sync.mcp_tools(SERVER, only=["echo"]) as tools:
            result = sync.generate(named("openai"), "Hi", tools=tools, client=client)
        after = sync.generate(named("openai"), "Hi", tools=tools, client=client)

    assert result.text == "done"
    assert not result.steps[0].tool_results[0].is_error
    assert after.steps[0].tool_results[0].is_error


def test_a_body_that_fails():
    """Its error goes on, and the server is left all the same."""
    with pytest.raises(KeyError), sync.mcp_tools(SERVER):
        raise KeyError("no")
    with pytest.raises(ConfigurationError), sync.mcp_tools(SERVER, only=["nothing"]):
        pass
