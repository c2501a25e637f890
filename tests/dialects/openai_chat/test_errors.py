"""Errors."""

import json

import pytest

from interlingua.dialects.openai_chat import decode_error, encode_error
from interlingua.dialects.openai_chat.errors import read_error
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    NotFoundError,
    ProviderTimeoutError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    StreamError,
)


def decode(status, body, headers=None):
    return decode_error(status, headers or {}, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"error": {"message": "bad", "code": "invalid_value"}}, InvalidRequestError),
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, ContextLengthError),
        (
            400,
            {"object": "error", "message": "This model's maximum context length is 5", "code": 400},
            ContextLengthError,
        ),
        (400, {"error": {"code": "content_filter", "message": "x"}}, ContentFilterError),
        (401, {"error": {"message": "x", "code": "invalid_api_key"}}, AuthenticationError),
        (401, {"detail": "Invalid API Key"}, AuthenticationError),
        (402, {"error": {"message": "no credits", "code": 402}}, QuotaExceededError),
        (403, {"error": {"message": "x"}}, AccessDeniedError),
        (404, {"error": "Specified model not found"}, NotFoundError),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, InvalidRequestError),
        (429, {"error": {"message": "x", "code": "rate_limit_exceeded"}}, RateLimitError),
        (429, {"error": {"message": "x", "type": "insufficient_quota"}}, QuotaExceededError),
        (500, {"error": {"message": "x", "type": "server_error"}}, ServerError),
        (504, {"error": {"message": "x"}}, ServerError),
        (
            400,
            {"error": {"code": 400, "message": "x", "metadata": {"error_type": "not_found"}}},
            NotFoundError,
        ),
    ],
)
def test_classes(status, body, expected):
    """The code, then the type, then the wording, then the status."""
    error = decode(status, body)

    assert type(error) is expected
    assert error.status_code == status
    assert error.raw == body


def test_message_and_code():
    """Both are kept, whatever the shape of the body."""
    error = decode(400, {"error": {"message": "bad value", "code": "invalid_value"}})

    assert error.message == "HTTP 400: bad value"
    assert error.error_code == "invalid_value"


def test_failed_generation_may_be_asked_again():
    """It is a bad request by its status, but the model's fault."""
    error = decode(400, {"error": {"code": "tool_use_failed", "message": "x"}})

    assert isinstance(error, InvalidRequestError)
    assert error.retryable


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"5", b"<html>", b'{"error": [1]}'])
def test_any_bytes(body):
    """An error is made of anything."""
    assert decode_error(503, {}, body).status_code == 503


def test_an_error_inside_a_stream_has_the_class_of_its_code_or_type():
    """Without a status of its own, the code or type tells the class (field bug 54)."""
    assert isinstance(
        read_error(None, {}, {"error": {"code": 429, "message": "x"}}), RateLimitError
    )
    bad = {"error": {"type": "invalid_request_error", "message": "x"}}
    assert isinstance(read_error(None, {}, bad), InvalidRequestError)
    assert isinstance(read_error(None, {}, {"error": {"message": "x"}}), ServerError)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AuthenticationError("x"), 401),
        (AccessDeniedError("x"), 403),
        (NotFoundError("x"), 404),
        (ContextLengthError("x"), 400),
        (ContentFilterError("x"), 400),
        (InvalidRequestError("x"), 400),
        (QuotaExceededError("x"), 429),
        (RateLimitError("x"), 429),
        (ProviderTimeoutError("x"), 408),
        (ServerError("x"), 500),
    ],
)
def test_round_trip(error, status):
    """An error said by a server is read as the same by a client."""
    said, headers, body = encode_error(error)

    assert said == status
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert type(decode(said, body, headers)) is type(error)


def test_retry_after():
    """It travels in the header."""
    _, headers, _ = encode_error(RateLimitError("x", retry_after=2.5))

    assert headers == {"retry-after": "2.5"}
    assert decode(429, {}, headers).retry_after == 2.5


def test_errors_of_our_own():
    """A broken stream behind a gateway is the gateway's error."""
    status, _, body = encode_error(StreamError("cut"))

    assert (status, body["error"]["type"]) == (502, "server_error")
