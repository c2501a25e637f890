"""The server side besides the codec: routes and token counts; the rest is `openai_shared`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from interlingua.dialects.openai_responses.hosted_uses import hosted_parts
from interlingua.dialects.openai_responses.images import wanted_image
from interlingua.dialects.openai_shared.batches import write_replies as write_batch_file
from interlingua.dialects.openai_shared.models import describe_model, list_models
from interlingua.dialects.openai_shared.serving import (
    KEY_HEADERS,
    LIMIT_HEADERS,
    MODEL_ROUTES,
    error_body,
    wrong_key,
)
from interlingua.spec.content import Json, Thinking
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import ServerFacts, ServerRoute, Unserved
from interlingua.spec.request import Request

__all__ = [
    "SERVER",
    "count_tokens",
    "counted_call",
    "describe_model",
    "error_body",
    "list_models",
    "wanted_image",
    "write_batch_file",
    "wrong_key",
]


def shown_thinking(part: Thinking, request: Request, profile: Profile) -> Thinking:
    """A thought, with its text only if the request asks for a summary or the model shows all."""
    if request.include_thinking or profile.thinking_shown == "always":
        return part
    return replace(part, text="")


_KEEPS_NONE = "This server keeps no responses. "


def _refers_to_items(body: Mapping[str, Json]) -> bool:
    items = body.get("input")
    if not isinstance(items, list):
        return False
    return any(isinstance(item, dict) and item.get("type") == "item_reference" for item in items)


UNSERVED = (
    Unserved(
        lambda body: body.get("background") is True,
        "This server answers no requests in the background. Send it without `background`.",
    ),
    Unserved(
        lambda body: body.get("previous_response_id") is not None,
        _KEEPS_NONE + "Send the whole conversation in `input`, without `previous_response_id`.",
    ),
    Unserved(
        lambda body: body.get("conversation") is not None,
        _KEEPS_NONE + "Send the whole conversation in `input`, without `conversation`.",
    ),
    Unserved(
        _refers_to_items,
        _KEEPS_NONE + "Send the items themselves, without `item_reference`; clients do so with "
        "`store` as false.",
    ),
)

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
    shown_thinking=shown_thinking,
    hosted_parts=hosted_parts,
    unserved=UNSERVED,
)


def counted_call(call: WireCall) -> WireCall:
    """The call whose tokens are counted: its body has the form of a request for a response."""
    return call


def count_tokens(tokens: int) -> Json:
    """A token count."""
    return {"object": "response.input_tokens", "input_tokens": tokens}
