"""Gemini `generateContent`: `POST /v1beta/models/{model}:generateContent`."""

from interlingua.dialects.gemini_generate import serve
from interlingua.dialects.gemini_generate.decoder import stream_decoder
from interlingua.dialects.gemini_generate.encoder import stream_encoder
from interlingua.dialects.gemini_generate.errors import decode_error, encode_error
from interlingua.dialects.gemini_generate.facts import FACTS, NAME
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
