"""The server side besides the codec: routes and token counts; the rest is `openai_shared`."""

from __future__ import annotations

import re

from interlingua.dialects.openai_chat import mistral_batches
from interlingua.dialects.openai_chat.facts import NAME
from interlingua.dialects.openai_chat.images import wanted_image
from interlingua.dialects.openai_shared import (
    batch_serve,
    cohere_embeddings,
    embeddings,
    files,
    moderation,
    ranking,
    speech,
    transcription,
    video,
)
from interlingua.dialects.openai_shared.batches import write_replies as write_batch_file
from interlingua.dialects.openai_shared.image_serve import image_served
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
from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import UnsupportedError
from interlingua.spec.operations import ServedOperation, ServerFacts, ServerRoute, Unserved
from interlingua.wire.fields import known_int

__all__ = [
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

UNSERVED = (
    Unserved(
        lambda body: known_int(body.get("n")) > 1,
        "This server gives one answer to a request. Send it several times, with `n` as 1.",
    ),
)

SERVER = ServerFacts(
    routes=(
        ServerRoute(method="POST", pattern=re.compile(r".*/chat/completions"), kind="answer"),
        *MODEL_ROUTES,
    ),
    is_common=True,  # a path that no other dialect knows may be that of a compatible server
    key_headers=KEY_HEADERS,
    required_fields=("model", "messages"),
    request_id_header="x-request-id",
    session_headers=SESSION_HEADERS,
    session_field=SESSION_FIELD,
    limit_headers=LIMIT_HEADERS,
    response_prefix="chatcmpl-",
    call_prefix="call_",
    # The vendor's is 429, with a code of its own. opencode and Qwen Code ask again after any 429,
    # also with `x-should-retry: false`; they and pi stop at 402, which OpenRouter sends.
    spent_status=402,
    unserved=UNSERVED,
)

SERVED: tuple[ServedOperation, ...] = (
    *batch_serve.SERVED,
    *cohere_embeddings.SERVED,
    *embeddings.SERVED,
    *files.SERVED,
    *image_served(NAME),
    *mistral_batches.SERVED,
    *moderation.SERVED,
    *ranking.SERVED,
    *speech.SERVED,
    *transcription.SERVED,
    *video.SERVED,
)
"""The endpoints that both of OpenAI's dialects have; they are served by this one."""


def counted_call(call: WireCall) -> WireCall:  # noqa: ARG001
    """Chat Completions has no endpoint that counts tokens."""
    raise UnsupportedError("Chat Completions has no endpoint that counts tokens.")


def count_tokens(tokens: int) -> Json:  # noqa: ARG001
    """Chat Completions has no endpoint that counts tokens."""
    raise UnsupportedError("Chat Completions has no endpoint that counts tokens.")
