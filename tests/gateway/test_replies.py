"""What a reply says besides the answer: ids, who answered, what it cost, what was asked."""

import pytest

from interlingua.serving.application import framing_of, read_request
from interlingua.simulator import Simulator, error, serve_in_thread, text
from support.gateways import gateway
from support.simulated import adapters
from support.wire_requests import ask

CHAT = {"messages": [{"role": "user", "content": "Hi"}]}
WAYS = {
    "chat": ("/v1/chat/completions", CHAT, "x-request-id"),
    "responses": ("/v1/responses", {"input": "Hi"}, "x-request-id"),
    "messages": ("/v1/messages", {**CHAT, "max_tokens": 9}, "request-id"),
}
every_way = pytest.mark.parametrize("way", WAYS)
MODEL = "anthropic:claude-haiku-4-5"


@pytest.fixture(scope="module")
def front():
    app = Simulator(lambda _: text("Hello."))
    with serve_in_thread(app) as upstream, gateway(adapters(upstream.url)) as front:
        yield front


@pytest.fixture
def failing():
    """A gateway of its own: a model that fails is soon no longer called."""
    app = Simulator(lambda _: error(500))
    with serve_in_thread(app) as upstream, gateway(adapters(upstream.url)) as front:
        yield front


@every_way
def test_who_answered_and_what_it_cost(front, way):
    """In headers, beside the answer in the vendor's form."""
    path, body, header = WAYS[way]
    reply = ask(front, path, {**body, "model": MODEL})

    assert reply.status == 200
    assert reply.headers["x-interlingua-provider"] == "anthropic"
    assert reply.headers["x-interlingua-model"] == "claude-haiku-4-5"
    assert float(reply.headers["x-interlingua-cost"]) > 0
    assert reply.headers[header] == reply.headers["x-request-id"] != ""


@every_way
@pytest.mark.parametrize("stream", [False, True])
def test_the_id_of_the_client_is_kept(front, way, stream):
    """Under both names, whole and streamed."""
    path, body, header = WAYS[way]
    body = {**body, "model": MODEL, "stream": stream}
    reply = ask(front, path, body, **{"x-request-id": "trace-1.a_b"})

    assert reply.headers["x-request-id"] == reply.headers[header] == "trace-1.a_b"


@pytest.mark.parametrize("given", ["a b", "x" * 129, "<script>", "ü"])
def test_an_unsafe_id_is_replaced(front, given):
    """It is written into logs."""
    body = {**CHAT, "model": MODEL}
    reply = ask(front, "/v1/chat/completions", body, **{"x-request-id": given})

    assert reply.headers["x-request-id"].isalnum()


@every_way
def test_a_stream_ends_with_its_cost(front, way):
    """In a comment before the last frames, which clients ignore."""
    path, body, _ = WAYS[way]
    reply = ask(front, path, {**body, "model": MODEL, "stream": True})
    comments = [line for line in reply.text.splitlines() if line.startswith(":")]

    assert len(comments) == 1
    assert float(comments[0].removeprefix(": x-interlingua-cost: ")) > 0
    assert not reply.text.rstrip().endswith(comments[0])
    assert reply.headers["x-interlingua-provider"] == "anthropic"


@pytest.mark.parametrize("written", ["comment", "keep_alive"])
def test_googles_client_gets_no_comment(front, written):
    """It reads every line without `data: ` as JSON; empty lines keep the connection."""
    path = f"/v1beta/models/{MODEL}:streamGenerateContent"
    scope = {"method": "POST", "path": path, "query_string": b"alt=sse", "headers": []}
    framing = framing_of(read_request({"type": "http", **scope}, b"{}"))
    given = framing.comment("x") if written == "comment" else framing.keep_alive
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    reply = ask(front, f"{path}?alt=sse", body)
    google = front.gemini()
    pieces = google.models.generate_content_stream(model=MODEL, contents="Hi")

    assert given.strip() == b""
    assert not [line for line in reply.text.splitlines() if line and not line.startswith("data: ")]
    assert "".join(piece.text or "" for piece in pieces) == "Hello."


def test_a_stream_as_an_array_has_no_comment(front):
    """JSON has none."""
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    reply = ask(front, f"/v1beta/models/{MODEL}:streamGenerateContent", body)

    assert "x-interlingua" not in reply.text
    assert reply.json[0]["candidates"]


def test_an_operation_has_the_headers_too(front):
    """With the model that performed it."""
    body = {"model": "openai:text-embedding-3-small", "input": "Hi"}
    reply = ask(front, "/v1/embeddings", body, **{"x-request-id": "mine"})

    assert reply.headers["x-interlingua-provider"] == "openai"
    assert reply.headers["x-interlingua-model"] == "text-embedding-3-small"
    assert float(reply.headers["x-interlingua-cost"]) > 0
    assert reply.headers["x-request-id"] == "mine"


@every_way
def test_an_error_has_an_id(failing, way):
    """That of the gateway, in the header and in the body that has a field for it."""
    path, body, header = WAYS[way]
    for model in (MODEL, "nothing"):
        reply = ask(failing, path, {**body, "model": model}, **{"x-request-id": "mine"})

        assert reply.status in (404, 500)
        assert reply.headers[header] == "mine"
        assert reply.json.get("request_id", "mine") == "mine"


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
FORMAT = {
    "type": "json_schema",
    "name": "thing",
    "strict": True,
    "schema": {**SCHEMA, "additionalProperties": False},
}
TOOL = {"type": "function", "name": "look", "parameters": SCHEMA}


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_repeats_what_was_asked(front, stream):
    """The format, the tools and the instructions; LangChain reads the format."""
    client = front.openai()
    asked = {
        "model": MODEL,
        "input": "Hi",
        "instructions": "Be brief.",
        "text": {"format": FORMAT},
        "tools": [TOOL],
        "max_output_tokens": 99,
        "metadata": {"who": "me"},
    }
    if stream:
        *_, last = client.responses.create(stream=True, **asked)
        answer = last.response
    else:
        answer = client.responses.create(**asked)

    assert answer.instructions == "Be brief."
    assert answer.text.format.name == "thing"
    assert answer.text.format.schema_ == FORMAT["schema"]
    assert [tool.name for tool in answer.tools] == ["look"]
    assert answer.max_output_tokens == 99
    assert answer.metadata == {"who": "me"}
