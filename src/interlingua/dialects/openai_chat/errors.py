"""ProviderError <-> error body."""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.dialects.openai_shared.error_text import names_no_model, openai_error_text
from interlingua.spec import errors
from interlingua.spec.content import Json
from interlingua.wire import classify
from interlingua.wire.integers import read_integer

_REQUEST_ERROR = "invalid_request_error"
_WORDS: tuple[tuple[type[errors.SDKError], str, str | None], ...] = (
    (errors.AuthenticationError, _REQUEST_ERROR, "invalid_api_key"),
    (errors.AccessDeniedError, _REQUEST_ERROR, "permission_denied"),
    (errors.NotFoundError, _REQUEST_ERROR, "model_not_found"),
    (errors.ContextLengthError, _REQUEST_ERROR, "context_length_exceeded"),
    (errors.ContentFilterError, _REQUEST_ERROR, "content_filter"),
    (errors.QuotaExceededError, "insufficient_quota", "insufficient_quota"),
    (errors.BudgetExceededError, "insufficient_quota", "insufficient_quota"),
    (errors.RateLimitError, "rate_limit_error", "rate_limit_exceeded"),
    (errors.RequestTimeoutError, "timeout_error", None),
)
# Groq's, recorded: «Tool call validation failed: … did not match schema», with status 400.
_MODEL_FAULTS = ("tool_use_failed",)
"""Reported as bad requests, but caused by the model's output: a retry may succeed."""
_POLICY_CODES = ("content_policy_violation", "moderation_blocked")
"""The vendor's words for a refusal by an endpoint for images."""


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> errors.ProviderError:
    """Never raises: an unreadable body still gives an error with the status."""
    value, text = classify.read_body(body)
    return read_error(status, headers, value, text)


def read_error(
    status: int | None, headers: Mapping[str, str], value: Json, text: str = ""
) -> errors.ProviderError:
    """The error in a body, or in an error frame of a stream."""
    fault = classify.read_fault(value)
    match value:
        case {"error": {"metadata": {"error_type": str(code)}}}:
            fault = fault._replace(code=code)  # OpenRouter: the upstream provider's error
    # In a stream, OpenRouter and llama.cpp have the HTTP status as the code.
    if status is None:
        status = read_integer(fault.code, least=400, most=599)
    retryable = True if fault.code in _MODEL_FAULTS else None
    return classify.make_error(status, headers, fault, raw=value, text=text, retryable=retryable)


def encode_error(error: Exception) -> tuple[int, dict[str, str], Json]:
    """Status, headers and body for an error."""
    # 429 as the vendor does: only the code `insufficient_quota` differs from a rate limit
    status = classify.status_of(error, spent=429)
    return status, classify.retry_headers(error), error_body(error)


def error_body(error: Exception) -> dict[str, Json]:
    """The body, which is also the data of a stream's error frame."""
    usual = "server_error" if classify.status_of(error) >= 500 else _REQUEST_ERROR
    words = ((kind, code) for cls, kind, code in _WORDS if isinstance(error, cls))
    kind, code = next(words, (usual, None))
    own = getattr(error, "error_code", None)
    if own in _POLICY_CODES or code is None or names_no_model(error):
        code = own
    message = openai_error_text(error)
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
