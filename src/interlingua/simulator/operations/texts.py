"""
Simulated embeddings, reranking and moderation, by the words of the texts.

Texts with words in common have similar vectors: each word has a vector of its own, made from a
digest, and the vector of a text is the sum of its words.
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
from interlingua.spec.modalities.moderation import (
    ModeratedContent,
    ModerateInput,
    Moderation,
    ModerationResult,
)
from interlingua.spec.modalities.ranking import RankedDocument, RerankInput, RerankResult
from interlingua.spec.modalities.vectors import Vector
from interlingua.spec.response import Usage

_find_words = re.compile(r"\w+").findall
_CATEGORIES = {
    "harassment": frozenset(("hate", "idiot", "stupid")),
    "self-harm": frozenset(("suicide",)),
    "sexual": frozenset(("porn",)),
    "violence": frozenset(("kill", "murder", "shoot")),
}
"""The words that each category is made of."""


def rerank(value: RerankInput) -> RerankResult:
    """The score is the share of the words of the query that a document has."""
    query = set(_find_words(value.query.lower()))
    ranked = [
        RankedDocument(index=index, score=_share(query, text), text=text)
        for index, text in enumerate(value.documents)
    ]
    ranked.sort(key=lambda document: -document.score)
    tokens = count_text(value.query) + sum(map(count_text, value.documents))
    return RerankResult(
        model=value.model,
        documents=tuple(ranked[: value.top_n]),
        usage=Usage(input_tokens=tokens),
    )


def _share(query: set[str], document: str) -> float:
    return len(query & set(_find_words(document.lower()))) / (len(query) or 1)


def moderate(value: ModerateInput) -> ModerationResult:
    """A text is harmful if it has one of a few words; images never are."""
    return ModerationResult(model=value.model, results=tuple(map(_judge, value.inputs)))


def _judge(content: ModeratedContent) -> Moderation:
    if not isinstance(content, str):
        content = " ".join(part.text for part in content if isinstance(part, Text))
    words = set(_find_words(content.lower()))
    categories = {name: bool(words & harmful) for name, harmful in _CATEGORIES.items()}
    return Moderation(
        flagged=any(categories.values()),
        categories=categories,
        scores={name: 0.9 if is_in else 0.01 for name, is_in in categories.items()},
    )


DIMENSIONS = 8
"""Of the vectors, by default."""


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
