"""The server side besides the codec: routes, keys, lists of models, error bodies."""

from __future__ import annotations

import re

from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.serve import ServerFacts, ServerRoute
from interlingua.wire.openai_server import (
    KEY_HEADERS,
    LIMIT_HEADERS,
    MODEL_ROUTES,
    describe_model,
    error_body,
    list_models,
    wrong_key,
)

__all__ = [
    "SERVER",
    "count_tokens",
    "counted_call",
    "describe_model",
    "error_body",
    "list_models",
    "wrong_key",
]

SERVER = ServerFacts(
    routes=(
        ServerRoute(method="POST", pattern=re.compile(r".*/responses"), kind="answer"),
        ServerRoute(method="POST", pattern=re.compile(r".*/responses/input_tokens"), kind="count"),
        *MODEL_ROUTES,
    ),
    own_paths=("/responses",),
    key_headers=KEY_HEADERS,
    request_id_header="x-request-id",
    limit_headers=LIMIT_HEADERS,
    response_prefix="resp_",
    call_prefix="call_",
    thinking_prefix="rs_",
)


def counted_call(call: WireCall) -> WireCall:
    """The body of a count has the form of a request."""
    return call


def count_tokens(tokens: int) -> Json:
    """A token count."""
    return {"object": "response.input_tokens", "input_tokens": tokens}
