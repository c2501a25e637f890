"""
The server side of both of OpenAI's dialects, besides the codec.

Error bodies are as recorded or documented. For a status that the vendor is not known to send, the
body has the usual shape.
"""

from __future__ import annotations

import re

from interlingua.spec.content import Json
from interlingua.spec.operations import Failure, ServerRoute

KEY_HEADERS = ("authorization", "api-key")  # the second is Azure's
LIMIT_HEADERS = {
    "requests_limit": "x-ratelimit-limit-requests",
    "requests_remaining": "x-ratelimit-remaining-requests",
    "requests_reset": "x-ratelimit-reset-requests",
    "tokens_limit": "x-ratelimit-limit-tokens",
    "tokens_remaining": "x-ratelimit-remaining-tokens",
    "tokens_reset": "x-ratelimit-reset-tokens",
}
SESSION_HEADERS = ("session-id", "session_id", "x-session-affinity")
"""The conversation: Codex sends the first, older ones the second, pi the last two."""
SESSION_FIELD = "prompt_cache_key"
MODEL_ROUTES = (
    ServerRoute(method="GET", pattern=re.compile(r".*/models"), kind="models", is_shared=True),
    ServerRoute(
        method="GET", pattern=re.compile(r".*/models/(?P<model>.+)"), kind="model", is_shared=True
    ),
)
_MISSING_KEY = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header "
    "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
)
_WRONG_KEY = (
    "Incorrect API key provided: simulated. You can find your API key at "
    "https://platform.openai.com/account/api-keys."
)
_NO_MODEL = "The model `{model}` does not exist or you do not have access to it."
_WRONG_COUNTRY = "Country, region, or territory not supported"
_RATE_LIMIT = "Rate limit reached for {model} on requests per min (RPM). Please try again later."
_INVALID = "invalid_request_error"
_FAILED = "The server had an error while processing your request. Sorry about that!"

# Type, code, message; those of 401 and 404 are recorded, that of 403 is documented:
# https://platform.openai.com/docs/guides/error-codes
_ERRORS: dict[int, tuple[str, str | None, str]] = {
    400: (_INVALID, "unsupported_value", "Unsupported value: this request cannot be processed."),
    401: (_INVALID, "invalid_api_key", _WRONG_KEY),
    402: ("insufficient_quota", "insufficient_quota", "Your account has no credit left."),
    403: (_INVALID, "unsupported_country_region_territory", _WRONG_COUNTRY),
    404: (_INVALID, "model_not_found", _NO_MODEL),
    408: ("timeout_error", None, "Request timed out."),
    409: (_INVALID, "conflict", "The resource is being changed by another request."),
    413: (_INVALID, None, "Request body is too large."),
    422: (_INVALID, None, "The request could not be processed."),
    429: ("rate_limit_error", "rate_limit_exceeded", _RATE_LIMIT),
    500: ("server_error", None, _FAILED),
    503: ("server_error", None, "The engine is currently overloaded, please try again later"),
    529: ("server_error", None, "Overloaded"),  # Anthropic's status, which proxies pass on
}

# Functions of the protocol `Serve`.


def error_body(failure: Failure, *, model: str, request_id: str) -> Json:  # noqa: ARG001
    """
    The body for a status; None for a status that a load balancer sends, without JSON.

    The request id is sent only in a header.
    """
    if failure.status not in _ERRORS and failure.message is None and failure.status > 500:
        return None
    usual = "server_error" if failure.status >= 500 else _INVALID
    kind, code, message = _ERRORS.get(failure.status, (usual, None, f"Error {failure.status}"))
    message = failure.message or message.replace("{model}", model)
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def wrong_key(*, is_missing: bool, message: str | None = None) -> Failure:
    """The failure for a request whose key is missing or wrong."""
    return Failure(status=401, message=message or (_MISSING_KEY if is_missing else None))
