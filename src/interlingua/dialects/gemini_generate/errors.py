"""ProviderError <-> error body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from interlingua.dialects.gemini_generate.facts import shape_of, to_camel
from interlingua.spec.content import Json
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    NotFoundError,
    ProviderError,
    QuotaExceededError,
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
from interlingua.wire.ratelimit_headers import parse_duration

# The words of google.rpc.Code and their HTTP statuses; the first word of a status is its default.
_STATUSES = {
    "INVALID_ARGUMENT": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "ALREADY_EXISTS": 409,
    "UNKNOWN": 500,
    "DATA_LOSS": 500,
}
_WORDS = {status: word for word, status in reversed(_STATUSES.items())}
_WORDS[402] = "RESOURCE_EXHAUSTED"
# Classes that other hosts send with a different status, such as a missing model with 400.
_CLASSES: tuple[tuple[type[SDKError], str], ...] = (
    (AuthenticationError, "UNAUTHENTICATED"),
    (AccessDeniedError, "PERMISSION_DENIED"),
    (NotFoundError, "NOT_FOUND"),
)
RPC = "type.googleapis.com/google.rpc."
"""The prefix of the types of error details."""
_BAD_KEYS = ("API_KEY_INVALID", "API_KEY_EXPIRED")
# Failed preconditions that no other request would meet: access is denied.
_DENIED = re.compile(r"location is not supported|billing", re.IGNORECASE)
_DETAIL = shape_of("retryDelay", "quotaId")


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The error of a response; an unreadable body still gives an error with its status."""
    value, text = read_body(body)
    return read_error(status, headers, value, text)


def read_error(
    status: int | None, headers: Mapping[str, str], value: Json, text: str = ""
) -> ProviderError:
    """The error in a body or in a frame of a stream; it may be inside an array of one."""
    fault = read_fault(value)
    code, fault = fault.code, fault._replace(code=None)  # `code` is only the status again
    if status is None:
        is_status = code is not None and code.isdigit() and len(code) == 3
        status = int(code or 0) if is_status else _STATUSES.get(fault.kind or "")
    details = list(_details(value))
    error_type = _find_class(status, fault, details)
    delay = _retry_delay(details)
    return make_error(
        status, headers, fault, raw=value, text=text, error_type=error_type, retry_after=delay
    )


def encode_error(error: Exception) -> tuple[int, dict[str, str], Json]:
    """The status, headers and body of an error."""
    return status_of(error), retry_headers(error), error_body(error)


def error_body(error: Exception) -> dict[str, Json]:
    """The body of an error response, which is also the last frame of a failed stream."""
    status = status_of(error)
    word = getattr(error, "error_code", None)
    if _STATUSES.get(word or "") != status:
        words = (name for cls, name in _CLASSES if isinstance(error, cls))
        word = next(words, None) or word_for(status)
    body: dict[str, Json] = {"code": status, "message": words_of(error), "status": word}
    delay = getattr(error, "retry_after", None)
    if delay is not None:
        body["details"] = [{"@type": f"{RPC}RetryInfo", "retryDelay": f"{delay:g}s"}]
    return {"error": body}


def word_for(status: int) -> str:
    """The word that goes with an HTTP status."""
    return _WORDS.get(status) or ("INTERNAL" if status >= 500 else "INVALID_ARGUMENT")


def _find_class(
    status: int | None, fault: Fault, details: list[dict[str, Json]]
) -> type[ProviderError] | None:
    """The class, where the details are more precise than the status."""
    if any(detail.get("reason") in _BAD_KEYS for detail in details):
        return AuthenticationError
    if status == 429 and any("PerDay" in quota for quota in _quota_ids(details)):
        return QuotaExceededError
    if fault.kind == "FAILED_PRECONDITION" and _DENIED.search(fault.message):
        return AccessDeniedError
    return None


def _details(value: Json) -> Iterator[dict[str, Json]]:
    if isinstance(value, list) and value:
        value = value[0]
    error = value.get("error") if isinstance(value, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            yield to_camel(detail, _DETAIL)


def _quota_ids(details: list[dict[str, Json]]) -> Iterator[str]:
    for detail in details:
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else ():
            quota = violation.get("quotaId") if isinstance(violation, dict) else None
            if isinstance(quota, str):
                yield quota


def _retry_delay(details: list[dict[str, Json]]) -> float | None:
    delays = (detail.get("retryDelay") for detail in details)
    return next((parse_duration(delay) for delay in delays if isinstance(delay, str)), None)
