"""Gemini `generateContent`: `POST /v1beta/models/{model}:generateContent`."""

from typing import TYPE_CHECKING

from interlingua.dialects.gemini_generate.facts import FACTS, NAME
from interlingua.lazy import names_of

if TYPE_CHECKING:
    from interlingua.dialects.gemini_generate import serve
    from interlingua.dialects.gemini_generate.decoder import stream_decoder
    from interlingua.dialects.gemini_generate.encoder import stream_encoder
    from interlingua.dialects.gemini_generate.errors import decode_error, encode_error
    from interlingua.dialects.gemini_generate.operations import OPERATIONS
    from interlingua.dialects.gemini_generate.request import decode_request, encode_request
    from interlingua.dialects.gemini_generate.response import decode_response, encode_response

__all__ = [
    "FACTS",
    "NAME",
    "OPERATIONS",
    "decode_error",
    "decode_request",
    "decode_response",
    "encode_error",
    "encode_request",
    "encode_response",
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
        },
        modules=("serve",),
    )
