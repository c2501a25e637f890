"""Stream frames <-> events: the two ends."""

from __future__ import annotations

from interlingua.dialects.openai_responses.stream_decoder import Decoder
from interlingua.dialects.openai_responses.stream_encoder import Encoder
from interlingua.spec.contracts import DEFAULT, NewId, Profile, StreamDecoder, StreamEncoder
from interlingua.spec.request import Request
from interlingua.wire.carry import counting_ids


def stream_decoder(
    *,
    new_id: NewId | None = None,
    profile: Profile = DEFAULT,  # noqa: ARG001
) -> StreamDecoder:
    """For a stream a client receives."""
    return Decoder(new_id or counting_ids())


def stream_encoder(request: Request | None = None) -> StreamEncoder:  # noqa: ARG001
    """For a stream a server sends."""
    return Encoder()
