"""The server side besides the codec: routes and token counts; the rest is `openai_shared`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from interlingua.dialects.openai_responses.compaction import COMPACT, COMPACTION
from interlingua.dialects.openai_responses.hosted_uses import hosted_parts
from interlingua.dialects.openai_responses.images import wanted_image
from interlingua.dialects.openai_responses.kept import (
    KEEPS_NONE,
    KEPT,
    SERVED,
    TO_KEEP,
    is_reference,
)
from interlingua.dialects.openai_shared.batches import write_replies as write_batch_file
from interlingua.dialects.openai_shared.models import describe_model, list_models
from interlingua.dialects.openai_shared.serving import (
    KEY_HEADERS,
    LIMIT_HEADERS,
    MODEL_ROUTES,
    SESSION_FIELD,
    SESSION_HEADERS,
    error_body,
    wrong_key,
)
from interlingua.spec.content import Json, Thinking
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import ServerFacts, ServerRoute, Unserved
from interlingua.spec.request import Request

__all__ = [
    "COMPACTION",
    "KEPT",
    "SERVED",
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


def _refers_to_items(body: Mapping[str, Json]) -> bool:
    items = body.get("input")
    return isinstance(items, list) and any(map(is_reference, items))


UNSERVED = (
    Unserved(
        lambda body: body.get("background") is True,
        "This server answers no requests in the background. Send it without `background`.",
    ),
    Unserved(
        lambda body: body.get("previous_response_id") is not None,
        f"{KEEPS_NONE}Send the whole conversation in `input`, without `previous_response_id`."
        f"{TO_KEEP}",
        unless_kept=True,
    ),
    Unserved(
        lambda body: body.get("conversation") is not None,
        f"{KEEPS_NONE}Send the whole conversation in `input`, without `conversation`.{TO_KEEP}",
        unless_kept=True,
    ),
    Unserved(
        _refers_to_items,
        f"{KEEPS_NONE}Send the items themselves, without `item_reference`; clients do so with "
        f"`store` as false.{TO_KEEP}",
        unless_kept=True,
    ),
)

SERVER = ServerFacts(
    routes=(
        ServerRoute(method="POST", pattern=re.compile(r".*/responses"), kind="answer"),
        ServerRoute(method="POST", pattern=re.compile(f".*{COMPACT}"), kind="answer"),
        ServerRoute(method="POST", pattern=re.compile(r".*/responses/input_tokens"), kind="count"),
        *MODEL_ROUTES,
    ),
    own_paths=("/responses", "/conversations"),
    key_headers=KEY_HEADERS,
    request_id_header="x-request-id",
    session_headers=SESSION_HEADERS,
    session_field=SESSION_FIELD,
    passed_headers=("openai-beta", "thread-id", "x-codex-beta-features", "x-codex-turn-state"),
    limit_headers=LIMIT_HEADERS,
    response_prefix="resp_",
    call_prefix="call_",
    thinking_prefix="rs_",
    shown_thinking=shown_thinking,
    # The vendor's is 429, with a code of its own. opencode asks again after any 429, also with
    # `x-should-retry: false`, and Codex five times after 402 and 403; both stop at 400.
    spent_status=400,
    hosted_parts=hosted_parts,
    unserved=UNSERVED,
)


def counted_call(call: WireCall) -> WireCall:
    """The call whose tokens are counted: its body has the form of a request for a response."""
    return call


def count_tokens(tokens: int) -> Json:
    """A token count."""
    return {"object": "response.input_tokens", "input_tokens": tokens}
