"""What a request asks for, in which dialect, and with which key."""

import pytest

from interlingua import dialects
from interlingua.serving.application import find_route, read_call, read_key
from interlingua.serving.asgi import headers_of

CLAUDE = {"anthropic-version": "2026-10-21"}
GOOGLE = {"x-goog-api-key": "k"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "expected"),
    [
        ("POST", "/v1/chat/completions", {}, ("answer", "openai_chat", None)),
        ("POST", "/openai/deployments/x/chat/completions", {}, ("answer", "openai_chat", None)),
        ("POST", "/v1/responses", {}, ("answer", "openai_responses", None)),
        ("POST", "/v1/messages", CLAUDE, ("answer", "anthropic_messages", None)),
        ("POST", "/v1beta/models/g:generateContent", {}, ("answer", "gemini_generate", "g")),
        ("POST", "/v1/models/g:streamGenerateContent", {}, ("answer", "gemini_generate", "g")),
        ("POST", "/v1beta/models/g:countTokens", {}, ("count", "gemini_generate", "g")),
        (
            "POST",
            "/v1beta/models/a:b/c:d:embedContent",
            {},
            ("operation", "gemini_generate", "a:b/c:d"),
        ),
        (
            "POST",
            "/v1beta/models/a:text-embedding:predict",
            {},
            ("operation", "gemini_generate", "a:text-embedding"),
        ),
        ("GET", "/v1beta/models/a:b/c:d", {}, ("model", "gemini_generate", "a:b/c:d")),
        ("POST", "/v1/messages/count_tokens", {}, ("count", "anthropic_messages", None)),
        ("POST", "/v1/responses/input_tokens", {}, ("count", "openai_responses", None)),
        ("POST", "/v1/embeddings", {}, ("operation", "openai_chat", None)),
        ("GET", "/v1/models", {}, ("models", "openai_chat", None)),
        ("GET", "/v1/models", CLAUDE, ("models", "anthropic_messages", None)),
        ("GET", "/v1/models", GOOGLE, ("models", "gemini_generate", None)),
        ("GET", "/v1beta/models", {}, ("models", "gemini_generate", None)),
        ("GET", "/v1/models/a/b", {}, ("model", "openai_chat", "a/b")),
        ("GET", "/v1beta/models/g", {}, ("model", "gemini_generate", "g")),
        ("GET", "/v1/messages", {}, ("unknown", "anthropic_messages", None)),
        ("POST", "/v1/responses/x/cancel", {}, ("operation", "openai_responses", None)),
        ("POST", "/v1/responses/x/nothing", {}, ("unknown", "openai_responses", None)),
        ("POST", "/v1/responses/compact", {}, ("answer", "openai_responses", None)),
        ("PUT", "/v1/conversations/c", {}, ("unknown", "openai_responses", None)),
        ("POST", "/v1beta/nothing", {}, ("unknown", "gemini_generate", None)),
        ("POST", "/", {}, ("unknown", "openai_chat", None)),
    ],
)
def test_routes(method, path, headers, expected):
    """By the end of the path, and by the headers where two vendors share it."""
    assert find_route(method, path, headers)[:3] == expected


@pytest.mark.parametrize("verb", ["generateContent", "streamGenerateContent", "countTokens"])
@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("local:smollm2", "local:smollm2"),
        ("openrouter:maker/name:free", "openrouter:maker/name:free"),
        ("fireworks:accounts%2Fa%2Fmodels%2Fb", "fireworks:accounts/a/models/b"),
        ("fireworks:accounts/a/models/b", "fireworks:accounts/a/models/b"),
        ("a:generateContent", "a:generateContent"),
    ],
)
def test_the_name_of_a_model_in_a_path_ends_before_the_last_colon(written, name, verb):
    """Names of gateways have colons and slashes, which those of the vendor do not have."""
    path = f"/v1beta/models/{written}:{verb}"
    route = find_route("POST", path, {})
    scope = {**_scope(path), "raw_path": path.encode(), "method": "POST"}
    call = read_call(scope, b'{"contents": []}')

    assert route.dialect == "gemini_generate"
    assert route.kind == ("count" if verb == "countTokens" else "answer")
    assert dialects.get(route.dialect).decode_request(call).model == name


def _scope(path="/v1/x", query=b"", headers=()):
    return {"path": path, "query_string": query, "headers": list(headers)}


def test_a_call_has_no_key():
    """Neither in its headers nor in its address."""
    headers = [(b"X-Goog-Api-Key", b"planted"), (b"Accept", b"*/*")]
    call = read_call(_scope(query=b"alt=sse&key=planted", headers=headers), b"{}")

    assert "planted" not in str(call)
    assert call.path == "/v1/x?alt=sse"
    assert call.headers == {"x-goog-api-key": "[redacted]", "accept": "*/*"}


@pytest.mark.parametrize(
    ("path", "body", "stream"),
    [
        ("/v1/x", b'{"stream": true}', True),
        ("/v1/x", b'{"stream": 1}', False),
        ("/v1/x", b"[]", False),
        ("/v1beta/models/g:streamGenerateContent", b"{}", True),
    ],
)
def test_streams_are_known(path, body, stream):
    """By the body, or by the path."""
    assert read_call(_scope(path), body).stream is stream


def test_what_is_no_json_is_none():
    """The application says so to the client."""
    assert read_call(_scope(), b"{").body is None
    assert read_call(_scope(), b"").body is None


def test_the_path_stays_as_it_was_written():
    """A slash within a model's name is not one of the path."""
    scope = {**_scope("/v1/models/a/b"), "raw_path": b"/v1/models/a%2Fb"}

    assert read_call(scope, b"").path == "/v1/models/a%2Fb"
    assert read_call(_scope("/v1beta/models/ä:x"), b"").path == "/v1beta/models/%C3%A4:x"


def test_header_names_are_lower_case():
    """Servers should do that; not all do."""
    assert headers_of({"headers": [(b"X-A", b"B")]}) == {"x-a": "B"}


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"authorization": "Bearer k1"}, ""),
        ({"authorization": "bearer k1"}, ""),
        ({"x-api-key": "k1"}, ""),
        ({"x-goog-api-key": "k1"}, ""),
        ({"api-key": "k1"}, ""),
        ({}, "alt=sse&key=k1"),
    ],
)
def test_a_key_is_found_wherever_a_client_puts_it(headers, query):
    """In any of the vendors' headers, or in the query."""
    assert read_key(headers, query) == "k1"


def test_no_key():
    """None is not an empty key."""
    assert read_key({"accept": "x"}, "alt=sse") is None
