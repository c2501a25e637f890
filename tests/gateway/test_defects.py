"""A defect of the gateway: the client gets its own 500, and the log the reason."""

import asyncio
import json

import pytest

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.serving.client_application import Caller, ClientApplication
from interlingua.simulator import Simulator, text
from interlingua.transport import AsgiTransport

PATHS = {
    "/v1/chat/completions": {"error"},
    "/v1/responses": {"error"},
    "/v1/messages": {"type", "error", "request_id"},
    "/v1beta/models/m:generateContent": {"error"},
}
HEADERS = [(b"anthropic-version", b"2023-06-01")]


def ask(app, path, body):
    """The messages that the application sends."""
    sent = []

    async def main():
        parts = iter([{"type": "http.request", "body": json.dumps(body).encode()}])

        async def receive():
            return next(parts, None) or await asyncio.get_running_loop().create_future()

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": path, "headers": HEADERS}
        await app(scope, receive, send)

    asyncio.run(main())
    return sent


def broken(_incoming):
    raise ValueError("secret words")


@pytest.mark.parametrize("path", PATHS)
def test_the_client_gets_an_error_of_its_own_form(path, caplog):
    """Without the reason, which is in the log."""
    start, body = ask(ClientApplication(Client({}), authorize=broken), path, {"model": "m"})
    told = json.loads(body["body"])

    assert start["status"] == 500
    assert set(told) == PATHS[path]
    assert "Its log says why" in told["error"]["message"]
    assert b"secret words" not in body["body"]
    assert "secret words" in caplog.text


def test_a_stream_that_has_begun_is_cut():
    """Nothing else can be sent in it, and a whole answer would be believed."""
    transport = AsgiTransport(Simulator(text("One two three. " * 50)))
    adapter = HttpAdapter("anthropic", "k", base_url="http://x.invalid", transport=transport)
    app = ClientApplication(Client({"anthropic": adapter}), authorize=lambda _: Caller())
    body = {
        "model": "anthropic:claude-haiku-4-5",
        "stream": True,
        "messages": [{"role": "user", "content": "Hi"}],
    }

    async def main():
        parts = iter([{"type": "http.request", "body": json.dumps(body).encode()}])

        async def receive():
            return next(parts, None) or await asyncio.get_running_loop().create_future()

        async def send(message):
            if message["type"] == "http.response.body":
                raise ValueError("a defect")

        scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
        await app(scope, receive, send)

    with pytest.raises(ValueError, match="a defect"):
        asyncio.run(main())
