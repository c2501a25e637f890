"""OpenAI Responses: `POST /v1/responses`."""

from typing import TYPE_CHECKING

from interlingua.dialects.openai_responses.facts import FACTS, NAME
from interlingua.lazy import names_of

if TYPE_CHECKING:
    from interlingua.dialects.openai_responses import serve
    from interlingua.dialects.openai_responses.decoder import stream_decoder
    from interlingua.dialects.openai_responses.encoder import stream_encoder
    from interlingua.dialects.openai_responses.errors import decode_error, encode_error
    from interlingua.dialects.openai_responses.operations import OPERATIONS
    from interlingua.dialects.openai_responses.request import decode_request, encode_request
    from interlingua.dialects.openai_responses.response import decode_response, encode_response
    from interlingua.dialects.openai_responses.sdk_messages import (
        decode_sdk_messages,
        is_sdk_message,
    )

__all__ = [
    "FACTS",
    "NAME",
    "OPERATIONS",
    "decode_error",
    "decode_request",
    "decode_response",
    "decode_sdk_messages",
    "encode_error",
    "encode_request",
    "encode_response",
    "is_sdk_message",
    "serve",
    "stream_decoder",
    "stream_encoder",
]

if not TYPE_CHECKING:  # a client loads nothing of the server side, and no operations
    __getattr__ = names_of(
        __name__,
        {
            ".decoder": ("stream_decoder",),
            ".encoder": ("stream_encoder",),
            ".errors": ("decode_error", "encode_error"),
            ".operations": ("OPERATIONS",),
            ".request": ("decode_request", "encode_request"),
            ".response": ("decode_response", "encode_response"),
            ".sdk_messages": ("decode_sdk_messages", "is_sdk_message"),
        },
        modules=("serve",),
    )
