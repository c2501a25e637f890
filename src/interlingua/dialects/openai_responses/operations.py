"""Operations: list and retrieve models, count tokens."""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.dialects.openai_responses import images
from interlingua.dialects.openai_responses.facts import NAME, PATH
from interlingua.dialects.openai_responses.request import encode_request
from interlingua.dialects.openai_shared import files, video, xai_video
from interlingua.dialects.openai_shared.batches import batch_operations
from interlingua.dialects.openai_shared.embeddings import embed_operations
from interlingua.dialects.openai_shared.models import decode_models, model_operation
from interlingua.dialects.openai_shared.moderation import moderate_operations
from interlingua.dialects.openai_shared.ranking import rerank_operations
from interlingua.dialects.openai_shared.speech import speech_operations
from interlingua.dialects.openai_shared.transcription import transcription_operations
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import Operation
from interlingua.spec.request import Request
from interlingua.wire.operations import counted_request, read_count

# The options that a count also accepts.
_COUNTED = (
    "conversation", "input", "instructions", "parallel_tool_calls", "previous_response_id",
    "reasoning", "text", "tool_choice", "tools", "truncation",
)  # fmt: skip


def _encode_count(request: Request, profile: Profile) -> WireCall:
    options = {"path": f"{PATH}/input_tokens", "auto_cache": False}
    return encode_request(counted_request(request, NAME, _COUNTED, options), profile)


_XAI = {**files.file_operations(NAME, files.XAI), **xai_video.video_operations(NAME)}
OPERATIONS: Mapping[str, Operation] = {
    "list_models": Operation(
        name="list_models",
        encode=lambda _value, _profile: WireCall(method="GET", path="/v1/models"),
        decode=decode_models,
    ),
    "retrieve_model": model_operation(),
    "count_tokens": Operation(
        name="count_tokens",
        encode=_encode_count,
        decode=lambda _status, _headers, body: read_count(body, "input_tokens"),
    ),
    **embed_operations(NAME),
    **moderate_operations(NAME),
    **rerank_operations(NAME),
    **transcription_operations(NAME),
    **speech_operations(NAME),
    **batch_operations(NAME, PATH),
    **images.OPERATIONS,
    **files.file_operations(NAME),
    **video.video_operations(NAME),
    **{f"{name}.xai": made for name, made in _XAI.items()},
}
