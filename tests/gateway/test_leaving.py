"""Clients that leave: the call of the model ends, in whatever phase it is."""

import asyncio
import json
import time

import pytest

from interlingua import AnthropicAdapter, Client, GeminiAdapter, OpenAIAdapter
from interlingua.serving import ClientApplication, stream_delivery
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


def in_process(ends):
    """A request to an application in a task of this program, which ends so."""
    client = Client({"openai": OpenAIAdapter(api_key="k", base_url="http://127.0.0.1:9/v1")})
    app = ClientApplication(client)
    waiting = asyncio.Event()

    async def wait(_incoming, _send):
        waiting.set()
        await asyncio.Event().wait()

    app._work = wait

    async def run():
        left = asyncio.Event()

        async def receive():
            await left.wait()
            return {"type": "http.disconnect"}

        task = asyncio.create_task(app.handle(None, receive, None))
        await waiting.wait()
        if "client" in ends:
            left.set()
            if ends == "client and program":
                await asyncio.sleep(0)
        if "program" in ends:
            task.cancel()
        await asyncio.wait({task})
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.sleep(0)
        await client.close()
        return task.cancelled(), task.cancelling(), [each for each in others if not each.done()]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("ends", "is_cancelled"), [("client", False), ("program", True), ("client and program", True)]
)
def test_a_client_that_leaves_does_not_cancel_the_task_of_the_program(ends, is_cancelled):
    """It ends its request only; whoever cancels the task itself sees that."""
    cancelled, _, left = in_process(ends)

    assert cancelled is is_cancelled
    assert left == []


def test_a_task_that_was_left_by_a_client_goes_on():
    """Nothing of the cancellation stays with it."""
    assert in_process("client")[1] == 0
