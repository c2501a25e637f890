"""
The server side besides the codec: routes, keys, lists of models, error bodies.

Error bodies are as recorded or documented. For a status that the vendor is not known to send, the
body has the usual shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from interlingua.dialects.anthropic_messages import batches, files
from interlingua.dialects.anthropic_messages.facts import BETAS, NAME, VERSION_HEADER
from interlingua.dialects.anthropic_messages.tools import hosted_parts
from interlingua.spec.content import Json, Thinking
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.events import ProviderEvent
from interlingua.spec.operations import (
    Failure,
    ServedModel,
    ServedOperation,
    ServerFacts,
    ServerRoute,
    Unserved,
)
from interlingua.spec.request import Request
from interlingua.wire.fields import extra_of
from interlingua.wire.operations import page_size, page_start

_MODEL = re.compile(r".*/models/(?P<model>.+)")
_INVOKE = re.compile(r".*/model/[^/]+/invoke")
_INVOKE_STREAM = re.compile(r".*/model/[^/]+/invoke-with-response-stream")
_VERTEX = re.compile(r".*/models/[^/:]+:(?:rawPredict|streamRawPredict)")
_VERTEX_COUNT = re.compile(r".*/models/count-tokens:rawPredict")


def shown_thinking(part: Thinking, request: Request, profile: Profile) -> Thinking:
    """A thought, with its text if `display` says so; what a request leaves out, the model says."""
    is_shown = request.include_thinking
    if is_shown is None:
        is_shown = profile.thinking_shown == "always"
    return part if is_shown else replace(part, text="")


UNSERVED = (
    Unserved(
        lambda body: body.get("thread") is not None,
        "This server keeps no threads. Send the whole conversation in `messages`, without "
        "`thread`.",
        # The tool runners of the SDKs begin a thread by default. At this code they go on without
        # one, in the same run.
        details={"error_code": "thread_unsupported_request", "unsupported": ["thread"]},
    ),
)

SERVER = ServerFacts(
    routes=(
        ServerRoute(method="POST", pattern=re.compile(r".*/messages"), kind="answer"),
        ServerRoute(method="POST", pattern=re.compile(r".*/messages/count_tokens"), kind="count"),
        # Vertex, then Bedrock: their version is in the body.
        ServerRoute(method="POST", pattern=_VERTEX_COUNT, kind="count", requires_headers=False),
        ServerRoute(method="POST", pattern=_VERTEX, kind="answer", requires_headers=False),
        ServerRoute(method="POST", pattern=_INVOKE, kind="answer", requires_headers=False),
        ServerRoute(
            method="POST",
            pattern=_INVOKE_STREAM,
            kind="answer",
            is_stream=True,
            framing="aws-event-stream",
            requires_headers=False,
        ),
        ServerRoute(method="GET", pattern=re.compile(r".*/models"), kind="models", is_shared=True),
        ServerRoute(method="GET", pattern=_MODEL, kind="model", is_shared=True),
    ),
    own_headers=(VERSION_HEADER, "x-api-key"),
    own_paths=("/messages",),
    # The SDK sends the key as a bearer token since 2.0; with both, `x-api-key` counts.
    key_headers=("x-api-key", "authorization"),
    required_headers=(VERSION_HEADER,),  # https://platform.claude.com/docs/en/api/versioning
    version_header=VERSION_HEADER,
    required_fields=("model", "messages", "max_tokens"),  # `MessageCreateParamsBase`
    ping=ProviderEvent(dialect=NAME, name="ping", data={"type": "ping"}),
    request_id_header="request-id",
    session_headers=("x-claude-code-session-id",),
    flag_options=BETAS,
    limit_headers={
        f"{unit}_{figure}": f"anthropic-ratelimit-{unit}-{figure}"
        for unit in ("requests", "tokens")
        for figure in ("limit", "remaining", "reset")
    },
    resets_at=True,  # a time in RFC 3339: https://platform.claude.com/docs/en/api/rate-limits
    response_prefix="msg_",
    call_prefix="toolu_",
    shown_thinking=shown_thinking,
    refusal="content_filter",  # the stop reason `refusal`; there is no block for it
    hosted_parts=hosted_parts,
    unserved=UNSERVED,
)

SERVED: tuple[ServedOperation, ...] = (*batches.SERVED, *files.SERVED)

_ERRORS: dict[int, tuple[str, str]] = {
    # recorded: 400, 401 and 404
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


def list_models(models: Sequence[ServedModel], query: Mapping[str, str]) -> Json:
    """The page of models that `after_id` and `limit` select."""
    size = page_size(query, "limit", default=20, highest=1000)
    after = query.get("after_id")
    start = page_start(models, after, "after_id") if after else 0
    page = models[start : start + size]
    return {
        "data": [describe_model(model) for model in page],
        "has_more": start + size < len(models),
        "first_id": page[0].id if page else None,
        "last_id": page[-1].id if page else None,
    }


def describe_model(model: ServedModel) -> dict[str, Json]:
    """Return the description of a model."""
    body: dict[str, Json] = {
        "type": "model",
        "id": model.id,
        "display_name": model.name or model.id,
        # the API's value for an unknown date is 1970
        "created_at": f"{datetime.fromtimestamp(model.created_at or 0, UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    inputs = model.input_modalities
    capabilities = {
        "image_input": None if inputs is None else "image" in inputs,
        "pdf_input": None if inputs is None else "pdf" in inputs,
        "structured_outputs": model.supports_structured_output,
        "thinking": model.supports_reasoning,
    }
    known = {
        "max_input_tokens": model.context_window,
        "max_tokens": model.max_output_tokens,
        "capabilities": {
            name: {"supported": flag} for name, flag in capabilities.items() if flag is not None
        },
    }
    body |= {name: value for name, value in known.items() if value}
    return {**body, **extra_of(model, NAME)}


def counted_call(call: WireCall) -> WireCall:
    """The body of a count has the form of a request."""
    return call


def count_tokens(tokens: int) -> Json:
    """Return the body of a token count."""
    return {"input_tokens": tokens}


def error_body(failure: Failure, *, model: str, request_id: str) -> Json:
    """The vendor's body for a status; None for a status that a load balancer sends."""
    if failure.status not in _ERRORS and failure.message is None and failure.status > 500:
        return None
    default = "api_error" if failure.status >= 500 else "invalid_request_error"
    kind, message = _ERRORS.get(failure.status, (default, f"Error {failure.status}"))
    message = failure.message or message.replace("{model}", model)
    error: dict[str, Json] = {"type": kind, "message": message}
    if failure.details:
        error["details"] = dict(failure.details)
    return {"type": "error", "error": error, "request_id": request_id}


def wrong_key(*, is_missing: bool, message: str | None = None) -> Failure:
    """The failure for a request whose key is missing or wrong."""
    own = "x-api-key header is required" if is_missing else None
    return Failure(status=401, message=message or own)
