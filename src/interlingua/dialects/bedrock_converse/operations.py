"""Operations: count tokens. AWS lists models at another host, that of the service `bedrock`."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from interlingua.dialects.bedrock_converse.facts import COUNT, NAME
from interlingua.dialects.bedrock_converse.request import encode_request
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.operations import Operation
from interlingua.spec.request import Request
from interlingua.wire.operations import counted_request, read_count

# The fields of `ConverseTokensRequest`.
_COUNTED = ("messages", "system", "toolConfig", "additionalModelRequestFields")


def _encode_count(request: Request, profile: Profile) -> WireCall:
    options = {"path": COUNT, "auto_cache": False}
    call = encode_request(counted_request(request, NAME, _COUNTED, options), profile)
    counted = {name: call.body[name] for name in _COUNTED if name in call.body}
    return replace(call, body={"input": {"converse": counted}})


OPERATIONS: Mapping[str, Operation] = {
    "count_tokens": Operation(
        name="count_tokens",
        encode=_encode_count,
        decode=lambda _status, _headers, body: read_count(body, "inputTokens"),
    ),
}
