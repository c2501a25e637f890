"""Errors that are the gateway's: a wrong key, a refused key, a provider that is down."""

import contextlib
import json
import socket
import threading

import pytest

from interlingua.errors import QuotaExceededError
from interlingua.gateway.keys import hash_key
from interlingua.simulator import Simulator, cut, error, fail, serve_in_thread, text
from support.gateways import Program, gateway, gateway_of_file
from support.simulated import adapters
from support.wire_requests import ask

ASKED = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


def forms(model):
    """The path and the body of a request, by dialect."""
    return {
        "chat": ("/v1/chat/completions", {**ASKED, "model": model}),
        "responses": ("/v1/responses", {"input": "Hi", "model": model}),
        "messages": ("/v1/messages", {**ASKED, "model": model}),
        "gemini": (f"/v1beta/models/{model}:generateContent", CONTENTS),
    }


every_form = pytest.mark.parametrize("form", forms(""))
UPSTREAMS = ("openai:gpt-5.2", "anthropic:claude-haiku-4-5", "gemini:gemini-2.5-flash")


def has_error_of(form, body):
    """Whether a body has the form of an error of this vendor."""
    is_typed = body.get("type") == "error" if form == "messages" else "type" not in body
    return is_typed and bool(body["error"]["message"])


@every_form
@pytest.mark.parametrize("key", ["il_wrong", ""])
def test_a_wrong_key_is_the_gateways_affair(form, key):
    """The reply names neither a vendor's page nor a simulator."""
    with gateway(adapters("http://127.0.0.1:9")) as front:
        path, body = forms("openai:gpt-5.2")[form]
        reply = ask(front, path, body, key=key)

    assert reply.status == (400 if form == "gemini" and key else 401)
    assert has_error_of(form, reply.json)
    assert "this gateway" in reply.text
    for word in ("simulated", "openai.com", "googleapis.com/", "://", "il_wrong"):
        assert word not in reply.text.replace("type.googleapis.com/", "")


def test_the_vendors_clients_know_a_wrong_key():
    """They raise what they raise for a wrong key of their vendor."""
    with gateway(adapters("http://127.0.0.1:9")) as front:
        for client in (front.openai(api_key="no"), front.anthropic(api_key="no")):
            with pytest.raises(Exception, match="not a key of this gateway") as caught:
                client.models.list()
            assert type(caught.value).__name__ == "AuthenticationError"
        google = front.gemini("no")
        with pytest.raises(Exception, match="not a key of this gateway"):
            google.models.list()


@every_form
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("model", UPSTREAMS)
def test_a_refused_key_of_the_gateway_is_no_failed_login(form, stream, status, model):
    """The client is told whose key it was, and that it need not try again."""
    message = "Invalid key sk-planted: see https://console.example.com/keys"
    upstream = serve_in_thread(Simulator(error(status, message=message)))
    with upstream as server, gateway(adapters(server.url)) as front:
        path, body = forms(model)[form]
        if stream and form == "gemini":
            path = path.replace(":generate", ":streamGenerate") + "?alt=sse"
        elif stream:
            body = {**body, "stream": True}
        reply = ask(front, path, body)

    provider = model.partition(":")[0]
    assert reply.status == 503
    assert f"The gateway's key for {provider} was refused" in reply.text
    assert reply.headers["x-should-retry"] == "false"
    for word in ("console.example", "sk-planted", "invalid_api_key", "authentication_error"):
        assert word not in reply.text
    assert has_error_of(form, reply.json)


SPENT = {"chat": 402, "responses": 400, "messages": 402, "gemini": 403}


@every_form
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", UPSTREAMS[:2])
def test_spent_money_stops_agents(form, stream, model):
    """
    The status is the one after which no agent asks again; the words are those of the upstream.

    The counts are in `docs/clients.md`.
    """
    failing = Simulator(fail(QuotaExceededError("The budget of May is spent.")))
    with serve_in_thread(failing) as server, gateway(adapters(server.url)) as front:
        path, body = forms(model)[form]
        if stream and form == "gemini":
            path = path.replace(":generate", ":streamGenerate") + "?alt=sse"
        elif stream:
            body = {**body, "stream": True}
        reply = ask(front, path, body)

    assert reply.status == SPENT[form]
    assert "The budget of May is spent." in reply.text
    assert "retry-after" not in reply.headers
    if form in ("chat", "responses"):
        assert reply.json["error"]["code"] == "insufficient_quota"


@every_form
def test_no_address_of_an_upstream(form):
    """Neither its own host nor the links in its messages; its other words stay."""
    hosts = []

    def answer(_):
        return error(400, message=f"Bad thing at {hosts[0]}, see https://docs.example.com/x.")

    with serve_in_thread(Simulator(answer)) as server, gateway(adapters(server.url)) as front:
        hosts.append(server.url.partition("://")[2])
        reply = ask(front, *forms("anthropic:claude-haiku-4-5")[form])

    assert reply.status == 400
    assert "Bad thing at [address], see [address]" in reply.text
    assert hosts[0] not in reply.text
    assert "docs.example.com" not in reply.text


@contextlib.contextmanager
def dead_server():
    """A server that closes every connection at once; yields its address and their list."""
    connections = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run():
            with contextlib.suppress(OSError):
                while True:
                    connection, peer = server.accept()
                    connections.append(peer)
                    connection.close()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", connections
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


@every_form
@pytest.mark.parametrize("stream", [False, True])
def test_a_dead_upstream_is_asked_only_a_few_times(form, stream):
    """Each of 30 requests is answered with 503 and a delay; the circuit opens after three."""
    with dead_server() as (url, connections), gateway(adapters(url)) as front:
        path, body = forms("anthropic:claude-haiku-4-5")[form]
        if stream and form == "gemini":
            path = path.replace(":generate", ":streamGenerate") + "?alt=sse"
        elif stream:
            body = {**body, "stream": True}
        replies = [ask(front, path, body) for _ in range(30)]

    assert {reply.status for reply in replies} == {503}
    assert all(float(reply.headers["retry-after"]) > 0 for reply in replies)
    assert len(connections) <= 3
    for reply in replies:
        assert has_error_of(form, reply.json)
        assert "127.0.0.1" not in reply.text


@every_form
def test_an_upstream_that_is_not_there(form):
    """No server listens at its address, which the reply does not tell."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with gateway(adapters(url)) as front:
        reply = ask(front, *forms("openai:gpt-5.2")[form])

    assert reply.status == 503
    assert "The gateway cannot reach openai." in reply.text
    assert float(reply.headers["retry-after"]) > 0
    assert "127.0.0.1" not in reply.text


@every_form
def test_an_error_in_a_stream_has_no_address(form):
    """The stream is cut after its first words; the event that tells it has no host."""
    answer = text("word " * 400) + cut(3000)
    with serve_in_thread(Simulator(answer)) as server, gateway(adapters(server.url)) as front:
        path, body = forms("openai:gpt-5.2")[form]
        if form == "gemini":
            path = path.replace(":generate", ":streamGenerate") + "?alt=sse"
        else:
            body = {**body, "stream": True}
        reply = ask(front, path, body)

    last = [line for line in reply.text.splitlines() if line.startswith("data: {")][-1]
    assert reply.status == 200
    assert "127.0.0.1" not in reply.text
    said = json.dumps(json.loads(last.removeprefix("data: ")))
    assert "ended without its last part" in said
    assert "You can retry your request." in said  # the words after which pi asks again


@every_form
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wait", [7, None])
def test_an_upstream_that_asks_to_wait_is_not_down(form, stream, wait):
    """Each client is told its 429 and how long to wait; the next answer comes as soon as can be."""
    answers = [error(429, message="Slow down.", retry_after=wait)] * 10 + [text("Hello.")]
    simulator = Simulator(*answers)
    with serve_in_thread(simulator) as server, gateway(adapters(server.url)) as front:
        path, body = forms("anthropic:claude-haiku-4-5")[form]
        if stream and form == "gemini":
            path = path.replace(":generate", ":streamGenerate") + "?alt=sse"
        elif stream:
            body = {**body, "stream": True}
        replies = [ask(front, path, body) for _ in answers]

    *refused, last = replies
    assert {reply.status for reply in refused} == {429}
    assert all("Slow down." in reply.text and has_error_of(form, reply.json) for reply in refused)
    assert {float(reply.headers["retry-after"]) for reply in refused} == {wait or 1}
    assert last.status == 200
    assert len(simulator.script.received) == len(answers)


def limited_file(limited, free, route):
    """A file with two adapters, the first of which is told to wait, and this route."""
    return f"""
adapters:
  openai: {{api_key: k, base_url: "{limited}/v1"}}
  other: {{type: openai, api_key: k, base_url: "{free}/v1"}}
gateway:
  keys: {{tests: {{hash: "{hash_key(Program.key)}"}}}}
  routes: {{default: {route}}}
"""


@every_form
@pytest.mark.parametrize(
    "route",
    [
        "{model: openai:gpt-5.2, fallback: [other:gpt-5.2]}",
        "{model: openai:gpt-5.2, balance: [openai, other]}",
    ],
)
def test_others_are_asked_before_a_client_must_wait(form, route, tmp_path):
    """Another model or another key answers in place of one that asks to wait."""
    waiting = Simulator(lambda _: error(429, message="Slow down.", retry_after=60))
    free = Simulator(lambda _: text("Hello."))
    with serve_in_thread(waiting) as first, serve_in_thread(free) as second:
        content = limited_file(first.url, second.url, route)
        with gateway_of_file(tmp_path, content) as front:
            replies = [ask(front, *forms("any")[form]) for _ in range(6)]

    assert {reply.status for reply in replies} == {200}
    assert len(free.script.received) == 6
    assert 1 <= len(waiting.script.received) <= 6
