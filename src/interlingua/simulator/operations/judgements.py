"""Simulated reranking and moderation, by the words of the texts."""

from __future__ import annotations

import re

from interlingua.simulator.answer import count_text
from interlingua.spec.content import Text
from interlingua.spec.modalities.moderation import (
    ModeratedContent,
    ModerateInput,
    Moderation,
    ModerationResult,
)
from interlingua.spec.modalities.ranking import RankedDocument, RerankInput, RerankResult
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
