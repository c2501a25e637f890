"""
Embeddings made from the words of each text: texts with words in common have similar vectors.

Each word has a vector of its own, made from a digest; that of a text is their sum.
"""

from __future__ import annotations

import hashlib
import re
import struct
from array import array
from functools import lru_cache

from interlingua.simulator.answer import count_text
from interlingua.spec.content import MEDIA_TYPES, Text
from interlingua.spec.modalities.embeddings import EmbedContent, EmbedInput, EmbedResult
from interlingua.spec.modalities.vectors import Vector
from interlingua.spec.response import Usage

DIMENSIONS = 8
"""Of the vectors, by default."""
_find_words = re.compile(r"\w+").findall


def embed(value: EmbedInput) -> EmbedResult:
    """One vector of length 1 for each text."""
    texts = [_text(content) for content in value.inputs]
    size = value.dimensions or DIMENSIONS
    tokens = sum(map(count_text, texts))
    return EmbedResult(
        model=value.model,
        embeddings=tuple(_vector(text, size) for text in texts),
        usage=Usage(input_tokens=tokens),
    )


def _text(content: EmbedContent) -> str:
    """A text that differs for different contents."""
    if isinstance(content, str):
        return content
    return " ".join(map(_part_text, content))


def _part_text(part: object) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, MEDIA_TYPES):
        source = part.data or (part.url or part.file_id or "").encode("utf-8", "replace")
        return f"{part.kind} {hashlib.sha256(source).hexdigest()}"
    return str(part)


def _vector(text: str, size: int) -> Vector:
    words = _find_words(text.lower()) or [text]
    sums = [sum(column) for column in zip(*(_word(word, size) for word in words), strict=True)]
    length = sum(value * value for value in sums) ** 0.5 or 1.0
    return array("d", (value / length for value in sums))


@lru_cache(maxsize=4096)
def _word(word: str, size: int) -> tuple[float, ...]:
    digest = hashlib.shake_128(word.encode("utf-8", "replace")).digest(2 * size)
    return tuple(value / 32768 - 1 for value in struct.unpack(f"<{size}H", digest))
