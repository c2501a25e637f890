"""Operations: list models, count tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from interlingua.dialects.anthropic_messages.facts import NAME, PATH, VERSION, VERSION_HEADER
from interlingua.dialects.anthropic_messages.request import encode_request
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import Operation, ServedModel
from interlingua.spec.request import Request
from interlingua.wire.operations import (
    ModelFields,
    counted_request,
    read_count,
    read_models,
    read_page,
)

_FIELDS = ModelFields(
    name=("display_name", "name"),
    context_window=("max_input_tokens", "context_length", "context_window"),
    max_output_tokens=("max_tokens", "max_output_tokens"),
)
# The options that a count takes too; `max_tokens` and its like are refused there.
_COUNTED = (
    "version", "betas", "beta_headers", "system", "messages", "tools", "tool_choice", "thinking",
    "mcp_servers", "context_management", "output_config",
)  # fmt: skip


def _encode_list(_value: Any, profile: Profile) -> WireCall:
    headers = {VERSION_HEADER: profile.api_version or VERSION}
    return WireCall(method="GET", path="/v1/models", headers=headers)


def _decode_list(_status: int, _headers: Mapping[str, str], body: bytes) -> list[ServedModel]:
    return read_models(body, _FIELDS)


def _next_page(call: WireCall, _headers: Mapping[str, str], body: bytes) -> WireCall | None:
    page = read_page(body)
    last = page.get("last_id")
    if page.get("has_more") is not True or not isinstance(last, str):
        return None
    return replace(call, query={**call.query, "after_id": last})


def _encode_count(request: Request, profile: Profile) -> WireCall:
    options = {"path": f"{PATH}/count_tokens", "auto_cache": False}
    return encode_request(counted_request(request, NAME, _COUNTED, options), profile)


def _decode_count(_status: int, _headers: Mapping[str, str], body: bytes) -> int:
    return read_count(body, "input_tokens")


OPERATIONS: Mapping[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation(
            name="list_models", encode=_encode_list, decode=_decode_list, next_page=_next_page
        ),
        Operation(name="count_tokens", encode=_encode_count, decode=_decode_count),
    )
}
