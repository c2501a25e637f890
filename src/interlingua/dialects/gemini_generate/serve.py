"""
The server side besides the codec: routes, keys, lists, error bodies.

Error bodies that were recorded or are documented are as they were; where the vendor is not known
to answer with a status, the body has its usual shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.operations import Failure, ServedModel, ServerFacts, ServerRoute
from interlingua.wire.operations import page_size, page_start

_GENERATE = re.compile(r".*/models/[^/:]+:(?:generate|streamGenerate)Content")
_COUNT = re.compile(r".*/models/[^/:]+:countTokens")
_MODEL = re.compile(r".*/v1beta/models/(?P<model>[^:]+)")
_SHARED_MODEL = re.compile(r".*/models/(?P<model>.+)")

SERVER = ServerFacts(
    routes=(
        ServerRoute(method="POST", pattern=_GENERATE, kind="answer"),
        ServerRoute(method="POST", pattern=_COUNT, kind="count"),
        ServerRoute(method="GET", pattern=re.compile(r".*/v1beta/models"), kind="models"),
        ServerRoute(method="GET", pattern=_MODEL, kind="model"),
        ServerRoute(method="GET", pattern=re.compile(r".*/models"), kind="models", is_shared=True),
        ServerRoute(method="GET", pattern=_SHARED_MODEL, kind="model", is_shared=True),
    ),
    own_headers=("x-goog-api-key",),
    own_paths=("/v1beta/",),
    key_headers=("x-goog-api-key",),
    key_query="key",
    stream_path=":streamGenerateContent",
    sse_query="alt=sse",
    content_type="application/json; charset=UTF-8",
    retry_after_header=False,
    refusal="content_filter",
)
_PAGE = 50  # models on a page, unless the query says otherwise
_MAX_PAGE = 1000
_WRAPPED = "generateContentRequest"
_RPC = "type.googleapis.com/google.rpc."
_QUOTA = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"

_ERRORS: dict[int, tuple[str, str]] = {
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
_WRONG_KEY = {
    "code": 400,
    "message": "API key not valid. Please pass a valid API key.",
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


def list_models(models: Sequence[ServedModel], query: Mapping[str, str]) -> Json:
    """One page, which `pageToken` (the id of the last model before it) and `pageSize` choose."""
    size = page_size(query, "pageSize", default=_PAGE, highest=_MAX_PAGE)
    token = query.get("pageToken")
    start = page_start(models, token, "pageToken") if token else 0
    page = models[start : start + size]
    body: dict[str, Any] = {"models": [describe_model(model) for model in page]}
    if start + size < len(models):
        body["nextPageToken"] = page[-1].id
    return body


def describe_model(model: ServedModel) -> dict[str, Any]:
    """One model."""
    body = {
        "name": f"models/{model.id}",
        "version": "001",
        "displayName": model.name or model.id,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }
    limits = {
        "inputTokenLimit": model.context_window,
        "outputTokenLimit": model.max_output_tokens,
    }
    return body | {name: limit for name, limit in limits.items() if limit is not None}


def counted_call(call: WireCall) -> WireCall:
    """The body is that of a request, or an object with one inside."""
    inner = call.body.get(_WRAPPED) if isinstance(call.body, dict) else None
    return replace(call, body=inner) if isinstance(inner, dict) else call


def count_tokens(tokens: int) -> Json:
    """A token count."""
    return {"totalTokens": tokens}


def error_body(failure: Failure, *, model: str, request_id: str) -> Json:  # noqa: ARG001
    """The vendor's body for a status; it has no request id."""
    if failure.status not in _ERRORS and failure.message is None and failure.status > 500:
        return None
    usual = "INTERNAL" if failure.status >= 500 else "INVALID_ARGUMENT"
    word, message = _ERRORS.get(failure.status, (usual, f"Error {failure.status}"))
    message = failure.message or message.replace("{model}", model)
    error: dict[str, Any] = {"code": failure.status, "message": message, "status": word}
    details: list[dict[str, Any]] = []
    if failure.status == 429:
        violations = [{"quotaId": _QUOTA}]
        details.append({"@type": f"{_RPC}QuotaFailure", "violations": violations})
    if failure.retry_after is not None:
        delay = f"{failure.retry_after:g}s"
        details.append({"@type": f"{_RPC}RetryInfo", "retryDelay": delay})
    if details:
        error["details"] = details
    return {"error": error}


def wrong_key(*, is_missing: bool) -> Failure:
    """The answer to a request whose key is missing or wrong."""
    if is_missing:
        return Failure(status=401)
    # recorded: this vendor does not answer 401 to a bad key
    return Failure(status=400, body={"error": _WRONG_KEY})
