"""
ProviderError <-> error body.

https://platform.claude.com/docs/en/api/errors
"""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    BudgetExceededError,
    ContextLengthError,
    NotFoundError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
    ServerError,
)
from interlingua.wire.classify import (
    error_text,
    make_error,
    overflow_text,
    read_body,
    read_fault,
    retry_headers,
    status_of,
)

# The API has no code for an overflow: clients look for the words.
_TOO_LONG = "prompt is too long: {used} tokens > {limit} maximum"
_TYPES: tuple[tuple[type[SDKError], str], ...] = (
    (AuthenticationError, "authentication_error"),
    (AccessDeniedError, "permission_error"),
    (NotFoundError, "not_found_error"),
    (QuotaExceededError, "billing_error"),
    # A spent budget is not a rate limit: agents would wait and try again.
    (BudgetExceededError, "billing_error"),
    (RateLimitError, "rate_limit_error"),
    (RequestTimeoutError, "timeout_error"),
)


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Return the error of a reply; an unreadable body still gives an error with its status."""
    value, text = read_body(body)
    return read_error(status, headers, value, text)


def read_error(
    status: int | None, headers: Mapping[str, str], value: UncheckedJson, text: str = ""
) -> ProviderError:
    """The error in a body, or in an error event of a stream."""
    fault = read_fault(value)
    match value:
        case {"error": {"details": {"error_code": str(code)}}}:
            fault = fault._replace(code=code)  # this code is stable, the message may change
    request_id = value.get("request_id") if isinstance(value, dict) else None
    if not isinstance(request_id, str):
        request_id = None
    return make_error(status, headers, fault, raw=value, text=text, request_id=request_id)


def encode_error(error: Exception) -> tuple[int, dict[str, str], Json]:
    """Return the status, headers and body of an error."""
    return status_of(error), retry_headers(error), error_body(error)


def error_body(error: Exception) -> dict[str, Json]:
    """The body, which is also the data of a stream's error event."""
    body: dict[str, Json] = {
        "type": "error",
        "error": {"type": _type_of(error), "message": _message(error)},
    }
    if isinstance(error, SDKError):
        request_id = error.provider_request_id or error.request_id
        if request_id is not None:
            body["request_id"] = request_id
    return body


def _message(error: Exception) -> str:
    if isinstance(error, ContextLengthError):  # Claude Code looks for these words
        return overflow_text(error, "prompt is too long", _TOO_LONG)
    return error_text(error)


def _type_of(error: Exception) -> str:
    for error_class, name in _TYPES:
        if isinstance(error, error_class):
            return name
    status = status_of(error)
    if isinstance(error, ServerError) or status >= 500:
        return "overloaded_error" if status == 529 else "api_error"  # 529 is this API's own
    return "invalid_request_error"
