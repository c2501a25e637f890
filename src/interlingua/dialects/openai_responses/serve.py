"""The server side besides the codec: routes, keys, lists, error bodies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.operations import ServedModel
from interlingua.spec.serve import Failure, ServerFacts, ServerRoute
from interlingua.wire import openai_server

SERVER = ServerFacts(
    routes=(
        ServerRoute(method="POST", pattern=re.compile(r".*/responses"), kind="answer"),
        ServerRoute(method="POST", pattern=re.compile(r".*/responses/input_tokens"), kind="count"),
        *openai_server.MODEL_ROUTES,
    ),
    own_paths=("/responses",),
    key_headers=openai_server.KEY_HEADERS,
    request_id_header="x-request-id",
    limit_headers=openai_server.LIMIT_HEADERS,
    response_prefix="resp_",
    call_prefix="call_",
    thinking_prefix="rs_",
)


def list_models(models: Sequence[ServedModel], query: Mapping[str, str]) -> Json:  # noqa: ARG001
    """All models: this list has no pages."""
    return openai_server.list_models(models)


def describe_model(model: ServedModel) -> dict[str, Any]:
    """One model."""
    return openai_server.describe_model(model)


def counted_call(call: WireCall) -> WireCall:
    """The body is that of a request."""
    return call


def count_tokens(tokens: int) -> Json:
    """A token count."""
    return {"object": "response.input_tokens", "input_tokens": tokens}


def error_body(failure: Failure, *, model: str, request_id: str) -> Json:  # noqa: ARG001
    """The vendor's body for a status; the request id is in a header only."""
    return openai_server.error_body(failure, model)


def wrong_key(*, is_missing: bool) -> Failure:
    """The answer to a request whose key is missing or wrong."""
    return openai_server.wrong_key(is_missing=is_missing)
