"""Operations: list and retrieve models. This format has no call that counts tokens."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from interlingua.dialects.openai_chat import images
from interlingua.dialects.openai_chat.facts import NAME
from interlingua.dialects.openai_chat.mistral_batches import mistral_batch_operations
from interlingua.dialects.openai_shared import (
    batches,
    files,
    speech,
    transcription,
    video,
    xai_video,
)
from interlingua.dialects.openai_shared.cohere_embeddings import cohere_embed
from interlingua.dialects.openai_shared.embeddings import embed_operations
from interlingua.dialects.openai_shared.images import image_operations
from interlingua.dialects.openai_shared.models import decode_models, model_operation
from interlingua.dialects.openai_shared.moderation import moderate_operations
from interlingua.dialects.openai_shared.ranking import rerank_operations
from interlingua.dialects.openai_shared.xai_batches import xai_batch_operations
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import Operation
from interlingua.wire.operations import change_calls, page_after_last


def _encode_list(_value: object, _profile: Profile) -> WireCall:
    return WireCall(method="GET", path="/models")


def _variants(name: str, operations: Mapping[str, Operation]) -> dict[str, Operation]:
    return {f"{each}.{name}": operation for each, operation in operations.items()}


def _without_version(call: WireCall) -> WireCall:
    """In this dialect, the base URL has the version."""
    return replace(call, path=call.path.removeprefix("/v1"))


_ALL: Mapping[str, Operation] = {
    "list_models": Operation(
        name="list_models",
        encode=_encode_list,
        decode=decode_models,
        next_page=page_after_last("after"),
    ),
    "retrieve_model": model_operation(),
    **embed_operations(NAME),
    "embed.cohere": cohere_embed(NAME),
    **moderate_operations(NAME),
    **rerank_operations(NAME),
    **transcription.transcription_operations(NAME),
    **_variants("timed", transcription.transcription_operations(NAME, transcription.TIMED)),
    **_variants("mistral", transcription.transcription_operations(NAME, transcription.MISTRAL)),
    **speech.speech_operations(NAME),
    **_variants("mistral", speech.speech_operations(NAME, speech.MISTRAL)),
    **batches.batch_operations(NAME, "/v1/chat/completions"),
    **_variants("mistral", mistral_batch_operations(NAME)),
    **_variants("xai", xai_batch_operations(NAME)),
    **files.file_operations(NAME),
    **_variants("mistral", files.file_operations(NAME, files.MISTRAL)),
    **_variants("xai", files.file_operations(NAME, files.XAI)),
    **image_operations(NAME),
    **images.OPERATIONS,
    **video.video_operations(NAME),
    **_variants("xai", xai_video.video_operations(NAME)),
}

OPERATIONS: Mapping[str, Operation] = {
    name: change_calls(operation, _without_version) for name, operation in _ALL.items()
}
