"""
The rest of the server side: routes, keys, model lists, error bodies.

Error messages are the vendor's, as recorded or documented. For statuses that the vendor is not
known to send, the body has its usual shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlingua.dialects.gemini_generate import batches, embeddings, files, images, video
from interlingua.dialects.gemini_generate.batches import write_lines as write_batch_file
from interlingua.dialects.gemini_generate.errors import RPC
from interlingua.dialects.gemini_generate.facts import MODEL_PATH, NAME, REQUEST, to_camel
from interlingua.dialects.gemini_generate.images import wanted_image
from interlingua.dialects.gemini_generate.speech import wanted_speech
from interlingua.dialects.gemini_generate.tools import hosted_parts
from interlingua.spec.content import Json, Thinking
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import (
    Failure,
    ServedModel,
    ServedOperation,
    ServerFacts,
    ServerRoute,
    Unserved,
)
from interlingua.spec.request import Request
from interlingua.wire.fields import extra_of, known_int
from interlingua.wire.operations import page_size, page_start
from interlingua.wire.rpc_codes import word_for

__all__ = [
    "SERVED",
    "SERVER",
    "count_tokens",
    "counted_call",
    "describe_model",
    "error_body",
    "list_models",
    "wanted_image",
    "wanted_speech",
    "write_batch_file",
    "wrong_key",
]

_GENERATE = re.compile(rf"{MODEL_PATH}:(?:generate|streamGenerate)Content")
_COUNT = re.compile(rf"{MODEL_PATH}:countTokens")
# The names of jobs begin with the name of their model: see `video.py`.
_NO_JOB = r"(?!.*/operations(?:/|$))"
_MODEL = re.compile(rf"{_NO_JOB}.*/v1beta/models/(?P<model>.+)")
_SHARED_MODEL = re.compile(rf"{_NO_JOB}.*/models/(?P<model>.+)")


def shown_thinking(part: Thinking, request: Request, profile: Profile) -> Thinking | None:  # noqa: ARG001
    """A thought, only if the request has `includeThoughts`: a hidden one leaves no part."""
    return part if request.include_thinking else None


def _wants_several(body: Mapping[str, Json]) -> bool:
    config = to_camel(body, REQUEST).get("generationConfig")
    return isinstance(config, dict) and known_int(config.get("candidateCount")) > 1


UNSERVED = (
    Unserved(
        _wants_several,
        "This server gives one answer to a request. Send it several times, with `candidateCount` "
        "as 1.",
    ),
)

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
    key_query="key",  # older clients send the key so
    required_fields=("contents",),  # «contents is not specified»
    file_address=f"{files.ADDRESS}{files.PREFIX}",
    stream_path=":streamGenerateContent",
    sse_query="alt=sse",
    reads_comments=False,  # google-genai reads every line without `data: ` as JSON
    content_type="application/json; charset=UTF-8",
    retry_after_header=False,  # the time is in the body: `RetryInfo`
    shown_thinking=shown_thinking,
    refusal="content_filter",  # the finish reason SAFETY; there is no part for it
    hosted_parts=hosted_parts,
    unserved=UNSERVED,
)
SERVED: tuple[ServedOperation, ...] = (
    *batches.SERVED,
    *embeddings.SERVED,
    *files.SERVED,
    *images.SERVED,
    *video.SERVED,
)

_PAGE = 50  # the default number of models on a page
_MAX_PAGE = 1000
_WRAPPED = "generateContentRequest"
_QUOTA = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"

_TIMED_OUT = "Deadline expired before operation could complete."
_OVERLOADED = "The model is overloaded. Please try again later."
_MESSAGES = {
    # recorded: 404 and the wrong key below
    400: "Request contains an invalid argument.",
    401: (
        "Request is missing required authentication credential. Expected OAuth 2 access token, "
        "login cookie or other valid authentication credential."
    ),
    402: "Billing is not enabled.",
    403: "The caller does not have permission",
    404: (
        "models/{model} is not found for API version v1beta, or is not supported for "
        "generateContent. Call ListModels to see the list of available models and their "
        "supported methods."
    ),
    408: _TIMED_OUT,
    409: "The operation was aborted.",
    413: "Request payload size exceeds the limit: 20971520 bytes.",
    422: "The request could not be processed.",
    429: "You exceeded your current quota, please check your plan.",
    500: "An internal error has occurred. Please retry later.",
    503: _OVERLOADED,
    504: _TIMED_OUT,
    529: _OVERLOADED,
}
_OTHER_WORDS = {408: "DEADLINE_EXCEEDED", 529: "UNAVAILABLE"}
_BAD_KEY = "API_KEY_INVALID"
_WRONG_KEY: dict[str, Json] = {
    "code": 400,
    "message": "API key not valid. Please pass a valid API key.",
    "status": "INVALID_ARGUMENT",
    "details": [
        {
            "@type": f"{RPC}ErrorInfo",
            "reason": _BAD_KEY,
            "domain": "googleapis.com",
            "metadata": {"service": "generativelanguage.googleapis.com"},
        }
    ],
}


def list_models(models: Sequence[ServedModel], query: Mapping[str, str]) -> Json:
    """One page; `pageToken` is the id of the last model of the page before it."""
    size = page_size(query, "pageSize", default=_PAGE, highest=_MAX_PAGE)
    token = query.get("pageToken")
    start = page_start(models, token, "pageToken") if token else 0
    page = models[start : start + size]
    body: dict[str, Json] = {"models": [describe_model(model) for model in page]}
    if start + size < len(models):
        body["nextPageToken"] = page[-1].id
    return body


def describe_model(model: ServedModel) -> dict[str, Json]:
    """Return the description of a model."""
    body: dict[str, Json] = {
        "name": f"models/{model.id}",
        "version": "001",
        "displayName": model.name or model.id,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }
    known = {
        "description": model.description,
        "inputTokenLimit": model.context_window,
        "outputTokenLimit": model.max_output_tokens,
        "thinking": model.supports_reasoning,
    }
    body |= {name: value for name, value in known.items() if value is not None}
    return {**body, **extra_of(model, NAME)}


def counted_call(call: WireCall) -> WireCall:
    """The call whose tokens are counted; its body may be wrapped in another object."""
    inner = call.body.get(_WRAPPED) if isinstance(call.body, dict) else None
    return replace(call, body=inner) if isinstance(inner, dict) else call


def count_tokens(tokens: int) -> Json:
    """Return the body of a token count."""
    return {"totalTokens": tokens}


def error_body(failure: Failure, *, model: str, request_id: str) -> Json:  # noqa: ARG001
    """The vendor's body for a status; it has no request id."""
    status = failure.status
    if status not in _MESSAGES and failure.message is None and status > 500:
        return None
    message = _MESSAGES.get(status, f"Error {status}").replace("{model}", model)
    word = _OTHER_WORDS.get(status) or word_for(status)
    error: dict[str, Json] = {
        "code": status,
        "message": failure.message or message,
        "status": word,
    }
    details: list[dict[str, Json]] = []
    if status == 429:
        violations = [{"quotaId": _QUOTA}]
        details.append({"@type": f"{RPC}QuotaFailure", "violations": violations})
    if failure.retry_after is not None:
        delay = f"{failure.retry_after:g}s"
        details.append({"@type": f"{RPC}RetryInfo", "retryDelay": delay})
    if details:
        error["details"] = details
    return {"error": error}


def wrong_key(*, is_missing: bool, message: str | None = None) -> Failure:
    """The failure of a request whose key is missing or wrong."""
    if is_missing:
        return Failure(status=401, message=message)
    # recorded: the vendor answers 400, not 401, to a wrong key
    if message is None:
        return Failure(status=400, body={"error": _WRONG_KEY})
    detail = {"@type": f"{RPC}ErrorInfo", "reason": _BAD_KEY}  # no service of the vendor
    return Failure(
        status=400, body={"error": {**_WRONG_KEY, "message": message, "details": [detail]}}
    )
