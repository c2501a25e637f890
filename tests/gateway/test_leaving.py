"""Clients that leave: the call of the model ends, in whatever phase it is."""

import json
import time

import pytest

from interlingua import AnthropicAdapter, GeminiAdapter, OpenAIAdapter
from interlingua.serving import stream_delivery
from interlingua.simulator import Script, Simulator, latency, serve_in_thread, text
from support.gateways import gateway, open_socket
from support.patience import PATIENCE

PATHS = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    "responses": ("/v1/responses", {"input": "Hi"}),
    "messages": (
        "/v1/messages",
        {"max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]},
    ),
}
MODELS = ["openai:gpt-5.2", "anthropic:claude-haiku-4-5", "gemini:gemini-2.5-flash"]


def adapters(url):
    """An adapter of each vendor; all lead to the simulator at this address."""
    return {
        "openai": OpenAIAdapter(api_key="k", base_url=f"{url}/v1"),
        "anthropic": AnthropicAdapter(api_key="k", base_url=url),
        "gemini": GeminiAdapter(api_key="k", base_url=url),
    }


def request_of(key, name, model, **fields):
    """The bytes of a request."""
    path, body = PATHS[name]
    data = json.dumps({**body, "model": model, **fields}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
        f"anthropic-version: 2023-06-01\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def wait_until(condition):
    """Wait until it holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("phase", ["a whole answer", "before the first event", "in a pause"])
def test_a_client_that_leaves_ends_the_call_of_the_model(phase, name, model, monkeypatch):
    """While it waits for a whole answer, before the first event, and in a pause of the stream."""
    monkeypatch.setattr(stream_delivery, "HOLD", 0.05)  # the first content comes after a pause
    pace = latency(between=PATIENCE * 2) if phase == "in a pause" else latency(first=PATIENCE * 2)
    script = Script(lambda _request: text("One two three.") + pace)
    with serve_in_thread(Simulator(script)) as upstream, gateway(adapters(upstream.url)) as front:
        is_stream = phase != "a whole answer"
        with open_socket(front.url) as client:
            client.sendall(request_of(front.key, name, model, stream=is_stream))
            wait_until(lambda: script.received)
            if phase == "in a pause":
                assert client.recv(1000).startswith(b"HTTP/1.1 200")
            assert script.received[0].disconnected is None
        wait_until(lambda: script.received[0].disconnected is not None)
