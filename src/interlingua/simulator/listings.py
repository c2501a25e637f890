"""What the simulator tells of models, and its vectors."""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import Any

from interlingua.simulator.counting import count_text
from interlingua.spec.content import Json
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.operations import ServedModel

DIMENSIONS = 8


def simulated_model(model: str) -> ServedModel:
    """What is told of a model of that id."""
    return ServedModel(
        id=model,
        provider="simulated",
        name=f"{model} (simulated)",
        context_window=1_048_576,
        max_output_tokens=65_536,
    )


def embed(body: Json) -> Json:
    """Vectors made from a digest of each text: equal texts have equal vectors, that is all."""
    if not isinstance(body, dict) or not isinstance(body.get("input"), (str, list)):
        raise InvalidRequestError("'input' must be text or a list", error_code="invalid_type")
    given = body["input"]
    texts = [given] if isinstance(given, str) or not all(map(_is_text, given)) else given
    size = body.get("dimensions")
    size = size if isinstance(size, int) and 0 < size <= 4096 else DIMENSIONS
    encoded = body.get("encoding_format") == "base64"
    vectors = [_vector(str(text), size) for text in texts]
    data = [
        {"object": "embedding", "index": i, "embedding": _base64(v) if encoded else v}
        for i, v in enumerate(vectors)
    ]
    tokens = sum(count_text(str(text)) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body.get("model", ""), "usage": usage}


def _is_text(item: Any) -> bool:
    return isinstance(item, (str, list))


def _vector(text: str, size: int) -> list[float]:
    """A vector of length 1."""
    digest = hashlib.shake_128(text.encode("utf-8", "replace")).digest(2 * size)
    raw = [value / 32768 - 1 for value in struct.unpack(f"<{size}H", digest)]
    length = sum(value * value for value in raw) ** 0.5 or 1.0
    return [value / length for value in raw]


def _base64(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
