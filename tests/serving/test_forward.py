"""Requests are sent on through a transport, and their replies come back unchanged."""

import asyncio
import json
import urllib.error
import urllib.request

import pytest

from interlingua import HttpAdapter, Request
from interlingua.serving.forward import Forwarder
from interlingua.serving.server import serve_in_thread
from interlingua.simulator import Simulator, cut, stall, text
from interlingua.spec.errors import ConfigurationError, NetworkError, RequestTimeoutError, SDKError
from interlingua.sync import Client
from interlingua.transport import (
    CannedReply,
    CannedTransport,
    RecordingTransport,
    ReplayTransport,
    default_transport,
)
from support.simulated import DIALECTS, KEY, MODELS, adapters


def fetch(url, data=None, method=None, **headers):
    """Status, headers and body of a request without a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
    try:
        with opener.open(request, timeout=20) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def canned(*answers):
    """A server in front of these replies, what it has sent on, and what has happened."""
    transport = CannedTransport(answers)
    seen = []
    app = Forwarder(transport, lambda target: f"https://api.example.com{target}", seen.append)
    return serve_in_thread(app), transport, seen


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("streams", [False, True])
def test_record_and_replay_over_http(tmp_path, dialect, streams):
    """A client gets the same from the simulator, through a recorder, and from the recording."""
    path = tmp_path / "tape.json"
    request = Request(model=MODELS[dialect], messages="Hi.")

    def answer(url):
        adapter = adapters(url)[dialect]

        async def main():
            try:
                if streams:
                    return [event async for event in adapter.stream(request)][-1].response
                return await adapter.complete(request)
            finally:
                await adapter.close()

        return asyncio.run(main())

    with serve_in_thread(Simulator(text("It rains."), key=KEY)) as simulator:
        transport = RecordingTransport(default_transport(), path)
        app = Forwarder(transport, lambda target: f"{simulator.url}{target}")
        with serve_in_thread(app) as server:
            recorded = answer(server.url)
    replaying = Forwarder(ReplayTransport(path), lambda target: f"http://any{target}")
    with serve_in_thread(replaying) as server:
        replayed = answer(server.url)

    assert recorded.text == replayed.text == "It rains."
    assert recorded.usage.output_tokens == replayed.usage.output_tokens
    assert KEY not in path.read_text()


def test_headers_of_the_connection_are_not_sent_on():
    """Those of the request and its key are; the host and the compression are the transport's."""
    server, transport, seen = canned(
        CannedReply(headers={"x-a": "1", "set-cookie": "c=1", "content-encoding": "x"}, body=b"ok")
    )
    with server as running:
        status, headers, body = fetch(
            f"{running.url}/v1/x?a=1", b"{}", **{"X-Api-Key": "k", "Accept-Encoding": "br"}
        )
    sent = transport.requests[0]

    assert (status, headers["x-a"], body) == (200, "1", b"ok")
    assert headers["set-cookie"] is headers["content-encoding"] is None
    assert (sent.method, sent.url, sent.body) == ("POST", "https://api.example.com/v1/x?a=1", b"{}")
    assert sent.headers["x-api-key"] == "k"
    assert not {"host", "connection", "accept-encoding", "content-length"} & set(sent.headers)
    assert [(each.path, each.status, each.error) for each in seen] == [("/v1/x", 200, None)]


@pytest.mark.parametrize(
    ("method", "reply"),
    [
        ("HEAD", CannedReply(body=b"x")),
        ("DELETE", CannedReply(status=204)),
        ("GET", CannedReply(headers={"content-length": "3"}, body=b"abc")),
    ],
)
def test_replies_without_a_stream(method, reply):
    """A reply to HEAD and a 204 have no body; a length that is known is sent."""
    server, _, _ = canned(reply)
    with server as running:
        status, headers, body = fetch(f"{running.url}/v1/x", method=method)

    assert status == reply.status
    assert body == (reply.body if method == "GET" else b"")
    assert headers["transfer-encoding"] is None


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NetworkError("no route"), 502),
        (RequestTimeoutError("too slow"), 504),
        (ConfigurationError("no recording"), 400),
    ],
)
def test_failures_before_the_reply(error, status):
    """The client gets the message in the form of the dialect, and `on_exchange` the error."""
    server, _, seen = canned(error)
    with server as running:
        got, _, body = fetch(f"{running.url}/v1/chat/completions", b"{}")

    assert got == status
    assert json.loads(body)["error"]["message"] == error.message
    assert seen[0].error is error


def test_a_reply_that_breaks_off_breaks_off():
    """The client sees a failure and not a short success."""
    server, _, seen = canned(CannedReply(body=(b"half", NetworkError("gone"))))
    with server as running, pytest.raises((OSError, Exception), match="IncompleteRead"):
        fetch(f"{running.url}/v1/x")

    assert seen[0].error.message == "gone"


def test_a_broken_stream_is_replayed_as_one(tmp_path):
    """The error of a stream that was cut is that of its replay."""
    path = tmp_path / "tape.json"

    def problem(url):
        with Client({"openai": HttpAdapter("openai", KEY, base_url=f"{url}/v1")}) as client:
            try:
                list(client.stream(Request(model="openai:gpt-5.2", messages="Hi.")))
            except SDKError as error:
                return type(error), error.partial.text

    with serve_in_thread(Simulator(text("One two three.") + cut(2_400))) as simulator:
        transport = RecordingTransport(default_transport(), path)
        app = Forwarder(transport, lambda target: f"{simulator.url}{target}")
        with serve_in_thread(app) as server:
            recorded = problem(server.url)
    replaying = Forwarder(ReplayTransport(path), lambda target: f"http://any{target}")
    with serve_in_thread(replaying) as server:
        assert problem(server.url) == recorded
    assert recorded[1]


def test_a_client_that_leaves_stops_the_request(tmp_path):
    """The connection to the other server is closed, and what has arrived is recorded."""
    path = tmp_path / "tape.json"
    simulator_app = Simulator(text("One two three.") + stall(2_400))

    async def leave(url):
        adapter = HttpAdapter("openai", KEY, base_url=f"{url}/v1")
        events = adapter.stream(Request(model="gpt-5.2", messages="Hi."))
        async for event in events:
            if event.type == "text_delta":
                break
        await events.aclose()
        await adapter.close()

    with serve_in_thread(simulator_app) as simulator:
        seen = []
        transport = RecordingTransport(default_transport(), path)
        app = Forwarder(transport, lambda target: f"{simulator.url}{target}", seen.append)
        with serve_in_thread(app) as server:
            asyncio.run(leave(server.url))
            for _ in range(200):
                if seen and not simulator.open_connections:
                    break
                asyncio.run(asyncio.sleep(0.01))
        assert simulator.open_connections == 0

    exchange = json.loads(path.read_text())["exchanges"][0]
    assert exchange["error"]["message"] == "The recording ends here: the reader was stopped."
    assert exchange["reply"]["chunks"]


def test_a_websocket_is_refused():
    """Clients that try one first use HTTP after a 426."""
    server, transport, _ = canned()
    with server as running:
        status, _, _ = fetch(f"{running.url}/v1/responses", Upgrade="websocket")

    assert (status, transport.requests) == (426, [])
