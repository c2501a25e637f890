"""Operations: list models, count tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.dialects.openai_responses.facts import NAME, PATH
from interlingua.dialects.openai_responses.request import encode_request
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import Operation, ServedModel
from interlingua.spec.request import Request
from interlingua.wire.operations import ModelFields, counted_request, read_count, read_models

_FIELDS = ModelFields(
    name=("display_name", "name"),
    context_window=("context_length", "context_window", "max_input_tokens"),
    max_output_tokens=("max_output_tokens", "max_tokens"),
)
# The options that a count takes too.
_COUNTED = (
    "conversation", "input", "instructions", "parallel_tool_calls", "previous_response_id",
    "reasoning", "text", "tool_choice", "tools", "truncation",
)  # fmt: skip


def _encode_list(_value: Any, _profile: Profile) -> WireCall:
    return WireCall(method="GET", path="/v1/models")


def _decode_list(_status: int, _headers: Mapping[str, str], body: bytes) -> list[ServedModel]:
    return read_models(body, _FIELDS)


def _encode_count(request: Request, profile: Profile) -> WireCall:
    options = {"path": f"{PATH}/input_tokens", "auto_cache": False}
    return encode_request(counted_request(request, NAME, _COUNTED, options), profile)


def _decode_count(_status: int, _headers: Mapping[str, str], body: bytes) -> int:
    return read_count(body, "input_tokens")


OPERATIONS: Mapping[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation(name="list_models", encode=_encode_list, decode=_decode_list),
        Operation(name="count_tokens", encode=_encode_count, decode=_decode_count),
    )
}
