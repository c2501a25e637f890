"""Classifies errors: statuses, codes and wordings -> error classes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from html import unescape
from typing import NamedTuple
from urllib.parse import urlsplit

from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import (
    AbortError,
    AccessDeniedError,
    AuthenticationError,
    BudgetExceededError,
    CircuitOpenError,
    ConfigurationError,
    ContentFilterError,
    ContextLengthError,
    DecodeError,
    InvalidRequestError,
    NetworkError,
    NotFoundError,
    ProviderError,
    ProviderTimeoutError,
    QuotaExceededError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
    ServerError,
    StreamError,
)
from interlingua.wire.integers import read_integer
from interlingua.wire.json_text import loads
from interlingua.wire.ratelimit_headers import lower_names, parse_rate_limit, should_retry
from interlingua.wire.ratelimit_values import parse_retry_after
from interlingua.wire.secrets import redact

_BY_STATUS: dict[int, type[ProviderError]] = {
    401: AuthenticationError,
    402: QuotaExceededError,
    403: AccessDeniedError,
    404: NotFoundError,
    408: ProviderTimeoutError,
    413: ContextLengthError,  # too many tokens or bytes: the remedy is the same
    429: RateLimitError,
    499: ServerError,  # the server noticed a disconnect, but we had not disconnected
}
"""Every other 4xx is an `InvalidRequestError`, and every 5xx a `ServerError`."""

_RETRYABLE = {
    409: True,  # a lock conflict: the vendors' own clients retry it
    501: False,  # the server does not implement this, now or later
}
"""The statuses whose errors are retried or not, other than by their class."""

# Codes and types that are more specific than their status. The vague ones (`api_error`,
# `server_error`, `invalid_request_error`) are not here: hosts send them with any status.
_BY_CODE: dict[str, type[ProviderError]] = {
    "authentication": AuthenticationError,
    "authentication_error": AuthenticationError,
    "invalid_api_key": AuthenticationError,
    "permission_denied": AccessDeniedError,
    "permission_error": AccessDeniedError,
    "model_not_found": NotFoundError,
    "not_found": NotFoundError,
    "not_found_error": NotFoundError,
    "invalid_model": NotFoundError,
    "model_decommissioned": NotFoundError,
    "model_not_available": NotFoundError,
    "deploymentnotfound": NotFoundError,
    "context_length_exceeded": ContextLengthError,
    "max_tokens_exceeded": ContextLengthError,
    "exceed_context_size_error": ContextLengthError,
    "insufficient_quota": QuotaExceededError,
    "servicequotaexceededexception": QuotaExceededError,
    "billing_error": QuotaExceededError,
    "billing_hard_limit_reached": QuotaExceededError,
    "enforced_spend_limit_reached": QuotaExceededError,
    "payment_required": QuotaExceededError,
    "content_filter": ContentFilterError,
    "content_policy_violation": ContentFilterError,
    "responsibleaipolicyviolation": ContentFilterError,
    "invalid_prompt": ContentFilterError,
    "moderation_blocked": ContentFilterError,
    "data_inspection_failed": ContentFilterError,
    "bio_policy": ContentFilterError,
    "misalignment_policy_violation": ContentFilterError,
    "rate_limit_error": RateLimitError,
    "rate_limit_exceeded": RateLimitError,
    "overloaded_error": ServerError,
    "provider_overloaded": ServerError,
    # AWS sends 403 for a bad key too, and 424 for a failure of the model.
    "expiredtokenexception": AuthenticationError,
    "incompletesignatureexception": AuthenticationError,
    "invalidsignatureexception": AuthenticationError,
    "missingauthenticationtokenexception": AuthenticationError,
    "unrecognizedclientexception": AuthenticationError,
    "modelerrorexception": ServerError,
    "modelnotreadyexception": ServerError,
    "modelstreamerrorexception": ServerError,
}

# Used in streams, where there is no status; any other code is then a `ServerError`. Timeouts are
# here because elsewhere their status decides: 408 is a `ProviderTimeoutError`, 504 a `ServerError`.
_WITHOUT_STATUS: dict[str, type[ProviderError]] = {
    "invalid_request_error": InvalidRequestError,
    "invalid_request": InvalidRequestError,
    "invalid_argument": InvalidRequestError,
    "request_too_large": ContextLengthError,
    "payload_too_large": InvalidRequestError,
    "unauthenticated": AuthenticationError,
    "resource_exhausted": RateLimitError,
    "deadline_exceeded": ProviderTimeoutError,
    "timeout_error": ProviderTimeoutError,
    "timeout": ProviderTimeoutError,
}

# Wordings are patterns that are compiled at the first error, because that takes 5 ms.
#
# The wordings for a prompt that does not fit. Ignored with the statuses of other errors: a 429 has
# similar wording ("tokens per minute", "token limit"), and a 403 may be about the plan that a large
# context window needs.
_NEVER_OVERFLOW = frozenset((401, 402, 403, 404, 429))
_OVERFLOW = (
    r"(?is)prompt is too long|exceeds? (?:the )?(?:available |model'?s? )?context"
    r"|maximum (?:context|prompt|input) length|context (?:length|window|size) (?:of|is|exceeded)"
    r"|context[_ ]length[_ ]exceeded|context window|input token count .{0,60}(?:exceeds|supports)"
    r"|exceeds the maximum number of (?:input )?tokens|input is too long"
    r"|too large for model with|longer than the model'?s? context|maximum allowed (?:number of )?"
    r"input tokens|reduce the length of the (?:messages|prompt|input)|prompt too long"
    r"|range of input length should be|input length .{0,40}exceed|too many input tokens"
    r"|context size has been exceeded|exceeds the limit of \d+ tokens|token limit exceeded"
    r"|exceeded model token limit|token count of \d+ exceeds|input tokens exceed|too many tokens"
    r"|prompt exceeds max(?:imum)? length|than the (?:context|maximum model) length"
    r"|inputs`? tokens \+ `?max_new_tokens|inputs`? must have less than \d+ tokens"
)
_OVERFLOW_USED = (
    r"(?i)(\d{1,9}) tokens >|resulted in (\d{1,9})|requested (?:about )?(\d{1,9})"
    r"|token count \((\d{1,9})\)|request \((\d{1,9}) tokens\)|prompt contains (\d{1,9})"
    r"|has about (\d{1,9}) tokens"
)
_OVERFLOW_LIMIT = (
    r"(?i)> (\d{1,9})|context length (?:is|of) (\d{1,9})|tokens allowed \((\d{1,9})\)"
    r"|context size \((\d{1,9})|for model with (\d{1,9})|limit of (\d{1,9}) tokens"
    r"|context window is (\d{1,9})"
)
_BAD_KEY = r"(?i)api key not valid|incorrect api key|invalid (?:api|x-api)[ -]key"
# The wordings for content that a safety system blocked. Statuses that say something else are not
# overruled; a 403 is, because some hosts send it for content.
_NEVER_FILTERED = frozenset((401, 402, 404, 408, 413, 429))
_FILTERED = (
    r"(?i)content (?:filtering|management|safety) polic|\b(?:our|the) safety system"
    r"|violat(?:es?|ed|ing) (?:our |the |google'?s |openai'?s )?"
    r"(?:(?:usage|content|safety|acceptable use) (?:polic|guideline)|responsible ai)"
    r"|(?:input|prompt|response|output|content) (?:was|were|has been) (?:flagged|blocked|filtered)"
    r"|blocked (?:by|due to|for) (?:our |the |its )?(?:safety|content|prohibited|sensitive)"
    r"|safety_check_type|content exists risk|considered high risk|prohibited[ _]content"
    r"|contains? (?:sensitive words|inappropriate content|harmful content)"
    r"|unsafe or sensitive content"
)
# The wordings for a model that the host does not have, which some send with a 400.
_MODEL_STATUSES = frozenset((None, 400, 404, 422))
_NO_MODEL = (
    r"(?i)"
    r"\bmodel:? {0,2}[`'\"]?[^\s`'\"]{0,200}[`'\"]?,? (?:(?:does not|doesn't) exist|not found)\b"
    r"|\bmodel not (?:found|exist)|not found the model|is not a valid model\b"
    r"|\bmodels/[^\s`'\"]{1,200}[`'\"]? (?:is )?not found"
    r"|\b(?:invalid|unknown) model(?: id| name)?\s?[:,.`'\"]|model identifier is invalid"
    r"|model .{0,200}has been (?:decommissioned|retired)|api deployment .{0,40}does not exist"
)
# llama.cpp sends a 500 for media that the model does not support.
_NOT_READ = r"(?i)\b(?:image|audio|video) input is not supported"

_MAX_TEXT = 2_000
MAX_ERROR_BODY = 256 * 1024
"""Bytes of an error body that are read; the rest is cut off."""
_MAX_WORDING = 4_000  # characters of a message in which a wording is looked for


class Fault(NamedTuple):
    """The content of an error body of any shape."""

    message: str = ""
    kind: str | None = None
    code: str | None = None


def read_body(body: bytes) -> tuple[UncheckedJson, str]:
    """Return the body as JSON (None if it is not JSON) and as text, keys redacted."""
    text = redact(bytes(body[:MAX_ERROR_BODY]).decode("utf-8", "replace"))
    try:
        return loads(text), text
    except DecodeError:
        return None, text


def read_fault(value: UncheckedJson) -> Fault:
    """
    Read an error body of a usual shape.

    `{"error": {...}}`, `{"error": "text"}`, `{"message": ...}` or `{"detail": ...}`, perhaps inside
    an array of one.
    """
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return Fault(value if isinstance(value, str) else "")
    inner = value.get("error")
    if isinstance(inner, str):
        return Fault(inner, _word(value.get("type")), _word(value.get("code")))
    source = inner if isinstance(inner, dict) else value
    message = source.get("message") or source.get("detail") or value.get("message")
    kind = source.get("type") or source.get("status")
    return Fault(_sentence(message), _word(kind), _word(source.get("code")))


def make_error(
    status: int | None,
    headers: Mapping[str, str],
    fault: Fault,
    *,
    raw: UncheckedJson = None,
    text: str = "",
    error_type: type[ProviderError] | None = None,
    retryable: bool | None = None,
    retry_after: float | None = None,
    request_id: str | None = None,
) -> ProviderError:
    """
    Return the error for an error body.

    `error_type`, `retryable`, `retry_after` and `request_id` are what a dialect has read from its
    own fields. They take precedence over the status and the headers, except that a request id in
    the headers takes precedence over `request_id`.
    """
    text = redact(text[: 2 * _MAX_TEXT])[:_MAX_TEXT]
    message = fault.message or text.strip()
    if _is_page(message):
        message = _page_text(message)
    if message != fault.message:
        fault = fault._replace(message=message)
    lowered = lower_names({str(name): str(value) for name, value in headers.items()})
    make = error_type or classify(status, fault)
    message = redact(fault.message) or "no message"
    if retryable is None:
        retryable = should_retry(lowered)
    if status is not None and 300 <= status < 400:
        make, retryable = InvalidRequestError, False  # a retry would be redirected again
        message = _redirection(lowered.get("location", ""))
    if retryable is None and status is not None:
        retryable = _RETRYABLE.get(status)
    if retry_after is None:
        retry_after = parse_retry_after(lowered)
    return make(
        f"HTTP {status}: {message}" if status else message,
        status_code=status,
        error_code=fault.code or fault.kind or _amazon_type(lowered),
        retry_after=retry_after,
        rate_limit=parse_rate_limit(lowered),
        raw=_redact_raw(raw, text),
        retryable=retryable,
        provider_request_id=(
            lowered.get("x-request-id")
            or lowered.get("request-id")
            or lowered.get("x-amzn-requestid")
            or request_id
        ),
    )


_is_page = re.compile(r"\s*<(?:!doctype html|html|head|body)\b", re.IGNORECASE).match
_find_titles = re.compile(r"<(?:title|h1)\b[^<>]*>([^<]+)<", re.IGNORECASE).findall
_replace_tags = re.compile(r"<[^<>]*>").sub
_MAX_PAGE = 200
"""Characters of the words of a page that an error shows."""


def _page_text(page: str) -> str:
    """What an HTML page says in few words: gateways before a provider answer with pages."""
    page = page[:_MAX_WORDING]
    titles = [" ".join(unescape(text).split()) for text in _find_titles(page)]
    words = ": ".join(dict.fromkeys(filter(None, titles)))
    if not words:
        words = " ".join(unescape(_replace_tags(" ", page.rpartition("</head>")[2])).split())
    shown = f"{words[:_MAX_PAGE]}…" if len(words) > _MAX_PAGE else words
    return f"An HTML page, probably of a gateway or proxy: {shown or 'without text'}"


def _amazon_type(headers: Mapping[str, str]) -> str | None:
    """The type of an error of AWS, which is in a header, sometimes with an address behind it."""
    return headers.get("x-amzn-errortype", "").partition(":")[0] or None


def classify(status: int | None, fault: Fault) -> type[ProviderError]:
    """
    Code first, then type, then the wording, then the status.

    Only the wordings of a safety system come before the codes: hosts send them with the codes of
    bad requests and of denied access.

    A fault in a stream or in a 200 body has no status; some hosts send one as the code.
    """
    if status is None or status < 400:
        status = _status_in(fault.code)
    message = fault.message[:_MAX_WORDING]
    if status not in _NEVER_FILTERED and re.search(_FILTERED, message):
        return ContentFilterError
    words = [word.lower() for word in (fault.code, fault.kind) if word]
    for word in words:
        kind = _BY_CODE.get(word)
        if kind is not None and not (kind is ContextLengthError and status == 429):
            return kind
    if status not in _NEVER_OVERFLOW and re.search(_OVERFLOW, message):
        return ContextLengthError
    if status in _MODEL_STATUSES and re.search(_NO_MODEL, message):
        return NotFoundError
    if re.search(_NOT_READ, message):
        return InvalidRequestError
    if status in {None, 400} and re.search(_BAD_KEY, message):
        return AuthenticationError
    if status is None:
        known = (_WITHOUT_STATUS[word] for word in words if word in _WITHOUT_STATUS)
        return next(known, ServerError)
    return _BY_STATUS.get(status, InvalidRequestError if status < 500 else ServerError)


SPENT = (QuotaExceededError, BudgetExceededError)
"""The errors that say that there is no money left."""


def overflow_figures(text: str) -> tuple[int | None, int | None]:
    """How many tokens a prompt had and how many fit, as far as an error says so."""
    found = (re.search(_OVERFLOW_USED, text), re.search(_OVERFLOW_LIMIT, text))
    used, limit = (None if match is None else int(match[match.lastindex or 0]) for match in found)
    return used, limit


def status_of(error: Exception, spent: int = 402) -> int:
    """
    Return the HTTP status with which a server sends this error.

    `spent` is the status for an error of `SPENT`: after any other status, clients of the dialect
    would retry without end.
    """
    if isinstance(error, SPENT):
        return spent
    code = error.status_code if isinstance(error, SDKError) else None
    # Only clients of AWS know 424 as a failure of the model; others would not try again.
    is_failed_model = code == MODEL_FAILED and isinstance(error, ServerError)
    if code and code >= 400 and not is_failed_model:
        return code
    for kind, status in _STATUS_OF.items():
        if isinstance(error, kind):
            return status
    return 500


MODEL_FAILED = 424
"""The status with which AWS sends a failure of the model."""
_STATUS_OF: dict[type[SDKError], int] = {
    AuthenticationError: 401,
    AccessDeniedError: 403,
    NotFoundError: 404,
    ContextLengthError: 400,
    ContentFilterError: 400,
    InvalidRequestError: 400,
    RateLimitError: 429,
    CircuitOpenError: 503,
    ProviderTimeoutError: 408,
    RequestTimeoutError: 504,
    AbortError: 499,
    ConfigurationError: 400,
    NetworkError: 502,
    StreamError: 502,
    DecodeError: 502,
}


_USUAL_DELAY = "1"
"""Seconds to wait after a rate limit, if nothing says how long."""


def overflow_text(error: Exception, words: str, sentence: str) -> str:
    """
    The message of a `ContextLengthError` in the words that clients of a dialect look for.

    `sentence` has `{used}` and `{limit}`, and is used if the error says both.
    """
    text = error_text(error)
    if words in text:
        return text
    used, limit = overflow_figures(text)
    if used is not None and limit is not None:
        return sentence.format(used=used, limit=limit)
    return f"{words}: {text}"


_BUSY = frozenset((429, 503, 529))
_UNCERTAIN = frozenset((408, 499))


def was_refused(error: SDKError) -> bool:
    """
    Whether a failed request certainly has started nothing, so that it can be sent again.

    There was no connection, or the provider refused it or has no room now. After any other
    failure (a lost connection, a timeout, a 500 or 502) the work may have begun.
    """
    if isinstance(error, (NetworkError, RequestTimeoutError)) and error.phase is not None:
        return error.phase == "connect"
    status = error.status_code
    is_refusal = status is not None and 400 <= status < 500 and status not in _UNCERTAIN
    return is_refusal or status in _BUSY


def error_text(error: Exception) -> str:
    """Return the message of an error, without the status that `make_error` wrote before it."""
    if not isinstance(error, SDKError):
        return str(error)
    return error.message.removeprefix(f"HTTP {error.status_code}: ")


def retry_headers(error: Exception) -> dict[str, str]:
    """
    `retry-after`, if it is known; `x-should-retry`, if the class does not imply it.

    A rate limit always has a delay: without one, Codex gives up.
    """
    headers: dict[str, str] = {}
    if not isinstance(error, SDKError):
        return headers
    if error.retryable is not error.default_retryable:
        headers["x-should-retry"] = str(error.retryable).lower()
    seconds = error.retry_after
    if seconds is not None and math.isfinite(seconds) and seconds >= 0:
        headers["retry-after"] = f"{seconds:.3f}".rstrip("0").rstrip(".")
    elif isinstance(error, RateLimitError):
        headers["retry-after"] = _USUAL_DELAY
    return headers


def _redirection(location: str) -> str:
    """The message for a redirect; it names the host and not the URL, which may contain a key."""
    try:
        parts = urlsplit(location)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    if host:
        where = f"to {parts.scheme}://{host}" if parts.scheme else f"to {host}"
        advice = "if that is the right server, set it as the base_url"
    else:
        where = "to another path" if location else "without saying where to"
        advice = "check the path of the base_url"
    return f"the server redirects {redact(where)}, which is not followed with a key: {advice}"


def _status_in(code: str | None) -> int | None:
    return read_integer(code, least=400, most=599)


def _redact_raw(raw: UncheckedJson, text: str) -> UncheckedJson:
    try:
        return (text or None) if raw is None else _redact_json(raw)
    except RecursionError:
        return text or None


def _redact_json(value: UncheckedJson) -> UncheckedJson:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {_redact_json(key): _redact_json(item) for key, item in value.items()}
    return [_redact_json(item) for item in value] if isinstance(value, list) else value


def _word(value: object) -> str | None:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None


def _sentence(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):  # 422 {"detail": [{"loc": …, "msg": "…"}]}
        messages = [str(item["msg"]) for item in value if isinstance(item, dict) and "msg" in item]
        return "; ".join(messages) or str(value)[:_MAX_TEXT]
    return "" if value is None else str(value)[:_MAX_TEXT]
