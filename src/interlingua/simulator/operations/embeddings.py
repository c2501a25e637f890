"""Embeddings made from a digest of each text: only equal texts have similar vectors."""

from __future__ import annotations

import hashlib
import struct

from interlingua.simulator.answer import count_text
from interlingua.spec.media.embeddings import EmbedInput, EmbedResult
from interlingua.spec.response import Usage

DIMENSIONS = 8
"""Of the vectors, by default."""


def embed(value: EmbedInput) -> EmbedResult:
    """One vector of length 1 for each text."""
    texts = [str(each) for each in value.inputs]
    size = value.dimensions or DIMENSIONS
    tokens = sum(map(count_text, texts))
    return EmbedResult(
        model=value.model,
        embeddings=tuple(_vector(text, size) for text in texts),
        usage=Usage(input_tokens=tokens),
    )


def _vector(text: str, size: int) -> tuple[float, ...]:
    digest = hashlib.shake_128(text.encode("utf-8", "replace")).digest(2 * size)
    raw = [value / 32768 - 1 for value in struct.unpack(f"<{size}H", digest)]
    length = sum(value * value for value in raw) ** 0.5 or 1.0
    return tuple(value / length for value in raw)
