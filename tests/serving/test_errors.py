"""The errors of each vendor, read back as errors of ours."""

import pytest

from interlingua import dialects
from interlingua.errors import (
    AccessDeniedError,
    AuthenticationError,
    BudgetExceededError,
    ContextLengthError,
    InvalidRequestError,
    NotFoundError,
    ProviderTimeoutError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)
from interlingua.serving.application import (
    Incoming,
    Route,
    as_error,
    body_bytes,
    error_reply,
    retry_headers,
    serve_of,
    vendor_body,
)
from interlingua.spec.contracts import WireCall
from interlingua.spec.operations import Failure

CLASSES = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: AccessDeniedError,
    404: NotFoundError,
    408: ProviderTimeoutError,
    409: InvalidRequestError,
    413: ContextLengthError,
    422: InvalidRequestError,
    429: RateLimitError,
    500: ServerError,
    502: ServerError,
    503: ServerError,
    504: ServerError,
    529: ServerError,
}


def read(dialect, failure):
    """What our client makes of it."""
    body = vendor_body(dialect, failure, model="m1", request_id="req_1")
    headers = retry_headers(dialect, failure)
    return dialects.get(dialect).decode_error(failure.status, headers, body_bytes(body)[1])


@pytest.mark.parametrize("status", CLASSES)
@pytest.mark.parametrize("dialect", dialects.names())
def test_each_status_is_read_as_its_class(dialect, status):
    """Whatever the vendor's words for it are."""
    error = read(dialect, Failure(status=status))

    assert type(error) is CLASSES[status]
    assert error.status_code == status
    assert "{model}" not in error.message


@pytest.mark.parametrize("dialect", dialects.names())
def test_a_message_can_be_given(dialect):
    """Also for a status nobody sends."""
    for status in (404, 418, 502, 599):
        assert "as you like" in read(dialect, Failure(status=status, message="as you like")).message


@pytest.mark.parametrize("dialect", dialects.names())
def test_a_missing_model_is_named(dialect):
    """As all vendors do."""
    assert "m1" in read(dialect, Failure(status=404)).message


@pytest.mark.parametrize("dialect", dialects.names())
def test_how_long_to_wait(dialect):
    """In a header, or in the body where the vendor says it there."""
    assert read(dialect, Failure(status=429, retry_after=2.5)).retry_after == 2.5
    assert read(dialect, Failure(status=429)).retry_after is None


@pytest.mark.parametrize("is_missing", [True, False])
@pytest.mark.parametrize("dialect", dialects.names())
def test_keys(dialect, is_missing):
    """A key that is missing or wrong is an authentication error of every vendor."""
    assert (
        type(read(dialect, serve_of(dialect).wrong_key(is_missing=is_missing)))
        is AuthenticationError
    )


@pytest.mark.parametrize("dialect", dialects.names())
def test_a_body_can_be_given(dialect):
    """JSON, text or bytes, as they are."""
    for body, kind in (({"x": 1}, ""), ("no", "text/plain"), (b"<html>", "text/html")):
        failure = Failure(status=500, body=body)
        said = vendor_body(dialect, failure, model="m", request_id="r")

        assert said == body
        assert body_bytes(said)[0] == kind


@pytest.mark.parametrize("dialect", dialects.names())
def test_as_an_error_of_a_stream(dialect):
    """The same class, and the vendor's message without our prefix."""
    failure = Failure(status=529, message="busy")
    error = as_error(dialect, failure, model="m", request_id="r")

    assert (type(error), error.message, error.status_code) == (ServerError, "busy", 529)


@pytest.mark.parametrize("dialect", dialects.names())
@pytest.mark.parametrize("delay", [None, 7.0])
def test_a_rate_limit_has_a_delay(dialect, delay):
    """Codex gives up after a 429 without `retry-after`; the error's own delay stands.

    Field bug 103.
    """
    incoming = Incoming(WireCall(path="/"), Route("answer", dialect), {}, None)
    reply = error_reply(incoming, RateLimitError("slow down", retry_after=delay))

    assert reply.status == 429
    assert float(reply.headers["retry-after"]) == (delay or 1)


SPENT_STATUSES = {
    "anthropic_messages": (402, "billing_error"),
    "openai_chat": (429, "insufficient_quota"),
    "openai_responses": (429, "insufficient_quota"),
    "gemini_generate": (403, "PERMISSION_DENIED"),
    "bedrock_converse": (400, "The budget is spent."),  # the header names the exception
}


@pytest.mark.parametrize("dialect", dialects.names())
@pytest.mark.parametrize("kind", [QuotaExceededError, BudgetExceededError])
def test_spent_money_is_final(dialect, kind):
    """With another status an agent would try again for ever (field bug 103)."""
    incoming = Incoming(WireCall(path="/"), Route("answer", dialect), {}, None)
    reply = error_reply(incoming, kind("The budget is spent."))
    (body,) = reply.chunks

    status, word = SPENT_STATUSES[dialect]
    assert reply.status == status
    assert word in body.decode()
    assert "retry-after" not in reply.headers


OVERFLOW = {
    "anthropic_messages": "prompt is too long: 9000 tokens > 8192 maximum",
    "openai_chat": "maximum context length is 8192 tokens",
    "openai_responses": "maximum context length is 8192 tokens",
    "gemini_generate": "token count (9000) exceeds the maximum number of tokens allowed (8192)",
    "bedrock_converse": "Input is too long for requested model: 9000 tokens > 8192 maximum",
}


@pytest.mark.parametrize("client", OVERFLOW)
@pytest.mark.parametrize("upstream", OVERFLOW)
def test_an_overflow_is_said_in_the_words_of_the_client(upstream, client):
    """Whoever says it, each client gets the words that it looks for, with both figures."""
    said = dialects.get(upstream).encode_error(ContextLengthError(OVERFLOW["anthropic_messages"]))
    error = dialects.get(upstream).decode_error(said[0], said[1], body_bytes(said[2])[1])
    status, _, body = dialects.get(client).encode_error(error)
    again = dialects.get(client).decode_error(status, {}, body_bytes(body)[1])

    assert OVERFLOW[client] in again.message
    assert type(again) is ContextLengthError


@pytest.mark.parametrize("client", OVERFLOW)
def test_an_overflow_without_figures(client):
    """The words are there, and what was said."""
    _, _, body = dialects.get(client).encode_error(ContextLengthError("It does not fit."))

    assert "It does not fit." in str(body)
    assert type(dialects.get(client).decode_error(400, {}, body_bytes(body)[1])) is (
        ContextLengthError
    )


SPENT_STATUS = {
    "anthropic_messages": 402,
    "openai_chat": 429,
    "openai_responses": 429,
    "gemini_generate": 403,
    "bedrock_converse": 400,
}


@pytest.mark.parametrize("client", SPENT_STATUS)
@pytest.mark.parametrize(
    "error",
    [
        BudgetExceededError("The budget is spent."),
        QuotaExceededError("No credit.", status_code=402),
        QuotaExceededError("No credit.", status_code=429),
    ],
)
def test_spent_money_stops_an_agent(client, error):
    """Each client gets the status after which it stops, whatever the upstream sent.

    Field bug 103.
    """
    status, headers, body = dialects.get(client).encode_error(error)

    assert status == SPENT_STATUS[client]
    assert "retry-after" not in headers
    if status == 429:
        assert body["error"]["code"] == "insufficient_quota"


@pytest.mark.parametrize("client", SPENT_STATUS)
def test_a_rate_limit_has_a_delay_in_the_codec_too(client):
    """A rate limit has a delay also where a dialect is used alone (field bug 103)."""
    _, headers, _ = dialects.get(client).encode_error(RateLimitError("Slow down.", status_code=429))

    assert headers["retry-after"] == "1"
