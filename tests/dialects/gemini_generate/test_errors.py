"""ProviderError <-> error body."""

import json

import pytest

from interlingua.dialects import gemini_generate
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    ContextLengthError,
    InvalidRequestError,
    NotFoundError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)

QUOTA = "type.googleapis.com/google.rpc.QuotaFailure"
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}


def decode(status, message="no", word=None, details=None):
    error = {"code": status, "message": message, "status": word, "details": details}
    body = {"error": {name: value for name, value in error.items() if value is not None}}
    return gemini_generate.decode_error(status, {}, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("status", "word", "kind"),
    [
        (400, "INVALID_ARGUMENT", InvalidRequestError),
        (400, "FAILED_PRECONDITION", InvalidRequestError),
        (401, "UNAUTHENTICATED", AuthenticationError),
        (403, "PERMISSION_DENIED", AccessDeniedError),
        (404, "NOT_FOUND", NotFoundError),
        (429, "RESOURCE_EXHAUSTED", RateLimitError),
        (499, "CANCELLED", ServerError),
        (500, "INTERNAL", ServerError),
        (503, "UNAVAILABLE", ServerError),
        (504, "DEADLINE_EXCEEDED", ServerError),
    ],
)
def test_statuses(status, word, kind):
    """Each status is an error of its class, and is said again with its word."""
    error = decode(status, word=word)

    assert type(error) is kind
    assert (error.status_code, error.error_code) == (status, word)
    encoded_status, _, body = gemini_generate.encode_error(error)
    assert encoded_status == body["error"]["code"] == status
    assert body["error"]["status"] == word


def test_a_wrong_key_told_with_a_400_is_an_authentication_error():
    """A key that is not valid is an authentication error, by its reason or its wording."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    wording = "API key not valid. Please pass a valid API key."

    assert type(decode(400, "bad", "INVALID_ARGUMENT", details)) is AuthenticationError
    assert type(decode(400, wording, "INVALID_ARGUMENT")) is AuthenticationError


def test_an_overflow_is_told_by_its_wording():
    """Too long a prompt is told from other bad requests, and from rate limits (field bug 75)."""
    wording = "The input token count (1200293) exceeds the maximum number of tokens allowed (9)."

    assert type(decode(400, wording, "INVALID_ARGUMENT")) is ContextLengthError
    assert type(decode(429, wording, "RESOURCE_EXHAUSTED")) is RateLimitError


def test_region_and_billing():
    """A precondition that fails for the caller is no fault of the request."""
    wording = "User location is not supported for the API use."

    assert type(decode(400, wording, "FAILED_PRECONDITION")) is AccessDeniedError


def test_the_wait_is_read_from_the_body():
    """The API has no `retry-after` header; its details say how long (field bug 73)."""
    violations = [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]
    error = decode(
        429, "slow", "RESOURCE_EXHAUSTED", [{"@type": QUOTA, "violations": violations}, RETRY]
    )

    assert type(error) is RateLimitError
    assert error.retry_after == 34.4
    assert error.retryable


def test_a_daily_quota_is_used_up():
    """Waiting a minute does not help against a limit per day."""
    violations = [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]
    error = decode(429, "no", "RESOURCE_EXHAUSTED", [{"@type": QUOTA, "violations": violations}])

    assert type(error) is QuotaExceededError
    assert not error.retryable


def test_an_array_of_one():
    """Without SSE the body is an array."""
    body = [{"error": {"code": 404, "message": "no model", "status": "NOT_FOUND"}}]

    error = gemini_generate.decode_error(404, {}, json.dumps(body).encode())

    assert type(error) is NotFoundError
    assert "no model" in error.message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"<html>busy</html>",
        b"[]",
        b"[5]",
        b"null",
        b'{"error": 5}',
        b'{"error": {"details": 5}}',
        b'{"error": {"code": [], "status": {}, "details": [5, {"violations": [5, {}]}]}}',
        b'{"error": {"details": [{"reason": {}, "retryDelay": "soon"}]}}',
    ],
)
def test_any_bytes_are_an_error(body):
    """A body that cannot be read still has its status."""
    error = gemini_generate.decode_error(500, {}, body)

    assert type(error) is ServerError
    assert error.status_code == 500


def test_keys_never_show():
    """A key the provider echoes is redacted."""
    key = "AIza" + "x" * 35

    error = decode(400, f"bad key {key}", "INVALID_ARGUMENT")

    assert key not in str(error)
    assert key not in json.dumps(error.raw)


@pytest.mark.parametrize(
    ("error", "status", "word"),
    [
        (RateLimitError("x"), 429, "RESOURCE_EXHAUSTED"),
        (QuotaExceededError("x"), 403, "PERMISSION_DENIED"),
        (AuthenticationError("x", error_code="invalid_api_key"), 401, "UNAUTHENTICATED"),
        (ServerError("x", status_code=529), 529, "INTERNAL"),
        (ConfigurationError("x"), 400, "INVALID_ARGUMENT"),
        (InvalidRequestError("x", status_code=422), 422, "INVALID_ARGUMENT"),
        (ValueError("x"), 500, "INTERNAL"),
    ],
)
def test_foreign_errors(error, status, word):
    """Any error has a status and a word here."""
    encoded_status, _, body = gemini_generate.encode_error(error)

    assert (encoded_status, body["error"]["status"]) == (status, word)


def test_the_wait_is_told():
    """Both in the body, as this API does, and in the header."""
    _, headers, body = gemini_generate.encode_error(RateLimitError("x", retry_after=2.0))

    assert headers == {"retry-after": "2"}
    assert body["error"]["details"] == [{**RETRY, "retryDelay": "2s"}]


def test_words_of_another_status():
    """What others say with 400 keeps its meaning."""
    error = NotFoundError("no such model", status_code=400, error_code="model_not_found")

    status, _, body = gemini_generate.encode_error(error)

    assert (status, body["error"]["status"]) == (400, "NOT_FOUND")
    back = gemini_generate.decode_error(status, {}, json.dumps(body).encode())
    assert isinstance(back, NotFoundError)


def test_a_code_of_superscript_digits_is_not_a_status():
    """`"²³¹".isdigit()` is true, but such a code has no integer value."""
    decoder = gemini_generate.stream_decoder()

    with pytest.raises(ServerError, match="busy"):
        decoder.feed(Frame(data='{"error": {"code": "²³¹", "message": "busy"}}'))
