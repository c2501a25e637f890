"""
An MCP server with a tool for each thing that can happen, run as a program.

    python mcp_server.py stdio     over standard input and output
    python mcp_server.py http      over streamable HTTP; prints its port
    python mcp_server.py pages     over stdio, with many tools, a few on each page of the list
"""

import base64
import os
import socket
import sys
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.mcpserver import Audio, Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "
PAGES, PAGE = 7, 5

server = MCPServer("test", log_level="CRITICAL")


@server.tool(annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=types.ToolAnnotations(destructive_hint=True, idempotent_hint=True))
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool(structured_output=False)
def plain(text: str) -> str:
    """Say it again, without structure."""
    return text


@server.tool()
def person(name: str) -> dict[str, Any]:
    """A person as an object."""
    return {"name": name, "age": None, "tags": ["a", "b"]}


@server.tool()
def contexts(messages: list[str], tool_call_id: str, self: str = "") -> dict[str, Any]:
    """Its arguments are called as what other tools are given by their caller."""
    return {"messages": messages, "tool_call_id": tool_call_id, "self": self}


@server.tool(structured_output=False)
def picture() -> list[Any]:
    """A picture and a word about it."""
    return ["a pixel", Image(data=PNG)]


@server.tool(structured_output=False)
def sound() -> Any:
    """A sound."""
    return Audio(data=WAV, format="wav")


@server.tool()
def files() -> types.CallToolResult:
    """Resources: text, bytes and a link."""
    coded = base64.b64encode(PNG).decode()
    return types.CallToolResult(
        content=[
            types.EmbeddedResource(
                resource=types.TextResourceContents(
                    uri="file:///notes.md", mime_type="text/markdown", text="# Notes"
                )
            ),
            types.EmbeddedResource(
                resource=types.BlobResourceContents(uri="file:///dot", blob=coded)
            ),
            types.ResourceLink(
                name="log", uri="file:///all.log", mime_type="text/plain", description="the log"
            ),
        ]
    )


@server.tool()
def fail(reason: str) -> str:
    """Fail with a reason."""
    raise ToolError(reason)


@server.tool()
async def slow(seconds: float) -> str:
    """Take a while."""
    await anyio.sleep(seconds)
    return "at last"


@server.tool()
async def crash() -> str:
    """End the server in the middle of the call."""
    os._exit(3)


@server.tool()
def variable(name: str) -> str:
    """A variable of the server's environment."""
    return os.environ.get(name, "")


@server.tool()
def header(name: str, ctx: Context) -> str:
    """A header of the request."""
    return ctx.headers.get(name, "") if ctx.headers else ""


for odd in ("files.read", "files/read", "1st", "größe", "n" * 100, "_hidden"):
    server.add_tool(lambda odd=odd: odd, name=odd, description=odd, structured_output=False)


async def list_pages(_, params):
    page = int(params.cursor or 0) if params else 0
    tools = [
        types.Tool(name=f"tool_{number}", input_schema={"type": "object"})
        for number in range(page * PAGE, (page + 1) * PAGE)
    ]
    after = str(page + 1) if page + 1 < PAGES else None
    return types.ListToolsResult(tools=tools, next_cursor=after)


async def name_called(_, params):
    return types.CallToolResult(content=[types.TextContent(text=params.name)])


async def run_stdio(lowlevel):
    async with stdio_server() as (read, write):
        await lowlevel.run(read, write, lowlevel.create_initialization_options())


def run_http():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    print(listener.getsockname()[1], flush=True)  # noqa: T201 -- the test reads it
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])


if __name__ == "__main__":
    match sys.argv[1]:
        case "stdio":
            server.run("stdio")
        case "http":
            run_http()
        case "pages":
            anyio.run(run_stdio, Server("many", on_list_tools=list_pages, on_call_tool=name_called))
