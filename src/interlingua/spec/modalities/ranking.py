"""Reranking: documents in the order of their relevance to a query."""

from __future__ import annotations

from interlingua.spec.content import Extra, Record
from interlingua.spec.operations import OperationInput, OperationResult


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
