"""
The server side that both of OpenAI's APIs share: error bodies by status, keys, lists of models.

Error bodies are as recorded or documented. For a status that the vendor is not known to send, the
body has the usual shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.spec.content import Json
from interlingua.spec.operations import ServedModel
from interlingua.spec.serve import Failure, ServerRoute

KEY_HEADERS = ("authorization", "api-key")
LIMIT_HEADERS = {
    "requests_limit": "x-ratelimit-limit-requests",
    "requests_remaining": "x-ratelimit-remaining-requests",
    "requests_reset": "x-ratelimit-reset-requests",
    "tokens_limit": "x-ratelimit-limit-tokens",
    "tokens_remaining": "x-ratelimit-remaining-tokens",
    "tokens_reset": "x-ratelimit-reset-tokens",
}
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

# type, code, message
_ERRORS: dict[int, tuple[str, str | None, str]] = {
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


def error_body(failure: Failure, model: str, request_id: str = "") -> Json:  # noqa: ARG001
    """The body for a status; None for a status that a load balancer sends, without JSON."""
    if failure.status not in _ERRORS and failure.message is None and failure.status > 500:
        return None
    usual = "server_error" if failure.status >= 500 else "invalid_request_error"
    kind, code, message = _ERRORS.get(failure.status, (usual, None, f"Error {failure.status}"))
    message = failure.message or message.replace("{model}", model)
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def wrong_key(*, is_missing: bool) -> Failure:
    """The failure for a request whose key is missing or wrong."""
    return Failure(status=401, message=_MISSING_KEY if is_missing else None)


def list_models(
    models: Sequence[ServedModel],
    query: Mapping[str, str] | None = None,  # noqa: ARG001
) -> Json:
    """The list of all models; OpenAI's list has no pages."""
    return {"object": "list", "data": [describe_model(model) for model in models]}


def describe_model(model: ServedModel) -> dict[str, Any]:
    """The description of one model; the creation time is unknown and sent as 0."""
    return {"id": model.id, "object": "model", "created": 0, "owned_by": model.provider}
