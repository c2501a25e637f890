"""
The server side besides the codec: routes, lists of models, error bodies.

AWS has the lists of models at another host, that of the service `bedrock`; a server has them here,
so that a client of that service can use the same address. A row cannot list models there, because
its key is sent only to its own host: the row `bedrock` lists those of `bedrock-mantle`.

Messages of errors are those of the documentation. For a status that AWS is not known to send, the
body has the usual shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlingua.dialects.bedrock_converse.content import hosted_parts
from interlingua.dialects.bedrock_converse.errors import TYPE_HEADER, name_of
from interlingua.dialects.bedrock_converse.facts import MODEL_FIELDS, NAME
from interlingua.dialects.bedrock_converse.shapes import body_problem
from interlingua.spec.content import Json, Thinking
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import (
    Failure,
    ServedModel,
    ServedOperation,
    ServerFacts,
    ServerRoute,
)
from interlingua.spec.request import Request
from interlingua.wire.fields import extra_of, request_errors, wrong_type

_CONVERSE = re.compile(r".*/model/[^/]+/converse")
_STREAM = re.compile(r".*/model/[^/]+/converse-stream")
_COUNT = re.compile(r".*/model/[^/]+/count-tokens")
_MODEL_LIST = re.compile(".*/foundation-models")
_MODEL = re.compile(".*/foundation-models/(?P<model>[^/]+)")


def shown_thinking(part: Thinking, request: Request, profile: Profile) -> Thinking:
    """A thought, with its text unless the request asks to omit it."""
    fields = request.provider_options.get(NAME, {}).get(MODEL_FIELDS, {})
    is_asked = request.include_thinking is not None or "thinking" in fields
    is_shown = request.include_thinking if is_asked else profile.thinking_shown != "if_asked"
    return part if is_shown is not False else replace(part, text="")


_TYPE = "__type"


def _error_headers(failure: Failure) -> dict[str, str]:
    return {TYPE_HEADER: str(failure.details.get(_TYPE) or name_of(failure.status))}


SERVER = ServerFacts(
    routes=(
        ServerRoute(method="POST", pattern=_CONVERSE, kind="answer"),
        ServerRoute(
            method="POST",
            pattern=_STREAM,
            kind="answer",
            is_stream=True,
            framing="aws-event-stream",
        ),
        ServerRoute(method="POST", pattern=_COUNT, kind="count"),
        ServerRoute(method="GET", pattern=_MODEL_LIST, kind="models"),
        ServerRoute(method="GET", pattern=_MODEL, kind="model"),
    ),
    own_headers=("x-amz-date",),
    own_paths=("/converse", "/count-tokens", "/foundation-models"),
    required_fields=("messages",),
    body_problem=body_problem,
    stream_field="",  # the path says it
    request_id_header="x-amzn-requestid",
    error_headers=_error_headers,
    call_prefix="tooluse_",
    shown_thinking=shown_thinking,
    hosted_parts=hosted_parts,
    refusal="content_filter",  # the stop reason `content_filtered`; there is no block for it
)

SERVED: tuple[ServedOperation, ...] = ()

_MESSAGES: dict[int, str] = {
    400: "The input fails to satisfy the constraints specified by Amazon Bedrock.",
    401: "The security token included in the request is invalid.",
    402: "Your request exceeds the service quota for your account.",
    403: "You don't have access to the model with the specified model ID.",
    404: "Could not resolve the foundation model from the provided model identifier: {model}",
    408: "The request took too long to process. Processing time exceeded the model timeout length.",
    409: "Error occurred because of a conflict while performing an operation.",
    413: "Request body is too large.",
    424: "The request failed due to an error while processing the model.",
    429: "Too many requests, please wait before trying again.",
    500: "An internal server error occurred. Retry your request.",
    503: "The service isn't currently available. Try again later.",
}


def list_models(models: Sequence[ServedModel], query: Mapping[str, str]) -> Json:  # noqa: ARG001 -- it has no pages
    """All models, as `ListFoundationModels` lists them."""
    return {"modelSummaries": [_summary(model) for model in models]}


def describe_model(model: ServedModel) -> dict[str, Json]:
    """Return the description of a model, as `GetFoundationModel` does."""
    return {"modelDetails": _summary(model)}


def _summary(model: ServedModel) -> dict[str, Json]:
    body: dict[str, Json] = {
        "modelId": model.id,
        "modelArn": f"arn:aws:bedrock:us-east-1::foundation-model/{model.id}",
        "modelName": model.name or model.id,
        "responseStreamingSupported": True,
    }
    known: dict[str, Json] = {"providerName": model.owner}
    for name, kinds in (
        ("inputModalities", model.input_modalities),
        ("outputModalities", model.output_modalities),
    ):
        known[name] = None if kinds is None else [kind.upper() for kind in kinds]
    body |= {name: value for name, value in known.items() if value}
    return {**body, **extra_of(model, NAME)}


def counted_call(call: WireCall) -> WireCall:
    """The call of a request whose tokens are counted, which is inside the body."""
    match call.body:
        case {"input": {"converse": dict(body)}}:
            return replace(call, body=body)
    with request_errors():
        raise wrong_type("input.converse", "an object", None)


def count_tokens(tokens: int) -> Json:
    """Return the body of a token count."""
    return {"inputTokens": tokens}


def error_body(failure: Failure, *, model: str, request_id: str) -> Json:  # noqa: ARG001 -- a header has it
    """The vendor's body for a status; None for a status that a load balancer sends."""
    if failure.status not in _MESSAGES and failure.message is None and failure.status > 500:
        return None
    message = failure.message or _MESSAGES.get(failure.status, f"Error {failure.status}")
    return {"message": message.replace("{model}", model), **failure.details}


def wrong_key(*, is_missing: bool, message: str | None = None) -> Failure:
    """The failure for a request whose key is missing or wrong."""
    own = "Missing Authentication Token" if is_missing else _MESSAGES[401]
    kind = "MissingAuthenticationTokenException" if is_missing else name_of(401)
    # AWS sends 403 for what others answer with 401; the type tells them apart.
    return Failure(status=403, message=message or own, details={_TYPE: kind})
