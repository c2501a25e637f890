"""ProviderError <-> error body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.dialects.gemini_generate.names import shape_of, to_camel
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

# The words of google.rpc.Code and the HTTP statuses they come with.
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
# What others may say with a status of their own, such as a missing model with 400.
_CLASSES: tuple[tuple[type[SDKError], str], ...] = (
    (AuthenticationError, "UNAUTHENTICATED"),
    (AccessDeniedError, "PERMISSION_DENIED"),
    (NotFoundError, "NOT_FOUND"),
)
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_BAD_KEYS = ("API_KEY_INVALID", "API_KEY_EXPIRED")
# A precondition that fails for the caller, whatever the request.
_NOT_FOR_YOU = re.compile(r"location is not supported|billing", re.IGNORECASE)
_DETAIL = shape_of("retryDelay", "quotaId")


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Never raises: a body we cannot read still becomes an error with its status."""
    value, text = read_body(body)
    return read_error(status, headers, value, text)


def read_error(
    status: int | None, headers: Mapping[str, str], value: Json, text: str = ""
) -> ProviderError:
    """The error a body, or a frame of a stream, tells; it may be in an array of one."""
    told = read_fault(value)
    fault = Fault(told.message, told.kind, None)  # `code` is only the status again
    if status is None:
        status = _status_told(told)
    details = list(_details(value))
    return make_error(
        status,
        headers,
        fault,
        raw=value,
        text=text,
        error_type=_find_class(status, fault, details),
        retry_after=_retry_delay(details),
    )


def encode_error(error: Exception) -> tuple[int, dict[str, str], Json]:
    """Status, headers and body that say this error."""
    return status_of(error), retry_headers(error), error_body(error)


def error_body(error: Exception) -> dict[str, Any]:
    """The body, which is also a stream's last frame."""
    status = status_of(error)
    word = getattr(error, "error_code", None)
    if _STATUSES.get(word or "") != status:
        words = (name for cls, name in _CLASSES if isinstance(error, cls))
        word = next(words, None) or _WORDS.get(status) or _nearest_word(status)
    body: dict[str, Any] = {"code": status, "message": words_of(error), "status": word}
    delay = getattr(error, "retry_after", None)
    if delay is not None:
        body["details"] = [{"@type": _RETRY_INFO, "retryDelay": f"{delay:g}s"}]
    return {"error": body}


def _nearest_word(status: int) -> str:
    if status == 402:
        return "RESOURCE_EXHAUSTED"
    return "INTERNAL" if status >= 500 else "INVALID_ARGUMENT"


def _status_told(fault: Fault) -> int | None:
    if fault.code is not None and fault.code.isdigit() and len(fault.code) == 3:
        return int(fault.code)
    return _STATUSES.get(fault.kind or "")


def _find_class(
    status: int | None, fault: Fault, details: list[dict[str, Any]]
) -> type[ProviderError] | None:
    """What the details say more surely than the status does."""
    if any(detail.get("reason") in _BAD_KEYS for detail in details):
        return AuthenticationError
    if status == 429 and any("PerDay" in quota for quota in _quota_ids(details)):
        return QuotaExceededError
    if fault.kind == "FAILED_PRECONDITION" and _NOT_FOR_YOU.search(fault.message):
        return AccessDeniedError
    return None


def _details(value: Json) -> Iterator[dict[str, Any]]:
    if isinstance(value, list) and value:
        value = value[0]
    error = value.get("error") if isinstance(value, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            yield to_camel(detail, _DETAIL)


def _quota_ids(details: list[dict[str, Any]]) -> Iterator[str]:
    for detail in details:
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else ():
            quota = violation.get("quotaId") if isinstance(violation, dict) else None
            if isinstance(quota, str):
                yield quota


def _retry_delay(details: list[dict[str, Any]]) -> float | None:
    for detail in details:
        delay = detail.get("retryDelay")
        if isinstance(delay, str):
            return parse_duration(delay)
    return None
