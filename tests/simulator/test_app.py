"""The application: what it answers, refuses and records."""

import asyncio
import json
import subprocess
import sys

import pytest

from interlingua import ToolDefinition, dialects
from interlingua.errors import (
    AuthenticationError,
    InvalidRequestError,
    NotFoundError,
    RateLimitError,
    ServerError,
)
from interlingua.simulator import (
    SIMULATED,
    Script,
    Simulator,
    echo,
    error,
    error_event,
    header,
    malformed,
    rate_limit,
    text,
)
from interlingua.spec.errors import ConfigurationError
from support.simulator_calls import ask, call, hello, read

DIALECTS = dialects.names()
CLAUDE = {"anthropic-version": "2026-10-21"}
KEYS = {
    "openai_responses": {"authorization": "Bearer planted"},
    "openai_chat": {"authorization": "Bearer planted"},
    "anthropic_messages": {"x-api-key": "planted"},
    "gemini_generate": {"x-goog-api-key": "planted"},
    "bedrock_converse": {"authorization": "Bearer planted"},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_unscripted_answer_says_that_it_is_simulated(dialect, stream):
    """In its text, its header and its ids; the model is the one that was asked."""
    reply = ask(Simulator(), dialect, hello(), stream=stream)
    response = read(dialect, reply, stream=stream)

    assert response.text == f"{SIMULATED} You said: Hello?"
    if dialects.get(dialect).FACTS.names_model:
        assert "simulated" in response.id
        assert response.model == "m"
    assert reply.headers["x-simulated"] == "true"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_record_holds_what_was_received(dialect):
    """The call as it came and the request it means; not the key."""
    simulator = Simulator(text("a"), text("b"))
    tool = ToolDefinition(name="f", parameters={"type": "object"})
    request = hello(tools=(tool,), max_tokens=9)
    ask(simulator, dialect, request, headers=KEYS[dialect])
    ask(simulator, dialect, hello(), stream=True)

    first, second = simulator.script.received
    assert [each.number for each in (first, second)] == [1, 2]
    assert (first.dialect, first.method, first.status) == (dialect, "POST", 200)
    assert (first.call.stream, second.call.stream) == (False, True)
    assert (first.request.max_tokens, first.request.tools[0].name) == (9, "f")
    assert first.request.messages[0].text == "Hello?"
    assert [each.turn for each in (first, second)] == [text("a"), text("b")]
    assert first.started <= first.ended
    assert "planted" not in str(first.call)
    assert len(simulator.script.requests) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_keys(dialect):
    """The right one is let in, a wrong one or none is told so in the vendor's words."""
    simulator = Simulator(text("in"), key="planted")
    wrong = {name: value.replace("planted", "other") for name, value in KEYS[dialect].items()}

    assert read(dialect, ask(simulator, dialect, hello(), headers=KEYS[dialect])).text == "in"
    for headers in (wrong, {}):
        with pytest.raises(AuthenticationError):
            read(dialect, ask(simulator, dialect, hello(), headers=headers))
    assert len(simulator.script.requests) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_models(dialect):
    """With a list, any other model is unknown."""
    with pytest.raises(NotFoundError, match="m"):
        read(dialect, ask(Simulator(text("in"), models=["a"]), dialect, hello()))
    assert read(dialect, ask(Simulator(text("in"), models=["m"]), dialect, hello())).text == "in"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_scripted_errors(dialect, stream):
    """An error comes as HTTP, also to a request for a stream; then the script goes on."""
    simulator = Simulator(error(429, retry_after=3), error(500), text("at last"))

    with pytest.raises(RateLimitError) as limited:
        read(dialect, ask(simulator, dialect, hello(), stream=stream), stream=stream)
    with pytest.raises(ServerError):
        read(dialect, ask(simulator, dialect, hello(), stream=stream), stream=stream)
    reply = ask(simulator, dialect, hello(), stream=stream)
    assert read(dialect, reply, stream=stream).text == "at last"
    assert limited.value.retry_after == 3


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_event_without_a_stream_is_an_error(dialect):
    """There is no other place for it."""
    with pytest.raises(ServerError, match="busy"):
        read(dialect, ask(Simulator(error_event(503, "busy")), dialect, hello()))


@pytest.mark.parametrize("dialect", ["openai_responses", "openai_chat", "anthropic_messages"])
def test_limits_and_request_ids(dialect):
    """Under the vendor's header names."""
    turn = text("x") + rate_limit(requests_limit=50, requests_remaining=3, reset_after=2)
    reply = ask(Simulator(turn), dialect, hello())
    response = read(dialect, reply)

    assert response.rate_limit.requests_remaining == 3
    name = "request-id" if dialect == "anthropic_messages" else "x-request-id"
    assert reply.headers[name] == "req_simulated000001"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_body_may_be_malformed(dialect):
    """Then it is no JSON, but its length is right."""
    reply = ask(Simulator(text("hi") + malformed()), dialect, hello())

    assert reply.headers["content-length"] == str(len(reply.body))
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.body)


def test_headers_can_be_given():
    """They come last."""
    turn = text("hi") + header("X-Should-Retry", "true") + header("content-type", "text/x")
    reply = ask(Simulator(turn), "openai_chat", hello())

    assert reply.headers["x-should-retry"] == "true"
    assert reply.headers["content-type"] == "text/x"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_streams_are_framed_as_the_vendor_does(dialect):
    """Event names where there are any, and `[DONE]` at the end of a chat."""
    reply = ask(Simulator(text("hi")), dialect, hello(), stream=True)

    assert "content-length" not in reply.headers
    if dialect == "bedrock_converse":
        assert reply.headers["content-type"] == "application/vnd.amazon.eventstream"
        assert b":event-type" in reply.body
        return
    assert reply.headers["content-type"].startswith("text/event-stream")
    has_names = dialect in ("openai_responses", "anthropic_messages")
    assert reply.body.startswith(b"event: " if has_names else b"data: ")
    assert reply.body.endswith(b"data: [DONE]\n\n") is (dialect == "openai_chat")


def test_gemini_without_sse_is_an_array():
    """Errors too are in one then."""
    path, body = (
        "/v1beta/models/g:streamGenerateContent",
        {"contents": [{"parts": [{"text": "x"}]}]},
    )
    reply = call(Simulator(text("one two")), path, body)
    refused = call(Simulator(error(429)), path, body)

    texts = [frame["candidates"][0]["content"]["parts"][0]["text"] for frame in reply.json]
    assert "".join(texts) == "one two"
    assert reply.headers["content-type"].startswith("application/json")
    assert refused.json[0]["error"]["code"] == 429


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/v1/chat/completions", b"{", {}),
        ("/v1/responses", b"[]", {}),
        ("/v1/messages", b"", CLAUDE),
        ("/v1/messages", {"messages": 3}, CLAUDE),
        ("/v1/messages", {"model": "m", "messages": []}, {}),  # no version
        ("/v1beta/models/g:generateContent", {"contents": "x"}, {}),
        ("/v1/embeddings", {}, {}),
    ],
)
def test_bad_requests(path, body, headers):
    """What cannot be read is a 400 in the words of the dialect."""
    simulator = Simulator()
    reply = call(simulator, path, body, headers)
    dialect = simulator.script.received[0].dialect
    error = dialects.get(dialect).decode_error(reply.status, reply.headers, reply.body)

    assert reply.status == 400
    assert type(error) is InvalidRequestError


@pytest.mark.parametrize("path", ["/", "/v1/nothing", "/v1beta/nothing", "/v1/messages/nothing"])
def test_unknown_paths(path):
    """A 404 that names the address."""
    reply = call(Simulator(), path, {})

    assert reply.status == 404
    assert path in reply.json["error"]["message"]


def test_models_are_listed_and_described():
    """For each vendor, by its address or its headers."""
    app = Simulator(models=["a", "b"])
    openai = call(app, "/v1/models", method="GET").json
    claude = call(app, "/v1/models", headers=CLAUDE, method="GET").json
    gemini = call(app, "/v1beta/models", method="GET").json

    assert [row["id"] for row in openai["data"]] == ["a", "b"]
    assert [row["id"] for row in claude["data"]] == ["a", "b"]
    assert [row["name"] for row in gemini["models"]] == ["models/a", "models/b"]
    assert call(app, "/v1/models/a", method="GET").json["id"] == "a"
    assert call(app, "/v1/models/c", method="GET").status == 404


def test_tokens_are_counted():
    """Also of a request that Gemini's client has wrapped."""
    path, contents = "/v1beta/models/g:countTokens", [{"role": "user", "parts": [{"text": "hi"}]}]
    plain = call(Simulator(), path, {"contents": contents}).json
    wrapped = call(Simulator(), path, {"generateContentRequest": {"contents": contents}}).json
    messages = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    claude = call(Simulator(), "/v1/messages/count_tokens", messages, CLAUDE).json

    assert plain == wrapped
    assert claude["input_tokens"] == plain["totalTokens"] == 3


def test_caching_is_counted_over_the_simulators_life():
    """A prompt that begins as an earlier one did is partly read from the cache."""
    app = Simulator(echo)
    usages = [read("openai_chat", ask(app, "openai_chat", hello())).usage for _ in range(2)]

    assert [usage.cache_read_tokens for usage in usages] == [0, len("m\nuser\nHello?") // 4]


def test_a_script_that_fails_is_a_server_error():
    """The client is told why, and the test can look at what was raised."""

    def fail(_):
        raise KeyError("oops")

    simulator = Simulator(fail)
    with pytest.raises(ServerError, match="oops"):
        read("openai_chat", ask(simulator, "openai_chat", hello()))
    assert isinstance(simulator.script.received[0].error, KeyError)


def test_a_script_can_be_shared():
    """Two simulators, one script and one record."""
    script = Script(text("a"), text("b"))
    for _ in range(2):
        ask(Simulator(script), "openai_chat", hello())

    assert [each.turn for each in script.received] == [text("a"), text("b")]


@pytest.mark.parametrize("more", [text("lost"), Script(text("lost"))])
def test_a_script_beside_other_answers_is_a_mistake(more):
    """None of them is dropped in silence."""
    with pytest.raises(ConfigurationError, match="either one Script or turns"):
        Simulator(Script(text("one")), more)


def test_lifespan_and_other_protocols():
    """Servers ask it to start and stop; other protocols are not known."""
    asked = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent = []

    async def receive():
        return asked.pop(0)

    async def send(message):
        sent.append(message["type"])

    asyncio.run(Simulator()({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    with pytest.raises(NotImplementedError):
        asyncio.run(Simulator()({"type": "webtransport"}, receive, send))


def test_a_client_that_leaves_before_it_has_asked():
    """Is not recorded."""
    simulator = Simulator()
    parts = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    async def receive():
        return parts.pop(0)

    async def send(_):
        raise AssertionError

    scope = {"type": "http", "method": "POST", "path": "/v1/responses", "headers": []}
    asyncio.run(simulator(scope, receive, send))
    assert simulator.script.received == ()


def test_the_library_does_not_load_the_simulator():
    """It costs nothing until it is imported."""
    code = "import sys, interlingua; print('interlingua.simulator' in sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert loaded.stdout.strip() == "False"
