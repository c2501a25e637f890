"""ProviderError <-> error body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.spec.content import Json
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
)
from interlingua.wire.faults import (
    Fault,
    make_error,
    read_body,
    read_fault,
    retry_headers,
    status_of,
)

_REQUEST_ERROR = "invalid_request_error"
_WORDS: tuple[tuple[type[SDKError], str, str | None], ...] = (
    (AuthenticationError, _REQUEST_ERROR, "invalid_api_key"),
    (AccessDeniedError, _REQUEST_ERROR, "permission_denied"),
    (NotFoundError, _REQUEST_ERROR, "model_not_found"),
    (ContextLengthError, _REQUEST_ERROR, "context_length_exceeded"),
    (ContentFilterError, _REQUEST_ERROR, "content_filter"),
    (QuotaExceededError, "insufficient_quota", "insufficient_quota"),
    (RateLimitError, "rate_limit_error", "rate_limit_exceeded"),
    (RequestTimeoutError, "timeout_error", None),
)
_MODEL_FAULTS = ("tool_use_failed",)
"""Reported as bad requests, but it was the model that failed: asking again may help."""


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Never raises: a body we cannot read still becomes an error with its status."""
    value, text = read_body(body)
    return read_error(status, headers, value, text)


def read_error(
    status: int | None, headers: Mapping[str, str], value: Json, text: str = ""
) -> ProviderError:
    """The error a body, or an error frame of a stream, tells."""
    fault = read_fault(value)
    details = _details(value)
    if isinstance(details.get("error_type"), str):  # what a router found behind its own answer
        fault = Fault(fault.message, fault.kind, details["error_type"])
    if status is None:
        status = _status_in(fault.code)
    found = None
    if status is None and fault.kind == _REQUEST_ERROR:
        found = InvalidRequestError
    error = make_error(status, headers, fault, raw=value, text=text, found=found)
    if fault.code in _MODEL_FAULTS:
        error.retryable = True
    return error


def _details(value: Json) -> dict[str, Any]:
    match value:
        case {"error": {"metadata": dict(details)}}:
            return details
    return {}


def _status_in(code: str | None) -> int | None:
    """Some servers give the status as the code."""
    if code is not None and len(code) == 3 and code.isdecimal() and code[0] in "45":
        return int(code)
    return None


def encode_error(error: Exception) -> tuple[int, dict[str, str], Json]:
    """Status, headers and body that say this error."""
    return status_of(error), retry_headers(error), error_body(error)


def error_body(error: Exception) -> dict[str, Any]:
    """The body, which is also the data of a stream's error frame."""
    kind = "server_error" if status_of(error) >= 500 else _REQUEST_ERROR
    code = None
    for cls, its_kind, its_code in _WORDS:
        if isinstance(error, cls):
            kind, code = its_kind, its_code
            break
    code = code or getattr(error, "error_code", None)
    return {"error": {"message": str(error), "type": kind, "param": None, "code": code}}
