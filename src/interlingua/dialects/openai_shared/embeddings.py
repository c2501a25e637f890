"""`POST /v1/embeddings`: both sides."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Mapping
from typing import Any

from interlingua.prepare.options import body_with_options
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError
from interlingua.spec.media.embeddings import EmbedInput, EmbedResult, Vector
from interlingua.spec.operations import Operation, ServedOperation, ServedReply
from interlingua.spec.response import Usage
from interlingua.wire.fields import count
from interlingua.wire.json_text import loads

PATH = "/v1/embeddings"
_MAX_DIMENSIONS = 65_536


def embed(name: str) -> Operation:
    """The operation for a dialect of this name."""

    def encode(value: EmbedInput, _profile: Profile) -> WireCall:
        settings = {
            "dimensions": value.dimensions,
            "encoding_format": value.encoding,
            "user": value.user,
        }
        given = {name: setting for name, setting in settings.items() if setting is not None}
        body: dict[str, Any] = {"model": value.model, "input": list(value.inputs), **given}
        return WireCall(path=PATH, body=body_with_options(body, value, name))

    return Operation(name="embed", encode=encode, decode=_decode)


def _decode(_status: int, _headers: Mapping[str, str], body: bytes) -> EmbedResult:
    value = loads(body)
    rows = value.get("data") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        raise DecodeError("the reply has no embeddings")
    ordered = sorted(enumerate(rows), key=lambda row: _index(row[1], row[0]))
    usage = value.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    model = value.get("model")
    return EmbedResult(
        model=model if isinstance(model, str) else "",
        embeddings=tuple(_vector(row) for _, row in ordered),
        usage=Usage(input_tokens=count(usage.get("prompt_tokens")) or 0, raw=usage or None),
        raw=value,
    )


def _index(row: Any, position: int) -> int:
    index = row.get("index") if isinstance(row, dict) else None
    return index if type(index) is int else position


def _vector(row: Any) -> Vector:
    vector = row.get("embedding") if isinstance(row, dict) else None
    if isinstance(vector, str):
        data = base64.b64decode(vector)
        return struct.unpack(f"<{len(data) // 4}f", data)
    if not isinstance(vector, list):
        raise DecodeError("an embedding is neither a list nor base64")
    return tuple(vector)


def _decode_served(call: WireCall, _params: Mapping[str, str]) -> EmbedInput:
    body = call.body if isinstance(call.body, dict) else {}
    given = body.get("input")
    if not isinstance(given, (str, list)):
        raise InvalidRequestError("'input' must be text or a list", error_code="invalid_type")
    # A list of integers is one text as tokens; a list of texts or of such lists is several.
    is_several = isinstance(given, list) and all(isinstance(item, (str, list)) for item in given)
    dimensions = body.get("dimensions")
    is_valid = isinstance(dimensions, int) and 0 < dimensions <= _MAX_DIMENSIONS
    return EmbedInput(
        model=body.get("model") or "",
        inputs=tuple(given) if is_several else (given,),
        dimensions=dimensions if is_valid else None,
        encoding="base64" if body.get("encoding_format") == "base64" else "float",
    )


def _encode_served(result: EmbedResult, value: EmbedInput) -> ServedReply:
    encode = _base64 if value.encoding == "base64" else list
    data = [
        {"object": "embedding", "index": index, "embedding": encode(vector)}
        for index, vector in enumerate(result.embeddings)
    ]
    tokens = result.usage.input_tokens
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return ServedReply(body={"object": "list", "data": data, "model": result.model, "usage": usage})


def _base64(vector: Vector) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


SERVED = (
    ServedOperation(
        name="embed",
        method="POST",
        pattern=re.compile(r".*/embeddings"),
        decode=_decode_served,
        encode=_encode_served,
    ),
)
