"""ProviderError <-> error body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.spec.content import Json
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    NotFoundError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
    ServerError,
)
from interlingua.wire.classify import (
    Fault,
    make_error,
    read_body,
    read_fault,
    retry_headers,
    status_of,
    words_of,
)

_TYPES: tuple[tuple[type[SDKError], str], ...] = (
    (AuthenticationError, "authentication_error"),
    (AccessDeniedError, "permission_error"),
    (NotFoundError, "not_found_error"),
    (QuotaExceededError, "billing_error"),
    (RateLimitError, "rate_limit_error"),
    (RequestTimeoutError, "timeout_error"),
)


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Never raises: a body we cannot read still becomes an error with its status."""
    value, text = read_body(body)
    return read_error(status, headers, value, text)


def read_error(
    status: int | None, headers: Mapping[str, str], value: Json, text: str = ""
) -> ProviderError:
    """The error a body, or an error event of a stream, tells."""
    fault = read_fault(value)
    details: Any = None
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        details = value["error"].get("details")
    if isinstance(details, dict) and isinstance(details.get("error_code"), str):
        # the stable code; the wording may change
        fault = Fault(fault.message, fault.kind, details["error_code"])
    request_id = value.get("request_id") if isinstance(value, dict) else None
    if not isinstance(request_id, str):
        request_id = None
    return make_error(status, headers, fault, raw=value, text=text, request_id=request_id)


def encode_error(error: Exception) -> tuple[int, dict[str, str], Json]:
    """Status, headers and body that say this error."""
    status = status_of(error)
    return status, retry_headers(error), error_body(error)


def error_body(error: Exception) -> dict[str, Any]:
    """The body, which is also the data of a stream's error event."""
    status = status_of(error)
    kind = "invalid_request_error"
    for cls, name in _TYPES:
        if isinstance(error, cls):
            kind = name
            break
    else:
        if isinstance(error, ServerError) or status >= 500:
            kind = "overloaded_error" if status == 529 else "api_error"
    body: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": words_of(error)}}
    if isinstance(error, SDKError):
        request_id = error.provider_request_id or error.request_id
        if request_id is not None:
            body["request_id"] = request_id
    return body
