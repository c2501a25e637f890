"""
The errors of each vendor as they stand on the wire, by status.

Bodies that were recorded or are documented are as they were; where a vendor is not known to
answer with a status, the body has its usual shape. What a load balancer answers is HTML.
"""

from __future__ import annotations

from typing import Any

from interlingua.simulator.dsl import Failure
from interlingua.spec.content import Json
from interlingua.spec.errors import ProviderError
from interlingua.wire.classify import classify, read_fault
from interlingua.wire.json_text import dumps

_HTML = (
    "<html>\r\n<head><title>{0} {1}</title></head>\r\n<body>\r\n<center><h1>{0} {1}</h1></center>"
    "\r\n</body>\r\n</html>\r\n"
)
_PHRASES = {502: "Bad Gateway", 503: "Service Temporarily Unavailable", 504: "Gateway Time-out"}
_RPC = "type.googleapis.com/google.rpc."

# type, code, message
_OPENAI: dict[int, tuple[str, str | None, str]] = {
    400: (
        "invalid_request_error",
        "unsupported_value",
        "Unsupported value: this request cannot be processed.",
    ),
    401: (
        "invalid_request_error",
        "invalid_api_key",
        (
            "Incorrect API key provided: simulated. You can find your API key at "
            "https://platform.openai.com/account/api-keys."
        ),
    ),
    402: ("insufficient_quota", "insufficient_quota", "Your account has no credit left."),
    403: (
        "invalid_request_error",
        "unsupported_country_region_territory",
        "Country, region, or territory not supported",
    ),
    404: (
        "invalid_request_error",
        "model_not_found",
        "The model `{model}` does not exist or you do not have access to it.",
    ),
    408: ("timeout_error", None, "Request timed out."),
    409: ("invalid_request_error", "conflict", "The resource is being changed by another request."),
    413: ("invalid_request_error", None, "Request body is too large."),
    422: ("invalid_request_error", None, "The request could not be processed."),
    429: (
        "rate_limit_error",
        "rate_limit_exceeded",
        "Rate limit reached for {model} on requests per min (RPM). Please try again later.",
    ),
    500: (
        "server_error",
        None,
        "The server had an error while processing your request. Sorry about that!",
    ),
    503: ("server_error", None, "The engine is currently overloaded, please try again later"),
    529: ("server_error", None, "Overloaded"),
}

_ANTHROPIC: dict[int, tuple[str, str]] = {
    400: ("invalid_request_error", "messages.0: Input does not match the expected shape."),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: (
        "permission_error",
        "Your API key does not have permission to use the specified resource.",
    ),
    404: ("not_found_error", "model: {model}"),
    408: ("timeout_error", "Request timed out."),
    409: ("conflict_error", "The resource is being changed by another request."),
    413: ("request_too_large", "Request exceeds the maximum size"),
    422: ("invalid_request_error", "The request could not be processed."),
    429: (
        "rate_limit_error",
        "This request would exceed your organization's rate limit. Please try again later.",
    ),
    500: ("api_error", "Internal server error"),
    503: ("api_error", "Service unavailable"),
    504: ("timeout_error", "Request timed out."),
    529: ("overloaded_error", "Overloaded"),
}

_GEMINI: dict[int, tuple[str, str]] = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: (
        "UNAUTHENTICATED",
        (
            "Request is missing required authentication credential. Expected OAuth 2 access token, "
            "login cookie or other valid authentication credential."
        ),
    ),
    402: ("RESOURCE_EXHAUSTED", "Billing is not enabled."),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: (
        "NOT_FOUND",
        (
            "models/{model} is not found for API version v1beta, or is not supported for "
            "generateContent. Call ListModels to see the list of available models and their "
            "supported methods."
        ),
    ),
    408: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
    409: ("ABORTED", "The operation was aborted."),
    413: ("INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."),
    422: ("INVALID_ARGUMENT", "The request could not be processed."),
    429: ("RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan."),
    500: ("INTERNAL", "An internal error has occurred. Please retry later."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
    529: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}
_QUOTA = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"


def vendor_body(dialect: str, failure: Failure, *, model: str, request_id: str) -> Json:
    """The body this vendor sends with the failure's status: JSON, or text that is not."""
    if failure.body is not None:
        return failure.body
    build = _BUILD[dialect]
    body = build(failure, request_id)
    if body is None:
        return _HTML.format(failure.status, _PHRASES.get(failure.status, "Error"))
    told = body["error"]
    told["message"] = failure.message or told["message"].replace("{model}", model)
    return body


def body_bytes(body: Json) -> tuple[str, bytes]:
    """The content type (empty for JSON) and bytes of a body as it was given."""
    if isinstance(body, str):
        body = body.encode()
    if isinstance(body, bytes):
        return "text/html" if body.lstrip().startswith(b"<") else "text/plain", body
    return "", dumps(body)


def retry_headers(dialect: str, failure: Failure) -> dict[str, str]:
    """`retry-after`, but for Gemini, which says it in the body."""
    if failure.retry_after is None or dialect == "gemini_generate":
        return {}
    return {"retry-after": f"{failure.retry_after:g}"}


def as_error(dialect: str, failure: Failure, *, model: str, request_id: str) -> ProviderError:
    """The failure as an error of ours, for a stream's error event."""
    body = vendor_body(dialect, failure, model=model, request_id=request_id)
    fault = read_fault(body)
    return classify(failure.status, fault)(
        failure.message or fault.message or "no message",
        status_code=failure.status,
        error_code=fault.code or fault.kind,
        retry_after=failure.retry_after,
        raw=body,
    )


def wrong_key(dialect: str, *, is_missing: bool) -> Failure:
    """What a request is told whose key is missing or wrong."""
    if dialect == "gemini_generate" and not is_missing:
        return _GEMINI_WRONG_KEY
    return Failure(status=401, message=_MISSING.get(dialect) if is_missing else None)


def _openai(failure: Failure, _: str) -> dict[str, Any] | None:
    if failure.status not in _OPENAI and failure.message is None and failure.status > 500:
        return None
    usual = "server_error" if failure.status >= 500 else "invalid_request_error"
    kind, code, message = _OPENAI.get(failure.status, (usual, None, f"Error {failure.status}"))
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _anthropic(failure: Failure, request_id: str) -> dict[str, Any] | None:
    if failure.status not in _ANTHROPIC and failure.message is None and failure.status > 500:
        return None
    usual = "api_error" if failure.status >= 500 else "invalid_request_error"
    kind, message = _ANTHROPIC.get(failure.status, (usual, f"Error {failure.status}"))
    told = {"type": kind, "message": message}
    return {"type": "error", "error": told, "request_id": request_id}


def _gemini(failure: Failure, _: str) -> dict[str, Any] | None:
    if failure.status not in _GEMINI and failure.message is None and failure.status > 500:
        return None
    usual = "INTERNAL" if failure.status >= 500 else "INVALID_ARGUMENT"
    word, message = _GEMINI.get(failure.status, (usual, f"Error {failure.status}"))
    told: dict[str, Any] = {"code": failure.status, "message": message, "status": word}
    details: list[dict[str, Any]] = []
    if failure.status == 429:
        violations = [{"quotaId": _QUOTA}]
        details.append({"@type": f"{_RPC}QuotaFailure", "violations": violations})
    if failure.retry_after is not None:
        delay = f"{failure.retry_after:g}s"
        details.append({"@type": f"{_RPC}RetryInfo", "retryDelay": delay})
    if details:
        told["details"] = details
    return {"error": told}


_BUILD = {
    "openai_responses": _openai,
    "openai_chat": _openai,
    "anthropic_messages": _anthropic,
    "gemini_generate": _gemini,
}
_OPENAI_MISSING = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header "
    "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
)
_MISSING = {
    "openai_responses": _OPENAI_MISSING,
    "openai_chat": _OPENAI_MISSING,
    "anthropic_messages": "x-api-key header is required",
}
_BAD_KEY = "API key not valid. Please pass a valid API key."
_GEMINI_WRONG_KEY = Failure(
    status=400,  # recorded: this vendor does not say 401 to a bad key
    body={
        "error": {
            "code": 400,
            "message": _BAD_KEY,
            "status": "INVALID_ARGUMENT",
            "details": [
                {
                    "@type": f"{_RPC}ErrorInfo",
                    "reason": "API_KEY_INVALID",
                    "domain": "googleapis.com",
                    "metadata": {"service": "generativelanguage.googleapis.com"},
                }
            ],
        }
    },
)
