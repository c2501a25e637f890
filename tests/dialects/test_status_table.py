"""The table HTTP status -> error class, whole, on all dialects."""

import json

import pytest

from interlingua.dialects import (
    anthropic_messages,
    gemini_generate,
    openai_chat,
    openai_responses,
)
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    ContextLengthError,
    ErrorClass,
    InvalidRequestError,
    NotFoundError,
    ProviderTimeoutError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)

DIALECTS = (anthropic_messages, gemini_generate, openai_chat, openai_responses)
STATUSES = (*range(400, 452), 499, *range(500, 530))
SPECIAL = {
    401: (AuthenticationError, ErrorClass.AUTH, False),
    402: (QuotaExceededError, ErrorClass.RATE_LIMIT, False),
    403: (AccessDeniedError, ErrorClass.AUTH, False),
    404: (NotFoundError, ErrorClass.INVALID_REQUEST, False),
    408: (ProviderTimeoutError, ErrorClass.NETWORK, True),
    409: (InvalidRequestError, ErrorClass.INVALID_REQUEST, True),
    413: (ContextLengthError, ErrorClass.CONTEXT_OVERFLOW, False),
    429: (RateLimitError, ErrorClass.RATE_LIMIT, True),
    499: (ServerError, ErrorClass.SERVER_ERROR, True),
    501: (ServerError, ErrorClass.SERVER_ERROR, False),
}
BODIES = (b"", b"<html>Bad Gateway</html>", b'{"error": {"message": "It failed."}}')


def expected(status):
    """Class, error class and retryable of a status."""
    if status in SPECIAL:
        return SPECIAL[status]
    if status < 500:
        return InvalidRequestError, ErrorClass.INVALID_REQUEST, False
    return ServerError, ErrorClass.SERVER_ERROR, True


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda module: module.NAME)
@pytest.mark.parametrize("body", BODIES, ids=["empty", "html", "json"])
def test_statuses(dialect, body):
    """Without a code that says more, the status decides, and the same way everywhere."""
    for status in STATUSES:
        error = dialect.decode_error(status, {}, body)

        assert (type(error), error.error_class, error.retryable) == expected(status), status
        assert error.status_code == status
        assert error.message.startswith(f"HTTP {status}: ")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda module: module.NAME)
def test_statuses_survive_the_dialect_s_own_error_body(dialect):
    """An error that was encoded as a provider would do it is decoded as the same class."""
    for status in STATUSES:
        kind, error_class, retryable = expected(status)
        told = kind("It failed.", status_code=status, retryable=retryable, error_code="odd")
        sent, headers, body = dialect.encode_error(told)
        error = dialect.decode_error(sent, headers, json.dumps(body).encode())

        if kind is QuotaExceededError:  # spent money: see tests/serving/test_errors.py
            continue
        assert sent == status
        assert (type(error), error.error_class, error.retryable) == (kind, error_class, retryable)
