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
    ProviderTimeoutError,
    QuotaExceededError,
    RateLimitError,
    SDKError,
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

# Codes of this API that the shared table does not know. Most come in `response.failed`, where
# no status helps.
_CODES: dict[str, type[ProviderError]] = {
    "image_content_policy_violation": ContentFilterError,
    "data_residency_mismatch": InvalidRequestError,
    "vector_store_timeout": ProviderTimeoutError,
}
_IMAGE_CODES = ("image_", "invalid_image", "invalid_base64_image", "empty_image", "unsupported_im")

# Our classes as the vendor says them: type, code.
_WORDS: tuple[tuple[type[SDKError], str, str | None], ...] = (
    (AuthenticationError, "invalid_request_error", "invalid_api_key"),
    (AccessDeniedError, "permission_error", "permission_denied"),
    (NotFoundError, "invalid_request_error", "model_not_found"),
    (ContextLengthError, "invalid_request_error", "context_length_exceeded"),
    (ContentFilterError, "invalid_request_error", "content_policy_violation"),
    (QuotaExceededError, "insufficient_quota", "insufficient_quota"),
    (RateLimitError, "rate_limit_error", "rate_limit_exceeded"),
)


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Never raises: a body we cannot read still becomes an error with its status."""
    value, text = read_body(body)
    return read_error(status, headers, value, text)


def read_error(
    status: int | None, headers: Mapping[str, str], value: Json, text: str = ""
) -> ProviderError:
    """
    The error a body, an `error` event or the `error` of a failed response tells.

    An event's fields may be nested or not; its own `type` says nothing.
    """
    fault = read_fault(value)
    if fault.kind == "error":
        fault = fault._replace(kind=None)
    if status is None and isinstance(value, dict):
        told = value.get("status")
        status = told if type(told) is int and 400 <= told < 600 else None
    return make_error(
        status, headers, fault, raw=value, text=text, error_type=_classify(status, fault)
    )


def _classify(status: int | None, fault: Fault) -> type[ProviderError] | None:
    code = fault.code or (fault.kind if status is None else None) or ""
    if code in _CODES:
        return _CODES[code]
    if code.startswith(_IMAGE_CODES) or code == "failed_to_download_image":
        return InvalidRequestError
    return None


def encode_error(error: Exception) -> tuple[int, dict[str, str], Json]:
    """Status, headers and body that say this error."""
    status = status_of(error)
    if isinstance(error, QuotaExceededError) and status != error.status_code:
        status = 429  # the code tells it from a rate limit
    return status, retry_headers(error), error_body(error)


def error_body(error: Exception) -> dict[str, Any]:
    """The body; what its `error` holds is also told by a stream's error event."""
    kind, code = "invalid_request_error", getattr(error, "error_code", None)
    if status_of(error) >= 500:
        kind, code = "server_error", code or "server_error"
    for cls, name, word in _WORDS:
        if isinstance(error, cls):
            kind, code = name, word
            break
    return {"error": {"message": words_of(error), "type": kind, "param": None, "code": code}}
