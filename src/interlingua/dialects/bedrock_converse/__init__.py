"""Amazon Bedrock Converse: `POST /model/{modelId}/converse` and `/converse-stream`."""

from typing import TYPE_CHECKING

from interlingua.dialects.bedrock_converse.facts import FACTS, NAME
from interlingua.lazy import names_of

if TYPE_CHECKING:
    from interlingua.dialects.bedrock_converse import serve
    from interlingua.dialects.bedrock_converse.decoder import stream_decoder
    from interlingua.dialects.bedrock_converse.encoder import stream_encoder
    from interlingua.dialects.bedrock_converse.errors import decode_error, encode_error
    from interlingua.dialects.bedrock_converse.operations import OPERATIONS
    from interlingua.dialects.bedrock_converse.request import decode_request, encode_request
    from interlingua.dialects.bedrock_converse.response import decode_response, encode_response

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
