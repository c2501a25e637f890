"""
An MCP server of the older protocol in a few lines, for what no library would do.

    python mcp_plain.py [circle | bare | schemas | noise | many | loud]

It starts at once, and writes its process id into the file that `PID_FILE` names. `circle` lists
its tools without end, `bare` has none, `schemas` has tools that nobody can call, and
`noise` writes what is no message between its answers. `many` has more tools on each page, for
ever, and `loud` writes thousands of lines that are no message to stdout, and megabytes to stderr.
"""

import json
import os
import pathlib
import sys
import time

KIND = sys.argv[1] if len(sys.argv) > 1 else ""
SCHEMA = {"type": "object", "properties": {"x": {"default": None}}}
OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def tool(name, **fields):
    return {"name": name, "inputSchema": SCHEMA, **fields}


TOOLS = [
    tool("echo", description="Say it again.", title="Echo"),
    tool("echo", description="The same name once more."),
    tool("untrue", title="Breaks its promise", outputSchema=OUTPUT),
    tool("broken", annotations={"title": "No result"}),
    tool("leak"),
    tool("die"),
    tool("hang"),
]

PROPERTIES = {
    "dangling": {"$ref": "#/definitions/missing"},
    "mistyped": {"type": "strin"},
    "remote": {"$ref": "https://example.com/x.json"},
    "third_draft": {"type": "string", "required": True},
}
if KIND == "schemas":
    TOOLS[1:] = [
        {"name": name, "inputSchema": {"type": "object", "properties": {"a": schema}}}
        for name, schema in PROPERTIES.items()
    ]


def call(name, arguments):
    if KIND == "loud":
        sys.stdout.write("no message\n" * 2_000)
        sys.stderr.write(("x" * 99 + "\n") * 20_000)
        sys.stderr.flush()
    if KIND == "noise":
        sys.stdout.buffer.write(b"ready?\n\n\xff\xfe\n[1, 2]\n")
    if name == "echo":
        return {"content": [{"type": "text", "text": json.dumps(arguments)}]}
    if name == "untrue":
        return {"content": [], "structuredContent": {"n": "one"}}
    if name == "leak":
        said = f"{os.environ.get('API_KEY')} is wrong"
        if arguments.get("x") == "json":
            return {"content": [], "structuredContent": {"why": [said, 1]}, "isError": True}
        block = {"type": "text", "text": said}
        return {"content": [block] * (1 + bool(arguments.get("x"))), "isError": True}
    if name == "die":
        sys.exit(3)
    if name == "hang":
        time.sleep(600)
    return {"content": 7}


def answer(method, params):
    if method == "initialize":
        say({"method": "notifications/tools/list_changed"})
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "plain", "version": "1"},
        }
    if method == "tools/list" and KIND == "many":
        page = int(params.get("cursor", "0"))
        tools = [tool(f"tool_{number}") for number in range(100 * page, 100 * page + 100)]
        return {"tools": tools, "nextCursor": str(page + 1)}
    if method == "tools/list" and KIND != "bare":
        return {"tools": TOOLS, **({"nextCursor": "again"} if KIND == "circle" else {})}
    if method == "tools/call":
        return call(params["name"], params.get("arguments"))
    return None


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if "PID_FILE" in os.environ:
        pathlib.Path(os.environ["PID_FILE"]).write_text(str(os.getpid()), encoding="utf-8")
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params") or {})
        missing = {"code": -32601, "message": f"no {request['method']}"}
        say({"id": request["id"], **({"error": missing} if result is None else {"result": result})})
