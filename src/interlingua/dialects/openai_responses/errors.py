"""ProviderError <-> error body."""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.dialects.openai_shared.error_text import names_no_model, openai_error_text
from interlingua.spec.content import Json
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    BudgetExceededError,
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
    make_error,
    read_body,
    read_fault,
    retry_headers,
    status_of,
)

# Codes of this API that the shared table does not have. Most come in `response.failed`, which has
# no HTTP status.
_CODES: dict[str, type[ProviderError]] = {
    "image_content_policy_violation": ContentFilterError,
    "data_residency_mismatch": InvalidRequestError,
    "vector_store_timeout": ProviderTimeoutError,
}
# The starts of the codes about images in the SDK's `ResponseError.code`: the request is at fault.
_IMAGE_CODES = (
    "image_", "invalid_image", "invalid_base64_image", "empty_image", "unsupported_im",
    "failed_to_download_image",
)  # fmt: skip

# OpenAI shows thoughts only to verified organizations. Its answer to others, with the code
# `unsupported_value`: «Your organization must be verified to generate reasoning summaries.»
# https://github.com/home-assistant/core/issues/160212
_SUMMARY = "reasoning.summary"
_UNVERIFIED = (
    "Visible thinking was asked for (include_thinking, on_reasoning or --show-reasoning); without "
    "it, no verification is needed."
)

# The type and code for our error classes.
_TYPES: tuple[tuple[type[SDKError], str, str | None], ...] = (
    (AuthenticationError, "invalid_request_error", "invalid_api_key"),
    (AccessDeniedError, "permission_error", "permission_denied"),
    (NotFoundError, "invalid_request_error", "model_not_found"),
    (ContextLengthError, "invalid_request_error", "context_length_exceeded"),
    (ContentFilterError, "invalid_request_error", "content_policy_violation"),
    (QuotaExceededError, "insufficient_quota", "insufficient_quota"),
    (BudgetExceededError, "insufficient_quota", "insufficient_quota"),
    (RateLimitError, "rate_limit_error", "rate_limit_exceeded"),
)


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Never raises: a body that cannot be read still becomes an error with its status."""
    value, text = read_body(body)
    return read_error(status, headers, value, text)


def read_error(
    status: int | None, headers: Mapping[str, str], value: Json, text: str = ""
) -> ProviderError:
    """The error in a body, in an `error` event, or in the `error` field of a failed response."""
    fault = read_fault(value)
    if fault.kind == "error":  # the type of an event, not of an error
        fault = fault._replace(kind=None)
    # Errors over a WebSocket, and of some proxies, have the HTTP status in the body.
    if status is None and isinstance(value, dict):
        number = value.get("status")
        status = number if type(number) is int and 400 <= number < 600 else None
    if "verif" in fault.message.lower() and _parameter(value) == _SUMMARY:
        fault = fault._replace(message=f"{fault.message} {_UNVERIFIED}")
    code = fault.code or (fault.kind if status is None else None) or ""
    error_type = _CODES.get(code)
    if error_type is None and code.startswith(_IMAGE_CODES):
        error_type = InvalidRequestError
    return make_error(status, headers, fault, raw=value, text=text, error_type=error_type)


def _parameter(value: Json) -> Json:
    """The part of the request that is at fault, in the words of the API."""
    inner = value.get("error") if isinstance(value, dict) else None
    return inner.get("param") if isinstance(inner, dict) else None


def encode_error(error: Exception) -> tuple[int, dict[str, str], Json]:
    """Status, headers and body for this error."""
    # 429 as the vendor does: only the code `insufficient_quota` differs from a rate limit
    return status_of(error, spent=429), retry_headers(error), error_body(error)


def error_body(error: Exception) -> dict[str, Json]:
    """The body for this error."""
    return {"error": error_fields(error)}


def error_fields(error: Exception) -> dict[str, str | None]:
    """The `error` object of a body, and of the error event of a stream."""
    kind, code = "invalid_request_error", getattr(error, "error_code", None)
    if status_of(error) >= 500:
        kind, code = "server_error", code or "server_error"
    for error_class, name, word in _TYPES:
        if isinstance(error, error_class) and not names_no_model(error):
            kind, code = name, word
            break
    message = openai_error_text(error)
    return {"message": message, "type": kind, "param": None, "code": code}
