"""ProviderError <-> error body."""

import json

import pytest

from interlingua.dialects.anthropic_messages import decode_error, encode_error
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    NetworkError,
    NotFoundError,
    ProviderTimeoutError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)


def body(kind, message="m", **details):
    error = {"type": kind, "message": message}
    if details:
        error["details"] = details
    return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()


@pytest.mark.parametrize(
    ("status", "kind", "expected", "retryable"),
    [
        (400, "invalid_request_error", InvalidRequestError, False),
        (401, "authentication_error", AuthenticationError, False),
        (402, "billing_error", QuotaExceededError, False),
        (403, "permission_error", AccessDeniedError, False),
        (404, "not_found_error", NotFoundError, False),
        (408, "timeout_error", ProviderTimeoutError, True),
        (409, "conflict_error", InvalidRequestError, True),
        (412, "memory_precondition_failed_error", InvalidRequestError, False),
        (413, "request_too_large", ContextLengthError, False),
        (429, "rate_limit_error", RateLimitError, True),
        (500, "api_error", ServerError, True),
        (504, "timeout_error", ServerError, True),
        (529, "overloaded_error", ServerError, True),
    ],
)
def test_each_status(status, kind, expected, retryable):
    """Each documented status and type has its class."""
    error = decode_error(status, {}, body(kind))

    assert type(error) is expected
    assert (error.retryable, error.status_code) == (retryable, status)
    assert (error.error_code, error.provider_request_id) == (kind, "req_1")


def test_spend_limit_is_no_rate_limit():
    """The stable code beats the status: a spend limit does not go away by waiting."""
    error = decode_error(
        429, {}, body("rate_limit_error", error_code="enforced_spend_limit_reached")
    )

    assert type(error) is QuotaExceededError
    assert error.retryable is False


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 1036683 tokens > 1000000 maximum",
        "input length and `max_tokens` exceed context limit: 189136 + 20000 > 204648, decrease",
    ],
)
def test_overflow_is_known_by_its_words(message):
    """There is no code for it, only wording."""
    assert type(decode_error(400, {}, body("invalid_request_error", message))) is ContextLengthError


def test_retry_after():
    """The header says how long to wait."""
    assert decode_error(429, {"Retry-After": "7"}, body("rate_limit_error")).retry_after == 7.0


def test_keys_are_redacted():
    """A key that the provider echoes is in no part of the error."""
    key = "sk-ant-api03-" + "a" * 40
    error = decode_error(401, {}, body("authentication_error", f"bad key {key}"))

    assert key not in f"{error!r} {error} {error.raw}"


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (RateLimitError("slow", retry_after=3.0), 429, "rate_limit_error"),
        (ServerError("busy", status_code=529), 529, "overloaded_error"),
        (NetworkError("gone"), 502, "api_error"),
        (ValueError("bug"), 500, "api_error"),
        (InvalidRequestError("bad"), 400, "invalid_request_error"),
    ],
)
def test_said_as_this_provider(error, status, kind):
    """Any error can be told the way this API tells it."""
    told, headers, value = encode_error(error)

    assert told == status
    assert value["error"] == {"type": kind, "message": str(error)}
    assert headers == ({"retry-after": "3"} if status == 429 else {})
