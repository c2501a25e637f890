"""
ProviderError <-> error body.

https://cloud.google.com/apis/design/errors
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from interlingua.dialects.gemini_generate.facts import Shape, to_camel
from interlingua.spec import errors
from interlingua.spec.content import Json, UncheckedJson
from interlingua.wire import classify
from interlingua.wire.integers import read_integer
from interlingua.wire.ratelimit_values import parse_duration
from interlingua.wire.rpc_codes import STATUSES, WORDS, word_for

# Classes that other hosts send with a different status, such as a missing model with 400.
_CLASSES: tuple[tuple[type[errors.SDKError], str], ...] = (
    (errors.AuthenticationError, "UNAUTHENTICATED"),
    (errors.AccessDeniedError, "PERMISSION_DENIED"),
    (errors.NotFoundError, "NOT_FOUND"),
)
_SPENT = 403  # clients of this API try again after a 429, also if the message says otherwise
_TOO_LONG = "The input token count ({used}) exceeds the maximum number of tokens allowed ({limit})."
RPC = "type.googleapis.com/google.rpc."
"""The prefix of the types of error details."""
# recorded: a wrong key is a 400 INVALID_ARGUMENT with the reason API_KEY_INVALID
_BAD_KEYS = ("API_KEY_INVALID", "API_KEY_EXPIRED")
# Failed preconditions that no other request would meet: access is denied.
_DENIED = re.compile(r"location is not supported|billing", re.IGNORECASE)
_DETAIL = Shape("retryDelay", violations=Shape("quotaId"))


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> errors.ProviderError:
    """Return the error of a reply; an unreadable body still gives an error with its status."""
    value, text = classify.read_body(body)
    return read_error(status, headers, value, text)


def read_error(
    status: int | None, headers: Mapping[str, str], value: UncheckedJson, text: str = ""
) -> errors.ProviderError:
    """The error in a body or in a frame of a stream; it may be inside an array of one."""
    fault = classify.read_fault(value)
    code, fault = fault.code, fault._replace(code=None)  # `code` is only the status again
    if status is None:
        status = read_integer(code, least=100, most=999) or STATUSES.get(fault.kind or "")
    details = _details(value)
    error_type = _find_class(status, fault, details)
    delay = _retry_delay(details)
    return classify.make_error(
        status, headers, fault, raw=value, text=text, error_type=error_type, retry_after=delay
    )


def read_status(value: UncheckedJson) -> errors.ProviderError:
    """The error of a job: a google.rpc.Status, whose code is a number of its own."""
    fields = dict(value) if isinstance(value, dict) else {"message": str(value)}
    code = fields.pop("code", None)
    if isinstance(code, int) and 0 < code < len(WORDS):
        fields["status"] = WORDS[code]
    elif code is not None:
        fields["code"] = code
    return read_error(None, {}, {"error": fields})


def write_status(error: Exception) -> dict[str, Json]:
    """The reverse of `read_status`."""
    word = _word(error)
    code = WORDS.index(word) if word in WORDS else WORDS.index("UNKNOWN")
    return {"code": code, "message": _message(error)}


def encode_error(error: Exception) -> tuple[int, dict[str, str], Json]:
    """Return the status, headers and body of an error."""
    return classify.status_of(error, _SPENT), classify.retry_headers(error), error_body(error)


def error_body(error: Exception) -> dict[str, Json]:
    """The body of an error response, which is also the last frame of a failed stream."""
    status = classify.status_of(error, _SPENT)
    body: dict[str, Json] = {"code": status, "message": _message(error), "status": _word(error)}
    delay = getattr(error, "retry_after", None)
    if delay is not None:
        body["details"] = [{"@type": f"{RPC}RetryInfo", "retryDelay": f"{delay:g}s"}]
    return {"error": body}


def _word(error: Exception) -> str:
    """The provider's own word if it fits the status, else that of the class or of the status."""
    status = classify.status_of(error, _SPENT)
    word = getattr(error, "error_code", None)
    if isinstance(word, str) and STATUSES.get(word) == status:
        return word
    words = (name for cls, name in _CLASSES if isinstance(error, cls))
    return next(words, None) or word_for(status)


def _message(error: Exception) -> str:
    if isinstance(error, errors.ContextLengthError):
        return classify.overflow_text(error, "exceeds the maximum number of tokens", _TOO_LONG)
    return classify.error_text(error)


def _find_class(
    status: int | None, fault: classify.Fault, details: list[dict[str, Json]]
) -> type[errors.ProviderError] | None:
    """The class, where the details are more precise than the status."""
    if any(detail.get("reason") in _BAD_KEYS for detail in details):
        return errors.AuthenticationError
    if status == 429 and any(map(_is_daily_limit, details)):
        return errors.QuotaExceededError
    if fault.kind == "FAILED_PRECONDITION" and _DENIED.search(fault.message):
        return errors.AccessDeniedError
    return None


def _details(value: UncheckedJson) -> list[dict[str, Json]]:
    match value[0] if isinstance(value, list) and value else value:
        case {"error": {"details": list(details)}}:
            return [to_camel(item, _DETAIL) for item in details if isinstance(item, dict)]
    return []


def _is_daily_limit(detail: dict[str, Json]) -> bool:
    # Such as GenerateRequestsPerDayPerProjectPerModel: waiting for seconds does not help.
    violations = detail.get("violations")
    return isinstance(violations, list) and any(
        isinstance(item, dict) and "PerDay" in str(item.get("quotaId")) for item in violations
    )


def _retry_delay(details: list[dict[str, Json]]) -> float | None:
    # The API has no header `retry-after`; the time is in a detail, as a duration such as `34.4s`.
    delays = (detail.get("retryDelay") for detail in details)
    return next((parse_duration(delay) for delay in delays if isinstance(delay, str)), None)
