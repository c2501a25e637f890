"""Operations: list models. This format has no call that counts tokens."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from interlingua.dialects.openai_chat.facts import NAME
from interlingua.dialects.openai_shared import audio, embeddings
from interlingua.dialects.openai_shared.files import MISTRAL, file_operations
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import Operation, ServedModel
from interlingua.wire.operations import ModelFields, read_models, read_page

# Compatible servers use different names for the same fields.
_FIELDS = ModelFields(
    name=("display_name", "displayName", "name"),
    context_window=("context_length", "context_window", "max_input_tokens", "inputTokenLimit"),
    max_output_tokens=("max_output_tokens", "max_tokens", "outputTokenLimit"),
    id_prefix="models/",
)


def _encode_list(_value: object, _profile: Profile) -> WireCall:
    return WireCall(method="GET", path="/models")


def _decode_list(_status: int, _headers: Mapping[str, str], body: bytes) -> list[ServedModel]:
    return read_models(body, _FIELDS)


def _next_page(call: WireCall, _headers: Mapping[str, str], body: bytes) -> WireCall | None:
    """OpenAI's list has one page; servers that have more send `has_more` and `last_id`."""
    page = read_page(body)
    last = page.get("last_id")
    if page.get("has_more") is not True or not isinstance(last, str):
        return None
    return replace(call, query={**call.query, "after": last})


OPERATIONS: Mapping[str, Operation] = {
    "list_models": Operation(
        name="list_models", encode=_encode_list, decode=_decode_list, next_page=_next_page
    ),
    "embed": embeddings.embed(NAME),
    "transcribe": audio.transcribe(NAME),
    "stream_transcription": audio.stream_transcription(NAME),
    "speak": audio.speak(NAME),
    "stream_speech": audio.stream_speech(NAME),
    **file_operations(NAME),
    **{f"{name}.mistral": file for name, file in file_operations(NAME, MISTRAL).items()},
}
