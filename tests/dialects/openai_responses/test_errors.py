"""ProviderError <-> error body."""

import json

import pytest

from interlingua.dialects.openai_responses import decode_error, encode_error
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    NetworkError,
    NotFoundError,
    ProviderTimeoutError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)


def read(status, message="m", headers=None, **error):
    body = {"error": {"message": message, "type": None, "param": None, "code": None, **error}}
    return decode_error(status, headers or {}, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("status", "fields", "cls"),
    [
        (400, {"type": "invalid_request_error"}, InvalidRequestError),
        (400, {"type": "invalid_request_error", "code": "unsupported_value"}, InvalidRequestError),
        (400, {"code": "context_length_exceeded"}, ContextLengthError),
        (
            400,
            {"message": "Your input exceeds the context window of this model."},
            ContextLengthError,
        ),
        (400, {"code": "model_not_found"}, NotFoundError),
        (400, {"code": "invalid_prompt"}, ContentFilterError),
        (400, {"code": "invalid_image_url"}, InvalidRequestError),
        (401, {"type": "invalid_request_error", "code": "invalid_api_key"}, AuthenticationError),
        (403, {"code": "unsupported_country_region_territory"}, AccessDeniedError),
        (404, {"type": "invalid_request_error"}, NotFoundError),
        (429, {"code": "rate_limit_exceeded"}, RateLimitError),
        (429, {"type": "insufficient_quota", "code": "insufficient_quota"}, QuotaExceededError),
        (500, {"type": "server_error"}, ServerError),
        (503, {"type": "invalid_request_error"}, ServerError),
        (504, {}, ServerError),
    ],
)
def test_classes(status, fields, cls):
    """The code tells more than the status."""
    error = read(status, **fields)

    assert cls is type(error)
    assert status == error.status_code


def test_a_rate_limit_is_no_overflow():
    """A 429 about tokens is a rate limit, whatever its wording (field bug 75)."""
    error = read(429, message="Request too large: token limit exceeded, context window")

    assert RateLimitError is type(error)


def test_retry_headers():
    """Seconds to wait and the request's id come from the headers."""
    error = read(429, headers={"retry-after-ms": "1500", "x-request-id": "req_1"})

    assert (error.retry_after, error.provider_request_id) == (1.5, "req_1")


def test_quota_is_not_retried():
    """Waiting does not help."""
    assert not read(429, code="insufficient_quota").retryable


@pytest.mark.parametrize("body", [b"", b"\xff", b"<html>", b"[]", b'{"detail": "no token"}', b"5"])
def test_any_body(body):
    """A body we cannot read still becomes an error."""
    assert decode_error(502, {}, body).status_code == 502


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    [
        (AuthenticationError("x"), 401, "invalid_request_error", "invalid_api_key"),
        (NotFoundError("x"), 404, "invalid_request_error", "model_not_found"),
        (ContextLengthError("x"), 400, "invalid_request_error", "context_length_exceeded"),
        (QuotaExceededError("x"), 429, "insufficient_quota", "insufficient_quota"),
        (RateLimitError("x", retry_after=3), 429, "rate_limit_error", "rate_limit_exceeded"),
        (InvalidRequestError("x", error_code="bad"), 400, "invalid_request_error", "bad"),
        (ConfigurationError("x"), 400, "invalid_request_error", None),
        (ServerError("x", status_code=503), 503, "server_error", "server_error"),
        (NetworkError("x"), 502, "server_error", "server_error"),
        (ValueError("x"), 500, "server_error", "server_error"),
    ],
)
def test_encode(error, status, kind, code):
    """Each error is said with its status, type and code."""
    said = encode_error(error)

    assert status == said[0]
    text = "maximum context length: x" if isinstance(error, ContextLengthError) else "x"
    assert {"message": text, "type": kind, "param": None, "code": code} == said[2]["error"]


def test_encoded_errors_decode_to_their_class():
    """What we say as a server is what we hear as a client."""
    for cls in (
        AuthenticationError,
        AccessDeniedError,
        NotFoundError,
        InvalidRequestError,
        RateLimitError,
        ServerError,
        ContentFilterError,
        ContextLengthError,
        QuotaExceededError,
        ProviderTimeoutError,
    ):
        status, headers, body = encode_error(cls("x"))

        assert cls is type(decode_error(status, headers, json.dumps(body).encode()))


def test_an_unverified_organization_is_told_what_to_leave_out():
    """OpenAI refuses to show thoughts to it; the error says what asked for them."""
    error = read(
        400,
        "Your organization must be verified to generate reasoning summaries. Please go to: "
        "https://platform.openai.com/settings/organization/general and click on Verify.",
        type="invalid_request_error",
        param="reasoning.summary",
        code="unsupported_value",
    )
    other = read(400, "Unsupported value: 'concise'.", param="reasoning.summary")

    assert type(error) is InvalidRequestError
    assert "must be verified" in str(error)
    assert "Visible thinking was asked for (include_thinking, on_reasoning or" in str(error)
    assert "Visible thinking" not in str(other)
