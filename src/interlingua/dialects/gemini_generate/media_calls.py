"""Operations that are calls of `generateContent`: images and speech."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from interlingua.dialects.gemini_generate.facts import NAME
from interlingua.dialects.gemini_generate.request import encode_request
from interlingua.dialects.gemini_generate.response import decode_response
from interlingua.prepare.options import merge_options
from interlingua.spec.content import Json, Part
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.messages import Message
from interlingua.spec.operations import OperationInput, OperationReply
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning
from interlingua.wire.json_text import loads


def encode_media_call(
    value: OperationInput,
    parts: tuple[Part, ...],
    config: Mapping[str, Json],
    profile: Profile,
    *,
    stream: bool = False,
    warnings: tuple[Warning, ...] = (),
) -> WireCall:
    """The call with one user message; `config` is its `generationConfig`."""
    own = value.provider_options.get(NAME, {})
    options = merge_options({"generationConfig": config} if config else {}, own)
    request = Request(
        model=value.model,
        messages=(Message.user(parts),),
        provider_options={NAME: options},
        on_loss=value.on_loss,
    )
    call = encode_request(request, profile, stream=stream)
    return replace(call, warnings=(*call.warnings, *warnings)) if warnings else call


def decode_reply(reply: OperationReply) -> Response:
    """The answer in the reply to an operation that is a call of `generateContent`."""
    return decode_response(loads(reply.body), headers=reply.headers)
