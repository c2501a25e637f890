"""The server side besides the codec: routes and token counts; the rest is `openai_shared`."""

from __future__ import annotations

import re

from interlingua.dialects.openai_responses.hosted import hosted_parts
from interlingua.dialects.openai_responses.images import wanted_image
from interlingua.dialects.openai_shared import (
    KEY_HEADERS,
    LIMIT_HEADERS,
    MODEL_ROUTES,
    describe_model,
    error_body,
    list_models,
    wrong_key,
)
from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.operations import ServerFacts, ServerRoute

__all__ = [
    "SERVER",
    "count_tokens",
    "counted_call",
    "describe_model",
    "error_body",
    "list_models",
    "wanted_image",
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
    hosted_parts=hosted_parts,
)


def counted_call(call: WireCall) -> WireCall:
    """The call whose tokens are counted: its body has the form of a request for a response."""
    return call


def count_tokens(tokens: int) -> Json:
    """A token count."""
    return {"object": "response.input_tokens", "input_tokens": tokens}
