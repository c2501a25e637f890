"""Operations: list and retrieve models, count tokens; files are in `files.py`."""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.dialects.anthropic_messages import batches, files
from interlingua.dialects.anthropic_messages.facts import NAME, PATH, VERSION, VERSION_HEADER
from interlingua.dialects.anthropic_messages.request import encode_request
from interlingua.dialects.anthropic_messages.serve import describe_model
from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import Operation
from interlingua.spec.request import Request
from interlingua.wire.models import ModelFields, read_models, retrieve_model
from interlingua.wire.operations import counted_request, page_after_last, read_count

_MODELS = "/v1/models"
# `ModelInfo` has the first name of each; the others are those of compatible servers.
_FIELDS = ModelFields(
    name=("display_name", "name"),
    context_window=("max_input_tokens", "context_length", "context_window"),
    max_output_tokens=("max_tokens", "max_output_tokens"),
)
# The options that a count also accepts; it refuses `max_tokens` and other output settings.
_COUNTED = (
    "version", "betas", "beta_headers", "system", "messages", "tools", "tool_choice", "thinking",
    "mcp_servers", "context_management", "output_config",
)  # fmt: skip


def _headers(profile: Profile) -> dict[str, str]:
    return {VERSION_HEADER: profile.api_version or VERSION}


def _encode_list(_value: Json, profile: Profile) -> WireCall:
    return WireCall(method="GET", path=_MODELS, headers=_headers(profile))


def _encode_count(request: Request, profile: Profile) -> WireCall:
    options = {"path": f"{PATH}/count_tokens", "auto_cache": False}
    return encode_request(counted_request(request, NAME, _COUNTED, options), profile)


OPERATIONS: Mapping[str, Operation] = {
    "list_models": Operation(
        name="list_models",
        encode=_encode_list,
        decode=lambda _status, _headers, body: read_models(body, _FIELDS, NAME, describe_model),
        next_page=page_after_last("after_id"),
    ),
    "retrieve_model": retrieve_model(_MODELS, _FIELDS, NAME, describe_model, _headers),
    "count_tokens": Operation(
        name="count_tokens",
        encode=_encode_count,
        decode=lambda _status, _headers, body: read_count(body, "input_tokens"),
    ),
    **batches.OPERATIONS,
    **files.OPERATIONS,
}
