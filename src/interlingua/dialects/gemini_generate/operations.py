"""Operations: list and retrieve models, count tokens; the others have files of their own."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from interlingua.dialects.gemini_generate import (
    batches,
    embeddings,
    files,
    images,
    speech,
    video,
)
from interlingua.dialects.gemini_generate.facts import NAME
from interlingua.dialects.gemini_generate.request import encode_request
from interlingua.dialects.gemini_generate.serve import describe_model
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import Operation
from interlingua.spec.request import Request
from interlingua.wire.models import ModelFields, read_models, retrieve_model
from interlingua.wire.operations import counted_request, page_by_token, read_count

_MODELS = "/v1beta/models"
# `Model` has the first name of each; the others are those of compatible servers.
_FIELDS = ModelFields(
    id=("name", "id"),
    name=("displayName", "display_name", "name"),
    context_window=("inputTokenLimit", "context_length", "context_window"),
    max_output_tokens=("outputTokenLimit", "max_output_tokens"),
    id_prefix="models/",
)


def _encode_count(request: Request, profile: Profile) -> WireCall:
    """The whole request goes inside, so that instructions and tools are counted too."""
    options = {"path": "/v1beta/models/{model}:countTokens"}
    call = encode_request(counted_request(request, NAME, None, options), profile)
    inner = {"model": f"models/{request.model.removeprefix('models/')}", **call.body}
    return replace(call, body={"generateContentRequest": inner})


def _encode_vertex_count(request: Request, profile: Profile) -> WireCall:
    """Vertex AI has the fields of the request in the body itself."""
    options = {"path": "/models/{model}:countTokens"}
    return encode_request(counted_request(request, NAME, None, options), profile)


def _read_count(_status: int, _headers: Mapping[str, str], body: bytes) -> int:
    return read_count(body, "totalTokens")


OPERATIONS: Mapping[str, Operation] = {
    "list_models": Operation(
        name="list_models",
        encode=lambda _value, _profile: WireCall(method="GET", path=_MODELS),
        decode=lambda _status, _headers, body: read_models(body, _FIELDS, NAME, describe_model),
        next_page=page_by_token,
    ),
    "retrieve_model": retrieve_model(_MODELS, _FIELDS, NAME, describe_model),
    "count_tokens": Operation(name="count_tokens", encode=_encode_count, decode=_read_count),
    "count_tokens.vertex": Operation(
        name="count_tokens", encode=_encode_vertex_count, decode=_read_count
    ),
    **batches.OPERATIONS,
    **embeddings.OPERATIONS,
    **files.OPERATIONS,
    **images.OPERATIONS,
    **speech.OPERATIONS,
    **video.OPERATIONS,
}
