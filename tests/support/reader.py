"""The environment of someone who reads the documentation: keys and addresses; simulated models."""

from collections import deque
from contextlib import contextmanager

from interlingua import Client, HttpAdapter, dialects, set_default_client, simulator
from interlingua.client.environment_adapters import adapters_from_env
from interlingua.providers.catalog.models import reset_table
from interlingua.simulator import Simulator, latency, serve_in_thread, text, use_tools
from support.redis_server import find_server, redis_url

KEYS = ("OPENAI", "ANTHROPIC", "GEMINI")
PREPARED = deque()
"""What a page says that the next calls are answered; first come, first served."""


def answer(request):
    """An object, calls of all tools, or a text: what is asked for, and not at once."""
    pace = latency(between=0.001)
    if PREPARED:
        return PREPARED.popleft() + pace
    if request.response_format is not None:
        person = '{"name": "Alice", "age": 30}'
        is_list = "value" in (request.response_format.json_schema or {}).get("properties", ())
        return text(f'{{"value": [{person}]}}' if is_list else person) + pace
    return use_tools(request) + pace


def prepare_answers(expression):
    """Answer the next calls with these turns: Python, with the names of the simulator."""
    names = {name: getattr(simulator, name) for name in simulator.__all__}
    turns = eval(f"[{expression}]", names)  # noqa: S307 -- our own pages
    PREPARED.extend(text(turn) if isinstance(turn, str) else turn for turn in turns)


@contextmanager
def simulated_providers(monkeypatch, *answers):
    """Set the variables and the default client; the simulator answers."""
    monkeypatch.setattr(dialects, "_registered", {})  # what a page registers is for it alone
    with serve_in_thread(Simulator(*answers or [answer])) as server:
        for name in KEYS:
            monkeypatch.setenv(f"{name}_API_KEY", "a-key-of-the-reader")
            monkeypatch.setenv(f"{name}_BASE_URL", server.url)
        if find_server() is not None:
            monkeypatch.setenv("REDIS_URL", redis_url())
        local = HttpAdapter("local", base_url=f"{server.url}/v1")
        xai = HttpAdapter("xai", "a-key-of-the-reader", base_url=f"{server.url}/v1")
        set_default_client(Client({**adapters_from_env(), "xai": xai, "local": local}))
        try:
            yield server
        finally:
            PREPARED.clear()
            set_default_client(None)
            reset_table()
