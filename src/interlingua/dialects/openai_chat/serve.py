"""The server side besides the codec: routes, keys, lists, error bodies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import UnsupportedError
from interlingua.spec.operations import ServedModel
from interlingua.spec.serve import Failure, ServerFacts, ServerRoute
from interlingua.wire import openai_server

SERVER = ServerFacts(
    routes=(
        ServerRoute(method="POST", pattern=re.compile(r".*/chat/completions"), kind="answer"),
        ServerRoute(method="POST", pattern=re.compile(r".*/embeddings"), kind="embed"),
        *openai_server.MODEL_ROUTES,
    ),
    is_common=True,
    key_headers=openai_server.KEY_HEADERS,
    request_id_header="x-request-id",
    limit_headers=openai_server.LIMIT_HEADERS,
    response_prefix="chatcmpl-",
    call_prefix="call_",
)


def list_models(models: Sequence[ServedModel], query: Mapping[str, str]) -> Json:  # noqa: ARG001
    """All models: this list has no pages."""
    return openai_server.list_models(models)


def describe_model(model: ServedModel) -> dict[str, Any]:
    """One model."""
    return openai_server.describe_model(model)


def counted_call(call: WireCall) -> WireCall:  # noqa: ARG001
    """There is no call for a count."""
    raise UnsupportedError("Chat Completions has no call that counts tokens")


def count_tokens(tokens: int) -> Json:  # noqa: ARG001
    """There is no call for a count."""
    raise UnsupportedError("Chat Completions has no call that counts tokens")


def error_body(failure: Failure, *, model: str, request_id: str) -> Json:  # noqa: ARG001
    """The vendor's body for a status; the request id is in a header only."""
    return openai_server.error_body(failure, model)


def wrong_key(*, is_missing: bool) -> Failure:
    """The answer to a request whose key is missing or wrong."""
    return openai_server.wrong_key(is_missing=is_missing)
