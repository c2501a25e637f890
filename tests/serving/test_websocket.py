"""WebSockets are refused in the way that makes a client use HTTP."""

import asyncio

import pytest

from interlingua.serving.server import serve_in_thread
from interlingua.simulator import Simulator, text
from support.simulator_calls import call

UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.mark.parametrize("path", ["/v1/responses", "/responses"])
def test_a_websocket_gets_426(path):
    """Codex tries a WebSocket first, and falls back to HTTP only after a 426 (field bug 102)."""
    reply = call(Simulator(text("hi")), path, headers=UPGRADE, method="GET")

    assert reply.status == 426
    assert "WebSocket" in reply.json["error"]["message"]
    assert call(Simulator(text("hi")), path, method="GET").status == 404


def test_a_websocket_gets_426_on_a_socket():
    """Over HTTP, with the headers that clients send."""

    async def ask(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        lines = ["GET /v1/responses HTTP/1.1", *(f"{k}: {v}" for k, v in UPGRADE.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return head

    with serve_in_thread(Simulator(text("hi"))) as server:
        assert asyncio.run(ask(server.port)).startswith(b"HTTP/1.1 426 Upgrade Required")


@pytest.mark.parametrize("extensions", [{"websocket.http.response": {}}, {}, None])
def test_a_websocket_scope_is_refused(extensions):
    """Another ASGI server hands WebSockets over: 426 if it can send a status, else a close."""
    scope = {"type": "websocket", "path": "/v1/responses", "headers": []}
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append((message["type"], message.get("status")))

    more = {} if extensions is None else {"extensions": extensions}
    asyncio.run(Simulator()({**scope, **more}, receive, send))
    if extensions:
        assert sent == [
            ("websocket.http.response.start", 426),
            ("websocket.http.response.body", None),
        ]
    else:
        assert sent == [("websocket.close", None)]
