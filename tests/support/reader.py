"""The environment of a reader of the documentation: keys, addresses, files; simulated models."""

import base64
from collections import deque
from contextlib import contextmanager

import interlingua
from interlingua import Client, HttpAdapter, dialects, set_default_client, simulator
from interlingua.catalog import AwsCredentials
from interlingua.client.environment_adapters import adapters_from_env
from interlingua.providers.catalog.models import reset_table
from interlingua.simulator import (
    Simulator,
    VideoScript,
    latency,
    serve_in_thread,
    text,
    use_tools,
)
from support.redis_server import find_server, redis_url

KEYS = ("OPENAI", "ANTHROPIC", "GEMINI")
PREPARED = deque()
"""What a page says that the next calls are answered; first come, first served."""

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQ"
    "DwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
NOTES = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("notes", log_level="CRITICAL")

@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

server.run("stdio")
'''
FILES = {
    "picture.png": base64.b64decode(PIXEL),
    "report.pdf": b"%PDF-1.7\n" + bytes(600_000),
    "notes.py": NOTES.encode(),
}
"""What a reader has in the working folder."""


def write_files(folder):
    """Write the files of the reader into a folder."""
    for name, content in FILES.items():
        (folder / name).write_bytes(content)


def answer(request):
    """An object, calls of all tools, or a text: what is asked for, and not at once."""
    pace = latency(between=0.001)
    if PREPARED:
        return pace + PREPARED.popleft()  # its own pace counts, if it has one
    if request.response_format is not None:
        person = '{"name": "Alice", "age": 30}'
        is_list = "value" in (request.response_format.json_schema or {}).get("properties", ())
        return text(f'{{"value": [{person}]}}' if is_list else person) + pace
    return use_tools(request) + pace


def prepare_answers(expression):
    """Answer the next calls with these turns: Python, with the names of library and simulator."""
    names = {
        name: getattr(module, name)
        for module in (interlingua, simulator)
        for name in module.__all__
    }
    turns = eval(f"[{expression}]", names)  # noqa: S307 -- our own pages
    PREPARED.extend(text(turn) if isinstance(turn, str) else turn for turn in turns)


def other_adapters(url):
    """Providers beside those of `KEYS` that a reader has configured; the simulator is there."""
    key, region = "a-key-of-the-reader", {"region": "eu-central-1"}
    aws = AwsCredentials(access_key_id="AKIDEXAMPLE", secret_access_key=key)
    return {
        "bedrock": HttpAdapter("bedrock", aws, base_url=url, places=region),
        "cohere": HttpAdapter("cohere", key, base_url=f"{url}/compatibility/v1"),
        "local": HttpAdapter("local", base_url=f"{url}/v1"),
        "ollama": HttpAdapter("ollama", base_url=f"{url}/v1"),
        "xai": HttpAdapter("xai", key, base_url=f"{url}/v1"),
    }


@contextmanager
def simulated_providers(monkeypatch, *answers):
    """Set the variables and the default client; the simulator answers."""
    monkeypatch.setattr(dialects, "_registered", {})  # what a page registers is for it alone
    videos = [VideoScript(polls=0), VideoScript()]  # the first video of a page is ready at once
    with serve_in_thread(Simulator(*answers or [answer], videos=videos)) as server:
        for name in KEYS:
            monkeypatch.setenv(f"{name}_API_KEY", "a-key-of-the-reader")
            monkeypatch.setenv(f"{name}_BASE_URL", server.url)
        if find_server() is not None:
            monkeypatch.setenv("REDIS_URL", redis_url())
        set_default_client(Client({**adapters_from_env(), **other_adapters(server.url)}))
        try:
            yield server
        finally:
            PREPARED.clear()
            set_default_client(None)
            reset_table()
