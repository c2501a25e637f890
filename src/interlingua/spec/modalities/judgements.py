"""
Judgements of texts and images.

Reranking puts documents in the order of their relevance to a query. Moderation says whether texts
and images are harmful.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from interlingua.spec.content import Extra, Part, Record
from interlingua.spec.operations import OperationInput, OperationResult

ModeratedContent: TypeAlias = str | tuple[Part, ...]
"""What is judged as one: a text, or parts."""


class RankedDocument(Record, frozen=True, kw_only=True):
    """A document and how relevant it is."""

    index: int
    """Its place in the given documents, from 0."""
    score: float
    """Higher is more relevant; comparable only within one result."""
    text: str | None = None
    """The document, if it was given as text."""


class RerankInput(OperationInput, frozen=True, kw_only=True):
    """A query, and the documents to rank."""

    query: str = ""
    documents: tuple[str, ...] = ()
    top_n: int | None = None
    """How many documents to return; None for all."""

    @property
    def rough_size(self) -> int:
        """As in `OperationInput`."""
        return sum(map(len, self.documents))


class RerankResult(OperationResult, frozen=True, kw_only=True):
    """The documents, the most relevant first."""

    documents: tuple[RankedDocument, ...] = ()
    """The ranking."""
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""


class ModerateInput(OperationInput, frozen=True, kw_only=True):
    """What to judge."""

    inputs: tuple[ModeratedContent, ...] = ()

    @property
    def rough_size(self) -> int:
        """As in `OperationInput`."""
        return sum(map(len, self.inputs))


class Moderation(Record, frozen=True, kw_only=True):
    """The judgement of one input. The names of the categories are the provider's own."""

    flagged: bool = False
    """Whether the input is harmful."""
    categories: Mapping[str, bool] = {}
    """Whether the input belongs to each category."""
    scores: Mapping[str, float] = {}
    """How sure the model is, from 0 to 1."""
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """The categories to which the input belongs, the surest first."""
        names = (name for name, is_in in self.categories.items() if is_in)
        return tuple(sorted(names, key=lambda name: -self.scores.get(name, 0.0)))


class ModerationResult(OperationResult, frozen=True, kw_only=True):
    """One judgement for each input, in the same order."""

    results: tuple[Moderation, ...] = ()
    """The judgements."""
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""

    @property
    def flagged(self) -> bool:
        """Whether any input is harmful."""
        return any(result.flagged for result in self.results)
